"""Tasks and their hidden grading."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dgm.domain import Snapshot, Split, Task, TaskId, Verdict
from dgm.protocols.work import InImage


@dataclass(frozen=True, slots=True)
class Grade:
    """What the hidden tests say of a patch."""

    verdict: Verdict
    reason: str
    score: float
    """Share of FAIL_TO_PASS tests that passed, 0.0 when a PASS_TO_PASS test broke or nothing ran."""
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    log: bytes = b""
    """Output of the tests, for people only: graded code may have printed anything into it."""
    shown: bytes = b""
    """Names of failed tests with one short line each: all of this that may become an agent's evidence."""


class Benchmark(Protocol):
    """Tasks and their hidden grading."""

    name: str
    version: str
    """A digest of everything that can change a verdict."""

    def tasks(self, split: Split) -> Sequence[Task]:
        """The split's tasks, in a fixed order."""
        ...

    def task(self, task: TaskId) -> Task:
        """One task by id.

        Raises:
            UserError: there is no such task.
        """
        ...

    def workspace(self, task: TaskId) -> Snapshot | InImage:
        """What stands in the task's workdir before the agent starts."""
        ...

    def again(self, task: TaskId, grade: Grade, tried: int) -> str:
        """The problem of one more try, which goes on from what the last one left; empty where its grade stands.

        Args:
            task: the task.
            grade: of the last try.
            tried: how many there were.
        """
        ...

    async def grade(self, task: TaskId, patch: bytes, labels: Mapping[str, str]) -> Grade:
        """Applies the patch to a fresh workspace in a *fresh* sandbox and runs the hidden tests there.

        Raises:
            Infrastructure: the sandbox failed; says nothing of the patch.
        """
        ...
