"""The kinds of fault that are injected into Python source, and an edit of one kind."""

from dataclasses import dataclass
from enum import StrEnum


class SiteKind(StrEnum):
    """A fault that one small edit makes."""

    GUARD_REMOVED = "guard-removed"
    """An ``if`` or ``elif`` without ``else`` is gone with its body."""
    COMPARISON = "comparison"
    """Another relation, as ``<`` for ``<=``."""
    NEGATION = "negation"
    """A ``not`` too many or too few."""
    CONDITION_DROPPED = "condition-dropped"
    """One part of an ``and`` or ``or`` is gone."""
    CONNECTIVE = "connective"
    """``and`` for ``or``, or the reverse."""
    FLAG = "flag"
    """``True`` for ``False``, or the reverse."""
    SIBLING_CALL = "sibling-call"
    """A function that is often confused with the right one, as ``min`` for ``max``."""
    KEYWORD_DROPPED = "keyword-dropped"
    """A keyword argument is not passed on."""
    STATEMENT_REMOVED = "statement-removed"
    """A call, an assignment to an attribute or item, a ``continue``, ``break`` or ``return`` is gone."""
    SWAPPED_ARGUMENTS = "swapped-arguments"
    """The first two arguments of a call are exchanged."""
    ARITHMETIC = "arithmetic"
    """Another operator between numbers."""
    OFF_BY_ONE = "off-by-one"
    """An index, a bound or a count is one too high, or its ``+ 1`` or ``- 1`` is gone."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of bytes of a file's UTF-8."""

    kind: SiteKind
    line: int
    """The line on which the changed expression or statement begins, from 1."""
    begin: int
    end: int
    replacement: str
