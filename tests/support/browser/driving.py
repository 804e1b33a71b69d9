"""The browser driven without a terminal, and its screen as text."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot

from dgm.render.safe import neutralise
from dgm.tui.app import Browser
from dgm.tui.reader import BackgroundReader

Script = Callable[[Browser, Pilot[None]], Awaitable[None]]
WIDE, SMALL, TINY = (120, 36), (80, 24), (20, 5)


def drive(
    folder: Path, size: tuple[int, int], script: Script, *, agent: str | None = None, theme: str = "dark"
) -> None:
    """Show a run on a screen of that size, and perform the script once the run is read and its best agent known."""

    async def perform() -> None:
        browser = Browser(BackgroundReader(folder), agent=agent, theme=theme)
        async with browser.run_test(size=size) as pilot:
            await settle(browser, pilot)
            await script(browser, pilot)

    asyncio.run(asyncio.wait_for(perform(), 600))


async def settle(browser: Browser, pilot: Pilot[None]) -> None:
    """Wait until the whole log is shown, nothing is being read, and all of it is drawn."""
    while not await _is_settled(browser):
        await pilot.pause(0.02)
    await pilot.pause()
    await pilot.pause(0.05)
    while not await _is_settled(browser):
        await pilot.pause(0.02)
    await pilot.pause()


async def _is_settled(browser: Browser) -> bool:
    if not browser.is_running or browser.problem is not None:
        return True
    if browser.news is None or any(
        worker.group in ("load", "wrap") and not worker.is_finished for worker in browser.workers
    ):
        return False
    newest = await browser.reader.ask(lambda run: run.store.newest())
    known = browser.news.seq if browser.news.agents else browser._best_seq
    return browser.news.seq >= newest and browser._best_seq >= known


async def press(browser: Browser, pilot: Pilot[None], *keys: str) -> str:
    """Press keys, wait for what they ask for, and return the screen."""
    for key in keys:
        await pilot.press(key)
        await pilot.pause()
    await settle(browser, pilot)
    return grid(browser)


async def type_words(browser: Browser, pilot: Pilot[None], words: str) -> str:
    """Search for words."""
    await press(browser, pilot, "slash")
    browser.finder.value = words
    return await press(browser, pilot, "enter")


def grid(browser: Browser) -> str:
    """Return the screen, a line a row."""
    strips = browser.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


def find_unsafe(browser: Browser) -> set[str]:
    """Return the characters on the screen that a terminal would act upon."""
    return {
        character for character in grid(browser) if character != "\n" and neutralise(character) != character
    }


def rows_of(browser: Browser) -> list[str]:
    """Return all rows of the tree as they are drawn, guides included."""
    tree = browser.tree_pane.agents
    return [
        "".join(
            segment.text for segment in tree._render_line(line, 0, tree.size.width, tree.rich_style)
        ).rstrip()
        for line in range(tree.last_line + 1)
    ]
