"""Facts of a suite's tasks for people: kind, age, size, tests by name, modules. Never shown to an agent."""

from collections.abc import Mapping
from dataclasses import dataclass

from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.test_spec import Provenance
from dgm.domain import Split, TaskId
from dgm.errors import UserError


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """One task of a suite, as people group and choose tasks."""

    id: TaskId
    split: Split
    kind: str
    """``history``, ``bug`` or ``bug-pair`` of a mined task; else the word that its file has, which may be empty."""
    difficulty: str
    repo: str
    """The library of the suite that it belongs to; empty if it belongs to none."""
    tags: tuple[str, ...]
    fail_to_pass: tuple[str, ...]
    """Tests that the fix must make pass; empty where a command decides."""
    pass_to_pass: tuple[str, ...]
    changes: Mapping[str, tuple[int, int]]
    """File that the reference fix changes → lines that it adds and removes; empty if the fix is no patch."""
    provenance: Provenance | None

    @property
    def added(self) -> int:
        """Lines that the reference fix adds."""
        return sum(added for added, _ in self.changes.values())

    @property
    def removed(self) -> int:
        """Lines that the reference fix removes."""
        return sum(removed for _, removed in self.changes.values())

    @property
    def day(self) -> str:
        """The day of its commit, as ``2026-11-27``; empty if unknown."""
        return self.provenance.date if self.provenance else ""

    @property
    def modules(self) -> tuple[str, ...]:
        """Files of code that the reference fix changes."""
        return self.provenance.modules if self.provenance and self.provenance.modules else tuple(self.changes)


def read_facts(suite: SuiteBenchmark, task: TaskId) -> TaskFacts:
    """Return the facts of one task.

    Raises:
        UserError: there is no such task, or its reference fix cannot be read.
    """
    record = suite.record(task)
    tests = record.tests if record.tests.by_name else None
    try:
        fix = suite.reference(task).decode("utf-8", "replace")
    except UserError:
        fix = ""  # a script, or none
    return TaskFacts(
        id=task,
        split=record.split,
        kind=record.provenance.kind if record.provenance else record.kind,
        difficulty=record.difficulty,
        repo=record.repo,
        tags=record.tags,
        fail_to_pass=tests.fail_to_pass if tests else (),
        pass_to_pass=tests.pass_to_pass if tests else (),
        changes=count_changes(fix),
        provenance=record.provenance,
    )


def count_changes(diff: str) -> Mapping[str, tuple[int, int]]:
    """Return the numbers of added and of removed lines of each file of text that a patch changes."""
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    try:
        return {file.path: (file.added, file.removed) for file in PatchSet(diff) if not file.is_binary_file}
    except UnidiffParseError:
        return {}


def list_facts(suite: SuiteBenchmark) -> tuple[TaskFacts, ...]:
    """Return the facts of all tasks, in the order of their splits and ids."""
    return tuple(read_facts(suite, task.id) for split in Split for task in suite.tasks(split))
