"""Suites made of suites: the tasks of several in one, some tasks of one, or other splits.

A task keeps its files. Only single keys of its ``task.toml`` change: its split, and whatever it took from the other
suite's defaults.
"""

import operator
import random
import re
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from dgm.archive.repository import AgentRepository
from dgm.archive.snapshots import tree_id
from dgm.benchmarks.environments import FOLDER
from dgm.benchmarks.suite_files import REPOSITORY, Limits, TaskRecord, read_suite
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.task_facts import TaskFacts
from dgm.benchmarks.toml_table import suggestion
from dgm.domain import CommitId, Split, TaskId
from dgm.errors import UserError
from dgm.folders import read_folder

_LIMITS = ("image", "workdir", "timeout_s", "test_timeout_s")
"""Keys that a task may take from its suite's defaults."""
_PARTS = frozenset({"tasks", "repos", FOLDER, REPOSITORY, "suite.toml"})
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

    A single suite's notes go with it; of several, only their licences.

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
        UserError: a file cannot be changed.
    """
    try:
        for task, split in splits.items():
            set_keys(folder / "tasks" / task / "task.toml", {"split": split.value})
    except OSError as error:
        raise UserError(f"{folder}: cannot be changed: {error}") from error


def set_keys(file: Path, values: Mapping[str, object]) -> None:
    """Set keys at the top of a TOML file; all other text stays, and a file without a change is not written.

    Raises:
        UserError: it is no TOML that can be changed.
    """
    import tomlkit

    text = file.read_bytes().decode()
    try:
        document = tomlkit.parse(text)
        for key, value in values.items():
            if document.get(key) != value:
                document[key] = value
    except ValueError as error:
        raise UserError(f"{file}: cannot be changed: {error}") from error
    changed = tomlkit.dumps(document)
    if changed != text:
        file.write_bytes(changed.encode())


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

    def add(self, part: SuitePart) -> None:
        """Write the tasks of a part, and what they need of its suite."""
        records = {task: part.suite.record(task) for task in part.tasks}
        repos = {record.repo for record in records.values() if record.repo}
        names = {repo: self._add_repo(part, repo) for repo in sorted(repos)}
        for task, record in records.items():
            source = part.folder / "tasks" / task
            written = record, tree_id(read_folder(source))
            if written in self._written:
                self.done.repeated.append(f"{part.suite.name}/{task}")
                continue
            self._written.append(written)
            copy = self._target / "tasks" / self._choose_id(part, task)
            shutil.copytree(source, copy, symlinks=True, ignore=_CACHES)
            keys = self._changed_limits(record)
            if record.repo and names[record.repo] != record.repo:
                keys["repo"] = names[record.repo]
            if record.commit:
                keys["commit"] = self._add_commit(part, record.commit)
            set_keys(copy / "task.toml", keys)
            if record.environment and not (self._target / FOLDER / record.environment).is_dir():
                # Its name is the digest of its content.
                self._copy(part, f"{FOLDER}/{record.environment}")

    def _choose_id(self, part: SuitePart, task: TaskId) -> TaskId:
        chosen = task
        if task in self.done.tasks:
            chosen = TaskId(f"{part.suite.name}-{task}")
            self.done.renamed[f"{part.suite.name}/{task}"] = chosen
        if chosen in self.done.tasks:
            raise UserError(f"{part.folder}: task {task!r} is in two suites of the name {part.suite.name!r}")
        self.done.tasks.append(chosen)
        return chosen

    def _changed_limits(self, record: TaskRecord) -> dict[str, object]:
        """Return the limits that a task would not take from the new suite."""
        return {
            key: value
            for key in _LIMITS
            if (key != "image" or not record.dockerfile)
            and (value := getattr(record.limits, key)) != getattr(self._limits, key)
        }

    def _add_repo(self, part: SuitePart, repo: str) -> str:
        """Copy a library; return its name in the new suite."""
        digest = tree_id(read_folder(part.folder / "repos" / repo))
        number, name = 1, repo
        while self._repos.get(name, digest) != digest:
            number += 1
            name = f"{repo}-{number}"
        if name not in self._repos:
            self._repos[name] = digest
            self._copy(part, f"repos/{repo}", f"repos/{name}")
        return name

    def _add_commit(self, part: SuitePart, commit: CommitId) -> str:
        """Copy the files of a commit; return the commit that has them in the new suite, which has no history."""
        folder = self._target / REPOSITORY
        repository = AgentRepository(folder) if folder.is_dir() else AgentRepository.create(folder)
        return repository.commit(AgentRepository(part.folder / REPOSITORY).source(commit), ())

    def _copy(self, part: SuitePart, source: str, name: str = "") -> None:
        shutil.copytree(part.folder / source, self._target / (name or source), symlinks=True, ignore=_CACHES)


def _write_suite_file(parts: Sequence[SuitePart], target: Path, name: str, description: str) -> None:
    import tomlkit

    suites = [read_suite(part.folder) for part in parts]
    licenses = dict.fromkeys(suite.license for suite in suites)
    text = tomlkit.dumps(
        {
            "name": name,
            "description": description,
            "license": " AND ".join(licenses),
            "defaults": {key: getattr(suites[0].limits, key) for key in _LIMITS},
        }
    )
    (target / "suite.toml").write_text(text, encoding="utf-8")


def _copy_notes(part: SuitePart, target: Path, *, alone: bool) -> None:
    """Copy what a suite has for people; of several suites only the licences, under the suites' names."""
    for file in sorted(part.folder.iterdir()):
        if file.name in _PARTS or file.name[0] in "._" or file.is_symlink() or not file.is_file():
            continue
        if alone:
            shutil.copy2(file, target / file.name)
        elif file.name.upper().startswith(("LICEN", "COPYING", "NOTICE")):
            shutil.copy2(file, target / f"{file.name}.{part.suite.name}")


