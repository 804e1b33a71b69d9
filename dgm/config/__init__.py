"""Settings of a run: defaults here, then one TOML file, then ``--set a.b=c``, then flags; resolved once.

An unknown key is an error with a suggestion. The resolved settings are frozen in ``run.json`` and passed on by
constructor; no other module reads a configuration file or an environment variable.
"""

from dgm.config.resolving import read_frozen, resolve, resolve_mining, validate_settings
from dgm.config.settings import (
    BenchmarksSettings,
    BudgetSettings,
    ConductSettings,
    CurriculumSettings,
    EvidenceSettings,
    GateSettings,
    GradingSettings,
    HarborSettings,
    LimitSettings,
    MiningSettings,
    ModelsSettings,
    ObjectiveSettings,
    OperatorSettings,
    PolicySettings,
    PolyglotSettings,
    PriceSettings,
    ProviderSettings,
    RequestSettings,
    ScaleSettings,
    Settings,
    SwebenchSettings,
    VettingSettings,
    WeightedModel,
)

__all__ = [
    "BenchmarksSettings",
    "BudgetSettings",
    "ConductSettings",
    "CurriculumSettings",
    "EvidenceSettings",
    "GateSettings",
    "GradingSettings",
    "HarborSettings",
    "LimitSettings",
    "MiningSettings",
    "ModelsSettings",
    "ObjectiveSettings",
    "OperatorSettings",
    "PolicySettings",
    "PolyglotSettings",
    "PriceSettings",
    "ProviderSettings",
    "RequestSettings",
    "ScaleSettings",
    "Settings",
    "SwebenchSettings",
    "VettingSettings",
    "WeightedModel",
    "read_frozen",
    "resolve",
    "resolve_mining",
    "validate_settings",
]
