"""A task's tests: a command, and the way to read its result; the tables ``[tests]`` and ``[provenance]``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm.benchmarks.languages import BY_COMMAND, METADATA, PLAIN, RUNNERS, Results
from dgm.benchmarks.toml_table import MOST_CORES, Table
from dgm.domain import COMMIT
from dgm.folders import resolve_below

TESTS = "/tests"
"""The place of the task's ``tests/`` for a test command."""
TEST_SECONDS = 60.0
DISK_MB = 512
ORIGINS = ("history", "bug", "bug-pair")
_UNITTEST = re.compile(r"(\w+(?:\.\w+)*)\.(\w+)\.(\w+)")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_SEED = 2**63


@dataclass(frozen=True, slots=True)
class TestSpec:
    """Tests of a task, run in the graded workspace."""

    __test__ = False

    fail_to_pass: tuple[str, ...] = ()
    """Names in pytest's form, from the top of the workspace: ``tests/test_money.py::Money::test_add``; of other tools
    the file and the titles: ``test/money.test.js::Money > adds``. None: the command says by itself what passes."""
    pass_to_pass: tuple[str, ...] = ()
    runner: str = "pytest"
    """A key of ``languages.RUNNERS``."""
    restored: tuple[str, ...] = RUNNERS["pytest"].restored
    """Files and folders put back before the tests; a pattern without ``/`` means the name in any folder."""
    folder: str = ""
    """Folder of the workspace that the hidden files are laid over; empty: its top."""
    deleted: tuple[str, ...] = ()
    """Files removed before the tests."""
    command: tuple[str, ...] = ()
    """Program and arguments of ``exit`` and ``reward``; of ``command`` and ``report`` one shell command."""
    threshold: float = 1.0
    """Minimum reward that counts as ``resolved``."""
    reports: tuple[str, ...] = ()
    """Patterns of the files that ``report`` writes, in the workspace or below ``$DGM_BUILD/``."""
    options: tuple[str, ...] = ()
    """Further arguments of pytest, or of the other tool."""
    flags: tuple[str, ...] = ()
    """Arguments of node before its program, or of Go's build."""
    patterns: tuple[str, ...] = ()
    """Files, folders and patterns that the tool searches where no file is named."""
    build: tuple[str, ...] = ()
    """Shell commands that run in the workspace before the tests."""
    parts: tuple[str, ...] = ()
    """Hidden files that hold only the modules of tests of a file of the code; of ``command`` only."""
    limit_s: float = TEST_SECONDS
    """Wall time of one test of pytest, of one test file of another tool, in seconds."""
    env: tuple[tuple[str, str], ...] = ()
    """Environment variables of the tests."""
    cpus: float = 1.0
    memory_mb: int = 2048
    disk_mb: int = DISK_MB

    @property
    def results(self) -> Results:
        """The way in which the result is read."""
        return RUNNERS[self.runner].results

    @property
    def by_name(self) -> bool:
        """Whether tests have names, and their files lie in the workspace; else a program finds them in ``/tests``."""
        return self.runner not in PLAIN

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


def read_test_spec(folder: Path, table: Table) -> TestSpec:
    """Read the tests of a task: a program, or tests by name.

    Without a table ``[tests]`` pytest runs them in the workspace's ``tests/``; a name as ``unittest`` takes it stands
    for pytest's.

    Raises:
        UserError: a value does not fit; the message names file, line and key.
    """
    if not table.has("tests"):
        table.forbid_near("tests")
        return TestSpec(*_read_lists(table, unittest=True), folder="tests")
    inner = table.table("tests")
    if not inner.has("runner"):
        return _read_plain(folder, table, inner)
    runner = inner.choice("runner", [name for name in RUNNERS if name not in PLAIN])
    restored = inner.texts("restored", RUNNERS[runner].restored)
    if runner == "pytest":
        # Older suites do not list it.
        restored = (*restored, *(pattern for pattern in METADATA if pattern not in restored))
    shell = inner.take("command", str, *([] if runner in BY_COMMAND else [""]))
    tests = TestSpec(
        *_read_lists(table),
        runner=runner,
        restored=restored,
        deleted=inner.texts("deleted", ()),
        command=(shell,) if shell else (),
        reports=inner.texts("reports", *([] if runner == "report" else [()])),
        options=inner.texts("options", ()),
        flags=inner.texts("flags", ()),
        build=inner.texts("build", ()),
        parts=inner.texts("parts", ()),
        limit_s=inner.positive("limit_s", TEST_SECONDS),
        env=_read_variables(inner),
        **_read_limits(inner, 2048, DISK_MB),
    )
    _check_runner(inner, tests)
    inner.end()
    for key, names in (("deleted", tests.deleted), ("parts", tests.parts)):
        if wrong := next((name for name in names if not _is_inside(name)), ""):
            raise inner.fail(key, f"{wrong!r} is not a path within the workspace")
    return tests


