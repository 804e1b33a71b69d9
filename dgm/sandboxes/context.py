"""The record that sandbox engines are made from, built-in ones and plug-ins."""

from dataclasses import dataclass

from dgm.config import Settings


@dataclass(frozen=True, slots=True)
class SandboxContext:
    """The inputs of a sandbox engine (``dgm.plugins`` says how to ask for them)."""

    name: str
    """Name under which the engine was found."""
    settings: Settings
    """All settings of the run; of a command without a run, the defaults."""
