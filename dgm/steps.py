"""Steps of work that takes a while, reported to whoever waits for it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """Progress of one step of some work; each report replaces the last one of its name."""

    name: str
    done: int = 0
    total: int = 0
    """0: not countable."""
    note: str = ""
    """What came of it so far, such as ``12 tasks``."""


OnStep = Callable[[Step], None]


def ignore(step: Step) -> None:
    """Report nothing."""
