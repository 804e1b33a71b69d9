"""The context record of operators."""

from dataclasses import dataclass, field

from dgm.config import EvidenceSettings, OperatorSettings
from dgm.domain import Snapshot
from dgm.meta.prompts import Prompts


@dataclass(frozen=True, slots=True)
class OperatorContext:
    """The inputs of a run's operators, built-in ones and plug-ins (``dgm.plugins`` says how to ask for them)."""

    image: str
    """Recipe of the sandboxes in which agents improve themselves."""
    time_limit_s: float
    """Wall time of one improve job in seconds, above 0."""
    prompts: Prompts
    """The prompts of the run; they are frozen when it begins."""
    settings: OperatorSettings = field(default_factory=OperatorSettings)
    """The section ``[operators]`` of the run's settings."""
    evidence: EvidenceSettings = field(default_factory=EvidenceSettings)
    """The section ``[evidence]``: what operators show of the parents' past."""
    editor: Snapshot | None = None
    """Source of the shipped agent that edits the run's agents, as it was when the run began; None: as it is now."""
