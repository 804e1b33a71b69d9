"""What the screens say while a long run is still being read, and when it has been."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event, Thread

import pytest
from textual.pilot import Pilot

from dgm.archive.events import Recorded
from dgm.archive.run import Run
from dgm.archive.store import EventStore
from dgm.domain import AgentId
from dgm.errors import ArchiveCorrupt, Infrastructure
from dgm.tui import reader as readers
from dgm.tui.app import Browser
from dgm.tui.reader import RunReader
from tests.support.browser.driving import drawn, drive, grid, settle
from tests.support.runs.growing import Growing

Held = Callable[[Browser, Pilot[None], Event], Awaitable[None]]


def while_read(folder: Path, monkeypatch: pytest.MonkeyPatch, script: Held) -> None:
    """Performs a script on a long run that is outlined and not folded, before the script sets the event."""
    go_on = Event()
    warm_up = RunReader._warm_up

    def held(reader: RunReader) -> None:
        assert go_on.wait(300)
        warm_up(reader)

    monkeypatch.setattr(readers, "SMALL", 5)
    monkeypatch.setattr(RunReader, "_warm_up", held)

    async def perform() -> None:
        with RunReader(folder) as reader:
            browser = Browser(reader, theme="dark")
            async with browser.run_test(size=(120, 40)) as pilot:
                for _ in range(3000):
                    browser.look()
                    await pilot.pause(0.01)
                    if reader.members is not None or reader._outline is None:
                        break
                try:
                    await script(browser, pilot, go_on)
                finally:
                    go_on.set()

    asyncio.run(perform())


@pytest.fixture
def long_run(tmp_path: Path) -> Path:
    """A run of which only the limit that tests set makes a long one; nobody writes it."""
    growing = Growing(tmp_path / "run")
    for agent in range(1, 8):
        growing.born((agent - 1) // 2, rationale=f"change {agent}")
        growing.graded(agent, 0, good=agent % 2 == 0)
    growing.run.close()
    return tmp_path / "run"


def test_the_head_of_an_agent_is_filled_in_when_the_run_is_read(
    long_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(browser: Browser, pilot: Pilot[None], go_on: Event) -> None:
        assert browser.reader.members is not None and browser.reader.run is None
        browser.go("agent", agent=AgentId(2))
        await drawn(browser, pilot)
        # What it took, and the lower bound, need more than the outline.
        head = grid(browser).splitlines()[1:4]
        assert "lower bound …" in head[1] and head[2].strip() == "…"
        go_on.set()
        await settle(browser, pilot)
        await settle(browser, pilot)
        head = grid(browser).splitlines()[1:4]
        assert "lower bound 0." in head[1] and head[2].strip() == "no model was asked for it yet"

    while_read(long_run, monkeypatch, script)


def test_without_indices_no_screen_says_that_there_is_nothing(
    long_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "has_indices", lambda store: False)

    async def script(browser: Browser, pilot: Pilot[None], go_on: Event) -> None:
        assert browser.reader.members is None
        for screen in ("agent", "running"):
            browser.go(screen)
            await drawn(browser, pilot)
            assert "the run is being read: " in grid(browser)
            assert "no agent" not in grid(browser)
        go_on.set()
        await settle(browser, pilot)
        assert "evaluations  7 of 100" in grid(browser)

    while_read(long_run, monkeypatch, script)


def test_a_damaged_birth_is_a_row_without_a_name_until_the_run_is_read(
    long_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = EventStore.decoded

    def damaged(self: EventStore, row: tuple[int, float, str, int | None, str]) -> object:
        if "change 5" in row[4]:
            raise ArchiveCorrupt("events.db: event 20: no JSON")
        return decoded(self, row)

    monkeypatch.setattr(EventStore, "decoded", damaged)

    async def script(browser: Browser, pilot: Pilot[None], go_on: Event) -> None:
        assert "change 4" in grid(browser) and "change 5" not in grid(browser)
        browser.go("agent", agent=AgentId(5))
        await drawn(browser, pilot)
        assert "agent 5: not there yet" in grid(browser)
        go_on.set()
        await settle(browser, pilot)
        assert "event 20: " in grid(browser).splitlines()[-1]

    while_read(long_run, monkeypatch, script)


def test_an_agent_that_is_not_there_is_refused_as_soon_as_that_is_known(
    long_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "SMALL", 5)
    with RunReader(long_run) as reader:
        assert reader.run is None
        assert [reader.explain_missing_agent(AgentId(agent)) for agent in (0, 7)] == ["", ""]
        assert all(
            reader.explain_missing_agent(AgentId(agent)) == f"run run: no agent {agent}"
            for agent in (8, 1 << 70)
        )
    monkeypatch.setattr(readers, "has_indices", lambda store: False)
    with RunReader(long_run) as reader:
        assert reader.explain_missing_agent(AgentId(8)) == ""

    async def script(browser: Browser, pilot: Pilot[None], go_on: Event) -> None:
        browser.agent = AgentId(8)
        go_on.set()
        await settle(browser, pilot)
        assert "run run: no agent 8; there are 0 to 7" in grid(browser).splitlines()[-1]
        assert browser.agent != 8

    while_read(long_run, monkeypatch, script)
    growing = Growing(long_run.parent / "empty", seed=False)
    growing.run.close()
    with RunReader(long_run.parent / "empty") as reader:
        assert reader.explain_missing_agent(AgentId(0)) == "run empty: no agent 0; none is born yet"


def test_what_passes_is_said_and_following_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    growing = Growing(tmp_path / "run")
    follow = Run.follow

    def busy(self: Run, most: int | None = None) -> Sequence[Recorded]:
        raise Infrastructure("events.db: database is locked")

    with RunReader(tmp_path / "run") as reader:
        monkeypatch.setattr(Run, "follow", busy)
        growing.born(0)
        assert reader.advance().facts and "is locked" in reader.problem
        monkeypatch.setattr(Run, "follow", follow)
        # The first look has also asked for the best agent; following waits for the answer.
        for _ in range(1000):
            if born := reader.advance().born:
                break
            time.sleep(0.01)
        assert born == range(1, 2) and not reader.problem
    growing.run.close()


def test_a_best_agent_that_was_not_found_is_looked_for_again(
    example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[Run] = []

    def once(run: Run) -> AgentId:
        if not failed:
            failed.append(run)
            raise Infrastructure("events.db: disk I/O error")
        return AgentId(7)

    monkeypatch.setattr("dgm.analysis.best.best_of", once)

    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        for _ in range(3000):
            browser.look()
            await pilot.pause(0.01)
            if browser.reader.best is not None:
                break
        assert failed and browser.reader.best == 7 and not browser.reader.problem

    drive(example, (100, 24), script)


def test_it_is_said_that_following_waits_for_a_question_to_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "PATIENCE_S", 0.0)
    growing = Growing(tmp_path / "run")

    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        answer, asked = Event(), Event()
        thread = Thread(target=browser.reader.ask_tree, args=(lambda run: asked.set() or answer.wait(20),))
        thread.start()
        assert asked.wait(300)
        growing.born(0)
        browser.look()
        browser.look()
        await drawn(browser, pilot)
        assert "what is new will be shown afterwards" in grid(browser).splitlines()[-1]
        assert browser.reader.count == 1
        answer.set()
        thread.join()
        await settle(browser, pilot)
        assert "? keys" in grid(browser).splitlines()[-1]
        assert browser.reader.count == 2

    drive(tmp_path / "run", (100, 24), script)
    growing.run.close()


def test_what_the_first_keys_need_is_imported_beside_the_drawing() -> None:
    program = """
import sys
from dgm.tui.reader import RunReader
RunReader._warm_up(RunReader.__new__(RunReader))
before = set(sys.modules)
import dgm.tui.screens.agent, dgm.tui.screens.compare, dgm.tui.screens.running, dgm.tui.screens.task
print(*{name.partition(".")[0] for name in set(sys.modules) - before} & {"numpy", "scipy", "pydantic"})
print("dgm.tui.screens.agent" not in before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]


def test_a_run_is_not_closed_under_a_thread_that_asks_its_tree(example: Path) -> None:
    asked, go_on = Event(), Event()

    def question(run: Run) -> int:
        asked.set()
        assert go_on.wait(300)
        return len(list(run.store.read(0, 5)))

    reader = RunReader(example)
    with ThreadPoolExecutor(2) as threads:
        answer = threads.submit(reader.ask_tree, question)
        assert asked.wait(300)
        closed = threads.submit(reader.close)
        assert wait([closed], timeout=0.2).not_done
        go_on.set()
        closed.result(30)
        assert answer.result(30) == 5
