"""New suites out of tasks of others: some tasks of one, or those of several together.

A task keeps its files. Only single keys of its ``task.toml`` change: its split, and whatever it took from the other
suite's defaults.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dgm.archive.repository import AgentRepository, tree_id
from dgm.benchmarks.calibration import FILE as CALIBRATION
from dgm.benchmarks.calibration import task_digest, write_calibration
from dgm.benchmarks.environments import FOLDER
from dgm.benchmarks.mining.writing import toml_text
from dgm.benchmarks.suite_files import REPOSITORY, Limits, TaskRecord, read_suite, read_task
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.domain import Split, TaskId
from dgm.errors import UserError
from dgm.folders import read_folder
from dgm.toml_files import parse_toml

_HEADER = re.compile(r"\s*\[[^\[\]]+\]\s*(?:#.*)?$")
_PARTS = frozenset({"tasks", "repos", FOLDER, REPOSITORY, "suite.toml", CALIBRATION})
"""Entries of a suite's folder besides notes for people."""

_CACHES = shutil.ignore_patterns("__pycache__", "*.pyc")


@dataclass(frozen=True, slots=True)
class SuitePart:
    """Tasks of one suite."""

    folder: Path
    suite: SuiteBenchmark
    tasks: Sequence[TaskId]


@dataclass(slots=True)
class Composed:
    """Result of composing a suite."""

    tasks: list[TaskId] = field(default_factory=list)
    """Ids in the new suite."""
    renamed: dict[str, str] = field(default_factory=dict)
    """``suite/task`` → its new id, where another suite's task had the id."""
    repeated: list[str] = field(default_factory=list)
    """``suite/task`` of each task that an earlier suite had, file for file."""


def compose_suite(parts: Sequence[SuitePart], target: Path, name: str, description: str) -> Composed:
    """Write a suite with tasks of others into a new folder.

    Args:
        parts: the tasks; the first suite's defaults become those of the new one.
        target: the folder; must not exist, or be empty.
        name: the new suite's name.
        description: one line for people.

    Raises:
        UserError: there is no task, the target is in use, lies in a suite or cannot be written, or two tasks cannot be
            told apart.
    """
    if not any(part.tasks for part in parts):
        raise UserError(f"no task is left for {target}")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError(f"{target}: is there already; give a folder that does not exist")
    if any(target.resolve().is_relative_to(part.folder.resolve()) for part in parts):
        raise UserError(f"{target}: lies in the folder of a suite; give another one")
    writer = _Writer(target, read_suite(parts[0].folder).limits)
    try:
        for part in parts:
            writer.add(part)
        _write_suite_file(parts, target, name, description)
        _carry_calibrations(writer.origins, target)
        for part in parts:
            _copy_notes(part, target, alone=len(parts) == 1)
    except BaseException as error:
        shutil.rmtree(target, ignore_errors=True)
        if isinstance(error, OSError):
            raise UserError(f"{target}: cannot be written: {error}; give another folder") from error
        raise
    return writer.done


def change_splits(folder: Path, splits: Mapping[TaskId, Split]) -> None:
    """Write the splits of tasks into a suite's folder; all other text stays.

    Raises:
        UserError: a file cannot be changed; then none is.
    """
    files = {folder / "tasks" / task / "task.toml": split.value for task, split in splits.items()}
    texts = {file: set_key(file, "split", split) for file, split in files.items()}
    try:
        for file, text in texts.items():
            if text != file.read_text(encoding="utf-8"):
                file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{folder}: cannot be changed: {error}; write the new suite with --out") from error


def set_key(file: Path, key: str, value: object) -> str:
    """Return the text of a TOML file with another value of a key at its top, or with the key in front.

    Raises:
        UserError: the key's value is written in a way that is not understood here.
    """
    text = file.read_bytes().decode("utf-8")
    lines = text.splitlines(keepends=True)
    top = next((number for number, line in enumerate(lines) if _HEADER.match(line)), len(lines))
    given = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
    old = [number for number, line in enumerate(lines[:top]) if given.match(line)]
    new = toml_text({key: value})
    lines = [*lines[: old[0]], new, *lines[old[0] + 1 :]] if old else [new, *lines]
    changed = "".join(lines)
    try:
        understood = parse_toml(changed.encode()) == {**parse_toml(text.encode()), key: value}
    except ValueError:
        understood = False
    if not understood:
        raise UserError(
            f"{file}: {key} cannot be changed where it stands; write it on one line, as {new.strip()}"
        )
    return changed


