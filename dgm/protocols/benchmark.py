"""Tasks and their hidden grading."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from dgm.domain import Snapshot, Split, Task, TaskId, Verdict
from dgm.protocols.work import InImage, TaskEnvironment


@dataclass(frozen=True, slots=True)
class Grade:
    """The result of the hidden tests for a patch."""

    verdict: Verdict
    reason: str
    score: float
    """Share of FAIL_TO_PASS tests that passed; 0.0 if a PASS_TO_PASS test broke or nothing ran."""
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    log: bytes = b""
    """Output of the tests, for people only: graded code may have printed anything into it."""
    shown: bytes = b""
    """Names of failed tests with one short line each: the only part that may become an agent's evidence."""


class Benchmark(Protocol):
    """Tasks and their hidden grading."""

    name: str
    version: str
    """A digest of everything that can change a verdict."""

    def tasks(self, split: Split) -> Sequence[Task]:
        """Return the split's tasks in a fixed order."""
        ...

    def task(self, task: TaskId) -> Task:
        """Return one task by id.

        Raises:
            UserError: there is no such task.
        """
        ...

    def workspace(self, task: TaskId) -> Snapshot | InImage:
        """Return the content of the task's workdir before the agent starts."""
        ...

    def again(self, task: TaskId, grade: Grade, tried: int) -> str:
        """Return the problem of another try, which continues from the last one; empty if its grade is final.

        Args:
            task: the task.
            grade: the grade of the last try.
            tried: the number of tries so far.
        """
        ...

    async def grade(self, task: TaskId, patch: bytes, labels: Mapping[str, str]) -> Grade:
        """Apply the patch to a fresh workspace in a *fresh* sandbox and run the hidden tests there.

        Raises:
            Infrastructure: the sandbox failed; this says nothing about the patch.
        """
        ...


@runtime_checkable
class HasEnvironments(Protocol):
    """A benchmark whose tasks have packages of their own, beside those of their images."""

    async def environment(self, task: TaskId, labels: Mapping[str, str]) -> TaskEnvironment | None:
        """Return the packages for the programs that an agent starts on a task; None if it has none.

        Raises:
            UserError: they do not fit the sandbox.
            Infrastructure: a sandbox failed.
        """
        ...
