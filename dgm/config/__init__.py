"""Settings of a run: defaults here, then one TOML file, then ``--set a.b=c``, then flags; resolved once.

An unknown key is an error with a suggestion. The resolved settings are frozen in ``run.json`` and passed on by
constructor; no other module reads a configuration file or an environment variable.
"""

from dgm.config.earlier import restore_old_defaults
from dgm.config.making import EvidenceSettings, GateSettings, OperatorSettings, VettingSettings
from dgm.config.resolving import resolve, validate_settings
from dgm.config.scale import ScaleSettings
from dgm.config.sections import (
    AzureSettings,
    BedrockSettings,
    BenchmarksSettings,
    BudgetSettings,
    GradingSettings,
    LimitSettings,
    ModelsSettings,
    PolicySettings,
    PolyglotSettings,
    PriceSettings,
    ProviderSettings,
    RequestSettings,
    SwebenchSettings,
    VertexSettings,
)
from dgm.config.settings import Settings

__all__ = [
    "AzureSettings",
    "BedrockSettings",
    "BenchmarksSettings",
    "BudgetSettings",
    "EvidenceSettings",
    "GateSettings",
    "GradingSettings",
    "LimitSettings",
    "ModelsSettings",
    "OperatorSettings",
    "PolicySettings",
    "PolyglotSettings",
    "PriceSettings",
    "ProviderSettings",
    "RequestSettings",
    "ScaleSettings",
    "Settings",
    "SwebenchSettings",
    "VertexSettings",
    "VettingSettings",
    "resolve",
    "restore_old_defaults",
    "validate_settings",
]
