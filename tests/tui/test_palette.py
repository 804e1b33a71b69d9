"""What is typed after ``:`` is what Enter does, whatever else the words look like."""

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.command import CommandList
from textual.pilot import Pilot

from dgm.archive.run import Run
from dgm.domain import AgentId
from dgm.tui.agent_list import AgentList
from dgm.tui.app import Browser
from dgm.tui.palette import parse_command
from dgm.tui.siblings import SiblingOrder
from tests.support.browser.driving import drive
from tests.support.browser.shown import WIDE, opened, press

__all__ = ["opened"]


def order(browser: Browser) -> SiblingOrder:
    forest = browser.query_one(AgentList).forest
    assert forest is not None
    return forest.order


def deepest(browser: Browser) -> int:
    forest = browser.query_one(AgentList).forest
    assert forest is not None
    return forest.deepest()


COMMANDS: dict[str, Callable[[Browser], bool]] = {
    "7": lambda browser: (browser.current_mode, browser.agent) == ("tree", 7),
    "agent 3": lambda browser: (browser.current_mode, browser.agent) == ("agent", 3),
    "diff 3": lambda browser: (browser.current_mode, browser.agent, browser.tab) == ("agent", 3, "diff"),
    "diff 9 3": lambda browser: (browser.current_mode, browser.marks) == ("compare", [9, 3]),
    "sort own": lambda browser: (browser.current_mode, order(browser)) == ("tree", SiblingOrder.OWN),
    "sort clade": lambda browser: order(browser) is SiblingOrder.CLADE,
    "sort bound": lambda browser: order(browser) is SiblingOrder.BOUND,
    "sort birth": lambda browser: (browser.current_mode, order(browser)) == ("tree", SiblingOrder.BIRTH),
    "depth 1": lambda browser: deepest(browser) == 1,
    "depth all": lambda browser: deepest(browser) > 1,
}


async def typed(browser: Browser, pilot: Pilot[None], words: str) -> None:
    """Opens the palette, types, waits for the list of what fits, and presses Enter."""
    await pilot.press(":")
    await pilot.pause()
    await pilot.press(*("space" if key == " " else key for key in words))
    meant = parse_command(browser, words)
    assert meant is not None
    commands = browser.screen.query_one(CommandList)
    for _ in range(1000):
        shown = [str(commands.get_option_at_index(n).prompt) for n in range(commands.option_count)]
        if any(meant[0] in each for each in shown):
            break
        await pilot.pause(0.02)
    await press(browser, pilot, "enter")


@pytest.mark.parametrize("words", COMMANDS)
def test_a_documented_command_is_what_enter_does(words: str, example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        # With two marks, every command about them works as well.
        browser.marks = [AgentId(1), AgentId(2)]
        await typed(browser, pilot, words)
        assert COMMANDS[words](browser)

    drive(example, WIDE, script)


def test_a_task_is_gone_to_by_its_name(example: Path, opened: Run) -> None:
    name = opened.tree.tasks[2]

    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        await typed(browser, pilot, f"task {name}")
        assert (browser.current_mode, browser.task_id) == ("task", name)

    drive(example, WIDE, script)


def test_words_beside_numbers_are_no_command(example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        for words in ("agent x 9", "diff 9 99:junk", "diff 9 3 x", "agent", "1" * 5_000):
            assert parse_command(browser, words) is None

    drive(example, WIDE, script)
