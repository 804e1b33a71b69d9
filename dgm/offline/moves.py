"""What the offline model can decide to do next, in words that no scaffold's tools shape.

``solver`` and ``editor`` return a move; ``perform`` turns it into the calls that the scaffold's tools understand.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """See lines ``first`` to ``last`` of a file, numbered; ``last`` = 0 is the end of the file."""

    path: str
    first: int = 1
    last: int = 0


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace ``old``, which occurs exactly once in the file as it is now, with ``new``."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Run:
    """Run a shell command in the repository."""

    command: str


@dataclass(frozen=True, slots=True)
class RunTests:
    """Run the visible tests: all of them, or the dotted names in ``targets``."""

    targets: tuple[str, ...] = ()


Move = View | Edit | Run | RunTests


@dataclass(frozen=True, slots=True)
class Decision:
    """What to say and what to do; no moves ends the work."""

    say: str
    moves: tuple[Move, ...] = ()
