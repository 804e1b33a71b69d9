"""The table of keys, over the screen from which it was opened."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from dgm.show.best import BOUND_MEANS
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.words import BARREN, BEST, EVALUATING, EXPANDING, MARKED, VERDICT_MARKS, WAITING
from dgm.tui.keys import KeyScope, key_text, keys_of
from dgm.tui.lines import LineList

_TITLES = {
    KeyScope.EVERYWHERE: "Everywhere",
    KeyScope.LIST: "In lists and texts",
    KeyScope.TREE: "1 Tree",
    KeyScope.AGENT: "2 Agent",
    KeyScope.TASK: "3 Task",
    KeyScope.COMPARE: "4 Compare",
    KeyScope.RUNNING: "5 Run",
}
_MARKS = (
    (BEST, "the best agent: the one that the run's policy recommends"),
    ("≥", f"lower bound of the best agent's rate: {BOUND_MEANS}"),
    ("↓", "the only child of the agent above it"),
    (MARKED, "marked by you"),
    (EVALUATING, "is working on a task"),
    (EXPANDING, "a child is being made"),
    (WAITING, "a child waits for a person: dgm approve"),
    (BARREN, "its children were stillborn, it gets no more"),
    *((mark, verdict.value) for verdict, mark in VERDICT_MARKS.items()),
    ("▸", "has children that are folded away"),
    ("»", "was found by /; n goes from one to the next by number"),
    ("‹", "so many outer branchings are left out before it"),
)
_TYPED = (
    (":17", "to agent 17"),
    (":agent 17", "the screen of agent 17"),
    (":diff 9", "what agent 9 changed"),
    (":diff 9 3", "compare agents 9 and 3"),
    (":task NAME", "a task"),
    (":sort own", "order by birth, own, clade or bound"),
    (":depth 2", "show two generations; depth all shows all"),
)


class HelpLines(LineList):
    """The table of keys as lines."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: Sequence[Line] = list(_help_lines())

    def count(self) -> int:
        """Return the number of lines."""
        return len(self._lines)

    def line(self, number: int, width: int) -> Line:  # noqa: ARG002
        """Return the line of one key."""
        return self._lines[number]

    def widest(self) -> int:
        """Return the cells of the longest entry."""
        return max(sum(len(span.text) for span in each) for each in self._lines)


class HelpScreen(ModalScreen[None]):
    """The screen of help; Esc, ``?`` and ``q`` close it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,?,q", "dismiss", "close", show=False)]

    def compose(self) -> ComposeResult:
        """Yield the table alone."""
        yield HelpLines()


def _help_lines() -> Iterator[Line]:
    for where, title in _TITLES.items():
        keys = list(keys_of(where))
        if keys:
            yield make_line(Span(title, Tone.STRONG))
            for key in keys:
                yield _key_line(" ".join(map(key_text, key.keys)), key.words)
            yield ()
    for title, rows in (("Commands", _TYPED), ("Marks", _MARKS)):
        yield make_line(Span(title, Tone.STRONG))
        for name, words in rows:
            yield _key_line(name, words)
        yield ()


def _key_line(name: str, words: str) -> Line:
    return make_line(Span(f"  {name:<18}", Tone.KEY), words)
