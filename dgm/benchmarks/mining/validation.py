"""Find the tests that tell a change: run them with the fix and without it, twice each, in dgm's own sandboxes."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from dgm.benchmarks.environments import Environment
from dgm.benchmarks.grade import Exam, Survey, TestRun, run_tests
from dgm.benchmarks.languages import BY_COMMAND, Language, Results, language_of
from dgm.benchmarks.mining.changes import Change, read_change, restored_patterns
from dgm.benchmarks.mining.environment import CannotInstall, Environments, missing_packages, with_generated
from dgm.benchmarks.mining.evidence import find_code
from dgm.benchmarks.mining.history import History
from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.paths import is_test_file
from dgm.benchmarks.mining.scan import Candidate
from dgm.benchmarks.results import BUILD
from dgm.benchmarks.suite_files import Limits
from dgm.benchmarks.test_spec import DISK_MB, TestSpec
from dgm.domain import Snapshot
from dgm.processes import repeat_after_standstill
from dgm.protocols import SandboxEngine

MAX_FAILING, MAX_PASSING = 20, 2000
"""Maximum number of tests that a fix repairs, and of those that must go on passing."""
TESTS_S = 60.0
"""Wall time that the test files of a task may take; those farthest from the change are left out."""
REPEATS = 2
TEST_TIMEOUT_S, AGENT_TIMEOUT_S, SUITE_TIMEOUT_S = 300.0, 900.0, 600.0
"""Wall time of a task's tests, of its agent, and of all tests of a commit."""
TEST_LIMIT_S, FILE_LIMIT_S = 30.0, 120.0
"""Wall time of a test, and of a test file where the tool cannot end a single test."""
MEMORY_MB, BUILD_MEMORY_MB, BUILD_DISK_MB = 2048, 4096, 2048
_UNSTABLE = re.compile(r"0x[0-9a-fA-F]{6,}|\bat 0x|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|<object|<function|\d{10,}")
_MAX_NAME = 400
_TOO_LATE = "this test took too long"
_IMPORT = re.compile(
    r"^\s*(?:import|from|use|#include|export|package)\b.*$|.*\brequire\(.*|^\s*(?:\w+ )?\"[\w./-]+\"$|\}\s*from\s.*"
    r"|^\s+\w+,?$",
    re.M,
)
"""Rows that import something; in Go and in lists over several rows a name alone."""
_PARENT_IMPORT = re.compile(r"""(?:from|require\()\s*["']\.\.?/?(?:\.\./?)*["']""")

Run = Callable[[Exam, bytes, Survey], Awaitable[TestRun]]
"""Runs a survey on a patched workspace."""


@dataclass(frozen=True, slots=True)
class Validated:
    """The tests that tell a change or a fault, or why it is no task."""

    reason: str = ""
    """Why it is no task; empty if it is one."""
    environment: str = ""
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    """Test that fails without the fix → the report on it."""
    processor_s: float = 0.0
    """Processor time of all its test runs."""
    elsewhere: bool = False
    """True if another environment may help."""
    missing: tuple[str, ...] = ()
    """Packages that errors name as missing."""

    @classmethod
    def restore(cls, known: Mapping[str, Any]) -> "Validated":
        """Return what a journal has of it."""
        values: dict[str, Any] = {}
        for key in cls.__dataclass_fields__.keys() & known.keys():
            values[key] = tuple(known[key]) if isinstance(known[key], list) else known[key]
        return cls(**values)


