"""The comparison of two marked agents, on the shipped run, and on one that grows."""

from pathlib import Path
from threading import Event

import pytest
from textual.pilot import Pilot

from dgm.analysis.best import best_of
from dgm.archive.repository import AgentRepository
from dgm.archive.run import Run
from dgm.domain import AgentId, Verdict
from dgm.evaluation.exam import Comparison, compare_verdicts
from dgm.show.diffs import Patch
from dgm.show.words import interval_text, mcnemar_text, tally_text
from dgm.tui.app import Browser
from dgm.tui.screens.compare import CompareScreen, _test_span
from tests.support.browser.driving import drive, grid, settle
from tests.support.browser.shown import TINY, WIDE, opened, press
from tests.support.runs.growing import Growing

__all__ = ["opened"]


def pairs(run: Run, first: AgentId, second: AgentId) -> Comparison:
    one, two = run.tree.verdicts(first), run.tree.verdicts(second)
    return compare_verdicts([(task, one.get(task), two.get(task)) for task in run.tree.tasks])


def a_gain(run: Run) -> tuple[AgentId, AgentId]:
    """An agent, and a later one that resolved a task which the first did not."""
    agents = [agent.id for agent in run.tree.agents]
    return next((one, two) for one in agents for two in agents if one < two and pairs(run, one, two).gained)


def test_without_two_marks_it_says_what_to_do(example: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        assert "mark two agents with m" in await press(browser, pilot, "4")

    drive(example, WIDE, look)


def test_two_agents_are_compared(example: Path, opened: Run) -> None:
    best = best_of(opened)
    first = next(
        agent.id for agent in opened.tree.agents if agent.id < best and pairs(opened, agent.id, best).gained
    )
    found = pairs(opened, first, best)
    patch = Patch(opened.repository.diff(opened.tree.agents[first].commit, opened.tree.agents[best].commit))

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        # On the tree: the cursor stands on the first, b goes to the best.
        shown = await press(browser, pilot, "m", "b", "m", "c")
        assert f"on the {found.first.n} task" in shown
        for tally in (found.first, found.second):
            assert f"{tally_text(tally)}  {interval_text(tally)}" in shown
        assert f"{len(found.gained)} gained, {len(found.lost)} lost" in shown
        assert mcnemar_text(found.p, found.mid_p) in shown
        assert _test_span(found, first, best).text in shown
        rows = shown.splitlines()
        for task in found.gained:
            assert any("✗ ✓" in row and task in row for row in rows)
        for task in found.lost:
            assert any("✓ ✗" in row and task in row for row in rows)
        assert patch.files[0].path in shown

    drive(example, (120, 90), look, agent=first)


def test_a_task_and_a_file_can_be_opened(example: Path, opened: Run) -> None:
    one, two = a_gain(opened)
    found = pairs(opened, one, two)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.marks = [two, one]
        shown = (await press(browser, pilot, "4")).splitlines()
        first = next(number for number, row in enumerate(shown) if "✗ ✓" in row)
        await press(browser, pilot, *["j"] * (first - 1), "enter")
        assert browser.task_id in found.gained
        await press(browser, pilot, "escape")
        rows = grid(browser).splitlines()
        file = next(number for number, row in enumerate(rows) if "code of agent" in row) + 1
        screen = browser.screen
        assert isinstance(screen, CompareScreen)
        view = screen.view
        await press(browser, pilot, "g", *["j"] * (file - 1), "enter")
        assert view.body.said(view.cursor).startswith("diff --git")

    drive(example, (120, 90), look)


def test_no_difference_is_called_none() -> None:
    """Five gained and none lost are not enough for an exact test at 5 %."""
    one, two = AgentId(1), AgentId(2)
    few = compare_verdicts([(str(n), *_verdicts(n < 5)) for n in range(20)])
    many = compare_verdicts([(str(n), *_verdicts(n < 6)) for n in range(20)])
    assert _test_span(few, one, two).text == "not shown to be different"
    assert _test_span(many, one, two).text.startswith("agent 2 resolves more")


def _verdicts(gained: bool) -> tuple[Verdict, Verdict]:
    return (Verdict.UNRESOLVED, Verdict.RESOLVED) if gained else (Verdict.RESOLVED, Verdict.RESOLVED)


def test_code_side_by_side(example: Path, opened: Run) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.marks = [AgentId(0), best_of(opened)]
        before = await press(browser, pilot, "4")
        assert " │ " not in before and " │ " in await press(browser, pilot, "v")
        await pilot.resize_terminal(*TINY)
        assert "▌" in await press(browser, pilot, "j", "G", "g")

    drive(example, (120, 90), look)


def test_a_comparison_is_read_to_its_end_while_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing = Growing(tmp_path / "run")
    growing.born(0)
    begun: list[str] = []
    go_on = Event()

    def slow(self: AgentRepository, before: str, after: str) -> bytes:
        begun.append(after)
        assert go_on.wait(300)
        return b""

    monkeypatch.setattr(AgentRepository, "diff", slow)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.marks = [AgentId(0), AgentId(1)]
        browser.go("compare")
        while not begun:
            await pilot.pause(0.02)
        for task in range(4):
            growing.start(0)
            growing.graded(1, task, good=True)
            browser.look()
            await pilot.pause()
        assert len(begun) == 1
        await pilot.press("v")
        assert "nothing" not in browser.said
        go_on.set()
        await settle(browser, pilot)
        await settle(browser, pilot)
        # Once more for all that came meanwhile.
        assert len(begun) == 2
        assert isinstance(browser.screen, CompareScreen) and browser.screen.beside
        growing.graded(0, 0, good=False)
        await settle(browser, pilot)
        assert "1 gained" in grid(browser) and len(begun) == 3

    drive(tmp_path / "run", WIDE, look)
    growing.run.close()
