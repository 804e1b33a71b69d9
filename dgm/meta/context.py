"""The inputs from which a built-in operator is built."""

from dataclasses import dataclass, field

from dgm.config import EvidenceSettings, OperatorSettings
from dgm.meta.prompts import Prompts


@dataclass(frozen=True, slots=True)
class OperatorContext:
    """The inputs of operators that are common to one run."""

    image: str
    """Recipe of the sandboxes in which agents improve themselves."""
    time_limit_s: float
    """Wall time of one improve job in seconds."""
    prompts: Prompts
    settings: OperatorSettings = field(default_factory=OperatorSettings)
    evidence: EvidenceSettings = field(default_factory=EvidenceSettings)
