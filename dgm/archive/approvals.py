"""Children that wait for a person's yes or no, and the answers: one small file each, in the run's folder.

Whoever answers writes a file, and only that; the process that writes the run's log reads it. So an answer is never
lost, whether anything runs or not.
"""

from dataclasses import dataclass

from dgm.domain import Born


@dataclass(frozen=True, slots=True)
class Waiting:
    """A child that is ready to be born, when a person says so."""

    child: Born
    since: float
    """Unix time."""
