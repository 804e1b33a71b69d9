"""Units of a history become tasks: each is run in its environment, and the answer is journaled."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dgm.benchmarks.environments import Environment
from dgm.benchmarks.grade import Exam, Survey, TestRun, run_tests
from dgm.benchmarks.languages import BY_COMMAND, RUNNERS
from dgm.benchmarks.mining.epochs import Epochs
from dgm.benchmarks.mining.history import History
from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.languages import language_of
from dgm.benchmarks.mining.projects import PROJECTS
from dgm.benchmarks.mining.scan import Candidate
from dgm.benchmarks.mining.script_calls import ToolCall
from dgm.benchmarks.mining.stored_environments import CannotInstall
from dgm.benchmarks.mining.validation import Change, FoundTests, NotTold, find_tests
from dgm.benchmarks.suite_files import Limits
from dgm.benchmarks.test_spec import DISK_MB, TestSpec
from dgm.domain import Snapshot
from dgm.protocols import SandboxEngine
from dgm.standstill import repeat_after_standstill

TEST_TIMEOUT_S = 300.0
SUITE_TIMEOUT_S = 1800.0
"""Wall time of all tests of a commit."""
TEST_LIMIT_S = 30.0
FILE_LIMIT_S = 120.0
"""Wall time of a test file, where the tool cannot end a single test."""
MEMORY_MB = 2048
BUILD_MEMORY_MB, BUILD_DISK_MB = 4096, 2048
"""Limits where a command builds the tests."""
AGENT_TIMEOUT_S = 900.0


@dataclass(frozen=True, slots=True)
class Validated:
    """The answer on one unit."""

    reason: str = ""
    """Why it is no task; empty if it is one."""
    environment: str = ""
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    processor_s: float = 0.0
    """Processor time of all its test runs."""


@dataclass
class Bench:
    """Runs surveys in sandboxes, and counts their processor time."""

    engine: SandboxEngine
    labels: Mapping[str, str]
    image: str = "python"
    options: tuple[str, ...] = ()
    """Further arguments of pytest."""
    call: Callable[[Snapshot], ToolCall] | None = None
    """Reads how the tests of a commit are called; None: by pytest. It raises ``ValueError`` if that is not known."""
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

    def counting(self) -> "Bench":
        """Return a bench of its own count, whose time must be added to this one's."""
        return replace(self, processor_s=0.0)

    def whole(self, workspace: Snapshot, environment: Environment) -> Exam:
        """Return the inputs of a run of all tests of a commit."""
        exam = self.exam(workspace, self.tests(files=workspace), {}, environment)
        return replace(exam, limits=replace(exam.limits, test_timeout_s=SUITE_TIMEOUT_S))

    def exam(self, workspace: Snapshot, tests: TestSpec, hidden: Snapshot, environment: Environment) -> Exam:
        """Return the inputs of a run."""
        limits = Limits(image=self.image, test_timeout_s=TEST_TIMEOUT_S, timeout_s=AGENT_TIMEOUT_S)
        return Exam(workspace, hidden, tests, limits, environment)

    def tests(self, change: Change | None = None, files: Snapshot | None = None) -> TestSpec:
        """Return named tests without names, for surveys and as the rest of a task's.

        Args:
            change: whose tests they are.
            files: the workspace, where there is no change.

        Raises:
            ValueError: it is not known how the commit's tests are called.
        """
        base = TestSpec((), (), options=self.options, limit_s=TEST_LIMIT_S, memory_mb=MEMORY_MB)
        if self.call:
            found = self.call(change.workspace if change else files or {})
            builds = found.kind in BY_COMMAND
            base = TestSpec(
                (), (), found.kind, RUNNERS[found.kind].restored, flags=found.flags, options=found.options,
                patterns=found.patterns, build=found.build, command=(found.command,) if found.command else (),
                env=found.env, reports=found.reports,
                parts=change.parts if change else (), limit_s=FILE_LIMIT_S,
                memory_mb=BUILD_MEMORY_MB if builds else MEMORY_MB,
                disk_mb=BUILD_DISK_MB if builds else DISK_MB,
            )  # fmt: skip
        return replace(base, restored=change.restored, deleted=change.deleted) if change else base


def read_change(history: History, found: Candidate) -> Change:
    """Return a candidate's step, taken apart."""
    unit = found.unit
    before, after = history.files(unit.parent), history.files(unit.commit)
    language = language_of(found.code[0])
    assert language is not None
    project = PROJECTS[language]
    return project.take_apart(project.prepare(before), project.prepare(after), found.code, project.restored)


async def validate(
    found: Candidate,
    history: History,
    epochs: Epochs,
    newest: Environment,
    bench: Bench,
    journal: MiningJournal,
) -> Validated:
    """Return whether a candidate is a task, and by which tests; from the journal if it was asked before.

    The newest environment is tried first; where nothing passes in it, that of the candidate's own declarations.

    Raises:
        Infrastructure: a sandbox failed.
        UserError: the user's own command for an environment fails.
    """
    key = f"unit {found.unit.commit}"
    if (known := journal.get(key)) is not None:
        return _restore(known)
    change = await asyncio.to_thread(read_change, history, found)
    own = bench.counting()
    used, answer = newest, await _try_in(newest, change, own)
    if isinstance(answer, NotTold) and answer.environment:
        files = await asyncio.to_thread(history.files, found.unit.commit)
        try:
            used = await epochs.environment(files, found.unit.day)
        except CannotInstall as error:
            answer = replace(answer, reason=f"{answer.reason}; its own packages cannot be installed: {error}")
        else:
            answer = await _try_in(used, change, own) if used.name != newest.name else answer
    bench.processor_s += own.processor_s
    match answer:
        case FoundTests():
            done = Validated(
                "", used.name, answer.fail_to_pass, answer.pass_to_pass, answer.failures, own.processor_s
            )
        case NotTold():
            done = Validated(answer.reason, processor_s=own.processor_s)
    journal.put(key, asdict(done))
    return done


async def _try_in(environment: Environment, change: Change, bench: Bench) -> FoundTests | NotTold:
    try:
        tests = bench.tests(change)
    except ValueError as error:
        return NotTold(str(error))
    exam = bench.exam(change.workspace, tests, change.hidden, environment)
    return await find_tests(change, exam, bench.run)


def _restore(known: Mapping[str, Any]) -> Validated:
    return Validated(
        **{
            **known,
            "fail_to_pass": tuple(known["fail_to_pass"]),
            "pass_to_pass": tuple(known["pass_to_pass"]),
        }
    )
