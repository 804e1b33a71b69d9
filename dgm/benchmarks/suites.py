"""Suites that are folders of tasks: what agents may see of them, and the door to their hidden grading.

The format's full text is ``benchmarks/README.md``. Nothing of a task's tests or reference fix leaves this
module except into the sandbox that grades.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from dgm.benchmarks import grading
from dgm.benchmarks.suite_files import TaskRecord, read_suite, read_task, suggestion
from dgm.benchmarks.workspaces import patched, read_folder
from dgm.domain import Snapshot, Split, Task, TaskId
from dgm.errors import UserError
from dgm.paths import asset
from dgm.protocols import Grade, SandboxEngine

UNGRADED = frozenset({"README.md", "solution.patch"})
"""Files of a suite that cannot change a verdict."""


class SuiteBenchmark:
    """A ``dgm.protocols.Benchmark`` on a folder of tasks.

    Everything is read and checked when it is opened, so that a mistake in any task shows before a run starts;
    workspaces are made when they are asked for, and kept.

    Raises:
        UserError: a file is missing or wrong; the message names file and key.
    """

    def __init__(self, folder: Path, engine: SandboxEngine) -> None:
        record = read_suite(folder)
        self.name = record.name
        self.description = record.description
        self.license = record.license
        self.version = _version(folder)
        self._folder = folder
        self._engine = engine
        repos = _folders(folder / "repos")
        self._records = {
            TaskId(name): read_task(folder / "tasks" / name, record.limits, repos)
            for name in _folders(folder / "tasks")
        }
        if not self._records:
            raise UserError(f"{folder / 'tasks'}: no task in it")
        self._repo = cache(lambda name: read_folder(folder / "repos" / name))
        self._workspaces: dict[TaskId, Snapshot] = {}

    def tasks(self, split: Split) -> Sequence[Task]:
        """The split's tasks in the order of their ids."""
        return [self.task(task) for task, record in self._records.items() if record.split is split]

    def task(self, task: TaskId) -> Task:
        """One task by id.

        Raises:
            UserError: there is no such task.
        """
        record = self.record(task)
        return Task(
            id=task,
            benchmark=self.name,
            prompt=(self._place(task) / "problem.md").read_text(encoding="utf-8"),
            image=record.limits.image,
            workdir=record.limits.workdir,
            timeout_s=record.limits.timeout_s,
            tags=(record.repo,),
        )

    def record(self, task: TaskId) -> TaskRecord:
        """What an agent must not see of a task: for people and for grading.

        Raises:
            UserError: there is no such task.
        """
        if task not in self._records:
            raise UserError(f"{self._folder}: no task {task!r}{suggestion(task, list(self._records))}")
        return self._records[task]

    def workspace(self, task: TaskId) -> Snapshot:
        """The library as the agent finds it: the fault planted, no hidden test in it."""
        if task not in self._workspaces:
            repo = self._repo(self.record(task).repo)
            self._workspaces[task] = patched(repo, self._place(task) / "start.patch")
        return self._workspaces[task]

    def reference(self, task: TaskId) -> bytes:
        """The reference fix as a patch on the workspace; to verify the suite, never shown to an agent."""
        self.record(task)
        return (self._place(task) / "solution.patch").read_bytes()

    def hidden_tests(self, task: TaskId) -> Snapshot:
        """The files that are put into ``tests/`` when a patch is graded."""
        self.record(task)
        return read_folder(self._place(task) / "tests")

    async def grade(self, task: TaskId, patch: bytes, labels: Mapping[str, str]) -> Grade:
        """Applies the patch to a fresh workspace in a fresh sandbox and runs the hidden tests there.

        Raises:
            Infrastructure: the sandbox failed; says nothing of the patch.
        """
        return await grading.grade(await asyncio.to_thread(self.exam, task), patch, self._engine, labels)

    def exam(self, task: TaskId) -> grading.Exam:
        """Everything that grading a patch for this task needs, the hidden tests included."""
        record = self.record(task)
        return grading.Exam(
            workspace=self.workspace(task),
            hidden=self.hidden_tests(task),
            fail_to_pass=record.fail_to_pass,
            pass_to_pass=record.pass_to_pass,
            limits=record.limits,
        )

    def _place(self, task: TaskId) -> Path:
        return self._folder / "tasks" / task


def open_suite(name_or_path: str, engine: SandboxEngine) -> SuiteBenchmark:
    """Opens a suite by the name of a shipped one or by the path of a folder.

    Raises:
        UserError: there is none, or a file of it is missing or wrong.
    """
    shipped = asset("benchmarks", name_or_path)
    path = Path(name_or_path).expanduser()
    for folder in (shipped, path):
        if (folder / "suite.toml").is_file():
            return SuiteBenchmark(folder, engine)
    hint = suggestion(name_or_path, suite_names())
    raise UserError(f"no suite {name_or_path!r}: no suite.toml in {shipped} or {path.absolute()}{hint}")


def suite_names() -> Sequence[str]:
    """The shipped suites."""
    return sorted(file.parent.name for file in asset("benchmarks").glob("*/suite.toml"))


def _folders(place: Path) -> Sequence[str]:
    if not place.is_dir():
        raise UserError(
            f"{place}: missing; a suite has the folders repos/ and tasks/ (see benchmarks/README.md)"
        )
    return sorted(entry.name for entry in place.iterdir() if entry.is_dir() and entry.name[0] not in "._")


def _version(folder: Path) -> str:
    """SHA-256 over names, modes and contents of all that can change a verdict, the test runner included."""
    digest = hashlib.sha256(grading.RUNNER.read_bytes())
    for name, entry in read_folder(folder).items():
        if name.rpartition("/")[2] not in UNGRADED or name.startswith("repos/"):
            for part in (name.encode("utf-8", "surrogateescape"), oct(entry.mode).encode(), entry.data):
                digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()
