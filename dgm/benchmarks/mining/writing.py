"""Mined tasks as a suite's folder: the same tasks give the same bytes."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dgm.archive.repository import AgentRepository
from dgm.archive.snapshots import write_folder
from dgm.benchmarks.environments import FOLDER
from dgm.benchmarks.languages import RUNNERS
from dgm.benchmarks.mining.history import Unit
from dgm.benchmarks.mining.scan import Left
from dgm.benchmarks.suite_files import REPOSITORY
from dgm.benchmarks.test_spec import DISK_MB, Provenance, TestSpec
from dgm.domain import Snapshot

LEFT_FILE = "mined.jsonl"
"""Every unit of the history: the task it became, or why it became none."""
_LICENSE_FILES = (
    "LICENSE",
    "license",
    "LICENSE.txt",
    "LICENSE.md",
    "LICENCE",
    "LICENCE.txt",
    "COPYING",
    "COPYING.txt",
)
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


@dataclass(frozen=True, slots=True)
class SuiteFacts:
    """Description of a suite."""

    name: str
    description: str
    license: str
    license_text: bytes
    timeout_s: float
    test_timeout_s: float
    image: str = "python"
    """Sandbox recipe of all tasks."""


def write_suite(
    folder: Path, facts: SuiteFacts, tasks: Sequence[MinedTask], environments: Path, units: Mapping[str, str]
) -> None:
    """Write a suite into a new folder.

    Args:
        folder: it; must not exist.
        facts: of the suite.
        tasks: in any order.
        environments: holds the environments of the tasks by name.
        units: the lines of ``mined.jsonl`` by their keys.
    """
    folder.mkdir(parents=True)
    defaults = toml_text(
        {"image": facts.image, "timeout_s": facts.timeout_s, "test_timeout_s": facts.test_timeout_s}
    )
    head = toml_text({"name": facts.name, "description": facts.description, "license": facts.license})
    (folder / "suite.toml").write_text(f"{head}\n[defaults]\n{defaults}", encoding="utf-8")
    if facts.license_text:
        (folder / "LICENSE").write_bytes(facts.license_text)
    (folder / LEFT_FILE).write_text("".join(f"{units[key]}\n" for key in sorted(units)), encoding="utf-8")
    repository = AgentRepository.create(folder / REPOSITORY)
    for task in sorted(tasks, key=lambda one: one.id):
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
    inner: dict[str, object] = {"runner": tests.runner}
    inner |= {"restored": tests.restored} if tests.restored != RUNNERS[tests.runner].restored else {}
    inner |= {"deleted": tests.deleted} if tests.deleted else {}
    inner |= {"command": tests.command[0]} if tests.command else {}
    for key in ("reports", "parts", "options", "flags", "build"):
        inner |= {key: given} if (given := getattr(tests, key)) else {}
    inner |= {"limit_s": tests.limit_s, "memory_mb": tests.memory_mb}
    inner |= {"disk_mb": tests.disk_mb} if tests.disk_mb != DISK_MB else {}
    last = {
        "kind": about.kind,
        "commit": about.commit,
        "date": about.date,
        "license": about.license,
        "recipe": about.recipe,
        "seed": about.seed,
        "modules": about.modules,
    }
    env = f"\n[tests.env]\n{toml_text(dict(tests.env))}" if tests.env else ""
    text = f"{toml_text(first)}\n[tests]\n{toml_text(inner)}{env}\n[provenance]\n{toml_text(last)}"
    (place / "task.toml").write_text(text, encoding="utf-8")
    (place / "problem.md").write_text(task.statement.strip() + "\n", encoding="utf-8")
    (place / "solution.patch").write_bytes(task.fix)
    if task.start:
        (place / "start.patch").write_bytes(task.start)
    (place / "tests").mkdir()
    write_folder(task.hidden, place / "tests")


def left_line(left: Left) -> str:
    """Return the line of a unit that became no task."""
    return unit_line(left.unit, stage=left.stage, reason=left.reason)


def unit_line(unit: Unit, **more: str) -> str:
    """Return the line of a unit in ``mined.jsonl``."""
    about = {"commit": unit.commit, "date": unit.day, "title": unit.title[:200]}
    return json.dumps({**about, **more}, ensure_ascii=False)


def read_license(files: Snapshot) -> tuple[str, bytes]:
    """Return a repository's licence as an SPDX identifier, and its text; empty if unknown."""
    for name in _LICENSE_FILES:
        if name in files:
            text = files[name].data
            said = text.decode("utf-8", "replace")
            return next((spdx for spdx, words in _LICENSES if words in said), ""), text
    return "", b""


def toml_text(values: Mapping[str, object]) -> str:
    """Return texts, numbers and lists of them as TOML: a key a line, a long list one value a line."""
    return "".join(f"{key} = {_toml_value(value)}\n" for key, value in values.items())


def _toml_value(value: object) -> str:
    if isinstance(value, list | tuple) and len(value) > 1:
        return "[\n" + "".join(f"    {_toml_value(each)},\n" for each in value) + "]"
    # JSON's texts, numbers and lists are TOML's, but for one character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
