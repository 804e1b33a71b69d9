"""The tabs of tasks and of two compared agents, on the shipped run."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from dgm.archive.run import Run
from dgm.domain import AgentId, TaskId, Verdict
from dgm.evaluation.schedule import compare_verdicts
from dgm.tui.app import Browser
from dgm.tui.pane import Listing, TextView
from dgm.views.tasks import TaskView
from tests.support.browser.driving import WIDE, drive, grid, press, rows_of, settle, type_words
from tests.support.runs.growing import Growing

pytestmark = pytest.mark.sampled


def both_tried(run: Run) -> tuple[TaskId, AgentId, AgentId]:
    """Return a task that one agent resolved and another did not."""
    for task in run.tree.tasks:
        by = {run.tree.verdict(agent.id, task): agent.id for agent in run.tree.agents}
        if {Verdict.RESOLVED, Verdict.UNRESOLVED} <= by.keys():
            return task, by[Verdict.RESOLVED], by[Verdict.UNRESOLVED]
    raise AssertionError("no such task")


def text_of(browser: Browser, view: str) -> str:
    return "\n".join(strip.text.rstrip() for strip in browser.query_one(f"#{view}", TextView).lines)


def test_tasks_are_listed_with_how_often_they_were_solved(example: Path, opened: Run) -> None:
    tallies = {task: TaskView.load(opened, task).tally for task in opened.tree.tasks}

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        shown = (await press(browser, pilot, "3")).splitlines()
        solved = sum(tally.resolved > 0 for tally in tallies.values())
        assert f"{len(tallies)} tasks, {solved} solved" in shown[2]
        for task, tally in tallies.items():
            row = next(row for row in shown if f" {task} " in row)
            assert f"{tally.resolved} of {tally.n}" in row or not tally.n

    drive(example, (120, 60), look)


def test_a_task_leads_to_its_attempts_and_an_attempt_to_everything_stored(example: Path, opened: Run) -> None:
    task, good, _ = both_tried(opened)
    view = TaskView.load(opened, task)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "3")
        await type_words(browser, pilot, task)
        shown = await press(browser, pilot, "enter")
        assert task in shown.splitlines()[2]
        keys = [str(key.value) for key in browser.query_one("#attempts", Listing).rows]
        assert keys == [f"{attempt.agent} {attempt.action}" for attempt in view.attempts]
        assert len(text_of(browser, "statement")) > 40
        number = next(n for n, attempt in enumerate(view.attempts) if attempt.agent == good)
        shown = await press(browser, pilot, *["j"] * number, "enter")
        assert f"agent {good} on {task}" in shown.splitlines()[2]
        text = text_of(browser, "attempt")
        for part in ("resolved", "patch", "tests", "conversation"):
            assert part in text
        await press(browser, pilot, "escape")
        assert task in grid(browser).splitlines()[2]
        await press(browser, pilot, "backspace")
        assert " tasks, " in grid(browser).splitlines()[2]

    drive(example, WIDE, look)


def test_a_task_that_nobody_knows_has_no_attempts(example: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.go("tasks", task="nobody-knows-it")
        await press(browser, pilot)
        assert browser.query_one("#attempts", Listing).row_count == 0

    drive(example, WIDE, look)


def test_new_verdicts_are_counted(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run")

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        assert "0 solved" in await press(browser, pilot, "3")
        growing.graded(0, 3, good=True)
        await settle(browser, pilot)
        await settle(browser, pilot)
        assert "1 of 1" in next(row for row in grid(browser).splitlines() if "suite/task-3" in row)

    drive(tmp_path / "run", WIDE, look)
    growing.run.close()


def test_two_marked_agents_are_compared_on_the_tasks_that_both_tried(example: Path, opened: Run) -> None:
    tree = opened.tree
    first, second = AgentId(6), AgentId(7)
    one, two = tree.verdicts(first), tree.verdicts(second)
    both = [task for task in tree.tasks if one.get(task) is not None and two.get(task) is not None]
    comparison = compare_verdicts([(task, one[task], two[task]) for task in both])

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "4")
        assert "mark two agents" in text_of(browser, "comparison")
        browser.marks = [7, 6]
        await press(browser, pilot, "c")
        text = text_of(browser, "comparison")
        assert "Agent 7 against agent 6" in text
        assert f"{comparison.first.resolved}/{comparison.first.n}" in text
        assert f"only agent 7 solved: {len(comparison.gained)} task" in text
        assert f"only agent 6 solved: {len(comparison.lost)} task" in text
        assert all(f"  {task}" in text for task in both)
        assert "no difference shown" in text
        assert "+def forget(messages):" in text

    drive(example, WIDE, look)


def test_a_third_mark_takes_the_place_of_the_first(example: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        for agent in (3, 4, 5, 4, 4):
            browser.tree_pane.agents.goto(agent)
            await press(browser, pilot, "m")
        assert browser.marks == [5, 4]
        assert sum("◆" in row for row in rows_of(browser)) == 2
        browser.marks = [3]
        browser.tree_pane.agents.goto(9)
        await press(browser, pilot, "c")
        assert (browser.pane.id, browser.marks) == ("compare", [3, 9])

    drive(example, WIDE, look)
