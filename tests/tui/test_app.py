"""The frame: going back, the palette, sizes, colours, leaving, and runs that break."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from textual import events
from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.widgets import HelpPanel

from dgm.analysis.agents import best_of
from dgm.archive.events import ActionStarted, AgentBorn, ModelCalled, TaskGraded
from dgm.archive.run import Run
from dgm.domain import AgentId, Born, CommitId, Cost, Evaluate, Evaluation, Usage, Verdict
from dgm.errors import ArchiveCorrupt, UserError
from dgm.tui.app import THEMES, Browser
from dgm.tui.pane import TextView
from dgm.tui.reader import BackgroundReader
from tests.support.browser.driving import SMALL, TINY, WIDE, drive, grid, press, settle
from tests.support.runs.growing import TASKS, Growing

pytestmark = pytest.mark.sampled


def test_escape_goes_back_through_positions(example: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.tree_pane.agents.goto(3)
        await press(browser, pilot, "enter")
        await press(browser, pilot, "3")
        browser.go("agent", agent=5)
        await press(browser, pilot, "5")
        seen = []
        for _ in range(4):
            await press(browser, pilot, "escape")
            seen.append((browser.pane.id, browser.agent))
        assert seen == [("agent", 5), ("tasks", 3), ("agent", 3), ("tree", 3)]
        await press(browser, pilot, "escape")
        assert browser.pane.id == "tree"

    drive(example, SMALL, look)


def test_a_number_in_the_palette_goes_to_the_agent_and_a_name_to_the_task(example: Path, opened: Run) -> None:
    task = opened.tree.tasks[3]

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        for words in ("5", task):
            await press(browser, pilot, "colon")
            assert isinstance(browser.screen, CommandPalette)
            await press(browser, pilot, *words)
            await pilot.pause(0.5)
            await press(browser, pilot, "down", "enter")
            await settle(browser, pilot)
        assert (browser.pane.id, browser.agent, browser.task_id) == ("tasks", 5, task)

    drive(example, SMALL, look)


def test_the_keys_that_work_are_shown_and_hidden(example: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        shown = await press(browser, pilot, "question_mark")
        assert browser.query(HelpPanel)
        assert "To the root" in shown
        await press(browser, pilot, "question_mark")
        assert not browser.query(HelpPanel)

    drive(example, WIDE, look)


def test_the_agent_or_the_task_is_copied(example: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.tree_pane.agents.goto(3)
        await press(browser, pilot, "y")
        assert browser.clipboard == "3"

    drive(example, SMALL, look)


@pytest.mark.parametrize("tab", ["tree", "agent", "tasks", "compare", "run"])
def test_a_terminal_may_shrink_and_grow_again(tab: str, example: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.go(tab)
        await pilot.pause()
        await settle(browser, pilot)
        for width, height in (TINY, (1, 1), (3, 2), (200, 5), (80, 24)):
            await pilot.resize_terminal(width, height)
            await settle(browser, pilot)
            assert len(grid(browser).split("\n")) == height
        shown = grid(browser)
        assert "1 Tree" in shown
        assert "q Quit" in shown

    drive(example, WIDE, look)


def test_themes_are_switched(example: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        seen = [browser.theme]
        for _ in THEMES:
            await press(browser, pilot, "t")
            seen.append(browser.theme)
        assert seen == ["textual-light", "ansi-dark", "textual-dark", "textual-light"]

    drive(example, SMALL, look, theme="light")


def test_without_colours_nothing_is_said_by_colour_alone(
    example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        assert "★" in grid(browser)
        assert browser.theme == THEMES["ansi"]

    drive(example, SMALL, look)


@pytest.mark.parametrize("ahead", ["dgm", "2", "3", "4", "5"])
def test_keys_typed_after_the_one_to_leave_do_nothing(ahead: str, example: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        for key in ("q", *ahead, "enter"):
            browser.post_message(events.Key(key, key if len(key) == 1 else None))
        for _ in range(200):
            if not browser.is_running:
                break
            await pilot.pause(0.02)
        assert not browser.is_running
        assert browser.return_code == 0

    drive(example, SMALL, look)


def run_until_left(folder: Path, agent: str | None = None) -> Browser:
    async def perform() -> Browser:
        browser = Browser(BackgroundReader(folder), agent=agent)
        async with browser.run_test(size=SMALL) as pilot:
            while browser.is_running and browser.failure is None:
                await pilot.pause(0.02)
        return browser

    return asyncio.run(perform())


def test_an_unknown_agent_ends_the_browser(example: Path) -> None:
    failure = run_until_left(example, "99").failure
    assert isinstance(failure, UserError)
    assert failure.argument == "agent"


def test_a_damaged_log_ends_the_browser(example_copy: Path) -> None:
    with sqlite3.connect(example_copy / "run.db") as log:
        for (trigger,) in log.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            log.execute(f"DROP TRIGGER {trigger}")
        log.execute("UPDATE events SET body = '{}' WHERE seq = 5")
    assert isinstance(run_until_left(example_copy).failure, ArchiveCorrupt)


def test_a_run_that_is_removed_stays_as_it_was_read(example_copy: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        shutil.rmtree(example_copy)
        while browser.problem is None:
            await pilot.pause(0.02)
        await pilot.pause()
        assert "removed or replaced" in grid(browser).splitlines()[0]
        assert "★" in grid(browser)

    drive(example_copy, WIDE, look)


async def show_attempt(browser: Browser, pilot: Pilot[None], agent: int, action: int) -> str:
    browser.go("tasks", agent=agent, attempt=action)
    await pilot.pause()
    await settle(browser, pilot)
    return "\n".join(strip.text.rstrip() for strip in browser.query_one("#attempt", TextView).lines)


def test_one_damaged_trace_is_missed_alone(example_copy: Path, opened: Run) -> None:
    best = best_of(opened)
    event = opened.store.graded(best)[0].event
    assert isinstance(event, TaskGraded)
    digest = event.outcome.cost.traces["patch"]
    with closing(sqlite3.connect(example_copy / "run.db")) as log, log:
        log.execute("UPDATE blobs SET zlib = x'00' WHERE sha256 = ?", (digest,))

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        text = await show_attempt(browser, pilot, best, event.action)
        assert text.count("cannot be read") == 1
        assert "\ntests\n" in text

    drive(example_copy, WIDE, look)


def test_without_sources_the_rest_is_there(example_copy: Path, opened: Run) -> None:
    shutil.rmtree(example_copy / "agents.git" / "objects")
    best = best_of(opened)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.tree_pane.agents.goto(best)
        await press(browser, pilot, "d")
        assert "the diff cannot be read" in grid(browser)
        await press(browser, pilot, "left_square_bracket")
        assert "making it" in grid(browser)
        browser.marks = [0, best]
        shown = await press(browser, pilot, "c")
        assert "the code cannot be read" in shown
        assert "exact McNemar" in shown

    drive(example_copy, WIDE, look)


def test_a_trace_of_any_content_is_missed_alone(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run")
    growing.born(0)
    digest = growing.run.traces.put(b"[" * 200_000)
    action = growing.start(1)
    growing.run.append(ModelCalled(action, 1, "improve", "m", Usage(1, 1, 1), 1.0))
    growing.run.append(
        AgentBorn(action, AgentId(2), Born((AgentId(1),), "self-edit", CommitId("2" * 40), "why"))
    )
    action = growing.run.tree.next_action
    growing.run.append(ActionStarted(action, Evaluate(AgentId(2), TASKS[0])))
    evaluation = Evaluation(
        AgentId(2), TASKS[0], 0, Verdict.RESOLVED, "right", 1.0, Cost(Usage(), 1.0, {"log": digest})
    )
    growing.run.append(TaskGraded(action, evaluation))
    growing.run.close()

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        assert "[[[[" in await show_attempt(browser, pilot, 2, action)
        browser.agent_pane.part = "making"
        browser.go("agent")
        await pilot.pause()
        await settle(browser, pilot)
        assert "cannot be read" in grid(browser)
        assert browser.is_running

    drive(tmp_path / "run", WIDE, look, agent="2")
