"""The only module of the golden verdicts that knows the grader."""

import asyncio
import os
import re
import shutil
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from dgm.archive.repository import patch
from dgm.benchmarks.environments import FOLDER, NAME_LENGTH, PACKAGES, environment_digest
from dgm.benchmarks.harbor import import_harbor
from dgm.benchmarks.polyglot import PolyglotBenchmark
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.config import PolyglotSettings
from dgm.domain import Entry, TaskId, Verdict
from dgm.errors import Infrastructure
from dgm.paths import asset
from dgm.protocols import Grade, SandboxSpec

ENGINE = os.environ.get("DGM_GOLDEN_ENGINE", "bubblewrap")
LABELS = {"dgm.run": "test-golden-verdicts"}


class Kind(StrEnum):
    """Why a verdict is what it is; only ``PASS`` is resolved."""

    PASS = "pass"
    FAIL = "fail"
    """Tests that a fix must pass fail, or the command or the reward says so."""
    BREAK = "break"
    """Tests that passed before fail."""
    TAMPER = "tamper"
    """The patch interferes with the tests or their report."""
    ENDED = "ended"
    """The graded code ended the tests before they reported."""
    TIMEOUT = "timeout"
    MEMORY = "memory"
    REFUSED = "refused"
    """The patch does not apply."""
    EMPTY = "empty"
    NO_REWARD = "no reward"
    """The reward is missing, or not surely the tests' own."""
    INVALID = "invalid"
    """No verdict on the patch: the sandbox failed."""


_REASONS = (
    (Kind.EMPTY, r"^empty patch"),
    (Kind.REFUSED, r"^the patch does not apply|^the solution file "),
    (Kind.TAMPER, r"tampering: |tampered with|imported from outside"),
    (Kind.TIMEOUT, r"did not end (in time|within)"),
    (Kind.MEMORY, r"out of memory"),
    (Kind.NO_REWARD, r"reward does not count|left no reward|the reward was written|^reward\.\w+: "),
    (
        Kind.ENDED,
        r"ended early|ended the test runner|watches the tests was ended|was ended by the graded code",
    ),
    (Kind.BREAK, r"are broken"),
    (Kind.FAIL, r"still fail|tests? fail|is needed|could not be loaded|does not compile"),
)
"""Kinds by the words of a reason, the first that fits."""


class Result(NamedTuple):
    """What became of a patch."""

    kind: Kind
    score: float
    reason: str = ""


def read_grade(grade: Grade) -> Result:
    """Return a grade as a golden row states it."""
    if grade.verdict is Verdict.RESOLVED:
        return Result(Kind.PASS, grade.score, grade.reason)
    fits = (kind for kind, words in _REASONS if re.search(words, grade.reason))
    return Result(next(fits), grade.score, grade.reason)


class GoldenSuite:
    """A suite on disk, opened for grading; polyglot exercises, too."""

    def __init__(self, suite: SuiteBenchmark | PolyglotBenchmark) -> None:
        self._suite = suite

    def start(self, task: str) -> Mapping[str, Entry]:
        """Return the agent's start of a task."""
        return self._suite.workspace(TaskId(task))

    def tests(self, task: str) -> object:
        """Return the record of a task's tests."""
        return self._suite.record(TaskId(task)).tests

    def reference(self, task: str) -> bytes:
        """Return the reference fix."""
        if isinstance(self._suite, PolyglotBenchmark):
            return self._suite.reference(TaskId(task))
        return asyncio.run(self._suite.solution(TaskId(task), LABELS))

    def change(self, task: str, files: Mapping[str, str]) -> bytes:
        """Return a patch that gives files of the start this content."""
        return self.replace(
            task, {**self.start(task), **{name: Entry(text.encode()) for name, text in files.items()}}
        )

    def replace(self, task: str, after: Mapping[str, Entry]) -> bytes:
        """Return a patch that makes these files of the start."""
        return patch(self.start(task), after)

    def grade(self, task: str, given: bytes) -> Result:
        """Grade a patch."""
        try:
            return read_grade(asyncio.run(self._suite.grade(TaskId(task), given, LABELS)))
        except Infrastructure as error:
            return Result(Kind.INVALID, 0.0, str(error))


def open_suite(folder: Path, engine: object, files: Mapping[str, str] | None = None) -> GoldenSuite:
    """Open a suite; write ``files`` into its folder first."""
    for name, text in (files or {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return GoldenSuite(SuiteBenchmark(folder, engine))


def open_harbor(folder: Path, source: Path, engine: object) -> GoldenSuite:
    """Open what becomes of a folder of Harbor's tasks."""
    import_harbor(source, folder, "python")
    return open_suite(folder, engine)


def open_exercises(engine: object) -> GoldenSuite:
    """Open the shipped exercises in Python."""
    settings = PolyglotSettings(languages=("python",))
    return GoldenSuite(PolyglotBenchmark(asset("benchmarks", "polyglot"), engine, settings))


def add_pytest(suite: Path, packages: Path, python: str) -> str:
    """Write an environment with the packages of pytest into a suite's folder; return its name."""
    place = suite / FOLDER / "new"
    for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        shutil.copytree(
            packages / name, place / PACKAGES / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(packages / "py.py", place / PACKAGES)
    (place / "environment.toml").write_text(f'python = "{python}"\nroots = ["src", "."]\n')
    digest = environment_digest(place)[:NAME_LENGTH]
    place.rename(place.with_name(digest))
    return digest


def python_version(engine: object) -> str:
    """Return the version of the sandboxes' Python, such as ``3.11``."""

    async def ask() -> str:
        async with engine.open(SandboxSpec("python", LABELS)) as sandbox:
            words = ["python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
            return (await sandbox.exec(words, timeout_s=30)).output.decode().strip()

    return asyncio.run(ask())
