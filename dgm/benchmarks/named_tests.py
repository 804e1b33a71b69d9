"""Tests that a task names, and where a task comes from: the tables ``[tests]`` and ``[provenance]``."""

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dgm.archive.event_fields import COMMIT
from dgm.benchmarks.command_tools import BY_COMMAND, COMMAND, REPORT
from dgm.benchmarks.runners import METADATA, PYTEST, RUNNERS
from dgm.benchmarks.toml_table import MOST_CORES, Table

TEST_SECONDS = 60.0
DISK_MB = 512
ORIGINS = ("history", "bug", "bug-pair")
_UNITTEST = re.compile(r"(\w+(?:\.\w+)*)\.(\w+)\.(\w+)")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOST_SEED = 2**63


@dataclass(frozen=True, slots=True)
class NamedTests:
    """Tests by their names, run in the graded workspace by pytest or another tool."""

    fail_to_pass: tuple[str, ...]
    """Names in pytest's form, from the top of the workspace: ``tests/test_money.py::Money::test_add``; of other tools
    the file and the titles: ``test/money.test.js::Money > adds``."""
    pass_to_pass: tuple[str, ...]
    restored: tuple[str, ...] = RUNNERS[PYTEST].restored
    """Files and folders put back before the tests; a pattern without ``/`` means the name in any folder."""
    folder: str = ""
    """Folder of the workspace that the hidden files are laid over; empty: its top."""
    deleted: tuple[str, ...] = ()
    """Files removed before the tests."""
    options: tuple[str, ...] = ()
    """Further arguments of pytest, or of the other tool."""
    runner: str = PYTEST
    """``pytest``, ``node`` (its own test runner), ``vitest``, ``jest``, ``mocha`` or ``go``; ``command``: a command
    of the user's whose output is read; ``report``: one that writes reports in JUnit's XML."""
    flags: tuple[str, ...] = ()
    """Arguments of node before its program, or of Go's build; not for pytest."""
    patterns: tuple[str, ...] = ()
    """Files, folders and patterns that the tool searches where no file is named; not for pytest."""
    build: tuple[str, ...] = ()
    """Shell commands that run in the workspace before the tests; not for pytest."""
    command: str = ""
    """Shell command that builds and runs the tests in the workspace; of ``command`` and ``report`` only."""
    reports: tuple[str, ...] = ()
    """Patterns of the files that the command writes, in the workspace or below ``$DGM_BUILD/``; of ``report`` only."""
    parts: tuple[str, ...] = ()
    """Hidden files that hold only the modules of tests of a file of the code; of the runner ``command`` only."""
    limit_s: float = TEST_SECONDS
    """Wall time of one test, in seconds."""
    env: tuple[tuple[str, str], ...] = ()
    cpus: float = 1.0
    memory_mb: int = 2048
    disk_mb: int = DISK_MB

    @property
    def names(self) -> tuple[str, ...]:
        """All of the tests, those that must be mended first."""
        return (*self.fail_to_pass, *self.pass_to_pass)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that hold them, each once."""
        return tuple(dict.fromkeys(name.split("::", 1)[0] for name in self.names))


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of a mined task; for people and for reports."""

    kind: str
    """``history``: a change of the repository's own; ``bug``, ``bug-pair``: faults put into it."""
    commit: str
    """Id of the commit in the repository that was mined."""
    date: str
    """Its day, as ``2026-11-27``."""
    license: str = ""
    """The repository's, as an SPDX identifier; empty if unknown."""
    recipe: str = ""
    """Description of how the task was made."""
    seed: int = 0
    modules: tuple[str, ...] = ()
    """Files that the reference fix changes."""


def read_named_tests(table: Table, inner: Table, env: Mapping[str, str]) -> NamedTests:
    """Read tests by name: their lists from the task's table, the rest from its table ``[tests]``.

    Raises:
        UserError: a value does not fit; the message names file, line and key.
    """
    runner = inner.choice("runner", tuple(RUNNERS))
    fail_to_pass, pass_to_pass = _read_lists(table)
    tests = NamedTests(
        fail_to_pass=fail_to_pass,
        pass_to_pass=pass_to_pass,
        restored=_with_metadata(runner, inner.texts("restored", RUNNERS[runner].restored)),
        deleted=inner.texts("deleted", ()),
        options=inner.texts("options", ()),
        runner=runner,
        flags=inner.texts("flags", ()),
        build=inner.texts("build", ()),
        command=inner.take("command", str, *([] if runner in BY_COMMAND else [""])),
        reports=inner.texts("reports", *([] if runner == REPORT else [()])),
        parts=inner.texts("parts", ()),
        limit_s=inner.positive("limit_s", TEST_SECONDS),
        env=tuple(env.items()),
        cpus=inner.positive("cpus", 1.0, "cores", MOST_CORES),
        memory_mb=inner.count("memory_mb", 2048, "MB"),
        disk_mb=inner.count("disk_mb", DISK_MB, "MB"),
    )
    _check_runner(inner, tests)
    for key, name in (*(("deleted", one) for one in tests.deleted), *(("parts", one) for one in tests.parts)):
        if not _is_inside(name):
            raise inner.fail(key, f"{name!r} is not a path within the workspace")
    return tests


