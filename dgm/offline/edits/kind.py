"""A kind of change: a transformation with its expected worth, its likelihood and its reason."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from dgm.offline.edits.source import Files, Transform, edits
from dgm.offline.moves import Edit


class Group(StrEnum):
    """The expected effect of a kind of change."""

    HELPFUL = "helpful"
    CONDITIONAL = "conditional"
    NEUTRAL = "neutral"
    HARMFUL = "harmful"


class Signal(StrEnum):
    """Signs in the evidence of a parent's failures, in the words of the ``improve`` problem's digest."""

    LIMIT = "step limit reached"
    TRUNCATED = "output truncated"
    WRONG = "said DONE but wrong"
    CRASHED = "crashed"
    EMPTY = "empty patch"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of change."""

    name: str
    group: Group
    weight: float
    rationale: str
    """One sentence, shown with the child."""
    transform: Transform
    raised_by: frozenset[Signal] = frozenset()

    def apply(self, files: Files) -> tuple[Edit, ...] | None:
        """Return the replacements that make this change, in order; ``None`` if it does not apply (any more)."""
        changed = self.transform(files)
        found = edits(files, changed) if changed else ()
        return found or None


def apply_edits(files: Mapping[str, str], changes: tuple[Edit, ...]) -> dict[str, str]:
    """Return the files after some replacements.

    Raises:
        ValueError: a text to replace does not occur exactly once.
    """
    now = dict(files)
    for change in changes:
        if now[change.path].count(change.old) != 1:
            raise ValueError(f"{change.path}: expected one occurrence of {change.old!r}")
        now[change.path] = now[change.path].replace(change.old, change.new)
    return now


Row = tuple[str, float, Transform, str, tuple[Signal, ...]]
"""Name, weight, transformation, rationale, and the signals that raise the weight."""


def kinds(group: Group, *rows: Row) -> tuple[Kind, ...]:
    """Build kinds of one group from rows."""
    return tuple(
        Kind(name, group, weight, why, change, frozenset(by)) for name, weight, change, why, by in rows
    )
