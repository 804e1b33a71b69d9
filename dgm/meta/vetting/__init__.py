"""The checks that a child must pass before anything is spent on evaluating it; the cheapest check first.

Each stage raises ``AgentFault`` with its own name, so that stillborn children are counted by stage. The time and result
of each stage are recorded.
"""

from dgm.meta.vetting.novelty import AgentEdit, Judge
from dgm.meta.vetting.passing import IsKnown, SandboxStages, VettingReference, vet
from dgm.meta.vetting.record import StageRecord, VettingTrace
from dgm.meta.vetting.stages import Stages

__all__ = [
    "AgentEdit",
    "IsKnown",
    "Judge",
    "SandboxStages",
    "StageRecord",
    "Stages",
    "VettingReference",
    "VettingTrace",
    "vet",
]
