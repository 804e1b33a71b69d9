"""The version of a suite: a digest of everything that can change a verdict."""

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path

from dgm.benchmarks import command_grading, named_exam, unit_exam
from dgm.benchmarks.environments import FOLDER, PACKAGES
from dgm.benchmarks.named_tests import NamedTests
from dgm.benchmarks.prediction_patches import APPLIER
from dgm.benchmarks.runners import RUNNERS
from dgm.benchmarks.suite_files import REPOSITORY, CommandTests, TaskRecord
from dgm.folders import read_entry

UNGRADED = frozenset({"LICENSE", "README.md", "calibration.jsonl", "mined.jsonl", "solution.patch"})
"""Files of a suite that cannot change a verdict."""
GRADED = ("workspace", "tests", "environment")
"""Folders of a task in which every file can change a verdict."""
_OWN = ("grading", "tampering", "unit_exam")
_PERTURBATION = ("perturbation", "perturbation_sites", "perturbation_syntax", "perturbation_values")
RULES = (
    unit_exam.RUNNER,
    unit_exam.CHILD,
    APPLIER,
    *(Path(__file__).with_name(f"{name}.py") for name in (*_OWN, *_PERTURBATION)),
)
"""Files of dgm that can change a verdict."""


def suite_version(folder: Path, files: Sequence[str], records: Collection[TaskRecord]) -> str:
    """Return the SHA-256 of names, modes and contents of all files that can change a verdict, with the test runner.

    Args:
        folder: the suite's.
        files: all of it, sorted.
        records: its tasks.
    """
    rules = b"".join(file.read_bytes() for file in RULES)
    digest = hashlib.sha256(rules + _grader_versions(records))
    for name in files:
        if _can_change_a_verdict(name):
            entry = read_entry(folder, name)
            for part in (name.encode("utf-8", "surrogateescape"), oct(entry.mode).encode(), entry.data):
                digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def _grader_versions(records: Collection[TaskRecord]) -> bytes:
    """Return the versions of the graders that a suite's tasks need, beside those of ``unittest``."""
    kinds = {type(task.tests) for task in records}
    named = b"".join(file.read_bytes() for file in named_exam.PROGRAMS) + named_exam.VERSION
    runners = {task.tests.runner for task in records if isinstance(task.tests, NamedTests)}
    # Tools that share a runner count once.
    own = dict.fromkeys(RUNNERS[name].graded_by for name in RUNNERS if name in runners)
    return b"".join((
        command_grading.VERSION if CommandTests in kinds else b"",
        named if NamedTests in kinds else b"",
        *own,
    ))  # fmt: skip


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
