"""Issues about an agent, written from the quoted parts of one failure.

The module finds signals of the failure and draws one change from all that apply. It does not know which change helps,
and neither does the editor. The weights are those that the editor uses if every failure shows these signals.
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
"""Words of a question about a request that is too long for a model."""


def answer(request: Request) -> str:
    """Return the issue as JSON after a sentence of prose; a pure function of the request."""
    text = quoted.question(request)
    return issue(text, quoted.parse_parts(text), "the agent's ")


def issue(text: str, parts: Mapping[str, str], whose: str) -> str:
    """Return the issue about the failure whose parts have titles that begin with ``whose``."""
    found = find_signals(text, parts, whose)
    weights = weigh_kinds(found, quoted.source(parts))
    kind = quoted.draw_kind(weights, text)
    seen = "; ".join(_SAID[signal] for signal in found) or "nothing in its trajectory stands out"
    return quoted.write_issue(
        f"What can be seen is this: {seen}.", f"The agent goes wrong where {seen}.", kind
    )


def find_signals(text: str, parts: Mapping[str, str], whose: str) -> list[Signal]:
    """Return the signals that the quoted conversation, printed output and patch show."""
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


def weigh_kinds(signals: list[Signal], files: Mapping[str, str]) -> dict[Kind, float]:
    """Return the applicable kinds of change with their weights.

    A kind that one of the signals supports weighs ``MOST_RAISED`` times as much. If no kind applies, all are
    returned.
    """
    possible = quoted.find_applicable(CATALOGUE, files) or list(CATALOGUE)
    return {
        kind: kind.weight * (MOST_RAISED if kind.raised_by.intersection(signals) else 1.0)
        for kind in possible
    }
