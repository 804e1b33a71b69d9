"""The version of a suite: the grader's, and a digest of all of its files that can change a verdict."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from dgm.benchmarks.environments import FOLDER, PACKAGES
from dgm.benchmarks.grader_version import stamp_version
from dgm.benchmarks.suite_files import REPOSITORY
from dgm.folders import read_entry

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
    digest = hashlib.sha256()
    for name in files:
        if _can_change_a_verdict(name):
            entry = read_entry(folder, name)
            for part in (name.encode("utf-8", "surrogateescape"), oct(entry.mode).encode(), entry.data):
                digest.update(len(part).to_bytes(8, "big") + part)
    return stamp_version(digest.hexdigest())


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
