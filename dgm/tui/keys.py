"""The one table of keys: bindings, the screen of help, the palette and the documentation are made from it."""

from collections.abc import Iterator, Sequence
from enum import StrEnum, auto
from typing import NamedTuple

from textual.binding import Binding, BindingType


class Where(StrEnum):
    """The widget or screen that has a key's action."""

    EVERYWHERE = auto()
    LIST = auto()
    TREE = auto()
    AGENT = auto()
    TASK = auto()
    COMPARE = auto()
    RUNNING = auto()


class Key(NamedTuple):
    """One action of one or more keys."""

    keys: tuple[str, ...]
    """Names as printed on a keyboard; the first is the one to show."""
    action: str
    words: str
    where: Where
    short: str = ""
    """The name for the bottom line; empty where the key is not named there."""


_E, _L, _T, _A = Where.EVERYWHERE, Where.LIST, Where.TREE, Where.AGENT
KEYS: tuple[Key, ...] = (
    Key(("1",), "show('tree')", "the tree of agents", _E),
    Key(("2",), "show('agent')", "the agent", _E),
    Key(("3",), "show('task')", "tasks, and who solved them", _E),
    Key(("4",), "show('compare')", "the two marked agents side by side", _E),
    Key(("5",), "show('running')", "the run: progress, spend, what is being done", _E),
    Key(("escape",), "back", "back to where you were", _E),
    Key(("/",), "find", "search", _E, "find"),
    Key(("n",), "find_next", "next that was found", _E),
    Key(("N",), "find_previous", "previous that was found", _E),
    Key(("b",), "best", "to the best agent", _E, "best"),
    Key(("m",), "mark", "mark the agent, or take the mark away; two agents can be marked", _E, "mark"),
    Key(("c",), "compare", "compare the marked agents, or the marked one with this one", _E),
    Key(("f",), "follow", "follow: go to the agent of the newest event, until a key moves the cursor", _E),
    Key(("y",), "copy", "copy the number of the agent, or the name of the task", _E),
    Key(("o",), "pager", "open what is shown in $PAGER", _E),
    Key((":", "ctrl+p"), "command_palette", "commands: a number goes to that agent", _E, "commands"),
    Key(("t",), "theme", "next theme: dark, light, the terminal's own colours", _E),
    Key(("?",), "help", "this list of keys", _E, "keys"),
    Key(("q", "ctrl+q"), "quit", "leave", _E, "leave"),
    Key(("ctrl+c",), "help_quit", "say how to leave", _E),
    Key(("j", "down"), "down", "down", _L),
    Key(("k", "up"), "up", "up", _L),
    Key(("h", "left"), "left", "to the left", _L),
    Key(("l", "right"), "right", "to the right", _L),
    Key(("g", "home"), "first", "to the first line", _L),
    Key(("G", "end"), "last", "to the last line", _L),
    Key(("ctrl+d",), "half_down", "half a page down", _L),
    Key(("ctrl+u",), "half_up", "half a page up", _L),
    Key(("ctrl+f", "pagedown"), "page_down", "a page down", _L),
    Key(("ctrl+b", "pageup"), "page_up", "a page up", _L),
    Key(("enter",), "choose", "open what the cursor is on", _L, "open"),
    Key(("h", "left"), "left", "fold the agent's children away, or go to its parent", _T),
    Key(("l", "right"), "right", "show the agent's children, or go to the first of them", _T),
    Key(("space",), "fold", "fold or unfold", _T, "fold"),
    Key(("<",), "shallower", "show one generation less", _T),
    Key((">",), "deeper", "show one generation more", _T),
    Key(("z",), "fold_all", "fold all, or unfold all", _T),
    Key(("s",), "sort", "next order: birth, own rate, clade's rate, lower bound", _T, "sort"),
    Key(("S",), "reverse", "turn the order round", _T),
    Key(("p",), "parent", "to the parent", _T),
    Key(("a",), "ancestor", "to the first ancestor below the root", _T),
    Key(("r",), "root", "to the root", _T),
    Key(("d",), "screen.diff", "what the agent changed", _T),
    Key(("[",), "previous_tab", "previous tab", _A, "tabs"),
    Key(("]",), "next_tab", "next tab", _A),
    Key(("d",), "against", "compare with the parent, the seed, a marked agent", _A, "against"),
    Key(("v",), "beside", "side by side, or one below the other", _A, "side by side"),
    Key(("tab", "shift+tab"), "other_part", "from the tree of a task to its statement, and back", Where.TASK),
    Key(("backspace",), "all_tasks", "to the list of all tasks", Where.TASK, "all tasks"),
    Key(("v",), "beside", "the marked agents' attempts at the task side by side", Where.TASK, "side by side"),
    Key(("v",), "beside", "side by side, or one below the other", Where.COMPARE, "side by side"),
)
_NAMES = {
    "space": "space",
    "backspace": "Backspace",
    "escape": "Esc",
    "enter": "Enter",
    "tab": "Tab",
    "down": "↓",
    "up": "↑",
    "left": "←",
    "right": "→",
}


def keys_of(*where: Where) -> Iterator[Key]:
    """Yield the entries of some parts, in the order of the table."""
    return (key for key in KEYS if key.where in where)


def bindings_of(where: Where) -> Sequence[BindingType]:
    """Return the ``BINDINGS`` of the class that has the actions."""
    return [Binding(",".join(key.keys), key.action, key.words, show=False) for key in keys_of(where)]


def shown(key: str) -> str:
    """Return a key as people write it."""
    return _NAMES.get(key, key)
