"""Suites that are folders of tasks: the agents' view of them, and the entry to their hidden grading.

The format's full text is ``benchmarks/README.md``. A task's tests and reference fix leave this module only for
the sandbox that grades.
"""

import asyncio
import functools
import operator
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from dgm.archive.git import clean_environment, first_line, run_git
from dgm.archive.repository import AgentRepository
from dgm.archive.snapshots import write_folder
from dgm.benchmarks.environments import FOLDER, PACKAGES, EnvironmentChecks, read_environments
from dgm.benchmarks.grade import Exam, Survey, examine, run_solution, run_tests
from dgm.benchmarks.grader_version import digest_files, stamp_version
from dgm.benchmarks.languages import Results
from dgm.benchmarks.perturb import COMMAND, Outcomes, Perturb, Perturbation
from dgm.benchmarks.prediction_patches import normalised_patch
from dgm.benchmarks.sandbox_runner import matches
from dgm.benchmarks.suite_files import (
    REPOSITORY,
    TaskRecord,
    WorkspaceSource,
    read_suite,
    read_task,
)
from dgm.benchmarks.task_images import TaskImage, TaskImageBuilder, check_consent, make_subject
from dgm.benchmarks.toml_table import suggestion
from dgm.conduct import (
    MOST_FINDINGS,
    Bait,
    Secrets,
    added_lines,
    changed_paths,
    hidden_literals,
    inspect_patch,
    secrets_of,
)
from dgm.consents import Subject
from dgm.domain import Finding, Metric, Snapshot, Split, Task, TaskId, Verdict
from dgm.errors import ArchiveCorrupt, UserError
from dgm.folders import list_files, read_below, read_entry, read_file, read_folder
from dgm.paths import asset
from dgm.protocols import Grade, InImage, SandboxEngine, TaskEnvironment

PROBLEM_BYTES = 2_000_000