def _read_plain(folder: Path, table: Table, inner: Table) -> TestSpec:
    for key in ("fail_to_pass", "pass_to_pass"):
        if table.has(key):
            raise table.fail(
                key,
                "the task has a table [tests] too; a command says by itself what passes (tests by name: runner = …)",
            )
    runner = inner.choice("result", PLAIN, "exit")
    useless = runner == "exit" and inner.has("threshold")
    tests = TestSpec(
        runner=runner,
        command=inner.texts("command", ("bash", f"{TESTS}/test.sh")),
        threshold=inner.positive("threshold", 1.0, "of the reward", 1e9),
        restored=inner.texts("restored", RUNNERS[runner].restored),
        env=_read_variables(inner),
        **_read_limits(inner, 1024, 256),
    )
    inner.end()
    if useless:
        raise inner.fail("threshold", 'is of no use without result = "reward"')
    if not tests.command:
        raise inner.fail("command", "names no program")
    for word in tests.command:
        inside = word.removeprefix(TESTS + "/")
        if inside != word and not resolve_below(folder / "tests", inside).exists():
            raise inner.fail("command", f"{word!r}: there is no {folder / 'tests' / inside}")
        in_task = word.startswith("tests/") and resolve_below(folder, word).is_file()
        if in_task and not (folder / "workspace" / word).exists():
            raise inner.fail("command", f"{word!r} is found under '/{word}' when it runs")
    return tests


def _read_limits(table: Table, memory_mb: int, disk_mb: int) -> Mapping[str, Any]:
    return {
        "cpus": table.positive("cpus", 1.0, "cores", MOST_CORES),
        "memory_mb": table.count("memory_mb", memory_mb, "MB"),
        "disk_mb": table.count("disk_mb", disk_mb, "MB"),
    }


def _read_variables(table: Table) -> tuple[tuple[str, str], ...]:
    variables = table.take("env", dict, {})
    for name, value in variables.items():
        if not isinstance(value, str) or "\0" in value or not _VARIABLE.fullmatch(name):
            raise table.fail("env", f"{name} = {value!r} is not a name and a text")
    return tuple(variables.items())


def _check_runner(inner: Table, tests: TestSpec) -> None:
    """Refuse keys of the table ``[tests]`` that are not for its runner."""
    runner = tests.runner
    for key, value in (("flags", tests.flags), ("build", tests.build)):
        if value and runner in ("pytest", *BY_COMMAND):
            others = ", ".join(name for name in RUNNERS if name not in ("pytest", *BY_COMMAND, *PLAIN))
            raise inner.fail(key, f"is not for {runner}; it belongs to {others}")
    keys = (
        ("command", tests.command, BY_COMMAND),
        ("parts", tests.parts, ("command",)),
        ("reports", tests.reports, ("report",)),
    )
    for key, value, runners in keys:
        if value and runner not in runners:
            raise inner.fail(key, f"is for runner = {' or '.join(map(repr, runners))} only")
    if runner in BY_COMMAND and not "".join(tests.command).strip():
        raise inner.fail("command", "is empty; give a shell command such as 'cargo test --offline'")
    if runner == "report" and not tests.reports:
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
