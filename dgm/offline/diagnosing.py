"""Writes an issue about an agent from one failure: signs in what is quoted of it, and a change.

Which change helps is not known here any more than to the editor: it is drawn from all that apply, with the weights
that the editor has where every failure shows these signs.
"""

import re
from collections.abc import Mapping

from dgm.messages import Request
from dgm.offline import quoted
from dgm.offline.catalogue import CATALOGUE
from dgm.offline.editor import MOST_RAISED
from dgm.offline.edits.kind import Kind, Signal

_SAID = {
    Signal.LIMIT: "it reached its step limit before it was done",
    Signal.TRUNCATED: "it was shown output that had been cut",
    Signal.WRONG: "it said that it was done although the tests fail",
    Signal.CRASHED: "its program was ended by an error of its own",
    Signal.EMPTY: "it left no change at all",
}
_EDIT = re.compile(r"^`\w*edit\w*` (.+)$", re.M)
_TOO_LONG = re.compile(r"context[_ ]length")
_REFUSED = "so a request was refused"
"""Of a question about what does not fit into a model."""


def answer(request: Request) -> str:
    """The issue as JSON with a word before it; a pure function of the request."""
    text = quoted.question(request)
    return issue(text, quoted.parts(text), "the agent's ")


def issue(text: str, parts: Mapping[str, str], whose: str) -> str:
    """The issue about the failure whose parts have titles that begin with ``whose``."""
    found = signs(text, parts, whose)
    weights = weighed(found, quoted.source(parts))
    kind = quoted.drawn(weights, text)
    seen = "; ".join(_SAID[signal] for signal in found) or "nothing in its trajectory stands out"
    return quoted.issue(f"What can be seen is this: {seen}.", f"The agent goes wrong where {seen}.", kind)


def signs(text: str, parts: Mapping[str, str], whose: str) -> list[Signal]:
    """What the trajectory shows."""
    said, printed = parts.get(f"{whose}conversation", ""), parts.get(f"{whose}printed output", "")
    edits = _EDIT.findall(said)
    empty = not parts.get(f"{whose}patch", "")
    shown = {
        Signal.LIMIT: "step limit reached" in printed or len(edits) > len(set(edits)),
        Signal.TRUNCATED: "truncated]" in said,
        Signal.WRONG: not empty and "DONE" in said.rpartition("## assistant")[2],
        Signal.CRASHED: "Traceback (most recent call last)" in printed or _too_long(text, said + printed),
        Signal.EMPTY: empty,
    }
    return [signal for signal, there in shown.items() if there]


def _too_long(text: str, told: str) -> bool:
    return _REFUSED in " ".join(text.split()) or bool(_TOO_LONG.search(told))


def weighed(signals: list[Signal], files: Mapping[str, str]) -> dict[Kind, float]:
    """The kinds of change that apply, with their weights; those that any of the signs speaks for weigh more."""
    possible = quoted.applicable(CATALOGUE, files) or list(CATALOGUE)
    return {
        kind: kind.weight * (MOST_RAISED if kind.raised_by.intersection(signals) else 1.0)
        for kind in possible
    }
