"""The screen of the run: on the shipped one, and on one that grows."""

import os
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dgm.archive.run import Run
from dgm.errors import UserError
from dgm.show.spans import plain_text
from dgm.tui import pager, reader
from dgm.tui.app import Browser
from dgm.tui.plot import curve_lines
from dgm.tui.run_facts import LogFacts, run_lines
from dgm.views.curve import CurvePoint, compute_curve
from tests.support.browser.driving import drive, grid, settle
from tests.support.browser.shown import SMALL, TINY, WIDE, opened, press
from tests.support.runs.growing import Growing

__all__ = ["opened"]


def test_it_says_how_far_the_run_is(example: Path, opened: Run) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        shown = await press(browser, pilot, "5")
        tree = opened.tree
        assert f"{tree.evaluations} of {tree.budget.evaluations}" in shown
        assert f"{tree.spend.tokens:,} tokens" in shown
        assert "offline model" in shown
        last = compute_curve(opened)[-1]
        assert f"lower bound {last.lower_bound:.2f}" in shown and f"now agent {last.agent}" in shown
        assert "the run has ended" in shown
        text = browser.page.pages() if browser.page else None
        assert text is not None and "recent events" in text and "errors" in text

    drive(example, (120, 60), look)


def test_a_run_that_goes_on_is_followed(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run")

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        shown = await press(browser, pilot, "5")
        assert "0 of 100" in shown and "0 of 2 in use" in shown
        growing.start(0)
        browser.look()
        await settle(browser, pilot)
        shown = grid(browser)
        assert "1 of 2 in use" in shown and "✎ agent 0 is changed by self-edit" in shown
        growing.born(0, rationale="look before leaping")
        for number in range(5):
            growing.graded(1, number, good=number > 1)
        browser.look()
        await settle(browser, pilot)
        shown = grid(browser)
        assert "agent 1 is born of 0: look before leaping" in shown
        assert "5 of 100: 3 resolved, 2 unresolved" in shown

    drive(tmp_path / "run", (120, 60), look)
    growing.run.close()


def test_of_a_run_that_was_cut_off_nothing_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "STATE_EVERY_S", 0.0)
    growing = Growing(tmp_path / "run")
    growing.born(0)
    growing.start(1)
    growing.graded(0, 0, good=True)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        assert "✎" in grid(browser)
        growing.run.close()
        await settle(browser, pilot)
        shown = grid(browser)
        assert "interrupted" in shown and "✎" not in shown
        shown = await press(browser, pilot, "5")
        assert "(interrupted, 0 s, 1 under way when it was cut off)" in shown
        assert "slots  the run was cut off; under way then:" in shown
        assert "agent 1 was changed by self-edit  0 calls" in shown
        assert "in use" not in shown and "✎" not in shown

    drive(tmp_path / "run", (120, 60), look)


def test_it_survives_a_terminal_that_shrinks(example: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        before = await press(browser, pilot, "5", "G", "g")
        await pilot.resize_terminal(*TINY)
        assert "▌" in await press(browser, pilot, "j", "k", "G")
        await pilot.resize_terminal(*SMALL)
        assert await press(browser, pilot, "g") == before

    drive(example, SMALL, look)


def test_the_curve_has_its_numbers() -> None:
    points = [
        CurvePoint(1, 0, 0, 0, 0, 0.0, 0.0),
        CurvePoint(50, 0, 0, 0, 1, 0.5, 0.25),
        CurvePoint(100, 0, 0, 0, 2, 0.8, 0.4),
    ]
    rows = [plain_text(each) for each in curve_lines(points, 20, 4)]
    assert rows[0].startswith("  80%┤") and rows[3].startswith("   0%┤")
    assert rows[5].endswith("100 evaluations")
    # The rate ends at the top, the bound in the middle.
    assert rows[0].endswith("·") and not rows[1].endswith("·")
    braille = [any(0x2800 < ord(each) < 0x2900 for each in row) for row in rows[:4]]
    assert braille == [False, True, True, True]
    assert all(len(row) <= 6 + 20 for row in rows[:6])


def test_a_curve_that_is_not_worked_out_is_not_called_none(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run")
    said = "\n".join(plain_text(each) for each in run_lines(growing.run, None, LogFacts(curve=()), 0.0, 80))
    assert "no evaluation yet" in said
    growing.graded(0, 0, good=True)
    for early in (LogFacts(), LogFacts(curve=())):
        said = "\n".join(plain_text(each) for each in run_lines(growing.run, None, early, 0.0, 80))
        assert "being worked out" in said and "no evaluation yet" not in said
    growing.run.close()


def test_what_is_shown_opens_in_the_pager(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "a pager"
    script.write_text('#!/bin/sh\necho "$LESSSECURE $1"; stat -c %a "$2"; cat "$2"\n')
    script.chmod(0o700)
    pager.show_in_pager("one\x1b[31m\ntwo", {**os.environ, "PAGER": f"'{script}' -R"})
    assert capfd.readouterr().out == "1 -R\n600\none\\x1b[31m\ntwo\n"


def test_a_pager_that_cannot_be_started_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be started"):
        pager.show_in_pager("text", {"PAGER": str(tmp_path / "none")})
    with pytest.raises(UserError, match="no command line"):
        pager.show_in_pager("text", {"PAGER": "less 'unclosed"})
    assert pager.pager_command({}) == ["less"]


def test_a_pager_gets_nothing_through_a_shell(tmp_path: Path) -> None:
    owned = tmp_path / "owned"
    pager.show_in_pager("text", {**os.environ, "PAGER": f"true ; touch {owned}"})
    assert not owned.exists()


def test_the_pager_key_says_why_it_cannot(example: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        assert "a pager cannot be opened from here" in await press(browser, pilot, "5", "o")

    drive(example, WIDE, look)
