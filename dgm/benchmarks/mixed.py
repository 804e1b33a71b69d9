"""Several benchmarks as one: ``a+b`` offers the tasks of both, and each part grades its own.

A task's id always begins with its part's name (``starter/ledger-…``), so that adding a part later renames nothing.
"""

import functools
import hashlib
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from dgm.benchmarks.grader_version import data_of, stamp_version
from dgm.conduct import Bait, Secrets
from dgm.domain import Metric, Snapshot, Split, Task, TaskId
from dgm.errors import UserError
from dgm.protocols import Benchmark, Grade, HasConduct, HasEnvironments, HasMetrics, InImage, TaskEnvironment


class MixedBenchmark:
    """A ``dgm.protocols.Benchmark`` on the tasks of its parts.

    Two parts of one name are told apart by their position (``tasks/…``, ``tasks-2/…``).

    Raises:
        UserError: a part is named twice.
    """

    def __init__(self, parts: Sequence[Benchmark]) -> None:
        self.parts: Mapping[str, Benchmark] = _name_parts(parts)
        self.name = "+".join(self.parts)
        digest = hashlib.sha256()
        for name, part in self.parts.items():
            digest.update(f"{name}\0{data_of(part.version)}\0".encode())
        self.version = stamp_version(digest.hexdigest())

    def tasks(self, split: Split) -> Sequence[Task]:
        """Return the split's tasks of all parts, part by part."""
        return list(chain.from_iterable(self._of(name, split) for name in self.parts))

    def task(self, task: TaskId) -> Task:
        """Return one task by id.

        Raises:
            UserError: there is no such task.
        """
        part, inner = self.part(task)
        return replace(part.task(inner), id=task)

    def part(self, task: TaskId) -> tuple[Benchmark, TaskId]:
        """Return the benchmark that a task belongs to, and the task's id there.

        Raises:
            UserError: there is no part of this name.
        """
        name, slash, inner = task.partition("/")
        if not slash or name not in self.parts:
            known = ", ".join(f"{part}/…" for part in self.parts)
            raise UserError(f"{self.name}: no task {task!r} (its tasks are named {known})")
        return self.parts[name], TaskId(inner)

    def workspace(self, task: TaskId) -> Snapshot | InImage:
        """Return the workspace from the task's part."""
        part, inner = self.part(task)
        return part.workspace(inner)

    def again(self, task: TaskId, grade: Grade, tried: int) -> str:
        """Return the prompt for another try from the task's part."""
        part, inner = self.part(task)
        return part.again(inner, grade, tried)

    async def environment(self, task: TaskId, labels: Mapping[str, str]) -> TaskEnvironment | None:
        """Return the packages from the task's part, if it has some."""
        part, inner = self.part(task)
        return await part.environment(inner, labels) if isinstance(part, HasEnvironments) else None

    def bait(self, task: TaskId) -> Bait:
        """Return what taking a task's bait looks like, from the task's part."""
        part, inner = self.part(task)
        return part.bait(inner) if isinstance(part, HasConduct) else Bait()

    def secrets(self) -> Secrets:
        """Return the texts of all parts' tasks that no agent's source holds by chance."""
        parts = [part.secrets() for part in self.parts.values() if isinstance(part, HasConduct)]
        return functools.reduce(operator.or_, parts, Secrets())

    async def grade(self, task: TaskId, patch: bytes, labels: Mapping[str, str]) -> Grade:
        """Grade a patch by the task's part.

        Raises:
            Infrastructure: the sandbox failed; this is no verdict on the patch.
        """
        part, inner = self.part(task)
        return await part.grade(inner, patch, labels)

    def metrics(self) -> Mapping[str, Metric]:
        """Return the metrics of all parts.

        Raises:
            UserError: two parts mean different things by one name.
        """
        together: dict[str, Metric] = {}
        for part in self.parts.values():
            for name, metric in part.metrics().items() if isinstance(part, HasMetrics) else ():
                if together.setdefault(name, metric).higher != metric.higher:
                    raise UserError(f"{self.name}: two parts have a metric {name!r} of different directions")
        return together

    def _of(self, name: str, split: Split) -> Sequence[Task]:
        return [replace(task, id=TaskId(f"{name}/{task.id}")) for task in self.parts[name].tasks(split)]


def _name_parts(parts: Sequence[Benchmark]) -> Mapping[str, Benchmark]:
    named: dict[str, Benchmark] = {}
    for part in parts:
        base = part.name.replace("/", "-")
        if any(part.version == other.version for other in named.values()):
            raise UserError(f"the benchmark {part.name!r} is named twice; name each part of a mixed one once")
        number = 1 + sum(other.name == part.name for other in named.values())
        named[base if number == 1 else f"{base}-{number}"] = part
    return named
