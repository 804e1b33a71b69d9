"""The files of a task suite as checked values (``benchmarks/README.md`` is the format's full text).

Only shapes are checked here: that every key is known, has its type and names something that exists. What a
patch does to a repository and what the tests say of it is left to ``workspaces`` and ``grading``.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dgm.domain import Split, TaskId
from dgm.errors import UserError

STATEMENTS = ("test", "example", "prose")
DIFFICULTIES = ("easy", "medium", "hard", "very-hard", "out-of-reach")
TEST_ID = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){2,}")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a task may take; ``suite.toml`` gives the defaults, ``task.toml`` may change them."""

    image: str = "python"
    """Name of a recipe under ``sandboxes/``."""
    workdir: str = "/work/repo"
    timeout_s: float = 120.0
    """Wall time of the agent."""
    test_timeout_s: float = 30.0
    """Wall time of all graded tests of a task together."""


@dataclass(frozen=True, slots=True)
class SuiteRecord:
    """``suite.toml``."""

    name: str
    description: str
    license: str
    limits: Limits


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """``task.toml``: what grading needs to know and an agent must not."""

    id: TaskId
    split: Split
    repo: str
    statement: str
    kind: str
    difficulty: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    limits: Limits


class _Table:
    """A TOML table that is emptied key by key, so that what is left over is a mistake."""

    def __init__(self, file: Path, values: Mapping[str, Any], prefix: str = "") -> None:
        self._file = file
        self._left = dict(values)
        self._known: list[str] = []
        self._prefix = prefix

    def fail(self, key: str, problem: str) -> UserError:
        return UserError(f"{self._file}: {self._prefix}{key}: {problem}")

    def take(self, key: str, kind: type[T], default: T | None = None) -> T:
        self._known.append(key)
        value = self._left.pop(key, default)
        if value is None:
            raise self.fail(key, f"missing{self._near(key)}; expected {_NAMES[kind]}")
        if kind is float and type(value) is int:
            return float(value)  # type: ignore[return-value]
        if type(value) is not kind:
            raise self.fail(key, f"{value!r} is not {_NAMES[kind]}")
        return value

    def choice(self, key: str, options: Sequence[str]) -> str:
        value = self.take(key, str)
        if value not in options:
            raise self.fail(key, f"{value!r} is none of {', '.join(options)}{suggestion(value, options)}")
        return value

    def positive(self, key: str, default: float) -> float:
        value = self.take(key, float, default)
        if not 0 < value < float("inf"):
            raise self.fail(key, f"{value!r} must be above 0 (seconds)")
        return value

    def test_ids(self, key: str) -> tuple[str, ...]:
        values = self.take(key, list)
        for value in values:
            if not isinstance(value, str) or not TEST_ID.fullmatch(value):
                raise self.fail(key, f"{value!r} is not a test id such as 'tests.test_money.Money.test_add'")
        if len(set(values)) != len(values):
            raise self.fail(key, "names a test twice")
        return tuple(values)

    def end(self) -> None:
        for key in self._left:
            raise self.fail(key, f"unknown key{suggestion(key, self._known)}")

    def _near(self, key: str) -> str:
        near = difflib.get_close_matches(key, self._left, 1)
        return f" (is {near[0]!r} meant?)" if near else ""


_NAMES: Mapping[type, str] = {str: "a text", float: "a number", list: "a list", dict: "a table"}


def suggestion(word: str, known: Sequence[str]) -> str:
    """`` (did you mean 'x'?)`` for the nearest known word, or what is known where none is near."""
    near = difflib.get_close_matches(word, known, 1)
    return f" (did you mean {near[0]!r}?)" if near else f" (known: {', '.join(known) or 'none'})"


def read_suite(folder: Path) -> SuiteRecord:
    """Reads ``suite.toml`` of a suite's folder.

    Raises:
        UserError: it is missing or wrong; the message names file and key.
    """
    file = folder / "suite.toml"
    table = _Table(file, _load(file))
    defaults = _Table(file, table.take("defaults", dict, {}), "defaults.")
    record = SuiteRecord(
        name=table.take("name", str),
        description=table.take("description", str),
        license=table.take("license", str),
        limits=_limits(defaults, Limits()),
    )
    table.end()
    defaults.end()
    return record


def read_task(folder: Path, limits: Limits, repos: Sequence[str]) -> TaskRecord:
    """Reads and checks one task's folder; ``repos`` are the libraries that the suite has.

    Raises:
        UserError: a file is missing or wrong; the message names file and key.
    """
    file = folder / "task.toml"
    table = _Table(file, _load(file))
    record = TaskRecord(
        id=TaskId(folder.name),
        split=Split(table.choice("split", [split.value for split in Split])),
        repo=table.choice("repo", repos),
        statement=table.choice("statement", STATEMENTS),
        kind=table.take("kind", str),
        difficulty=table.choice("difficulty", DIFFICULTIES),
        fail_to_pass=table.test_ids("fail_to_pass"),
        pass_to_pass=table.test_ids("pass_to_pass"),
        limits=_limits(table, limits),
    )
    table.end()
    if not record.fail_to_pass:
        raise table.fail("fail_to_pass", "names no test, so nothing would tell a fix from doing nothing")
    if both := set(record.fail_to_pass) & set(record.pass_to_pass):
        raise table.fail("pass_to_pass", f"{min(both)!r} is in fail_to_pass too")
    for name in ("problem.md", "start.patch", "solution.patch"):
        if not (folder / name).is_file():
            raise UserError(f"{folder / name}: missing; every task has one (see benchmarks/README.md)")
    return record


def _limits(table: _Table, base: Limits) -> Limits:
    workdir = table.take("workdir", str, base.workdir)
    if not workdir.startswith("/"):
        raise table.fail("workdir", f"{workdir!r} is not an absolute path")
    return Limits(
        image=table.take("image", str, base.image),
        workdir=workdir,
        timeout_s=table.positive("timeout_s", base.timeout_s),
        test_timeout_s=table.positive("test_timeout_s", base.test_timeout_s),
    )


def _load(file: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{file}: missing") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: not TOML: {error}") from error
