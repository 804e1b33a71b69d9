"""The moves that the offline model can decide on, independent of any scaffold's tools.

``solver`` and ``editor`` return a move; ``perform`` turns it into the calls that the scaffold's tools understand.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """A view of lines ``first`` to ``last`` of a file, numbered; ``last`` = 0 is the end of the file."""

    path: str
    first: int = 1
    last: int = 0


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of ``old``, which occurs exactly once in the present file, with ``new``."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class RunCommand:
    """A shell command to run in the repository."""

    command: str


@dataclass(frozen=True, slots=True)
class RunTests:
    """A run of the visible tests: all of them, or the dotted names in ``targets``."""

    targets: tuple[str, ...] = ()


Move = View | Edit | RunCommand | RunTests


@dataclass(frozen=True, slots=True)
class Decision:
    """The text to say and the moves to make; without moves the work ends."""

    say: str
    moves: tuple[Move, ...] = ()
