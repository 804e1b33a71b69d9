"""Every key of the table does what the table says."""

from pathlib import Path

import pytest
from textual.command import CommandList
from textual.pilot import Pilot

from dgm.analysis.outline import trace_lineage
from dgm.domain import AgentId
from dgm.tui.agent_list import AgentList
from dgm.tui.app import Browser
from dgm.tui.finding import Finder
from dgm.tui.keys import KEYS, KeyAction, KeyScope
from dgm.tui.lines import LineList
from dgm.tui.screens.help import HelpScreen
from dgm.tui.screens.tree import TreeScreen
from dgm.tui.siblings import SiblingOrder
from tests.support.browser.driving import drive, grid, settle
from tests.support.browser.shown import Check, registering

HERE = (KeyScope.EVERYWHERE, KeyScope.LIST, KeyScope.TREE)
CHECKS: dict[tuple[KeyScope, str], Check] = {}
checks = registering(CHECKS)


def agents(browser: Browser) -> AgentList:
    return browser.query_one(AgentList)


async def press(pilot: Pilot[None], *keys: str) -> None:
    for key in keys:
        await pilot.press(*([key] if len(key) > 1 else key))
        await pilot.pause()


def depth(browser: Browser, agent: AgentId) -> int:
    members = browser.reader.members
    assert members is not None
    return len(trace_lineage(members, agent)) - 1


def deepest(browser: Browser) -> AgentId:
    found = max(map(AgentId, range(browser.reader.count)), key=lambda agent: depth(browser, agent))
    assert depth(browser, found) >= 2, "the example is too flat for these tests"
    return found


for name in ("tree", "agent", "task", "compare", "running"):

    @checks(KeyScope.EVERYWHERE, f"show('{name}')")
    async def screen(browser: Browser, pilot: Pilot[None], key: str, name: str = name) -> None:
        await press(pilot, "5" if name == "tree" else "1", key)
        assert browser.current_mode == name


@checks(KeyScope.EVERYWHERE, "back")
async def back(browser: Browser, pilot: Pilot[None], key: str) -> None:
    agents(browser).goto(AgentId(1))
    await press(pilot, "5", "3", key)
    assert browser.current_mode == "running"
    await press(pilot, key)
    assert browser.current_mode == "tree"
    assert browser.agent == 1
    await press(pilot, key)
    assert browser.current_mode == "tree"


@checks(KeyScope.EVERYWHERE, "find")
async def find(browser: Browser, pilot: Pilot[None], key: str) -> None:
    await press(pilot, key)
    assert isinstance(browser.focused, Finder)
    await press(pilot, "2", "enter")
    await settle(browser, pilot)
    assert agents(browser).agent == 2
    assert isinstance(browser.focused, AgentList)


@checks(KeyScope.EVERYWHERE, "find_next")
@checks(KeyScope.EVERYWHERE, "find_previous")
async def find_again(browser: Browser, pilot: Pilot[None], key: str) -> None:
    page = browser.page
    assert page is not None
    await press(pilot, key)
    assert "nothing was searched for" in browser.said
    operator = browser.reader.born([AgentId(1)])[AgentId(1)].operator
    page.find(operator)
    await settle(browser, pilot)
    found = sorted(agents(browser).found)
    assert len(found) > 2
    step = 1 if key == "n" else -1
    for _ in range(len(found) + 1):
        here = agents(browser).agent
        assert here is not None
        await press(pilot, key)
        assert agents(browser).agent == found[(found.index(here) + step) % len(found)]


@checks(KeyScope.EVERYWHERE, "best")
async def best(browser: Browser, pilot: Pilot[None], key: str) -> None:
    await press(pilot, "5", key)
    assert browser.current_mode == "tree"
    assert agents(browser).agent == browser.reader.best is not None


@checks(KeyScope.EVERYWHERE, "mark")
async def mark(browser: Browser, pilot: Pilot[None], key: str) -> None:
    for agent in (1, 2, 3):
        agents(browser).goto(AgentId(agent))
        await press(pilot, key)
    assert browser.marks == [2, 3]
    assert grid(browser).count("◆") == 2
    await press(pilot, key)
    assert browser.marks == [2]


@checks(KeyScope.EVERYWHERE, "compare")
async def compare(browser: Browser, pilot: Pilot[None], key: str) -> None:
    await press(pilot, key)
    assert browser.current_mode == "tree"
    assert "mark two agents" in browser.said
    agents(browser).goto(AgentId(1))
    await press(pilot, "m", "j", key)
    assert browser.current_mode == "compare"
    assert len(browser.marks) == 2


@checks(KeyScope.EVERYWHERE, "follow")
async def follow(browser: Browser, pilot: Pilot[None], key: str) -> None:
    await press(pilot, key)
    assert browser.following
    assert "following" in grid(browser).splitlines()[0]
    await press(pilot, "j")
    assert not browser.following


