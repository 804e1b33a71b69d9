"""The checks that a child must pass before anything is spent on evaluating it; the cheapest check first.

Each stage raises ``AgentFault`` with its own name, so that stillborn children are counted by stage. The time and result
of each stage are recorded.
"""

from dgm.meta.vetting.novelty import Edit, Judge
from dgm.meta.vetting.passing import IsKnown, Rooms, Subject, vet
from dgm.meta.vetting.record import Ran, Record
from dgm.meta.vetting.stages import Stages

__all__ = ["Edit", "IsKnown", "Judge", "Ran", "Record", "Rooms", "Stages", "Subject", "vet"]