class SplitBy(StrEnum):
    """A way to choose what is held out."""

    TIME = "time"
    """The newest tasks. No workspace then shows the fix of a task that is held out."""
    REPO = "repo"
    """Whole libraries (``repo``) of the suite."""
    RANDOM = "random"
    """Tasks of each kind by chance."""


def choose_splits(
    facts: Sequence[TaskFacts], holdout: float, by: SplitBy, seed: int, promotion: float = 0.0
) -> Mapping[TaskId, Split]:
    """Return the new split of each task: about these shares, and at least one task to search on and one to hold out.

    Args:
        facts: of all tasks.
        holdout: share that reports are made on, above 0 and below 1.
        by: the way.
        seed: of what is chosen by chance.
        promotion: share that decides about promotions, from 0; by time, these tasks lie between the others.

    Raises:
        UserError: the tasks cannot be split so; the message says why.
    """
    if not 0 < holdout < 1:
        raise UserError(f"{holdout:g}: must be a share above 0 and below 1", argument="holdout")
    if not 0 <= promotion < 1 - holdout:
        raise UserError(
            f"{promotion:g}: must be a share that leaves some tasks for search", argument="promotion"
        )
    match by:
        case SplitBy.TIME:
            days = _group(facts, by, lambda task: task.day, "has no date ([provenance] in task.toml)")
            groups = [days[day] for day in sorted(days)]
        case SplitBy.REPO:
            repos = _group(facts, by, lambda task: task.repo, "belongs to no library (repo in task.toml)")
            names = sorted(repos)
            random.Random(f"repo/{seed}").shuffle(names)
            groups = [repos[name] for name in names]
        case SplitBy.RANDOM:
            groups = _shuffle_kinds(facts, seed)
    return _cut(groups, holdout, promotion)


def _group(
    facts: Sequence[TaskFacts], by: SplitBy, key: Callable[[TaskFacts], str], lack: str
) -> dict[str, list[TaskId]]:
    """Return the tasks by a key, which all must have, with two values at least."""
    groups: dict[str, list[TaskId]] = {}
    for task in sorted(facts, key=lambda task: task.id):
        if not key(task):
            raise UserError(f"task {task.id!r} {lack}; split another way than by {by}")
        groups.setdefault(key(task), []).append(task.id)
    if len(groups) < 2:
        one = "are of one day" if by is SplitBy.TIME else "belong to one library"
        raise UserError(f"all tasks {one}; split another way than by {by}")
    return groups


