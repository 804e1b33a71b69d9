"""What a replay finds: whether a thing came out as recorded, and where it did not, the first thing that differed."""

import re
from dataclasses import dataclass
from enum import StrEnum

from dgm.domain import ActionId, Snapshot
from dgm.gateway.masking import masked

SHOWN = 70
"""Characters of each side of a difference."""
_CALL = re.compile(r"action \d+, call (?P<call>\d+): (?P<what>.*)", re.DOTALL)
"""How the gateway begins what it says of a call that it could not answer."""


class Match(StrEnum):
    """How something that was done again compares with the record of it."""

    SAME = "same"
    DIFFERENT = "different"
    CUT_SHORT = "cut short"
    """It came out otherwise, but a time-out or a limit of memory ended the agent's work then or now."""
    NOT_PERFORMED = "not performed"
    """The infrastructure failed: says nothing of the record."""
    NOTHING = "nothing to grade"
    """The agent left no patch that could be graded."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first thing that differed from the record."""

    action: ActionId
    what: str
    """One line; timings, addresses and temporary paths are masked in what it quotes."""
    call: int | None = None
    """Of the action's model calls, from 1; None where all calls were answered from the record."""

    def __str__(self) -> str:
        where = f"action {self.action}" if self.call is None else f"action {self.action}, call {self.call}"
        return f"{where}: {self.what}"


def from_gateway(action: ActionId, message: str) -> Divergence | None:
    """The divergence that an infrastructure failure of a replay stands for; None where it stands for none."""
    found = _CALL.search(message)
    return Divergence(action, _line(found["what"]), int(found["call"])) if found else None


def differing_files(recorded: Snapshot, again: Snapshot) -> str:
    """Which files two snapshots differ in, with the first line that does."""
    paths = sorted(path for path in {*recorded, *again} if recorded.get(path) != again.get(path))
    if not paths:
        return "the files are the same, the parents are not"
    first = paths[0]
    more = f" (and {len(paths) - 1} other files)" if len(paths) > 1 else ""
    if first not in again or first not in recorded:
        return f"{first} is only there {'in the record' if first in recorded else 'now'}{more}"
    one, other = recorded[first], again[first]
    if one.data == other.data:
        return f"{first}: mode {one.mode:o} against {other.mode:o}{more}"
    return f"{first}: {differing_line(one.data, other.data)}{more}"


def differing_line(recorded: bytes, again: bytes) -> str:
    """The first line in which two texts differ, the recorded one first."""
    ours, theirs = (data.decode("utf-8", "replace").splitlines() for data in (recorded, again))
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False), 1):
        if one != other:
            return f"line {number}: {quoted(one, other)}"
    number = min(len(ours), len(theirs))
    longer, whose = (ours, "recorded") if len(ours) > len(theirs) else (theirs, "new")
    if len(ours) == len(theirs):
        return "only in line endings"
    return f"line {number + 1}: only in the {whose} one: {longer[number][:SHOWN]!r}"


def quoted(recorded: str, again: str) -> str:
    """Both texts from just before where they part, masked unless they are equal then."""
    one, other = masked(recorded), masked(again)
    if one == other:
        one, other = recorded, again
    parted = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    near = max(0, parted - 20)
    return f"{one[near : near + SHOWN]!r} against {other[near : near + SHOWN]!r}"


def _line(text: str) -> str:
    return " ".join(text.split())
