"""What arrives after the key to leave: typed ahead, or on its way already."""

from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot

from dgm.tui.app import Browser
from tests.support.browser.driving import drive
from tests.support.browser.shown import WIDE
from tests.support.runs.growing import Growing


def at_once(browser: Browser, *keys: str) -> None:
    """Presses keys without a pause between them, as a terminal sends what was typed ahead."""
    for key in keys:
        browser.post_message(events.Key(key, key if len(key) == 1 else None))


async def left(browser: Browser, pilot: Pilot[None]) -> None:
    for _ in range(200):
        if not browser.is_running:
            return
        await pilot.pause(0.02)
    raise AssertionError("it was not left")


@pytest.mark.parametrize("ahead", ["dgm", "2", "3", "4", "5"])
def test_keys_typed_after_the_one_to_leave_do_nothing(ahead: str, example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        at_once(browser, "q", *ahead, "enter")
        await left(browser, pilot)
        assert (browser.current_mode, browser.marks) == ("tree", [])

    drive(example, WIDE, script)


def test_a_screen_asked_for_too_late_is_not_shown(example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        browser.exit()
        browser.go("agent")
        await left(browser, pilot)
        assert browser.current_mode == "tree"

    drive(example, WIDE, script)


def test_what_a_run_writes_while_the_browser_closes_is_drawn_nowhere(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run")

    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        browser.exit()
        await left(browser, pilot)
        await browser._close_all()
        growing.born(0)
        browser.look()
        browser.say("too late")
        assert browser.page is None

    drive(tmp_path / "run", WIDE, script)
    growing.run.close()