@dataclass
class Workbench:
    """Runs surveys in sandboxes, and counts their processor time."""

    engine: SandboxEngine
    labels: Mapping[str, str]
    image: str
    call: Callable[[Snapshot], TestSpec]
    """Reads how the tests of a commit are called; raises ``ValueError`` if that is not known."""
    processor_s: float = 0.0
    limit_s: float = float("inf")
    """Processor time after which nothing more is begun, in seconds."""

    def is_spent(self) -> bool:
        """Return whether the processor time is used up."""
        return self.processor_s >= self.limit_s

    async def run(self, exam: Exam, patch: bytes, survey: Survey) -> TestRun:
        """Run a survey on a patched workspace.

        Raises:
            Infrastructure: the sandbox failed.
        """

        async def perform() -> TestRun:
            return await run_tests(exam, patch, self.engine, self.labels, survey)

        run = await repeat_after_standstill(perform, lambda _: True)
        self.processor_s += run.processor_s
        return run

    def counting(self) -> "Workbench":
        """Return a workbench of its own count, whose time must be added to this one's."""
        return replace(self, processor_s=0.0)

    def complete_exam(self, workspace: Snapshot, environment: Environment) -> Exam:
        """Return the inputs of a run of all tests of a commit."""
        exam = self.exam(workspace, self.tests(workspace), {}, environment)
        return replace(exam, limits=replace(exam.limits, test_timeout_s=SUITE_TIMEOUT_S))

    def exam(self, workspace: Snapshot, tests: TestSpec, hidden: Snapshot, environment: Environment) -> Exam:
        """Return the inputs of a run."""
        limits = Limits(image=self.image, test_timeout_s=TEST_TIMEOUT_S, timeout_s=AGENT_TIMEOUT_S)
        return Exam(with_generated(workspace, environment), hidden, tests, limits, environment)

    def tests(self, workspace: Snapshot) -> TestSpec:
        """Return named tests without names, for surveys and as the rest of a task's.

        Raises:
            ValueError: it is not known how the commit's tests are called.
        """
        call = self.call(workspace)
        by_pytest, builds = call.results is Results.PYTEST, call.runner in BY_COMMAND
        return replace(
            call,
            restored=restored_patterns(Language.PYTHON, workspace) if by_pytest else call.restored,
            limit_s=TEST_LIMIT_S if by_pytest else FILE_LIMIT_S,
            memory_mb=BUILD_MEMORY_MB if builds else MEMORY_MB,
            disk_mb=BUILD_DISK_MB if builds else DISK_MB,
        )

    def tests_of(self, change: Change) -> TestSpec:
        """Return the same for a change."""
        return replace(
            self.tests(change.workspace), restored=change.restored, deleted=change.deleted, parts=change.parts
        )


async def validate(
    candidate: Candidate,
    history: History,
    environments: Environments,
    newest: Environment,
    bench: Workbench,
    journal: MiningJournal,
) -> Validated:
    """Return whether a candidate is a task, and by which tests; from the journal if it was asked before.

    The newest environment is tried first; where most tests fail in it, that of the candidate's own declarations, and
    then that one with the packages that errors name as missing.

    Raises:
        Infrastructure: a sandbox failed.
    """
    unit = candidate.unit
    key = f"unit {unit.commit}"
    if (known := journal.get(key)) is not None:
        return Validated.restore(known)
    change = await asyncio.to_thread(read_change, history, unit, candidate.code)
    counting = bench.counting()
    used, answer = newest, await _try_in(newest, change, counting)
    for repeats in (False, True):
        missing = answer.missing if repeats else ()
        if not answer.elsewhere or (repeats and not missing):
            break
        files = await asyncio.to_thread(history.files, unit.commit)
        tag = await asyncio.to_thread(history.last_tag, unit.commit)
        try:
            used = await environments.environment(files, unit.day, tag, missing)
        except CannotInstall as error:
            answer = replace(answer, reason=f"{answer.reason}; its own packages cannot be installed: {error}")
            break
        answer = await _try_in(used, change, counting) if used.name != newest.name else answer
    bench.processor_s += counting.processor_s
    validated = replace(
        answer,
        environment="" if answer.reason else used.name,
        processor_s=counting.processor_s,
        elsewhere=False,
        missing=(),
    )
    journal.put(key, asdict(validated))
    return validated


