"""The context record of models that are not a provider's."""

from dataclasses import dataclass

from dgm.config import Settings


@dataclass(frozen=True, slots=True)
class ModelContext:
    """The inputs of a model, built-in or a plug-in (``dgm.factories`` says how to ask for them)."""

    name: str
    """Name of the model, as users type it; its usage is priced under this name."""
    settings: Settings
    """All settings of the run."""
