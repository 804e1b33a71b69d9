"""The tab of the run, and the approval of children."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from dgm.archive.live import read_answer
from dgm.archive.run import Run
from dgm.domain import ActionId
from dgm.tui.app import Browser
from dgm.tui.pane import TextView
from dgm.views.run import RunView
from tests.support.browser.driving import WIDE, drive, grid, press, settle
from tests.support.runs.growing import Growing
from tests.support.runs.waiting import make_waiting_run


def text_of(browser: Browser) -> str:
    return "\n".join(strip.text.rstrip() for strip in browser.query_one("#run-text", TextView).lines)


def test_the_panel_shows_budget_spend_events_and_failures(example: Path, opened: Run) -> None:
    view = RunView.load(opened)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "5")
        text = text_of(browser)
        for fact in (view.state, f"{view.spend.tokens:,} tokens", "60 of 60 evaluations", "the run ended"):
            assert fact in text
        assert f"agent {view.best.agent if view.best else None}" in text
        for count in view.failures.stillborn:
            assert f"{count.times} × stillborn" in text

    drive(example, WIDE, look)


def test_what_is_under_way_is_shown_while_the_run_goes_on(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run")
    growing.graded(0, 0, good=True)
    growing.start(0)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "5")
        assert "child of 0 by self-edit" in text_of(browser)
        assert "1 running" in text_of(browser)
        assert "agent 0 resolved suite/task-0" in text_of(browser)
        growing.born(0)
        browser.pane.enter()
        await settle(browser, pilot)
        assert "agent 1 was born" in text_of(browser)

    drive(tmp_path / "run", WIDE, look)
    growing.run.close()


@pytest.mark.sampled
def test_waiting_children_are_approved_and_rejected(tmp_path: Path) -> None:
    folder = make_waiting_run(tmp_path / "run")

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        assert "2 children wait for approval" in grid(browser).splitlines()[0]
        shown = await press(browser, pilot, "w")
        assert "child 2 of 0" in shown
        assert "+2" in shown
        assert "\\x1b[31m" in shown
        shown = await press(browser, pilot, "y")
        assert "child 3 of 0" in shown
        await press(browser, pilot, "n")
        await press(browser, pilot, *"worse", "enter")
        assert len(browser.screen_stack) == 1

    drive(folder, WIDE, look)
    accepted, rejected = (read_answer(folder, ActionId(number)) for number in (2, 3))
    assert accepted is not None
    assert accepted.yes
    assert rejected is not None
    assert (rejected.yes, rejected.reason) == (False, "worse")


@pytest.mark.sampled
def test_a_child_may_be_left_waiting(tmp_path: Path) -> None:
    folder = make_waiting_run(tmp_path / "run")

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        assert "child 2" in await press(browser, pilot, "w")
        assert "child 3" in await press(browser, pilot, "w")
        await press(browser, pilot, "escape")
        await press(browser, pilot, "y", "n")

    drive(folder, WIDE, look)
    assert [read_answer(folder, ActionId(number)) for number in (2, 3)] == [None, None]


def test_nothing_is_approved_where_no_child_waits(example: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "w")
        assert len(browser.screen_stack) == 1
        assert "w Approve" not in grid(browser)

    drive(example, WIDE, look)
