"""The screen of tasks, on the shipped run."""

import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dgm.archive.history import evaluations_of
from dgm.archive.run import Run
from dgm.archive.store import EventStore
from dgm.domain import AgentId, Tally, TaskId, Verdict
from dgm.show.words import VERDICT_MARKS, tally_text
from dgm.tui import task_texts
from dgm.tui.app import Browser
from dgm.tui.screens.task import TaskScreen
from dgm.tui.task_texts import _find_in_conversations, load_tries
from tests.support.browser.driving import drive, grid
from tests.support.browser.shown import SMALL, TINY, WIDE, opened, press
from tests.support.runs.growing import Growing

__all__ = ["opened"]


def both_tried(run: Run) -> tuple[TaskId, AgentId, AgentId]:
    """A task that one agent resolved and another did not."""
    for task in run.tree.tasks:
        by = {run.tree.verdict(agent.id, task): agent.id for agent in run.tree.agents}
        if {Verdict.RESOLVED, Verdict.UNRESOLVED} <= by.keys():
            return task, by[Verdict.RESOLVED], by[Verdict.UNRESOLVED]
    raise AssertionError("no such task")


def test_tasks_are_listed_with_how_often_they_were_solved(example: Path, opened: Run) -> None:
    tallies: dict[TaskId, Tally] = {}
    for agent in opened.tree.agents:
        for evaluation in evaluations_of(opened, agent.id).values():
            tallies[evaluation.task] = tallies.get(evaluation.task, Tally()) + evaluation.tally

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        shown = (await press(browser, pilot, "3")).splitlines()
        solved = sum(tally.resolved > 0 for tally in tallies.values())
        assert any(f"{len(opened.tree.tasks)} tasks, {solved} of them resolved" in row for row in shown)
        for task, tally in tallies.items():
            assert any(task in row and tally_text(tally) in row for row in shown)

    drive(example, (120, 60), look)


def problem(task: TaskId) -> str:
    """The first line of the task's statement in the suite."""
    suite = Path(__file__).parents[2] / "benchmarks" / "starter"
    return (suite / "tasks" / task / "problem.md").read_text().strip().split("\n")[0]


def test_a_task_shows_its_statement_and_who_solved_it(example: Path, opened: Run) -> None:
    task, good, bad = both_tried(opened)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        number = opened.tree.tasks.index(task) + 1
        shown = await press(browser, pilot, "3", *["j"] * number, "enter")
        assert f"{task}  as an agent was told it; the benchmark is not here, or has changed" in shown
        assert problem(task)[:40] in shown
        assert f"{VERDICT_MARKS[Verdict.RESOLVED]} {good} " in shown
        assert f"{VERDICT_MARKS[Verdict.UNRESOLVED]} {bad} " in shown
        untried = [each.id for each in opened.tree.agents if opened.tree.verdict(each.id, task) is None]
        assert not untried or f"· {untried[0]}" in shown

    drive(example, (120, 80), look, agent=0)


def test_an_attempt_is_opened_and_left(example: Path, opened: Run) -> None:
    task, good, _ = both_tried(opened)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.go("task", agent=good, task=task)
        tree = await press(browser, pilot)
        shown = await press(browser, pilot, "enter")
        assert "✓ resolved" in shown and "what the agent changed" in shown
        assert await press(browser, pilot, "escape") == tree
        assert "resolved / tries" in await press(browser, pilot, "backspace")

    drive(example, WIDE, look)


def test_two_attempts_side_by_side(example: Path, opened: Run) -> None:
    task, good, bad = both_tried(opened)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.go("task", agent=good, task=task)
        await press(browser, pilot, "m")
        browser.go("task", agent=bad, task=task)
        shown = await press(browser, pilot, "m", "v")
        row = next(row for row in shown.splitlines() if "verdict" in row)
        left, right = row.split(" │ ")
        first, second = (left, right) if good < bad else (right, left)
        assert "✓ resolved" in first and "✗ unresolved" in second

    drive(example, WIDE, look)