async def _try_in(environment: Environment, change: Change, bench: Workbench) -> Validated:
    try:
        tests = bench.tests_of(change)
    except ValueError as error:
        return Validated(str(error))
    return await find_tests(
        change, bench.exam(change.workspace, tests, change.hidden, environment), bench.run
    )


async def find_tests(change: Change, exam: Exam, run: Run) -> Validated:
    """Return the tests that tell a change.

    Args:
        change: the step.
        exam: workspace, hidden tests and environment; its lists of tests are not used.
        run: performs a survey.
    """
    files = affected_files(change)
    fixed = await run(exam, change.fix, Survey(files))
    own = sum(name in change.hidden for name in files)
    if fixed.seconds > TESTS_S and len(files) > own:
        files = files[: own + int((len(files) - own) * TESTS_S / fixed.seconds / 2)]
        fixed = await run(exam, change.fix, Survey(files))
    if trouble := _find_trouble(fixed, exam):
        return trouble
    passing = stable_names(name for name, outcome in fixed.outcomes.items() if outcome == "passed")
    before = await run(exam, b"", Survey(files))
    if before.foreign:
        return Validated(f"a module of the project comes from elsewhere: {before.foreign[0]}")
    unfixed = {name for name, outcome in before.outcomes.items() if outcome == "passed"}
    old = await _passing_before(change, exam, run) if before.broken else set()
    old = {name for name in old if _is_unchanged(name, change)}
    # Where a test takes too long, nobody knows whether the machine is to blame.
    late = {name for name, message in before.messages.items() if _TOO_LATE in message}
    failing = [name for name in passing if name not in unfixed | old | late]
    # Where the new tests do not build without the fix, those of the parent tell what must go on passing.
    kept = [name for name in passing if name in unfixed] or [name for name in passing if name in old]
    if reason := _check_counts(failing, kept):
        ended = Counter(fixed.outcomes.values())
        missing = find_missing(fixed, exam.files)
        return Validated(reason, elsewhere=ended["failed"] > ended["passed"], missing=missing)
    return await _repeat(change, exam, run, (failing, kept, before))


async def _repeat(
    change: Change, exam: Exam, run: Run, first: tuple[list[str], list[str], TestRun]
) -> Validated:
    """Run both sides again, and drop the tests that end otherwise."""
    failing, kept, before = first
    builds = any(outcome == "passed" for outcome in before.outcomes.values())
    survey = Survey(tuple(dict.fromkeys(name.split("::", 1)[0] for name in [*failing, *kept])))
    for _ in range(REPEATS - 1):
        fixed, broken = await run(exam, change.fix, survey), await run(exam, b"", survey)
        passed = {name for name, outcome in fixed.outcomes.items() if outcome == "passed"}
        failing = [n for n in failing if n in passed and broken.outcomes.get(n) != "passed"]
        kept = [n for n in kept if n in passed and (broken.outcomes.get(n) == "passed" or not builds)]
    if reason := _check_counts(failing, kept):
        return Validated(f"{reason}, once tests are dropped that do not always end the same")
    build = before.broken.get(BUILD, "")
    failures = {
        n: before.messages.get(n) or before.broken.get(n.split("::", 1)[0], "") or build for n in failing
    }
    return Validated(fail_to_pass=tuple(failing), pass_to_pass=tuple(kept[:MAX_PASSING]), failures=failures)


def _is_unchanged(test: str, change: Change) -> bool:
    """Return whether a test and its helpers are the same before and after the change."""
    if test.split("::", 1)[0] not in change.hidden:
        return True
    sides = (
        change.hidden,
        {name: change.workspace[name] for name in change.hidden.keys() & change.workspace.keys()},
    )
    try:
        after, before = (
            find_code(test, {name: entry.data.decode("utf-8", "replace") for name, entry in side.items()})
            for side in sides
        )
    except ValueError:
        return False
    return after == before