def _shuffle_kinds(facts: Sequence[TaskFacts], seed: int) -> list[list[TaskId]]:
    """Return single tasks in an order in which every beginning has about the whole's share of each kind."""
    kinds: dict[str, list[TaskId]] = {}
    for task in sorted(facts, key=lambda task: task.id):
        kinds.setdefault(task.kind, []).append(task.id)
    ranked: list[tuple[float, str, TaskId]] = []
    for kind, tasks in kinds.items():
        random.Random(f"random/{seed}/{kind}").shuffle(tasks)
        ranked += (((number + 0.5) / len(tasks), kind, task) for number, task in enumerate(tasks))
    if len(ranked) < 2:
        raise UserError("one task cannot be split")
    return [[task] for _, _, task in sorted(ranked)]


def _cut(groups: Sequence[Sequence[TaskId]], holdout: float, promotion: float) -> Mapping[TaskId, Split]:
    """Return the splits of groups that stay together: first search, then promotion, the last ones are held out."""
    sizes = [0]
    for group in groups:
        sizes.append(sizes[-1] + len(group))
    total, last = sizes[-1], len(groups)
    first_held = min(range(1, last), key=lambda cut: abs(total - sizes[cut] - holdout * total))
    first_promoting = min(
        range(1 if promotion else first_held, first_held + 1),
        key=lambda cut: abs(sizes[first_held] - sizes[cut] - promotion * total),
    )
    bounds = (
        (Split.SEARCH, 0, first_promoting),
        (Split.PROMOTION, first_promoting, first_held),
        (Split.HOLDOUT, first_held, last),
    )
    return {task: split for split, begin, end in bounds for group in groups[begin:end] for task in group}


_TEXTS: Mapping[str, Callable[[TaskFacts], Collection[str]]] = {
    "id": lambda task: [task.id],
    "kind": lambda task: [task.kind],
    "split": lambda task: [task.split.value],
    "difficulty": lambda task: [task.difficulty],
    "repo": lambda task: [task.repo],
    "tag": lambda task: task.tags,
    "module": lambda task: task.modules,
    "license": lambda task: [task.provenance.license if task.provenance else ""],
}
"""Fields that are texts; of several, as tags, one that fits is enough."""
_NUMBERS: Mapping[str, Callable[[TaskFacts], int]] = {
    "f2p": lambda task: len(task.fail_to_pass),
    "p2p": lambda task: len(task.pass_to_pass),
    "lines": lambda task: task.added + task.removed,
    "files": lambda task: len(task.changes),
}
_CONDITION = re.compile(r"\s*(\w+)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*", re.DOTALL)
_SIGNS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_DATE = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")
Condition = Callable[[TaskFacts], bool]


def parse_conditions(texts: Sequence[str]) -> Condition:
    """Return the condition that all of these hold: ``kind=bug,history``, ``tag!=slow``, ``f2p<5``, ``date>=2026-03``.

    Each is a field, one of ``= != < <= > >=``, and a value; for a text several values with commas between them. A date
    may be a month or a year, and stands for all its days.

    Raises:
        UserError: one is none; the message names it.
    """
    conditions = [_parse(text) for text in texts]
    return lambda task: all(holds(task) for holds in conditions)


def _parse(text: str) -> Condition:
    parsed = _CONDITION.fullmatch(text)
    if parsed is None:
        raise UserError(f"{text!r}: expected FIELD=VALUE, such as kind=bug or 'f2p<5'", argument="where")
    name, sign, value = parsed.groups()
    compare = _SIGNS[sign]
    if name in _TEXTS:
        if sign not in ("=", "!="):
            raise UserError(f"{text!r}: {name} is a text; compare it with = or !=", argument="where")
        texts, wanted = _TEXTS[name], {word.strip() for word in value.split(",")}
        return lambda task: bool(wanted & {*texts(task)}) == (sign == "=")
    if name == "date":
        if not _DATE.fullmatch(value):
            raise UserError(f"{text!r}: date is compared with a day such as 2024-01-31", argument="where")
        return lambda task: bool(task.day) and compare(task.day[: len(value)], value)
    if name not in _NUMBERS:
        known = [*_TEXTS, "date", *_NUMBERS]
        raise UserError(
            f"{text!r}: unknown field {name!r}{suggestion(name, known)}",
            argument="where",
        )
    if not re.fullmatch(r"\d{1,9}", value):
        raise UserError(f"{text!r}: {name} is compared with a whole number", argument="where")
    return lambda task: compare(_NUMBERS[name](task), int(value))
