"""Comparison of a replay's results with the record: whether they are equal, and the first difference if not."""

from dataclasses import dataclass
from enum import StrEnum

from dgm.archive.volatile_text import mask_text
from dgm.domain import ActionId, Snapshot

QUOTED_CHARS = 70
"""Characters quoted of each side of a difference."""


class Match(StrEnum):
    """Comparison of a repeated result with its record."""

    SAME = "same"
    DIFFERENT = "different"
    CUT_SHORT = "cut short"
    """The results differ, but a time-out or a limit of memory ended the agent's work then or now."""
    NOT_PERFORMED = "not performed"
    """The infrastructure failed; this says nothing about the record."""
    NOTHING = "nothing to grade"
    """The agent left no patch that could be graded."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first difference from the record."""

    action: ActionId
    what: str
    """One line; timings, addresses and temporary paths are masked in its quotations."""
    call: int | None = None
    """Number of the action's model call, from 1; None if all calls were answered from the record."""

    def __str__(self) -> str:
        where = f"action {self.action}" if self.call is None else f"action {self.action}, call {self.call}"
        return f"{where}: {self.what}"


def describe_differing_files(recorded: Snapshot, again: Snapshot) -> str:
    """Return the files in which two snapshots differ, with the first differing line, as a text."""
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
    return f"{first}: {describe_differing_line(one.data, other.data)}{more}"


def describe_differing_line(recorded: bytes, again: bytes) -> str:
    """Return the first line in which two texts differ, as a text with the recorded line first."""
    ours, theirs = (data.decode("utf-8", "replace").splitlines() for data in (recorded, again))
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False), 1):
        if one != other:
            return f"line {number}: {quote_difference(one, other)}"
    if len(ours) == len(theirs):
        return "only in line endings"
    number = min(len(ours), len(theirs))
    longer, whose = (ours, "recorded") if len(ours) > len(theirs) else (theirs, "new")
    return f"line {number + 1}: only in the {whose} one: {longer[number][:QUOTED_CHARS]!r}"


def quote_difference(recorded: str, again: str) -> str:
    """Quote both texts from just before their first difference, masked unless masking makes them equal."""
    one, other = mask_text(recorded), mask_text(again)
    if one == other:
        one, other = recorded, again
    parted = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    near = max(0, parted - 20)
    return f"{one[near : near + QUOTED_CHARS]!r} against {other[near : near + QUOTED_CHARS]!r}"