async def _passing_before(change: Change, exam: Exam, run: Run) -> set[str]:
    """Return the tests of the parent that pass in it: of the new ones a file cannot be read without the fix."""
    old = replace(exam, hidden={}, tests=replace(exam.tests, deleted=(), parts=()))
    files = tuple(name for name in affected_files(change) if name in change.workspace)
    outcomes = (await run(old, b"", Survey(files))).outcomes if files else {}
    return {name for name, outcome in outcomes.items() if outcome == "passed"}


def find_cause(log: str) -> str:
    """Return the last line of a log that names an error; its last one if none does."""
    errors = [line.strip() for line in log.splitlines() if re.search(r"error\b", line, re.IGNORECASE)]
    return errors[-1] if errors else log.strip().rpartition("\n")[2]


def explain_failures(run: TestRun, most: int = 2) -> str:
    """Return the tests of a run that failed, each with the error; else the cause that its log names."""
    reports = {**run.broken, **run.messages}
    parts = []
    for name, report in reports.items():
        errors = [line[1:].strip() for line in report.splitlines() if re.match(r"E  +\S", line)]
        parts.append(f"{name}: {(errors or report.strip().splitlines()[-1:] or [''])[0][:150]}")
    log = run.log.decode("utf-8", "replace")
    return "; ".join([*run.foreign[:1], *parts[:most]]) or run.problem or find_cause(log)


def find_missing(run: TestRun, files: Iterable[str]) -> tuple[str, ...]:
    """Return the packages that a run's errors name as missing."""
    log = [] if run.outcomes else [run.log.decode("utf-8", "replace")]
    return missing_packages("\n".join([*run.broken.values(), *run.messages.values(), *log]), files)


def _find_trouble(run: TestRun, exam: Exam) -> Validated | None:
    if run.refused:
        return Validated(f"the fix does not apply: {run.refused}")
    if run.foreign:
        return Validated(f"a module of the project comes from elsewhere: {run.foreign[0]}")
    if any(outcome == "passed" for outcome in run.outcomes.values()):
        return None
    why = explain_failures(run, 1) or f"{len(run.outcomes)} tests ran"
    missing = find_missing(run, exam.files)
    return Validated(f"no test passes with the fix: {why}", elsewhere=True, missing=missing)


def _check_counts(failing: Sequence[str], kept: Sequence[str]) -> str:
    if not failing:
        return "no test fails without the fix and passes with it"
    if len(failing) > MAX_FAILING:
        return f"more than {MAX_FAILING} tests fail without the fix"
    return "" if kept else "no test passes both with the fix and without it"


def stable_names(names: Iterable[str]) -> list[str]:
    """Return the names that are the same in every run, in their order."""
    return [n for n in names if not _UNSTABLE.search(n) and len(n) <= _MAX_NAME and n.isprintable()]


def affected_files(change: Change) -> tuple[str, ...]:
    """Return the test files of the change, and the others that import what the fix touches, the nearest first."""
    own = [name for name in change.hidden if _is_collected(name)]
    stems = {PurePosixPath(name).stem for name in change.modules}
    packages = {part for name in change.modules for part in PurePosixPath(name).parts[:-1]}
    folders = {str(PurePosixPath(name).parent) for name in (*own, *change.modules)}
    ranked = []
    for name, entry in change.workspace.items():
        if not _is_collected(name) or name in own or name in change.deleted:
            continue
        text = entry.data.decode("utf-8", "replace")
        words = {word for row in _IMPORT.findall(text) for word in re.findall(r"[\w-]+", row)}
        is_near = str(PurePosixPath(name).parent) in folders
        by_stem = bool(words & stems)
        if by_stem or words & packages or _PARENT_IMPORT.search(text) or (is_near and name.endswith(".go")):
            ranked.append(
                (not by_stem, not any(stem.strip("_") in name for stem in stems), not is_near, name)
            )
    return (*own, *(name for *_, name in sorted(ranked)))


def _is_collected(name: str) -> bool:
    stem = PurePosixPath(name).stem
    if language_of(name) is not Language.PYTHON:
        return is_test_file(name)
    return stem.startswith("test_") or stem.endswith("_test") or stem == "tests"
