"""Every tab on a run whose every text is hostile: nothing of it reaches the terminal as it is."""

from pathlib import Path

import pytest
from rich.text import Text
from textual.pilot import Pilot

from dgm.render.safe import neutralise
from dgm.tui.agent import PARTS, _file_parts
from dgm.tui.app import Browser
from dgm.tui.pane import Listing
from tests.support.browser.driving import TINY, WIDE, drive, find_unsafe, press, settle, type_words
from tests.support.runs.hostile import ESCAPES, TASKS, hostile_folder, source

__all__ = ["hostile_folder"]
LAST = 12


async def look_around(browser: Browser, pilot: Pilot[None]) -> None:
    for key in ("G", "l", "v"):
        await press(browser, pilot, key)
        assert not find_unsafe(browser)


@pytest.mark.parametrize("part", PARTS)
def test_an_agent(hostile_folder: Path, part: str) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.agent_pane.part = part
        browser.go("agent")
        await pilot.pause()
        await settle(browser, pilot)
        assert not find_unsafe(browser)
        await look_around(browser, pilot)
        rows = sum(view.row_count for view in browser.query(f"#{part}-list").results(Listing))
        for number in range(min(rows, 2)):
            await press(browser, pilot, "g", *["j"] * number, "enter")
            assert not find_unsafe(browser)
            await press(browser, pilot, "escape")

    drive(hostile_folder, WIDE, look, agent=str(LAST))


@pytest.mark.parametrize("size", [WIDE, TINY], ids=str)
@pytest.mark.parametrize("keys", ["1", "5", "3", ":", "4"])
def test_the_other_tabs(hostile_folder: Path, keys: str, size: tuple[int, int]) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.marks = [1, LAST]
        await press(browser, pilot, "colon" if keys == ":" else keys)
        assert not find_unsafe(browser)
        await look_around(browser, pilot)
        if keys == "3":
            # How wide the screen is changes nothing of what is neutralised: all tasks on one, the first on the other.
            for task in TASKS if size == WIDE else TASKS[:1]:
                browser.go("tasks", task=task)
                await pilot.pause()
                await settle(browser, pilot)
                assert not find_unsafe(browser)
                await press(browser, pilot, "y")
                assert not find_unsafe(browser)

    drive(hostile_folder, size, look)


def test_its_files() -> None:
    for entry in source(LAST).values():
        lines = [line for line in _file_parts(entry) if isinstance(line, Text)]
        assert lines
        assert all(neutralise(line.plain) == line.plain for line in lines)


def test_words_that_are_searched_for(hostile_folder: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        for words in ("[red]", ESCAPES):
            await type_words(browser, pilot, words)
            assert not find_unsafe(browser)

    drive(hostile_folder, WIDE, look)
