"""Every screen on a run whose every text is hostile: nothing of it reaches the terminal as it is."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from dgm.domain import AgentId
from dgm.tui.app import Browser
from dgm.tui.screens.agent import TABS, AgentScreen
from dgm.tui.screens.task import TaskScreen
from tests.support.browser.driving import drive, settle
from tests.support.browser.shown import SMALL, TINY, WIDE, press, unsafe
from tests.support.runs.hostile import ESCAPES, TASKS, hostile_folder, source

__all__ = ["hostile_folder"]
SIZES = (WIDE, TINY)
LAST = 12


async def look_around(browser: Browser, pilot: Pilot[None]) -> None:
    """Up and down, and to the ends of its lines."""
    for key in ("G", "l", "l", "g", "ctrl+f"):
        await press(browser, pilot, key)
        assert not unsafe(browser)


@pytest.mark.parametrize("size", [WIDE, pytest.param(TINY, marks=pytest.mark.minutes)], ids=str)
@pytest.mark.parametrize("tab", TABS)
def test_an_agent(hostile_folder: Path, tab: str, size: tuple[int, int]) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.go("agent", tab=tab)
        await settle(browser, pilot)
        screen = browser.screen
        assert isinstance(screen, AgentScreen) and len(screen.view.body) > 1
        await look_around(browser, pilot)
        await press(browser, pilot, "v")
        await look_around(browser, pilot)

    drive(hostile_folder, size, look, agent=LAST)


def test_each_of_its_files(hostile_folder: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        for path in source(LAST):
            browser.go("agent", tab=f"source/{path}")
            await settle(browser, pilot)
            screen = browser.screen
            assert isinstance(screen, AgentScreen)
            shown = "\n".join(screen.view.body.text())
            assert "not there" not in shown and len(shown) > 5
            assert not unsafe(browser)
            await press(browser, pilot, "G", "l")
            assert not unsafe(browser)

    drive(hostile_folder, SMALL, look, agent=LAST)


def test_each_of_its_evaluations(hostile_folder: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "2", "]", "]")
        for number in range(1, 6):
            await press(browser, pilot, "g", *["j"] * number, "enter")
            screen = browser.screen
            assert isinstance(screen, AgentScreen) and screen.tab.startswith("evaluation/")
            assert "\\x1b" in "\n".join(screen.view.body.text())
            # They differ in what stands at their top.
            assert not unsafe(browser)
            if number == 1:
                await look_around(browser, pilot)
            await press(browser, pilot, "v")
            assert not unsafe(browser)
            if number == 1:
                await look_around(browser, pilot)
            await press(browser, pilot, "escape")

    drive(hostile_folder, WIDE, look, agent=LAST)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_tasks(hostile_folder: Path, size: tuple[int, int]) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "3")
        await look_around(browser, pilot)
        browser.marks = [AgentId(0), AgentId(LAST)]
        for number, task in enumerate(TASKS):
            browser.go("task", task=task)
            await settle(browser, pilot)
            assert not unsafe(browser)
            await press(browser, pilot, "y")
            assert not unsafe(browser)
            if number == 0:
                await look_around(browser, pilot)
            await press(browser, pilot, "v")
            assert not unsafe(browser)
            if number == 0:
                await look_around(browser, pilot)
        screen = browser.screen
        assert isinstance(screen, TaskScreen)

    drive(hostile_folder, size, look)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_comparing(hostile_folder: Path, size: tuple[int, int]) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.marks = [AgentId(1), AgentId(LAST)]
        await press(browser, pilot, "4")
        await look_around(browser, pilot)
        await press(browser, pilot, "v")
        await look_around(browser, pilot)

    drive(hostile_folder, size, look)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_run(hostile_folder: Path, size: tuple[int, int]) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "5")
        assert browser.page is not None
        assert "\\x1b[31m" in (browser.page.pages() or "")
        await look_around(browser, pilot)

    drive(hostile_folder, size, look)


def test_words_that_are_searched_for(hostile_folder: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.go("agent", tab="transcript")
        await settle(browser, pilot)
        screen = browser.screen
        assert isinstance(screen, AgentScreen)
        screen.find("[red]")
        await settle(browser, pilot)
        assert "[red]" in screen.view.body.said(screen.view.cursor)
        screen.find(ESCAPES)
        await settle(browser, pilot)
        assert not unsafe(browser)

    drive(hostile_folder, WIDE, look, agent=LAST)
