"""The benchmark formats that dgm supports: what stands before the colon of a benchmark's name.

A new one is a module with its record, and a line in ``FORMATS``. A record is imported only when it is needed. It is
called with a ``BenchmarkContext``, as the factory of a plug-in is.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from dgm.config import BenchmarksSettings, GradingSettings
from dgm.plugins import find_plugin
from dgm.protocols import Benchmark, SandboxEngine


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


FORMATS: Mapping[str, str] = {
    "swebench": "dgm.benchmarks.swebench:FORMAT",
    "polyglot": "dgm.benchmarks.polyglot:FORMAT",
    "harbor": "dgm.benchmarks.harbor_folder:FORMAT",
}
"""Format → ``module:attribute`` of its record, as an entry point names a factory."""


def _one(_settings: BenchmarksSettings) -> int:
    return 1


@dataclass(frozen=True, slots=True)
class Format:
    """One benchmark format; a benchmark's name is ``FORMAT:PLACE``."""

    name: str
    """Text before the colon."""
    open: Callable[[BenchmarkContext], Benchmark]
    """Opener by the benchmark's full name. Raises UserError if there is no such benchmark, or it is wrong."""
    example: str
    """Full names as a message to people gives them."""
    forms: Sequence[tuple[str, str]]
    """Form of a full name → meaning, as ``dgm benchmark list`` prints them."""
    is_folder: bool
    """Whether a place on this machine is a folder; False: a file."""
    meaning: str
    """Words beside a completed name."""
    data_sets: Collection[str] = ()
    """Names that win over files of the same name."""
    is_local: bool = False
    """Whether a place on this machine opens without another machine and without an engine."""
    shipped: str = ""
    """Description of the benchmark that the name without a place means; empty: there is none."""
    tries: Callable[[BenchmarksSettings], int] = _one
    """Maximum number of tries of an agent at one task."""

    def __call__(self, context: BenchmarkContext) -> Benchmark:
        """Open the benchmark that the context names.

        Raises:
            UserError: there is no such benchmark, or it is wrong.
        """
        return self.open(context)


def format_of(name: str) -> Format:
    """Return the record of a format.

    Args:
        name: one of ``FORMATS``.
    """
    return cast("Format", find_plugin("benchmarks", name, FORMATS))


def all_formats() -> Sequence[Format]:
    """Return the records of all formats; import the modules of all of them."""
    return tuple(map(format_of, FORMATS))
