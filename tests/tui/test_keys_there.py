"""The keys that work are those that are listed, on every screen; every command of the palette presses one of them."""

from pathlib import Path
from typing import Any, TypeVar

import pytest
from textual.keys import _character_to_key
from textual.pilot import Pilot

from dgm.domain import AgentId
from dgm.tui.agent_list import AgentList
from dgm.tui.app import Browser
from dgm.tui.keys import KEYS, KeyAction, KeyScope, keys_of
from dgm.tui.page import Page
from dgm.tui.screens.agent import TABS, AgentScreen
from dgm.tui.screens.compare import CompareScreen
from dgm.tui.screens.task import TaskScreen
from dgm.tui.text import TextView
from tests.support.browser.driving import drive
from tests.support.browser.shown import WIDE, Check, press, registering

PARTS: dict[str, tuple[str, ...]] = {
    "tree": ("1",),
    "agent": ("2",),
    "tasks": ("3",),
    "task": ("3", "j", "enter"),
    "statement": ("3", "j", "enter", "tab"),
    "attempt": ("3", "j", "enter", "enter"),
    "compare": ("m", "j", "c"),
    "run": ("5",),
}
CHECKS: dict[tuple[KeyScope, str], Check] = {}
checks = registering(CHECKS)
Kind = TypeVar("Kind", bound=Page)


def name_of(key: str) -> str:
    return _character_to_key(key) if len(key) == 1 else key


@pytest.mark.parametrize("part", PARTS)
def test_keys_that_work_are_listed_and_every_command_presses_one(
    part: str, example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, *PARTS[part])
        page = browser.page
        assert page is browser.screen and isinstance(page, Page)
        listed = {name_of(key): entry for entry in reversed([*keys_of(*page.where)]) for key in entry.keys}
        everywhere = {name_of(key): entry for entry in keys_of(KeyScope.EVERYWHERE) for key in entry.keys}
        working = page.active_bindings
        assert working.keys() == (listed | everywhere).keys()
        for key, entry in (everywhere | listed).items():
            assert working[key].binding.action in (entry.action, entry.action.removeprefix("screen."))
            assert working[key].enabled

        performed: list[str] = []

        async def run(action: Any, *_: Any, **__: Any) -> bool:
            performed.append(str(action))
            return True

        monkeypatch.setattr(browser, "run_action", run)
        for command in list(browser.get_system_commands(page)):
            performed.clear()
            command.callback()
            await pilot.pause()
            words = {entry.words for entry in KEYS if entry.action in performed}
            assert command.title.lower() in {each.lower() for each in words}, (command.title, performed)
        monkeypatch.undo()

    drive(example, WIDE, script)


def test_the_tree_has_the_keys_again_after_a_search(example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        for leave in (("t", "h", "e", "enter"), ("escape",)):
            await press(browser, pilot, *PARTS["task"])
            assert isinstance(browser.focused, AgentList)
            await press(browser, pilot, "slash", *leave)
            assert isinstance(browser.focused, AgentList)
            await press(browser, pilot, "tab", "slash", *leave)
            assert isinstance(browser.focused, TextView)
            await press(browser, pilot, "tab", "backspace")

    drive(example, WIDE, script)


@checks(KeyScope.AGENT, "turn_tab(-1)")
@checks(KeyScope.AGENT, "turn_tab(1)")
async def tabs(browser: Browser, pilot: Pilot[None], key: str) -> None:
    screen = await shown(browser, pilot, AgentScreen, "2")
    for step in range(1, len(TABS) + 1):
        await press(browser, pilot, name_of(key))
        assert screen.tab == TABS[step % len(TABS) if key == "]" else -step % len(TABS)]


@checks(KeyScope.AGENT, "against")
async def against(browser: Browser, pilot: Pilot[None], key: str) -> None:
    browser.marks = [AgentId(2)]
    screen = await shown(browser, pilot, AgentScreen, "2")
    before = screen._other
    await press(browser, pilot, key)
    assert screen._other not in (before, screen.agent)


@checks(KeyScope.AGENT, "beside")
@checks(KeyScope.COMPARE, "beside")
async def beside(browser: Browser, pilot: Pilot[None], key: str) -> None:
    browser.marks = [AgentId(0), AgentId(1)]
    for number, kind in (("2", AgentScreen), ("4", CompareScreen)):
        screen = await shown(browser, pilot, kind, number)
        assert isinstance(screen, AgentScreen | CompareScreen)
        assert " │ " not in await press(browser, pilot)
        assert " │ " in await press(browser, pilot, key)
        await press(browser, pilot, key)
        assert not screen.beside


@checks(KeyScope.TASK, "other_part")
async def other_part(browser: Browser, pilot: Pilot[None], key: str) -> None:
    screen = await shown(browser, pilot, TaskScreen, *PARTS["task"])
    await press(browser, pilot, key)
    assert browser.focused is screen.view
    await press(browser, pilot, key)
    assert browser.focused is screen.agents
    await press(browser, pilot, "backspace", key)
    assert "no statement" in browser.said


@checks(KeyScope.TASK, "all_tasks")
async def all_tasks(browser: Browser, pilot: Pilot[None], key: str) -> None:
    await shown(browser, pilot, TaskScreen, *PARTS["task"])
    assert "resolved / tries" in await press(browser, pilot, key)


@checks(KeyScope.TASK, "beside")
async def attempts_beside(browser: Browser, pilot: Pilot[None], key: str) -> None:
    browser.marks = [AgentId(0), AgentId(1)]
    await shown(browser, pilot, TaskScreen, *PARTS["task"])
    assert " │ " in await press(browser, pilot, key)


async def shown(browser: Browser, pilot: Pilot[None], kind: type[Kind], *keys: str) -> Kind:
    await press(browser, pilot, *keys)
    screen = browser.screen
    assert isinstance(screen, kind)
    return screen


OTHERS = (KeyScope.AGENT, KeyScope.TASK, KeyScope.COMPARE, KeyScope.RUNNING)


@pytest.mark.parametrize(
    ("entry", "key"),
    [(entry, entry.keys[0]) for entry in KEYS if entry.where in OTHERS],
    ids=lambda value: value if isinstance(value, str) else f"{value.where}-{value.action}",
)
def test_a_key_of_one_screen_does_what_it_says(entry: KeyAction, key: str, example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        await CHECKS[entry.where, entry.action](browser, pilot, key)

    drive(example, WIDE, script, agent=1)
