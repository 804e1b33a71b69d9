"""Mined tasks as a suite's folder: the same tasks give the same bytes."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dgm.archive.repository import AgentRepository
from dgm.archive.snapshots import write_folder
from dgm.benchmarks.environments import FOLDER
from dgm.benchmarks.languages import RUNNERS
from dgm.benchmarks.mining.history import Unit
from dgm.benchmarks.suite_files import REPOSITORY
from dgm.benchmarks.test_spec import DISK_MB, Provenance, TestSpec
from dgm.domain import Snapshot

LEFT_FILE = "mined.jsonl"
"""Every unit of the history: the task it became, or why it became none."""
_LICENSE_FILES = (
    "LICENSE", "license", "LICENSE.txt", "LICENSE.md", "LICENCE", "LICENCE.txt", "COPYING", "COPYING.txt",
)  # fmt: skip
_LICENSES = (
    ("Apache-2.0", "Apache License"),
    ("MPL-2.0", "Mozilla Public License"),
    ("AGPL-3.0-only", "GNU AFFERO GENERAL PUBLIC LICENSE"),
    ("LGPL-3.0-only", "GNU LESSER GENERAL PUBLIC LICENSE"),
    ("GPL-3.0-only", "GNU GENERAL PUBLIC LICENSE\n                       Version 3"),
    ("GPL-2.0-only", "GNU GENERAL PUBLIC LICENSE"),
    ("MIT", "Permission is hereby granted, free of charge"),
    ("BSD-3-Clause", "Neither the name"),
    ("BSD-2-Clause", "Redistributions of source code must retain"),
    ("ISC", "Permission to use, copy, modify, and"),
    ("Unlicense", "This is free and unencumbered software"),
)
"""SPDX identifiers, and words that only a text of that licence has, the most telling first."""


@dataclass(frozen=True, slots=True)
class MinedTask:
    """One task, as it is written."""

    id: str
    split: str
    workspace: Snapshot
    """Files of the commit, before ``start``."""
    start: bytes
    """Patch that makes the fault; empty: the commit has it."""
    fix: bytes
    hidden: Snapshot
    tests: TestSpec
    environment: str
    statement: str
    difficulty: str
    provenance: Provenance


def write_suite(
    folder: Path,
    suite: Mapping[str, object],
    tasks: Sequence[MinedTask],
    *,
    license_text: bytes,
    environments: Path,
    units: Mapping[str, str],
) -> None:
    """Write a suite into a new folder.

    Args:
        folder: it; must not exist.
        suite: ``suite.toml``, its last value the table ``[defaults]``.
        tasks: in any order.
        license_text: the repository's; may be empty.
        environments: holds the environments of the tasks by name.
        units: the lines of ``mined.jsonl`` by their keys.
    """
    folder.mkdir(parents=True)
    (folder / "suite.toml").write_text(toml_text(suite), encoding="utf-8")
    if license_text:
        (folder / "LICENSE").write_bytes(license_text)
    (folder / LEFT_FILE).write_text("".join(f"{units[key]}\n" for key in sorted(units)), encoding="utf-8")
    repository = AgentRepository.create(folder / REPOSITORY)
    for task in sorted(tasks, key=lambda task: task.id):
        commit = repository.commit(task.workspace, ())
        _write_task(folder / "tasks" / task.id, task, commit)
    for name in sorted({task.environment for task in tasks}):
        shutil.copytree(environments / name, folder / FOLDER / name, symlinks=True)


def _write_task(place: Path, task: MinedTask, commit: str) -> None:
    tests, about = task.tests, task.provenance
    place.mkdir(parents=True)
    first = {
        "split": task.split,
        "commit": commit,
        "environment": task.environment,
        "statement": "prose",
        "kind": about.kind,
        "difficulty": task.difficulty,
        "tags": [about.kind],
        "fail_to_pass": tests.fail_to_pass,
        "pass_to_pass": tests.pass_to_pass,
    }
    usual = TestSpec(runner=tests.runner, restored=RUNNERS[tests.runner].restored)
    inner: dict[str, object] = {"runner": tests.runner}
    for key in ("restored", "deleted", "command", "reports", "parts", "options", "flags", "build"):
        if (value := getattr(tests, key)) != getattr(usual, key):
            inner[key] = value[0] if key == "command" else value
    inner |= {"limit_s": tests.limit_s, "memory_mb": tests.memory_mb}
    inner |= {"disk_mb": tests.disk_mb} if tests.disk_mb != DISK_MB else {}
    variables = {"tests.env": dict(tests.env)} if tests.env else {}
    text = toml_text({**first, "tests": inner, **variables, "provenance": asdict(about)})
    (place / "task.toml").write_text(text, encoding="utf-8")
    (place / "problem.md").write_text(task.statement.strip() + "\n", encoding="utf-8")
    (place / "solution.patch").write_bytes(task.fix)
    if task.start:
        (place / "start.patch").write_bytes(task.start)
    (place / "tests").mkdir()
    write_folder(task.hidden, place / "tests")


def unit_line(unit: Unit, **more: str) -> str:
    """Return the line of a unit in ``mined.jsonl``."""
    about = {"commit": unit.commit, "date": unit.day, "title": unit.title[:200]}
    return json.dumps({**about, **more}, ensure_ascii=False)


def read_license(files: Snapshot) -> tuple[str, bytes]:
    """Return a repository's licence as an SPDX identifier, and its text; empty if unknown."""
    for name in _LICENSE_FILES:
        if name in files:
            text = files[name].data
            words = text.decode("utf-8", "replace")
            return next((spdx for spdx, marks in _LICENSES if marks in words), ""), text
    return "", b""


def toml_text(values: Mapping[str, object]) -> str:
    """Return texts, numbers and lists of them as TOML: a key a line, a long list one value a line, tables last."""
    return "".join(
        f"\n[{key}]\n{toml_text(value)}" if isinstance(value, dict) else f"{key} = {_toml_value(value)}\n"
        for key, value in values.items()
    )


def _toml_value(value: object) -> str:
    if isinstance(value, list | tuple) and len(value) > 1:
        return "[\n" + "".join(f"    {_toml_value(each)},\n" for each in value) + "]"
    # JSON's texts, numbers and lists are TOML's, but for one character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