@checks(KeyScope.EVERYWHERE, "copy")
async def copy(browser: Browser, pilot: Pilot[None], key: str) -> None:
    agents(browser).goto(AgentId(3))
    await press(pilot, key)
    assert browser.clipboard == "3"
    assert "copied 3" in browser.said


@checks(KeyScope.EVERYWHERE, "pager")
async def pager(browser: Browser, pilot: Pilot[None], key: str) -> None:
    page = browser.page
    assert page is not None
    assert (page.pages() or "").splitlines()[0].startswith("0")
    await press(pilot, key)
    assert "pager cannot be opened from here" in browser.said


@checks(KeyScope.EVERYWHERE, "command_palette")
async def palette(browser: Browser, pilot: Pilot[None], key: str) -> None:
    await press(pilot, key)
    assert len(browser.screen_stack) == 2
    await pilot.press("2")
    await settle(browser, pilot)
    commands = browser.screen.query_one(CommandList)
    for _ in range(500):
        if commands.option_count and "2" in str(commands.get_option_at_index(0).prompt):
            break
        await pilot.pause(0.02)
    await press(pilot, "enter")
    await settle(browser, pilot)
    assert agents(browser).agent == 2


@checks(KeyScope.EVERYWHERE, "help_quit")
async def say_how_to_leave(browser: Browser, pilot: Pilot[None], key: str) -> None:
    await press(pilot, key)
    said = [each.message for each in browser._notifications]
    assert browser.is_running and said and "quit the app" in said[0]


@checks(KeyScope.EVERYWHERE, "theme")
async def theme(browser: Browser, pilot: Pilot[None], key: str) -> None:
    seen = []
    for _ in range(3):
        await press(pilot, key)
        seen.append(browser.theme)
    assert seen == ["textual-light", "ansi-dark", "textual-dark"]


@checks(KeyScope.EVERYWHERE, "help")
async def help_screen(browser: Browser, pilot: Pilot[None], key: str) -> None:
    await press(pilot, key)
    assert isinstance(browser.screen, HelpScreen)
    assert "Everywhere" in grid(browser)
    await press(pilot, "escape")
    assert isinstance(browser.screen, TreeScreen)


@checks(KeyScope.EVERYWHERE, "quit")
async def leave(browser: Browser, pilot: Pilot[None], key: str) -> None:
    await press(pilot, key)
    assert not browser.is_running or browser._exit


for action, begin, end in (
    ("move(1)", 2, 3),
    ("move(-1)", 2, 1),
    ("first", 5, 0),
    ("last", 0, -1),
    ("page(0.5)", 0, 5),
    ("page(-0.5)", 6, 1),
    ("page(1)", 0, 10),
    ("page(-1)", 11, 1),
):

    @checks(KeyScope.LIST, action)
    async def move(
        browser: Browser, pilot: Pilot[None], key: str, begin: int = begin, end: int = end
    ) -> None:
        lines = agents(browser)
        await pilot.resize_terminal(80, 12)
        await pilot.pause()
        assert lines.page == 10
        lines.go(begin)
        await press(pilot, key)
        assert lines.cursor == (end if end >= 0 else lines.count() - 1)
        assert 0 <= lines.cursor - lines.scroll_offset.y < lines.page


@checks(KeyScope.LIST, "choose")
async def choose(browser: Browser, pilot: Pilot[None], key: str) -> None:
    agents(browser).goto(AgentId(2))
    await press(pilot, key)
    assert (browser.current_mode, browser.agent) == ("agent", 2)


@checks(KeyScope.LIST, "left")
@checks(KeyScope.LIST, "right")
async def sideways(browser: Browser, pilot: Pilot[None], key: str) -> None:
    await pilot.resize_terminal(40, 24)
    await press(pilot, "question_mark")
    lines = browser.screen.query_one("HelpLines")
    assert isinstance(lines, LineList)
    await press(pilot, "l")
    moved = lines.left
    assert moved > 0
    await press(pilot, key)
    assert lines.left > moved if key in ("l", "right") else lines.left == 0


@checks(KeyScope.TREE, "left")
async def fold_or_parent(browser: Browser, pilot: Pilot[None], key: str) -> None:
    lines = agents(browser)
    assert lines.forest is not None
    child = deepest(browser)
    lines.goto(child)
    await press(pilot, key)
    parent = lines.forest.parent(child)
    assert lines.agent == parent is not None
    await press(pilot, key)
    assert lines.forest.is_folded(parent)
    assert "▸" in grid(browser)


