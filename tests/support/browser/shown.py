"""What tests of the screens share: runs to look at, keys with a pause behind them, what is on the screen."""

import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dgm.archive.run import Run
from dgm.show.safe import neutralise
from dgm.tui.app import Browser
from dgm.tui.keys import KeyScope
from tests.support.browser.driving import grid, settle

WIDE, SMALL, TINY = (120, 36), (80, 24), (20, 5)


@pytest.fixture
def example_copy(example: Path, tmp_path: Path) -> Path:
    """The shipped run, to be damaged."""
    return Path(shutil.copytree(example, tmp_path / "first-search"))


@pytest.fixture(scope="module")
def opened(example: Path) -> Iterator[Run]:
    """The shipped run as the program reads it: what the screens are compared with."""
    with Run.open(example) as run:
        yield run


async def press(browser: Browser, pilot: Pilot[None], *keys: str) -> str:
    """Presses keys, waits for what they ask for, and says what is on the screen then."""
    for key in keys:
        await pilot.press(key)
        await pilot.pause()
    await settle(browser, pilot)
    return grid(browser)


async def type_words(browser: Browser, pilot: Pilot[None], words: str) -> str:
    """Searches for words."""
    return await press(browser, pilot, "slash", *words, "enter")


def unsafe(browser: Browser) -> set[str]:
    """What is on the screen that a terminal would act upon."""
    strips = browser.screen._compositor.render_strips()
    texts = "".join(segment.text for strip in strips for segment in strip)
    return {character for character in texts if neutralise(character) != character or character in "\n\t\r"}


Check = Callable[[Browser, Pilot[None], str], Awaitable[None]]
"""What a key does, given the key's name."""


def registering(
    table: dict[tuple[KeyScope, str], Check],
) -> Callable[[KeyScope, str], Callable[[Check], Check]]:
    """A decorator that enters a check into the table under where the key acts, and its action."""

    def checks(where: KeyScope, action: str) -> Callable[[Check], Check]:
        def enter(check: Check) -> Check:
            table[where, action] = check
            return check

        return enter

    return checks
