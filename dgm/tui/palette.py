"""Commands by name: one for every key, and the commands that can be typed after ``:``."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.app import SystemCommand
from textual.command import Hit, Hits, Provider
from textual.content import Content

from dgm.domain import AgentId, TaskId
from dgm.tui.keys import KeyScope, key_text, keys_of
from dgm.tui.page import Page

if TYPE_CHECKING:
    from dgm.tui.app import Browser

_CERTAIN = 1e9
"""Score of a typed command: above all commands whose words look like it, whose scores have no bound."""
Command = tuple[str, Callable[[], object]]
"""The effect of a command in words, and the function that performs it."""


def system_commands(browser: "Browser") -> Iterator[SystemCommand]:
    """Yield the key actions of the shown screen, each performed by the key's own action."""
    where = browser.page.where if browser.page is not None else ()
    taken: set[str] = set()
    for key in (each for part in (*where, KeyScope.EVERYWHERE) for each in keys_of(part)):
        if key.keys[0] in taken or key.action == "command_palette":
            continue
        taken.add(key.keys[0])
        # Text written here is read as markup; no other text is.
        names = ", ".join(map(key_text, key.keys)).replace("[", r"\[")
        title = key.words[0].upper() + key.words[1:]
        yield SystemCommand(title, f"key {names}", partial(browser.simulate_key, _key_name(key.keys[0])))


def _key_name(key: str) -> str:
    from textual.keys import _character_to_key

    return _character_to_key(key) if len(key) == 1 else key


class TypedCommandProvider(Provider):
    """``17``, ``diff 9 3``, ``sort own``, ``task NAME``, ``depth 2``."""

    async def search(self, query: str) -> Hits:
        """Yield the command that the words mean, if they mean one."""
        browser = cast("Browser", self.app)
        command = parse_command(browser, query.strip())
        if command is not None:
            words, perform = command
            # A ``Text``, because typed words are never read as markup.
            yield Hit(_CERTAIN, Content(words), perform, text=words)


def parse_command(browser: "Browser", typed: str) -> Command | None:
    """Return the meaning of a typed command; None where it is none.

    Args:
        browser: the browser that the command acts on.
        typed: ``17``, ``agent 17``, ``diff 9 3``, ``sort own``, ``task NAME``, ``depth 2``, ``depth all``.
    """
    verb, _, rest = typed.partition(" ")
    rest = rest.strip()
    if not rest and (one := _parse_agents(browser, verb)):
        return f"go to agent {one[0]}", partial(browser.go, "tree", agent=one[0])
    agents = _parse_agents(browser, rest)
    if verb == "agent" and len(agents) == 1:
        return f"show agent {agents[0]}", partial(browser.go, "agent", agent=agents[0])
    if verb == "diff" and 1 <= len(agents) <= 2:
        return _diff_command(browser, agents)
    if verb == "task" and rest:
        return f"show task {rest}", partial(browser.go, "task", task=TaskId(rest))
    page = browser.page
    return page.meaning(verb, rest) if isinstance(page, Page) else None


def _parse_agents(browser: "Browser", words: str) -> list[AgentId]:
    """Return the agents of some numbers; empty where one is no number, is there twice, or has no agent."""
    numbers = words.split()
    if not all(word.isascii() and word.isdigit() and len(word) < 16 for word in numbers):
        return []
    agents = [AgentId(int(word)) for word in numbers]
    known = all(agent < browser.reader.count for agent in agents)
    return agents if known and len(set(agents)) == len(agents) else []


def _diff_command(browser: "Browser", agents: list[AgentId]) -> Command:
    if len(agents) == 1:
        return f"what agent {agents[0]} changed", partial(browser.go, "agent", agent=agents[0], tab="diff")

    def compare() -> None:
        browser.marks = agents
        browser.go("compare")

    return f"compare agents {agents[0]} and {agents[1]}", compare
