"""The options of a mining, and its progress as it is told."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dgm.benchmarks.languages import Language

USUAL_BUGS = 30
"""Tasks with a fault that is put in, unless it is said."""


@dataclass(frozen=True, slots=True)
class MiningOptions:
    """Choices for a mining."""

    repo: Path
    """The git repository."""
    out: Path
    """Folder of the suite."""
    history: int = 50
    """Maximum number of tasks from the history."""
    bugs: int | None = None
    """Maximum number of tasks with a fault that is put in; pairs of faults, a fifth as many, come on top. None: 30 in
    Python, and none in other languages, where no faults are put in."""
    since: str = ""
    """Earliest day of the history, as ``2024-01-31``; empty: all of it."""
    image: str = ""
    """Sandbox image, as ``docker:python:3.12``; empty: the language's recipe."""
    setup: str = ""
    """Shell command that installs packages into ``$DGM_PACKAGES``."""
    test: str = ""
    """The repository's own call of pytest, whose options are taken over; in other languages a shell command, whose
    last part calls the test tool, and all before it is the build; in Rust a shell command that calls ``cargo test``;
    in C++ and on the JVM any that writes reports."""
    report: tuple[str, ...] = ()
    """Patterns of the reports in JUnit's XML that ``test`` writes; in C++ and on the JVM only."""
    language: Language | None = None
    """Language that is mined; None: the one that most files of tests are in."""
    holdout: float = 0.3
    """Share of the tasks from the history that is kept for reports, the newest."""
    statement_model: str = ""
    """Model that writes the statements; empty: they show the failing tests."""
    issues: Path | None = None
    """File with the texts of issues, as ``gh issue list --json number,title,body`` writes it."""
    processor_hours: float | None = None
    """Hours of processor time of one session after which nothing new is begun."""
    update: bool = False
    """If true, ``out`` exists and gets the tasks of what was committed since."""
    seed: int = 0
    """Seed of the choice of faults."""
    workers: int = 2
    """Units at once."""

    @property
    def work(self) -> Path:
        """Folder of the journal and the environments, beside the suite."""
        return self.out.parent / f"{self.out.name}.mining"


@dataclass(frozen=True, slots=True)
class Funnel:
    """Progress of a mining."""

    stage: str
    done: int = 0
    total: int = 0
    kept: int = 0
    processor_s: float = 0.0


Tell = Callable[[Funnel], None]
