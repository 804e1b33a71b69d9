"""The browser driven without a terminal, and what it shows as text."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from textual.pilot import Pilot
from textual.screen import Screen
from textual.worker import WorkerCancelled

from dgm.domain import AgentId
from dgm.tui.app import Browser
from dgm.tui.bars import Head
from dgm.tui.page import Page
from dgm.tui.reader import RunReader

Script = Callable[[Browser, Pilot[None]], Awaitable[None]]


def drive(
    folder: Path,
    size: tuple[int, int],
    script: Script,
    *,
    follow: bool = False,
    theme: str | None = "dark",
    agent: int | None = None,
) -> None:
    """Shows a run on a screen of so many columns and rows, and performs the script on it.

    The script begins when the run has been read and its best agent found.
    """

    async def perform() -> None:
        with RunReader(folder) as reader:
            browser = Browser(
                reader, follow=follow, theme=theme, agent=None if agent is None else AgentId(agent)
            )
            async with browser.run_test(size=size) as pilot:
                await settle(browser, pilot)
                await script(browser, pilot)

    asyncio.run(perform())


def settled(reader: RunReader) -> bool:
    """Whether nothing is being read or computed, until the run grows."""
    tree_read = reader.run is not None and reader._best is None
    return bool(reader.problem) or (tree_read and (not reader.count or reader._best_at == reader.until))


async def settle(browser: Browser, pilot: Pilot[None], seconds: float = 300.0) -> None:
    """Waits until the run is read, nothing is being worked out, and all of it is drawn."""
    for _ in range(int(seconds / 0.05)):
        if settled(browser.reader):
            break
        browser.look()
        await pilot.pause(0.05)
    assert settled(browser.reader), "the run was not read in time"
    await _there(browser, pilot, seconds)
    # A worker that a newer one takes the place of before it began stays in the list for ever.
    while asked := [worker for worker in browser.workers if not (worker.is_cancelled or worker.is_finished)]:
        with suppress(WorkerCancelled):
            await browser.workers.wait_for_complete(asked)
        await pilot.pause()
    browser.look()
    await pilot.pause()
    # What is to be drawn anew is drawn by a timer.
    await pilot.pause(0.05)


async def drawn(browser: Browser, pilot: Pilot[None], seconds: float = 300.0) -> None:
    """Waits until the screen is drawn, whether or not the run has been read."""
    await _there(browser, pilot, seconds)
    # What is to be drawn anew is drawn by a timer.
    await pilot.pause(0.05)


async def _there(browser: Browser, pilot: Pilot[None], seconds: float) -> None:
    """Waits until the screen that was just gone to is laid out and has been entered."""
    for _ in range(int(seconds / 0.02)):
        if _is_there(browser.screen):
            break
        await pilot.pause(0.02)
    assert _is_there(browser.screen), "the screen was not there in time"
    # What it was sent meanwhile, and what that made it send itself.
    await pilot.pause()
    await pilot.pause()


def _is_there(screen: Screen[object]) -> bool:
    if not isinstance(screen, Page):
        return True
    heads = [*screen.query(Head)]
    return bool(heads) and all(
        not head.display or (head.size.width > 0 and head._screen == screen.NAME) for head in heads
    )


def grid(browser: Browser, *, tones: bool = False) -> str:
    """What is on the screen, a line a row, blanks at its end cut; with ``tones`` letters for the styles below it."""
    strips = browser.screen._compositor.render_strips()
    text = "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)
    if not tones:
        return text
    letters: dict[str, str] = {}
    rows = []
    for strip in strips:
        row = ""
        for segment in strip:
            name = str(segment.style) if segment.style and segment.text.strip() else ""
            letter = letters.setdefault(name, chr(ord("a") + len(letters))) if name else " "
            row += letter * segment.cell_length
        rows.append(row.rstrip())
    key = "\n".join(f"{letter} {name}" for name, letter in letters.items())
    return f"{text}\n----\n" + "\n".join(rows) + f"\n----\n{key}"
