"""What a child must pass before anything is spent on evaluating it; the cheapest question first.

Each stage raises ``AgentFault`` with its own name, so that stillborn children are counted by stage.
"""

from dgm.meta.vetting.passing import IsKnown, vet
from dgm.meta.vetting.stages import Stages

__all__ = ["IsKnown", "Stages", "vet"]