@checks(KeyScope.TREE, "right")
async def unfold_or_child(browser: Browser, pilot: Pilot[None], key: str) -> None:
    lines = agents(browser)
    assert lines.forest is not None
    lines.fold(0)
    lines.goto(AgentId(0))
    await press(pilot, key)
    assert not lines.forest.is_folded(AgentId(0))
    assert lines.agent == 0
    await press(pilot, key)
    assert lines.agent == lines.forest.children(AgentId(0))[0]


@checks(KeyScope.TREE, "fold")
async def toggle(browser: Browser, pilot: Pilot[None], key: str) -> None:
    lines = agents(browser)
    lines.goto(AgentId(0))
    whole = lines.count()
    await press(pilot, key)
    assert lines.count() == 1
    await press(pilot, key)
    assert lines.count() == whole > 1


@checks(KeyScope.TREE, "deepen(-1)")
@checks(KeyScope.TREE, "deepen(1)")
async def generations(browser: Browser, pilot: Pilot[None], key: str) -> None:
    lines = agents(browser)
    assert lines.forest is not None
    lines.fold(1)
    assert lines.forest.deepest() == 1
    await press(pilot, key)
    assert lines.forest.deepest() == (0 if key == "<" else 2)


@checks(KeyScope.TREE, "fold_all")
async def fold_all(browser: Browser, pilot: Pilot[None], key: str) -> None:
    whole = agents(browser).count()
    await press(pilot, key)
    assert agents(browser).count() == 1
    await press(pilot, key)
    assert agents(browser).count() == whole


@checks(KeyScope.TREE, "sort")
@checks(KeyScope.TREE, "reverse")
async def order(browser: Browser, pilot: Pilot[None], key: str) -> None:
    forest = agents(browser).forest
    assert forest is not None
    seen = []
    for _ in range(4):
        await press(pilot, key)
        seen.append((forest.order, forest.descending))
    if key == "s":
        assert seen == [
            (each, False)
            for each in (SiblingOrder.OWN, SiblingOrder.CLADE, SiblingOrder.BOUND, SiblingOrder.BIRTH)
        ]
    else:
        assert seen == [(SiblingOrder.BIRTH, True), (SiblingOrder.BIRTH, False)] * 2


@checks(KeyScope.TREE, "parent")
async def parent(browser: Browser, pilot: Pilot[None], key: str) -> None:
    lines, child = agents(browser), deepest(browser)
    assert lines.forest is not None
    lines.goto(child)
    await press(pilot, key)
    assert lines.agent == lines.forest.parent(child)


@checks(KeyScope.TREE, "ancestor")
async def ancestor(browser: Browser, pilot: Pilot[None], key: str) -> None:
    lines = agents(browser)
    assert lines.forest is not None
    lines.goto(deepest(browser))
    await press(pilot, key)
    assert lines.agent is not None
    assert depth(browser, lines.agent) == 1


@checks(KeyScope.TREE, "root")
async def root(browser: Browser, pilot: Pilot[None], key: str) -> None:
    agents(browser).goto(deepest(browser))
    await press(pilot, key)
    assert agents(browser).agent == 0


@checks(KeyScope.TREE, "screen.diff")
async def diff(browser: Browser, pilot: Pilot[None], key: str) -> None:
    agents(browser).goto(AgentId(2))
    await press(pilot, key)
    assert (browser.current_mode, browser.agent) == ("agent", 2)


@pytest.mark.parametrize(
    ("entry", "key"),
    # The other keys of an entry are bound to the same action (test_keys_there).
    [(entry, entry.keys[0]) for entry in KEYS if entry.where in HERE],
    ids=lambda value: value if isinstance(value, str) else f"{value.where}-{value.action}",
)
def test_a_key_does_what_it_says(entry: KeyAction, key: str, example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        await CHECKS[entry.where, entry.action](browser, pilot, key)

    drive(example, (100, 24), script)


def test_every_key_is_described_once() -> None:
    for entry in KEYS:
        assert entry.words
        twins = [other for other in KEYS if other.where == entry.where and set(other.keys) & set(entry.keys)]
        assert twins == [entry]


def test_every_key_is_in_the_palette_and_in_the_help(example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        offered = {command.title.lower() for command in browser.get_system_commands(browser.screen)}
        wanted = {key.words for key in KEYS if key.where in (KeyScope.EVERYWHERE, KeyScope.TREE)}
        assert {words.lower() for words in wanted} - offered == {
            key.words.lower() for key in KEYS if key.action == "command_palette"
        }
        await press(pilot, "question_mark")
        lines = browser.screen.query_one("HelpLines")
        assert isinstance(lines, LineList)
        shown = "\n".join("".join(span.text for span in lines.line(n, 100)) for n in range(lines.count()))
        assert all(key.words in shown for key in KEYS)

    drive(example, (100, 24), script)