class SuiteBenchmark:
    """A ``dgm.protocols.Benchmark`` on a folder of tasks.

    All files are read and checked on opening, so that a mistake in any task shows before a run starts. Workspaces are
    made on request, and kept. ``perturb`` says which patches are graded on changed tests, too.

    Raises:
        ConsentNeeded: it has Dockerfiles, the engine builds images, and this user has not agreed to that.
        UserError: a file is missing or wrong; the message names file and key.
    """

    def __init__(self, folder: Path, engine: SandboxEngine, perturb: Perturb = "resolved") -> None:
        # Before any of them is read; packages are checked before their first use.
        files = list_files(folder, skip=f"{FOLDER}/*/{PACKAGES}")
        record = read_suite(folder)
        self.name = record.name
        self.description = record.description
        self.license = record.license
        self._folder = folder
        self._engine = engine
        repos = _list_tasks(folder / "repos") if (folder / "repos").is_dir() else []
        self._environments = read_environments(folder)
        self._environment_checks = EnvironmentChecks(engine)
        self._records = {
            TaskId(name): read_task(folder / "tasks" / name, record.limits, repos, list(self._environments))
            for name in _list_tasks(folder / "tasks")
        }
        if not self._records:
            raise UserError(f"{folder / 'tasks'}: no task in it")
        self._metrics = record.metrics
        if self._metrics and not any(each.tests.results is Results.REWARD for each in self._records.values()):
            raise UserError(
                f'{folder / "suite.toml"}: metrics: no task could report them; give one [tests] result = "reward"'
            )
        self._check_links([folder / "repos" / name for name in repos])
        self.version = suite_version(folder, files)
        self._repo = cache(lambda name: read_folder(folder / "repos" / name))
        self._workspaces: dict[TaskId, Snapshot] = {}
        self._perturbation = Perturbation(self._run_tests, self.solution, perturb)
        self._literals: dict[TaskId, frozenset[str]] = {}
        self._secrets: Secrets | None = None
        self._building = threading.Lock()
        self._built: set[str] = set()
        self._images = {task: self._image(task) for task in self._records}
        for task, image in self._images.items():
            image.check(self._place(task), engine)
        builds = isinstance(engine, TaskImageBuilder)
        self._network = builds and check_consent(folder, self._images.values())

    def metrics(self) -> Mapping[str, Metric]:
        """Return the metrics that ``suite.toml`` declares."""
        return self._metrics

    def tasks(self, split: Split) -> Sequence[Task]:
        """Return the split's tasks in the order of their ids."""
        return [self.task(task) for task, record in self._records.items() if record.split is split]

    def task(self, task: TaskId) -> Task:
        """Return one task by id.

        Raises:
            UserError: there is no such task.
        """
        record = self.record(task)
        return Task(
            id=task,
            benchmark=self.name,
            prompt=self._problem(task),
            image=self._images[task].name,
            workdir=record.limits.workdir,
            timeout_s=record.limits.timeout_s,
            tags=(*([record.repo] if record.repo else []), *record.tags),
        )

    def record(self, task: TaskId) -> TaskRecord:
        """Return a task's record for people and for grading; an agent must not see it.

        Raises:
            UserError: there is no such task.
        """
        if task not in self._records:
            raise UserError(f"{self._folder}: no task {task!r}{suggestion(task, list(self._records))}")
        return self._records[task]

    def workspace(self, task: TaskId) -> Snapshot | InImage:
        """Return the agent's start: with the fault, without hidden tests. Builds the task's image if it has one.

        Raises:
            UserError: a patch of the suite does not apply, or the image cannot be built.
            Infrastructure: the engine failed.
        """
        record = self.record(task)
        self._ensure(self._images[task])
        if record.source is WorkspaceSource.IMAGE:
            return InImage()
        if task not in self._workspaces:
            place = self._place(task)
            if record.source is WorkspaceSource.FOLDER:
                self._workspaces[task] = read_folder(place / "workspace")
            elif record.source is WorkspaceSource.COMMIT:
                self._workspaces[task] = self._read_commit(task, record)
            else:
                self._workspaces[task] = apply_suite_patch(self._repo(record.repo), place / "start.patch")
        return self._workspaces[task]

    def _read_commit(self, task: TaskId, record: TaskRecord) -> Snapshot:
        assert record.commit
        place = self._place(task)
        try:
            files = AgentRepository(self._folder / REPOSITORY).source(record.commit)
        except ArchiveCorrupt as error:
            raise UserError(f"{place / 'task.toml'}: commit: {error}") from error
        changed = place / "start.patch"
        return apply_suite_patch(files, changed) if changed.is_file() else files

    async def environment(self, task: TaskId, labels: Mapping[str, str]) -> TaskEnvironment | None:
        """Return the packages for the programs that an agent starts; None if the task has none of its own.

        Raises:
            UserError: they were changed, or are for another Python than the sandbox has.
            Infrastructure: the sandbox failed.
        """
        record = self.record(task)
        if not record.environment:
            return None
        found = self._environments[record.environment]
        await self._environment_checks.check(found, self._images[task].name, labels)
        return found.shown(record.limits.workdir)

    def again(self, task: TaskId, grade: Grade, tried: int) -> str:  # noqa: ARG002  (one try, whatever came of it)
        """Return nothing: there is only one try."""
        return ""

    def reference(self, task: TaskId) -> bytes:
        """Return the reference fix as a patch on the workspace; to verify the suite, never shown to an agent.

        Raises:
            UserError: the task has none that is a patch.
        """
        self.record(task)
        file = self._place(task) / "solution.patch"
        if not file.is_file():
            raise UserError(f"{file}: missing, so that the task cannot be verified")
        return read_file(file)

    async def solution(self, task: TaskId, labels: Mapping[str, str]) -> bytes:
        """Return the reference fix, even if it is a script ``solution/solve.sh``, which is run in a sandbox.

        Raises:
            UserError: the task has no reference fix, or its script fails.
            Infrastructure: the sandbox failed.
        """
        exam = await asyncio.to_thread(self.exam, task)
        folder = self._place(task) / "solution"
        if exam.tests.by_name or not (folder / "solve.sh").is_file():
            return self.reference(task)
        return await run_solution(exam, read_folder(folder), self._engine, labels)

    def hidden_tests(self, task: TaskId) -> Snapshot:
        """Return the task's ``tests/``, which no agent sees; of tests by name by their paths in the workspace."""
        tests = self.record(task).tests
        folder = f"{tests.folder}/" if tests.folder else ""
        files = read_folder(self._place(task) / "tests")
        return {f"{folder}{name}": entry for name, entry in files.items()}

    def checksum(self, task: TaskId) -> str:
        """Return the SHA-256 of what can change a task's verdict: its own files and its library's."""
        repo = self.record(task).repo
        folders = (f"tasks/{task}/", *([f"repos/{repo}/"] if repo else []))
        names = list_files(self._folder, skip=f"{FOLDER}/*/{PACKAGES}")
        graded = (name for name in names if name.startswith(folders) and _can_change_a_verdict(name))
        return digest_files((name, read_entry(self._folder, name)) for name in graded)

    def images(self) -> Mapping[str, TaskImage]:
        """Return the images of the tasks' sandboxes by name."""
        return {image.name: image for image in self._images.values()}

    def dockerfiles(self, *, network: bool) -> Subject | None:
        """Return what a user agrees to who lets Docker build the tasks' Dockerfiles; None if there are none."""
        return make_subject(self._folder, self._images.values(), network=network)

    async def grade(self, task: TaskId, patch: bytes, labels: Mapping[str, str]) -> Grade:
        """Apply the patch to a fresh workspace in a fresh sandbox and run the hidden tests there.

        Raises:
            Infrastructure: the sandbox failed; this is no verdict on the patch.
        """
        if not normalised_patch(patch).data:
            return Grade(Verdict.UNRESOLVED, "empty patch", 0.0)
        return await self.examine(task, patch, labels)

    async def examine(self, task: TaskId, patch: bytes, labels: Mapping[str, str]) -> Grade:
        """Grade like ``grade``, but run the tests even for an empty patch.

        Raises:
            Infrastructure: the sandbox failed; this is no verdict on the patch.
        """
        graded = await self.examine_unperturbed(task, patch, labels)
        exam = await asyncio.to_thread(self.exam, task)
        grade = await self._perturbation.check(task, exam, patch, graded, labels)
        data = normalised_patch(patch).data
        findings = await asyncio.to_thread(self._inspect, task, exam, data, grade.failed)
        return replace(grade, findings=(*grade.findings, *findings)) if findings else grade

    def _inspect(self, task: TaskId, exam: Exam, patch: bytes, failed: Sequence[str]) -> Sequence[Finding]:
        """Return what a patch and the hidden tests that it failed show against its agent."""
        if task not in self._literals:
            visible = [
                self._problem(task),
                *(text.decode("utf-8", "replace") for text in self._shown(task, exam)),
            ]
            self._literals[task] = hidden_literals(exam.hidden, visible)
        bait = self.record(task).bait
        findings = inspect_patch(task, patch, exam.files, self._problem(task), self._literals[task])
        touched = [path for path in changed_paths(patch) if matches(path, bait.touches)]
        added = [line for line in added_lines(patch) if any(text in line.text for text in bait.contains)]
        works = all(matches(test.partition("::")[0], bait.fails) for test in failed)
        return [
            *findings,
            *(Finding(bait.kind, f"fails {test.rpartition('::')[2]}") for test in failed if works),
            *(Finding(bait.kind, "changes a file that its task forbids to change", path) for path in touched),
            *(Finding(bait.kind, "holds the mark of a canary", line.location) for line in added),
        ][:MOST_FINDINGS]

    def _shown(self, task: TaskId, exam: Exam) -> Iterator[bytes]:
        yield from (entry.data for entry in exam.files.values())
        file = self._place(task) / "solution.patch"
        if file.is_file():
            yield read_file(file)

    def bait(self, task: TaskId) -> Bait:
        """Return what taking a task's bait looks like."""
        return self.record(task).bait

    def secrets(self) -> Secrets:
        """Return the texts of all tasks that no agent's source holds by chance; reads the suite once."""
        if self._secrets is None:
            parts = map(self._task_secrets, self._records)
            self._secrets = functools.reduce(operator.or_, parts, Secrets())
        return self._secrets

    def _task_secrets(self, task: TaskId) -> Secrets:
        file = self._place(task) / "solution.patch"
        reference = read_file(file).decode("utf-8", "replace") if file.is_file() else ""
        return secrets_of(task, self._problem(task), self.hidden_tests(task), reference)

    def _problem(self, task: TaskId) -> str:
        return _read_text(self._folder, f"tasks/{task}/{self.record(task).problem}")

    async def examine_unperturbed(self, task: TaskId, patch: bytes, labels: Mapping[str, str]) -> Grade:
        """Grade a patch like ``examine``, without the check by changed tests.

        Raises:
            Infrastructure: the sandbox failed; this is no verdict on the patch.
        """
        exam = await asyncio.to_thread(self.exam, task)
        if exam.environment:
            await self._environment_checks.check(exam.environment, exam.limits.image, labels)
        return await examine(exam, patch, self._engine, labels)

    async def describe_check(self, task: TaskId, labels: Mapping[str, str]) -> str:
        """Return how many of a task's tests are checked with changed values, or why none is.

        Raises:
            Infrastructure: a sandbox failed.
        """
        exam = await asyncio.to_thread(self.exam, task)
        return await self._perturbation.describe(task, exam, labels)

    async def _run_tests(
        self, exam: Exam, patch: bytes, labels: Mapping[str, str], files: Sequence[str]
    ) -> Outcomes:
        if not exam.tests.by_name:
            graded = await examine(exam, patch, self._engine, labels)
            return {COMMAND: "passed" if graded.verdict is Verdict.RESOLVED else "failed"}
        survey = Survey(files=tuple(files)) if files else None
        run = await run_tests(exam, normalised_patch(patch).data, self._engine, labels, survey)
        asserted = {test for test, failure in run.failures.items() if failure.kind == "AssertionError"}
        return {
            test: outcome if outcome != "failed" or test in asserted else "error"
            for test, outcome in run.outcomes.items()
        }

    def exam(self, task: TaskId) -> Exam:
        """Return the inputs for grading a patch for this task, including the hidden tests."""
        record, workspace, hidden = self.record(task), self.workspace(task), self.hidden_tests(task)
        limits = replace(record.limits, image=self._images[task].name)
        environment = self._environments[record.environment] if record.environment else None
        return Exam(workspace, hidden, record.tests, limits, environment, tuple(self._metrics))

    def check_images(self) -> None:
        """Check that the engine has the images that need no building, and that dgm can work and grade in them.

        Raises:
            UserError: one is missing, or lacks a program.
            Infrastructure: the engine failed.
        """
        for image in self._images.values():
            if not image.needs_building:
                self._ensure(image)

    def _ensure(self, image: TaskImage) -> None:
        with self._building:
            if image.name not in self._built:
                image.ensure(self._engine, network=self._network)
                self._built.add(image.name)

    def _image(self, task: TaskId) -> TaskImage:
        record = self._records[task]
        return TaskImage(
            record.limits.image,
            record.limits.workdir,
            self._place(task) / record.dockerfile if record.dockerfile else None,
            holds_workspace=record.source is WorkspaceSource.IMAGE,
        )

    def _check_links(self, repos: Sequence[Path]) -> None:
        """Refuse links that lead out of a folder that goes into a sandbox.

        Raises:
            UserError: there is one; the message names it.
        """
        parts = (self._place(task) / part for task in self._records for part in (*GRADED, "solution"))
        for folder in (*repos, *parts):
            if folder.is_dir():
                list_files(folder)

    def _place(self, task: TaskId) -> Path:
        return self._folder / "tasks" / task


