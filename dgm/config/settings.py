"""All settings of a run as one record."""

from typing import Annotated

from pydantic import Field

from dgm.config.making import EvidenceSettings, GateSettings, OperatorSettings, VettingSettings
from dgm.config.scale import ScaleSettings
from dgm.config.section import Section
from dgm.config.sections import (
    BenchmarksSettings,
    BudgetSettings,
    GradingSettings,
    LimitSettings,
    ModelsSettings,
    PolicySettings,
)


class Settings(Section):
    """Everything that decides what a run does."""

    benchmark: str = "starter"
    """A suite's name under ``benchmarks/`` or the path of a suite's folder; ``swebench:`` and a data set's name or
    file; ``polyglot:`` and a folder or git URL; several of these joined by ``+``."""
    model: str = "auto"
    """The model that agents are lent: ``openai/…``, ``anthropic/…``, ``openai-compatible/…``, ``offline``,
    ``scripted:FILE``, the name of an installed plug-in; ``auto`` chooses and says why."""
    operator: str = "self-edit"
    """Operator that makes a child; of several joined by ``+``, one is chosen for each child."""
    sandbox: Annotated[str, Field(min_length=1)] = "auto"
    """Where agents run: ``docker``, ``bubblewrap``, ``ray`` or the name of an installed plug-in; auto = docker, else
    bubblewrap."""
    workers: Annotated[int, Field(ge=1, le=4096)] = 2
    """Actions at once."""
    seed: int = 0
    """Every decision is a function of the log and this number."""
    seed_agent: str | None = None
    """``plain``, ``solid``, or a folder or git repository with an ``agent.toml``; default: ``plain`` for the offline
    model, else ``solid``."""
    policy: PolicySettings = PolicySettings()
    budget: BudgetSettings = BudgetSettings()
    limits: LimitSettings = LimitSettings()
    operators: OperatorSettings = OperatorSettings()
    evidence: EvidenceSettings = EvidenceSettings()
    vetting: VettingSettings = VettingSettings()
    gates: GateSettings = GateSettings()
    models: ModelsSettings = ModelsSettings()
    benchmarks: BenchmarksSettings = BenchmarksSettings()
    grading: GradingSettings = GradingSettings()
    scale: ScaleSettings = ScaleSettings()

    @property
    def operator_names(self) -> tuple[str, ...]:
        """The operators that ``operator`` names, in its order."""
        return tuple(name.strip() for name in self.operator.split("+"))
