"""Benchmarks as a user sees them: the list, one suite, one task, and what came of fetching, verifying and making."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

from dgm.benchmarks.task_facts import TaskFacts
from dgm.benchmarks.test_spec import Provenance
from dgm.views.values import View

IN_IMAGE: Literal["in the image"] = "in the image"


class SuiteRow(View):
    """A benchmark in the list."""

    name: str
    description: str
    tasks: Mapping[str, int]
    """Split → number of tasks."""
    version: str


class PluginRow(View):
    """A benchmark of an installed plug-in."""

    name: str
    package: str
    opens: str
    """``module:attribute`` that opens it."""


class NameForm(View):
    """A form of benchmark names."""

    form: str
    """Such as ``swebench:verified``."""
    meaning: str


class SuiteListView(View):
    """All benchmarks that have names, and how to name the others."""

    suites: tuple[SuiteRow, ...]
    plugins: tuple[PluginRow, ...]
    named: tuple[NameForm, ...]


class ImageRow(View):
    """A sandbox image of tasks."""

    image: str
    tasks: int
    state: str
    """``here``, ``not here``, ``not built yet`` or why it is unknown."""


class TaskRow(View):
    """A task of a suite's folder, as people choose tasks."""

    task: str
    split: str
    kind: str
    """``history``, ``bug`` or ``bug-pair`` of a mined task; else the suite's own word, which may be empty."""
    difficulty: str
    repo: str
    date: str
    """Day of its commit, as ``2026-11-27``; empty if unknown."""
    fail_to_pass: int
    """Number of tests that the fix makes pass; 0 where a command decides."""
    pass_to_pass: int
    added: int
    """Lines that the reference fix adds; 0 if it is no patch."""
    removed: int
    modules: tuple[str, ...]
    """Files of code that the reference fix changes."""
    tags: tuple[str, ...]

    @classmethod
    def of(cls, facts: TaskFacts) -> Self:
        """Return the row of a task."""
        return cls(
            task=facts.id,
            split=facts.split.value,
            kind=facts.kind,
            difficulty=facts.difficulty,
            repo=facts.repo,
            date=facts.day,
            fail_to_pass=len(facts.fail_to_pass),
            pass_to_pass=len(facts.pass_to_pass),
            added=facts.added,
            removed=facts.removed,
            modules=facts.modules,
            tags=facts.tags,
        )


class SuiteView(SuiteRow):
    """One benchmark."""

    tags: Mapping[str, int]
    """Tag → number of tasks, the most frequent first."""
    images: tuple[ImageRow, ...]
    left_out: tuple[str, ...]
    """Why the suite leaves tasks out, a line each."""
    ids: Mapping[str, tuple[str, ...]]
    """Split → its tasks."""
    facts: tuple[TaskRow, ...] = ()
    """Its tasks by split and id; empty for a benchmark that is not a suite's folder."""


class OriginView(View):
    """What agents do not see of a task."""

    split: str
    kind: str
    difficulty: str
    changes: Mapping[str, tuple[int, int]]
    """File that the reference fix changes → lines added and removed."""
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    provenance: Provenance | None
    checksum: str
    """SHA-256 of what can change a verdict on it: its own files and its library's."""


class HiddenView(View):
    """The hidden tests and the reference fix of a task."""

    tests: Mapping[str, str]
    """File → its text."""
    solution: str
    """The reference fix; empty if it is no patch."""


class TaskView(View):
    """One task of a benchmark."""

    task: str
    benchmark: str
    image: str
    workdir: str
    timeout_s: float
    tags: tuple[str, ...]
    prompt: str
    workspace: tuple[str, ...] | Literal["in the image"]
    """Files that an agent finds."""
    workspace_bytes: int
    """0 where the files are in the image."""
    origin: OriginView | None
    """None for a benchmark that is not a suite's folder."""
    hidden: HiddenView | None = None
    """Only on request."""


class ImagesToFetch(View):
    """The images of one benchmark before a fetch."""

    benchmark: str
    here: int
    missing: int


class FetchView(View):
    """The outcome of a fetch."""

    before: tuple[ImagesToFetch, ...]
    ready: tuple[str, ...]
    failed: Mapping[str, str]
    """Image or instance → the reason."""
    removed: tuple[str, ...]
    """Images removed to make room."""

    @property
    def exit_code(self) -> int:
        """1 if an image failed."""
        return 1 if self.failed else 0


class VerificationView(View):
    """The defects of a benchmark's tasks."""

    benchmark: str
    version: str
    verified: tuple[str, ...]
    sound: int
    problems: Mapping[str, tuple[str, ...]]
    """Unsound task → its defects."""
    left_out: tuple[str, ...]
    """Tasks that the suite itself leaves out, a line each."""
    notes: Mapping[str, tuple[str, ...]]
    """Task → remarks, though it may be sound."""
    outputs: Mapping[str, str]
    """Unsound task → the end of what its tests printed."""

    @property
    def exit_code(self) -> int:
        """1 if a task is unsound."""
        return 1 if self.problems else 0


class MadeSuiteView(View):
    """A suite made of other suites, or of tasks of Harbor or Terminal-Bench."""

    suite: Path
    version: str
    tasks: Mapping[str, int]
    """Split → number of tasks."""
    renamed: Mapping[str, str]
    """``suite/task`` → its new id, where another suite's task had the id."""
    repeated: tuple[str, ...]
    """``suite/task`` of tasks that an earlier suite had, file for file."""
    remarks: Mapping[str, Sequence[str]]
    """Imported task → parts that did not come along."""
    skipped: Mapping[str, str]
    """Task that could not be imported → the reason."""


class MiningView(View):
    """The outcome of a mining."""

    suite: Path
    version: str
    tasks: Mapping[str, int]
    """Kind of task → number."""
    splits: Mapping[str, int]
    units: int
    """Changes of the history that were read."""
    candidates: int
    """Changes with code and tests."""
    left_out: Mapping[str, int]
    """Why changes, faults and tasks were left out → number, the most frequent first."""
    processor_s: float
    """Processor time of tests in this session."""
    packages: tuple[str, ...]
    """How the installed packages differ from what commits declare, a line each."""
    model: str
    """Model that wrote the statements; empty: they show the failing tests."""