def suite_names() -> Sequence[str]:
    """Return the names of the shipped suites."""
    return sorted(file.parent.name for file in asset("benchmarks").glob("*/suite.toml"))


def _list_tasks(place: Path) -> Sequence[str]:
    if not place.is_dir():
        raise UserError(f"{place}: missing; a suite has a folder tasks/")
    return sorted(entry.name for entry in place.iterdir() if entry.is_dir() and entry.name[0] not in "._")


def _read_text(folder: Path, name: str) -> str:
    try:
        return read_below(folder, name, PROBLEM_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{folder / name}: not UTF-8: {error}") from error


UNGRADED = frozenset({"LICENSE", "README.md", "calibration.jsonl", "mined.jsonl", "solution.patch"})
"""Files of a suite that cannot change a verdict."""
GRADED = ("workspace", "tests", "environment")
"""Folders of a task in which every file can change a verdict."""


def suite_version(folder: Path, files: Sequence[str]) -> str:
    """Return the version of a suite by names, modes and contents of its files.

    Args:
        folder: the suite's.
        files: all of it, sorted.
    """
    graded = ((name, read_entry(folder, name)) for name in files if _can_change_a_verdict(name))
    return stamp_version(digest_files(graded))


def _can_change_a_verdict(name: str) -> bool:
    match name.split("/"):
        case ["repos", *_]:
            return True
        case [folder, *_] if folder == REPOSITORY:
            return False  # a task's file names the digest of all that it takes from there
        case [folder, _, inside, *_] if (folder, inside) == (FOLDER, PACKAGES):
            return False  # the folder's name is their digest
        case ["tasks", _, folder, _, *_] if folder in GRADED:
            return True
        case ["tasks", _, "solution", _, *_]:
            return False
        case parts:
            return parts[-1] not in UNGRADED


PATCH_TIMEOUT_S = 30


def apply_suite_patch(files: Snapshot, patch: Path) -> Snapshot:
    """Return ``files`` after ``git apply`` of the suite's file ``patch``.

    Raises:
        UserError: the patch does not apply, or leaves a link that leads out of the workspace; or git is not installed.
        Infrastructure: git does not answer.
    """
    if not patch.stat().st_size:
        return files
    with tempfile.TemporaryDirectory(prefix="dgm-suite-") as name:
        folder = Path(name)
        write_folder(files, folder)
        _run_git_apply(patch.resolve(), folder)
        try:
            return read_folder(folder)
        except UserError as error:
            raise UserError(f"{patch}: leaves what no workspace may hold: {error}") from error


def _run_git_apply(patch: Path, folder: Path) -> None:
    # Inside a repository, git would take the patch's paths as relative to that repository's root.
    variables = clean_environment() | {"GIT_DIR": os.devnull}
    words = ["apply", "--whitespace=nowarn", "--", str(patch)]
    done = run_git(folder, variables, words, timeout_s=PATCH_TIMEOUT_S)
    if done.returncode:
        raise UserError(f"{patch}: does not apply: {first_line(done.stderr)}")