class _Writer:
    """Writes the tasks of one suite after those of another."""

    def __init__(self, target: Path, limits: Limits) -> None:
        self.done = Composed()
        self._target = target
        self._limits = limits
        self._repos: dict[str, str] = {}
        """Name of a library in the new suite → digest of its content."""
        self._written: list[tuple[TaskRecord, str]] = []
        """Record and digest of each task as it was in its suite."""
        self.origins: dict[TaskId, tuple[SuitePart, TaskId]] = {}
        """Task of the new suite → where it comes from."""

    def add(self, part: SuitePart) -> None:
        """Write the tasks of a part, and what they need of its suite."""
        defaults = read_suite(part.folder).limits
        renamed = {
            repo: self._add_repo(part, repo)
            for repo in dict.fromkeys(part.suite.record(task).repo for task in part.tasks)
            if repo
        }
        for task in part.tasks:
            record = part.suite.record(task)
            written = record, tree_id(read_folder(part.folder / "tasks" / task))
            if written in self._written:
                self.done.repeated.append(f"{part.suite.name}/{task}")
                continue
            self._written.append(written)
            chosen = self._choose_id(part, task)
            self.origins[chosen] = part, task
            place = self._target / "tasks" / chosen
            shutil.copytree(part.folder / "tasks" / task, place, symlinks=True, ignore=_CACHES)
            keys = self._changed_limits(record, defaults)
            if record.repo and renamed[record.repo] != record.repo:
                keys["repo"] = renamed[record.repo]
            if record.commit:
                keys["commit"] = self._add_commit(part, record)
            for key, value in keys.items():
                file = place / "task.toml"
                file.write_bytes(set_key(file, key, value).encode())
            if record.environment:
                self._add_environment(part, record.environment)

    def _choose_id(self, part: SuitePart, task: TaskId) -> TaskId:
        chosen = task
        if task in self.done.tasks:
            chosen = TaskId(f"{part.suite.name}-{task}")
            self.done.renamed[f"{part.suite.name}/{task}"] = chosen
        if chosen in self.done.tasks:
            raise UserError(f"{part.folder}: task {task!r} is in two suites of the name {part.suite.name!r}")
        self.done.tasks.append(chosen)
        return chosen

    def _changed_limits(self, record: TaskRecord, defaults: Limits) -> dict[str, object]:
        """Return the limits that a task took from its suite and would not take from the new one."""
        keys: dict[str, object] = {}
        for key in ("image", "workdir", "timeout_s", "test_timeout_s"):
            if key == "image" and record.dockerfile:
                continue
            value = getattr(record.limits, key)
            if value == getattr(defaults, key) != getattr(self._limits, key):
                keys[key] = value
        return keys

    def _add_repo(self, part: SuitePart, repo: str) -> str:
        """Copy a library; return its name in the new suite."""
        digest = tree_id(read_folder(part.folder / "repos" / repo))
        number, name = 1, repo
        while self._repos.get(name, digest) != digest:
            number += 1
            name = f"{repo}-{number}"
        if name not in self._repos:
            self._repos[name] = digest
            shutil.copytree(
                part.folder / "repos" / repo, self._target / "repos" / name, symlinks=True, ignore=_CACHES
            )
        return name

    def _add_commit(self, part: SuitePart, record: TaskRecord) -> str:
        """Copy the files of a commit; return the commit that has them in the new suite, which has no history."""
        assert record.commit
        place = self._target / REPOSITORY
        repository = AgentRepository(place) if place.is_dir() else AgentRepository.create(place)
        return repository.commit(AgentRepository(part.folder / REPOSITORY).source(record.commit), ())

    def _add_environment(self, part: SuitePart, name: str) -> None:
        # Its name is the digest of its content.
        place = self._target / FOLDER / name
        if not place.is_dir():
            shutil.copytree(part.folder / FOLDER / name, place, symlinks=True, ignore=_CACHES)


def _write_suite_file(parts: Sequence[SuitePart], target: Path, name: str, description: str) -> None:
    records = [read_suite(part.folder) for part in parts]
    licenses = dict.fromkeys(record.license for record in records)
    head = {"name": name, "description": description, "license": " AND ".join(licenses)}
    limits = records[0].limits
    defaults = {
        "image": limits.image,
        "workdir": limits.workdir,
        "timeout_s": limits.timeout_s,
        "test_timeout_s": limits.test_timeout_s,
    }
    text = f"{toml_text(head)}\n[defaults]\n{toml_text(defaults)}"
    (target / "suite.toml").write_text(text, encoding="utf-8")


def _carry_calibrations(origins: Mapping[TaskId, tuple[SuitePart, TaskId]], target: Path) -> None:
    """Write what is known of how hard the tasks are, under their digests in the new suite."""
    known = {id(part): part.suite.calibrations() for part, _ in origins.values()}
    tried = {new: known[id(part)].get(old) for new, (part, old) in origins.items()}
    limits, repos = read_suite(target).limits, _names_below(target / "repos")
    rows = []
    for new, one in tried.items():
        if one:
            record = read_task(target / "tasks" / new, limits, repos, _names_below(target / FOLDER))
            rows.append(replace(one, task=str(new), digest=task_digest(target, record)))
    if rows:
        write_calibration(target, rows)


def _names_below(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []


def _copy_notes(part: SuitePart, target: Path, *, alone: bool) -> None:
    """Copy what a suite has for people; of several suites only the licences, under the suites' names."""
    for file in sorted(part.folder.iterdir()):
        if file.name in _PARTS or file.name[0] in "._" or file.is_symlink() or not file.is_file():
            continue
        if alone:
            shutil.copy2(file, target / file.name)
        elif file.name.upper().startswith(("LICEN", "COPYING", "NOTICE")):
            shutil.copy2(file, target / f"{file.name}.{part.suite.name}")
