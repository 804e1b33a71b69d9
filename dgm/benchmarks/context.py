"""The context record of benchmarks that are more than a suite's folder."""

from dataclasses import dataclass, field

from dgm.config import BenchmarksSettings, GradingSettings
from dgm.protocols import SandboxEngine


@dataclass(frozen=True, slots=True)
class BenchmarkContext:
    """The inputs of a benchmark, of a built-in format or a plug-in (``dgm.plugins`` says how to ask for them)."""

    name: str
    """Full name of the benchmark, as users type it: ``sums``, ``polyglot:FOLDER``; never several with ``+``."""
    engine: SandboxEngine
    """Opens the sandboxes for grading. Code that only lists or reads tasks passes one that opens none."""
    settings: BenchmarksSettings
    """The section ``[benchmarks]`` of the settings."""
    grading: GradingSettings = field(default_factory=GradingSettings)
    """The section ``[grading]`` of the settings."""