def test_n_goes_from_one_that_tried_to_the_next(example: Path, opened: Run) -> None:
    task, *_ = both_tried(opened)
    tried = [each.id for each in opened.tree.agents if opened.tree.verdict(each.id, task) is not None]

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.go("task", agent=tried[0], task=task)
        await press(browser, pilot)
        screen = browser.screen
        assert isinstance(screen, TaskScreen)
        seen = []
        for _ in range(len(tried)):
            await press(browser, pilot, "n")
            seen.append(screen.agents.agent)
        assert seen == [*tried[1:], tried[0]]
        await press(browser, pilot, "N")
        assert screen.agents.agent == tried[-1]

    drive(example, WIDE, look)


def test_a_task_that_is_not_there_is_said_to_be_missing(example: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.go("task", task=TaskId("nobody-knows-it"))
        assert "not there: task nobody-knows-it" in await press(browser, pilot)

    drive(example, WIDE, look)


def test_a_statement_is_also_in_what_agents_were_told(example: Path, opened: Run) -> None:
    """The way that is left where the benchmark is not on this machine."""
    task, *_ = both_tried(opened)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        reader = browser.reader
        told = _find_in_conversations(reader, load_tries(reader, task))
        assert told is not None and problem(task) in told

    drive(example, WIDE, look)


def test_the_screen_survives_a_terminal_that_shrinks(example: Path, opened: Run) -> None:
    task, good, _ = both_tried(opened)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.go("task", agent=good, task=task)
        before = await press(browser, pilot)
        await pilot.resize_terminal(*TINY)
        assert "▌" in await press(browser, pilot, "j", "k", "enter", "escape")
        await pilot.resize_terminal(*SMALL)
        assert await press(browser, pilot) == before
        assert grid(browser) == before

    drive(example, SMALL, look)


def test_the_place_in_the_list_is_kept(example: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        before = await press(browser, pilot, "3", *["j"] * 6)
        await press(browser, pilot, "enter", "j")
        assert await press(browser, pilot, "escape") == before
        assert browser.page is not None and screen_of(browser).view.cursor == 6

    drive(example, WIDE, look)


def test_a_low_terminal_is_left_to_the_tree(example: Path, opened: Run) -> None:
    task, good, _ = both_tried(opened)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.go("task", agent=good, task=task)
        await press(browser, pilot)
        rows = screen_of(browser).agents.page
        assert rows == 9 and not screen_of(browser).query_one("#statement").display
        await pilot.resize_terminal(*WIDE)
        await press(browser, pilot)
        assert screen_of(browser).query_one("#statement").display

    drive(example, (80, 10), look)


def test_a_key_right_after_another_is_about_the_agent_under_the_cursor(example: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "3", "j", "enter", "g")
        agents = screen_of(browser).agents
        agents.action_move(1)
        browser.action_mark()
        assert browser.marks == [agents.agent]

    drive(example, WIDE, look)


def test_what_is_copied_is_what_the_cursor_is_on(example: Path, opened: Run) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "3", "j", "j", "y")
        assert browser.clipboard == opened.tree.tasks[1]
        await press(browser, pilot, "enter", "g", "j", "y")
        assert browser.clipboard == str(screen_of(browser).agents.agent) != "0"
        await press(browser, pilot, "tab", "y")
        assert browser.clipboard == opened.tree.tasks[1]

    drive(example, WIDE, look)


def test_verdicts_that_come_while_tasks_are_counted_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing = Growing(tmp_path / "run")
    growing.graded(0, 0, good=True)
    asked, go_on = threading.Event(), threading.Event()
    tried = task_texts.tally_tasks

    def slow(store: EventStore, until: int) -> Mapping[TaskId, Tally]:
        found = tried(store, until)
        asked.set()
        assert go_on.wait(300)
        return found

    monkeypatch.setattr(task_texts, "tally_tasks", slow)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await pilot.press("3")
        while not asked.is_set():
            await pilot.pause(0.02)
        growing.graded(0, 1, good=True)
        browser.look()
        assert "resolved / tries" not in grid(browser)
        go_on.set()
        assert "8 tasks, 2 of them resolved" in await press(browser, pilot)
        growing.graded(0, 2, good=True)
        assert "8 tasks, 3 of them resolved" in await press(browser, pilot)

    drive(tmp_path / "run", WIDE, look)
    growing.run.close()


def screen_of(browser: Browser) -> TaskScreen:
    screen = browser.screen
    assert isinstance(screen, TaskScreen)
    return screen
