"""The one table of keys: bindings, the screen of help, the palette and the documentation are made from it."""

from collections.abc import Iterator, Sequence
from enum import StrEnum, auto
from typing import NamedTuple

from textual.binding import Binding, BindingType


class KeyScope(StrEnum):
    """The widget or screen that has a key's action."""

    EVERYWHERE = auto()
    LIST = auto()
    TREE = auto()
    AGENT = auto()
    TASK = auto()
    COMPARE = auto()
    RUNNING = auto()


class KeyAction(NamedTuple):
    """One action of one or more keys."""

    keys: tuple[str, ...]
    """Names as printed on a keyboard; the first is the one to show."""
    action: str
    words: str
    where: KeyScope
    short: str = ""
    """The name for the bottom line; empty where the key is not named there."""


_E, _L, _T, _A = KeyScope.EVERYWHERE, KeyScope.LIST, KeyScope.TREE, KeyScope.AGENT
KEYS: tuple[KeyAction, ...] = (
    KeyAction(("1",), "show('tree')", "the tree of agents", _E),
    KeyAction(("2",), "show('agent')", "the agent", _E),
    KeyAction(("3",), "show('task')", "tasks, and who solved them", _E),
    KeyAction(("4",), "show('compare')", "the two marked agents side by side", _E),
    KeyAction(("5",), "show('running')", "the run: progress, spend, what is being done", _E),
    KeyAction(("escape",), "back", "back to where you were", _E),
    KeyAction(("/",), "find", "search", _E, "find"),
    KeyAction(("n",), "find_next", "next that was found", _E),
    KeyAction(("N",), "find_previous", "previous that was found", _E),
    KeyAction(("b",), "best", "to the best agent", _E, "best"),
    KeyAction(("m",), "mark", "mark the agent, or take the mark away; two agents can be marked", _E, "mark"),
    KeyAction(("c",), "compare", "compare the marked agents, or the marked one with this one", _E),
    KeyAction(
        ("f",), "follow", "follow: go to the agent of the newest event, until a key moves the cursor", _E
    ),
    KeyAction(("y",), "copy", "copy the number of the agent, or the name of the task", _E),
    KeyAction(("o",), "pager", "open what is shown in $PAGER", _E),
    KeyAction((":", "ctrl+p"), "command_palette", "commands: a number goes to that agent", _E, "commands"),
    KeyAction(("t",), "theme", "next theme: dark, light, the terminal's own colours", _E),
    KeyAction(("?",), "help", "this list of keys", _E, "keys"),
    KeyAction(("q", "ctrl+q"), "quit", "leave", _E, "leave"),
    KeyAction(("ctrl+c",), "help_quit", "say how to leave", _E),
    KeyAction(("j", "down"), "move(1)", "down", _L),
    KeyAction(("k", "up"), "move(-1)", "up", _L),
    KeyAction(("h", "left"), "left", "to the left", _L),
    KeyAction(("l", "right"), "right", "to the right", _L),
    KeyAction(("g", "home"), "first", "to the first line", _L),
    KeyAction(("G", "end"), "last", "to the last line", _L),
    KeyAction(("ctrl+d",), "page(0.5)", "half a page down", _L),
    KeyAction(("ctrl+u",), "page(-0.5)", "half a page up", _L),
    KeyAction(("ctrl+f", "pagedown"), "page(1)", "a page down", _L),
    KeyAction(("ctrl+b", "pageup"), "page(-1)", "a page up", _L),
    KeyAction(("enter",), "choose", "open what the cursor is on", _L, "open"),
    KeyAction(("h", "left"), "left", "fold the agent's children away, or go to its parent", _T),
    KeyAction(("l", "right"), "right", "show the agent's children, or go to the first of them", _T),
    KeyAction(("space",), "fold", "fold or unfold", _T, "fold"),
    KeyAction(("<",), "deepen(-1)", "show one generation less", _T),
    KeyAction((">",), "deepen(1)", "show one generation more", _T),
    KeyAction(("z",), "fold_all", "fold all, or unfold all", _T),
    KeyAction(("s",), "sort", "next order: birth, own rate, clade's rate, lower bound", _T, "sort"),
    KeyAction(("S",), "reverse", "turn the order round", _T),
    KeyAction(("p",), "parent", "to the parent", _T),
    KeyAction(("a",), "ancestor", "to the first ancestor below the root", _T),
    KeyAction(("r",), "root", "to the root", _T),
    KeyAction(("d",), "screen.diff", "what the agent changed", _T),
    KeyAction(("[",), "turn_tab(-1)", "previous tab", _A, "tabs"),
    KeyAction(("]",), "turn_tab(1)", "next tab", _A),
    KeyAction(("d",), "against", "compare with the parent, the seed, a marked agent", _A, "against"),
    KeyAction(("v",), "beside", "side by side, or one below the other", _A, "side by side"),
    KeyAction(
        ("tab", "shift+tab"),
        "other_part",
        "from the tree of a task to its statement, and back",
        KeyScope.TASK,
    ),
    KeyAction(("backspace",), "all_tasks", "to the list of all tasks", KeyScope.TASK, "all tasks"),
    KeyAction(
        ("v",),
        "beside",
        "the marked agents' attempts at the task side by side",
        KeyScope.TASK,
        "side by side",
    ),
    KeyAction(("v",), "beside", "side by side, or one below the other", KeyScope.COMPARE, "side by side"),
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


def keys_of(*where: KeyScope) -> Iterator[KeyAction]:
    """Yield the entries of some parts, in the order of the table."""
    return (key for key in KEYS if key.where in where)


def bindings_of(where: KeyScope) -> Sequence[BindingType]:
    """Return the ``BINDINGS`` of the class that has the actions."""
    return [Binding(",".join(key.keys), key.action, key.words, show=False) for key in keys_of(where)]


def key_text(key: str) -> str:
    """Return a key as people write it."""
    return _NAMES.get(key, key)