def read_plain_tests(table: Table) -> NamedTests:
    """Read the tests of a task without a table ``[tests]``: pytest runs them in the workspace's ``tests/``.

    A name as ``unittest`` takes it stands for pytest's.

    Raises:
        UserError: a value does not fit; the message names file, line and key.
    """
    return NamedTests(*_read_lists(table, unittest=True), folder="tests")


def _with_metadata(runner: str, restored: Sequence[str]) -> tuple[str, ...]:
    """Return the patterns with those of metadata, which older suites do not list."""
    more = METADATA if runner == PYTEST else ()
    return (*restored, *(pattern for pattern in more if pattern not in restored))


def _check_runner(inner: Table, tests: NamedTests) -> None:
    """Refuse keys of the table ``[tests]`` that are not for its runner."""
    runner = tests.runner
    for key, given in (("flags", tests.flags), ("build", tests.build)):
        if given and runner in (PYTEST, *BY_COMMAND):
            others = ", ".join(name for name in RUNNERS if name not in (PYTEST, *BY_COMMAND))
            raise inner.fail(key, f"is not for {runner}; it belongs to {others}")
    keys = (
        ("command", tests.command, BY_COMMAND),
        ("parts", tests.parts, (COMMAND,)),
        ("reports", tests.reports, (REPORT,)),
    )
    for key, value, runners in keys:
        if value and runner not in runners:
            raise inner.fail(key, f"is for runner = {' or '.join(map(repr, runners))} only")
    if runner in BY_COMMAND and not tests.command.strip():
        raise inner.fail("command", "is empty; give a shell command such as 'cargo test --offline'")
    if runner == REPORT and not tests.reports:
        raise inner.fail("reports", "names no file; give a pattern such as 'target/surefire-reports/*.xml'")
    for pattern in tests.reports:
        if not is_report_pattern(pattern):
            raise inner.fail("reports", f"{pattern!r} is not a pattern within the workspace or $DGM_BUILD")


def is_report_pattern(pattern: str) -> bool:
    """Return whether a pattern names files in the workspace or in the build's folder."""
    parts = pattern.removeprefix("$DGM_BUILD/").split("/")
    return _is_inside("/".join(parts)) and not any("**" in part and part != "**" for part in parts)


def read_provenance(table: Table) -> Provenance | None:
    """Read the table ``[provenance]``; return None if there is none.

    Raises:
        UserError: a value does not fit; the message names file, line and key.
    """
    if not table.has("provenance"):
        return None
    inner = table.table("provenance")
    found = Provenance(
        kind=inner.choice("kind", ORIGINS),
        commit=inner.take("commit", str),
        date=inner.take("date", str),
        license=inner.take("license", str, ""),
        recipe=inner.take("recipe", str, ""),
        seed=inner.take("seed", int, 0),
        modules=inner.texts("modules", ()),
    )
    inner.end()
    if not COMMIT.fullmatch(found.commit):
        raise inner.fail("commit", f"{found.commit!r} is not a commit (40 or 64 hexadecimal digits)")
    if not _DAY.fullmatch(found.date):
        raise inner.fail("date", f"{found.date!r} is not a day such as '2026-11-27'")
    if not 0 <= found.seed < _MOST_SEED:
        raise inner.fail("seed", f"{found.seed} is not a number from 0 to 2**63")
    return found


def _read_lists(table: Table, *, unittest: bool = False) -> tuple[tuple[str, ...], tuple[str, ...]]:
    first, rest = (_read_names(table, key, unittest) for key in ("fail_to_pass", "pass_to_pass"))
    if not first:
        raise table.fail("fail_to_pass", "names no test, so nothing would tell a fix from doing nothing")
    if both := {*first} & {*rest}:
        raise table.fail("pass_to_pass", f"{min(both)!r} is in fail_to_pass too")
    return first, rest


def _read_names(table: Table, key: str, unittest: bool) -> tuple[str, ...]:
    names = table.texts(key)
    if unittest:
        names = tuple(_pytest_name(name) for name in names)
    for name in names:
        file, _, rest = name.partition("::")
        if not rest or not _is_inside(file):
            raise table.fail(key, f"{name!r} is not a test such as 'tests/test_money.py::test_add'")
    if len({*names}) != len(names):
        raise table.fail(key, "names a test twice")
    return names


def _pytest_name(name: str) -> str:
    """Return pytest's name of a test of ``unittest`` such as ``tests.test_money.Money.test_add``."""
    parts = _UNITTEST.fullmatch(name)
    return f"{parts[1].replace('.', '/')}.py::{parts[2]}::{parts[3]}" if parts else name


def _is_inside(name: str) -> bool:
    return not name.startswith("/") and not {"", ".", ".."} & {*name.split("/")}


def is_restored(name: str, patterns: Sequence[str]) -> bool:
    """Return whether a pattern names the file: its name or path, or those of a folder around it."""
    parts = name.split("/")
    paths = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    return any(
        fnmatch.fnmatchcase(path if "/" in pattern else part, pattern)
        for pattern in patterns
        for path, part in zip(paths, parts, strict=True)
    )
