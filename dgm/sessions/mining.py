"""A suite mined out of a repository: the stages in their order, resumable at any point."""

import asyncio
import hashlib
import re
import shutil
import threading
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from dgm.archive.this_machine import machine_name
from dgm.benchmarks.calibration import FILE as CALIBRATION
from dgm.benchmarks.environments import Environment, ask_tool
from dgm.benchmarks.grade import Survey
from dgm.benchmarks.languages import LANGUAGES, Language, Results, language_of
from dgm.benchmarks.mining.calls import find_call
from dgm.benchmarks.mining.changes import prepare_workspace, read_change
from dgm.benchmarks.mining.environment import CannotInstall, Environments, Tool
from dgm.benchmarks.mining.history import History
from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.leaks import Evidence
from dgm.benchmarks.mining.paths import is_code_file, is_test_file
from dgm.benchmarks.mining.scan import Candidate, Left, scan
from dgm.benchmarks.mining.statements import Ask, Stated, issue_of, make_evidence, read_issues, state
from dgm.benchmarks.mining.validation import (
    Validated,
    Workbench,
    explain_failures,
    find_missing,
    validate,
)
from dgm.benchmarks.mining.writing import left_line, unit_line
from dgm.domain import Snapshot
from dgm.errors import BudgetExhausted, UserError
from dgm.processes import check_given_up, ended_by
from dgm.protocols import SandboxEngine
from dgm.sandboxes.building import SandboxBuilder
from dgm.sessions.mining_checks import check_counts, check_folders, check_reports, parse_since
from dgm.sessions.mining_options import USUAL_BUGS, Funnel, MiningOptions, Tell

P = ParamSpec("P")
T = TypeVar("T")
BY_REPORTS = (Language.CPP, Language.JVM)
"""Languages whose tests are read from reports that the test command writes."""
MAX_SETUPS = 4
"""Maximum number of times that packages are installed because tests miss some."""
HEALTHY = 0.8
"""Share of the newest commit's tests that must pass."""


@dataclass(frozen=True, slots=True)
class HistoryTask:
    """A unit that is a task, and its statement."""

    found: Candidate
    validated: Validated
    statement: Stated


@dataclass
class Mining:
    """The state of one mining."""

    options: MiningOptions
    history: History
    journal: MiningJournal
    environments: Environments
    bench: Workbench
    tell: Tell
    language: Language = Language.PYTHON
    ask: Ask | None = None
    issues: Mapping[int, str] = field(default_factory=dict)
    """Number of an issue → its text."""
    has_spent: bool = False
    """True once the model's budget is used up."""
    lines: dict[str, str] = field(default_factory=dict)
    """Lines of ``mined.jsonl`` by their keys, whose order is that of the history."""
    units: int = 0
    candidates: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def bugs(self) -> int:
        """Maximum number of tasks with a fault that is put in."""
        usual = USUAL_BUGS if self.language is Language.PYTHON else 0
        return usual if self.options.bugs is None else self.options.bugs

    def workspace(self, files: Snapshot) -> Snapshot:
        """Return a commit's files as a workspace."""
        return prepare_workspace(self.language, files)

    def leave(self, number: int, left: Left) -> None:
        """Note a unit that becomes no task."""
        self.lines[f"unit {number:08}"] = left_line(left)
        self.reasons[f"{left.stage}: {left.reason.partition(':')[0]}"] += 1


@asynccontextmanager
async def open_mining(
    options: MiningOptions, engine: SandboxEngine, tell: Tell, ask: Ask | None
) -> AsyncIterator[Mining]:
    """Open the repository, the journal and the sandboxes of a mining.

    Raises:
        UserError: there is no such repository, the suite exists, or its mining was begun with other options.
        Infrastructure: the sandbox failed.
    """
    check_counts(options)
    check_reports(options)
    check_folders(options.out, options.work / "journal.jsonl", update=options.update)
    parse_since(options.since)
    history = await asyncio.to_thread(History, options.repo)
    language = await asyncio.to_thread(find_language, history, options)
    issues = read_issues(options.issues) if options.issues else {}
    check_call(options, language)
    labels = {"dgm.run": f"mine-{uuid.uuid4().hex}", "dgm.host": machine_name()}
    record = LANGUAGES[language]
    image = options.image or record.image
    tool = Tool(language, *await ask_tool(engine, image, labels, language))
    kept = {
        "repository": str(options.repo.resolve()),
        f"{record.program} in the sandbox": f"{tool.version} {tool.machine}",
        **({"--image": image} if options.image else {}),
        "--setup": options.setup,
        "--test": options.test,
        **({"--report": " ".join(options.report)} if options.report else {}),
        "--statement-model": options.statement_model,
        "seed": options.seed,
        **({"--issues": hashlib.sha256(repr(sorted(issues.items())).encode()).hexdigest()} if issues else {}),
    }
    journal = MiningJournal(options.work / "journal.jsonl", kept)
    builder = SandboxBuilder(
        engine, labels, options.image or record.build_image or image, passwords=bool(options.setup)
    )
    environments = Environments(options.work, tool, journal, builder, options.setup)
    limit = float("inf") if options.processor_hours is None else options.processor_hours * 3600
    call = partial(find_call, language, command=options.test, reports=options.report)
    bench = Workbench(engine, labels, image, call, limit_s=limit)
    try:
        yield Mining(options, history, journal, environments, bench, tell, language, ask, issues)
    finally:
        journal.close()
        await engine.reap(labels)


def find_language(history: History, options: MiningOptions) -> Language:
    """Return the language to mine: that which is asked for, else the one of most test files, and of most code.

    Raises:
        UserError: the repository has no code in it, or faults are asked for in a language without.
    """
    counts = count_files(history.files(history.head))
    language = options.language or max(counts, key=lambda each: counts[each])
    if not counts[language][1]:
        known = options.language or " or ".join(Language)
        raise UserError(f"{options.repo}: no code in {known} at its newest commit")
    if options.report and language not in BY_REPORTS:
        known = " and ".join(BY_REPORTS)
        raise UserError(f"--report {options.report[0]}: is for {known}, and this is {language}; leave it out")
    if options.bugs and language is not Language.PYTHON:
        raise UserError(
            f"--bugs {options.bugs}: faults are put into Python only, and this is {language}; leave it out"
        )
    return language


def count_files(files: Snapshot) -> Mapping[Language, tuple[int, int]]:
    """Return the numbers of test files and of code files in each language."""
    tests = Counter(language_of(name) for name in files if is_test_file(name))
    code = Counter(language_of(name) for name in files if is_code_file(name))
    return {language: (tests[language], code[language]) for language in Language}


def check_call(options: MiningOptions, language: Language) -> None:
    """Refuse a command of pytest that cannot be read.

    Raises:
        UserError: it cannot.
    """
    if LANGUAGES[language].results is Results.PYTEST:
        try:
            find_call(language, {}, options.test)
        except ValueError as error:
            raise UserError(str(error)) from error


async def scan_history(mining: Mining) -> list[tuple[int, Candidate]]:
    """Return the candidates with their numbers, the newest first."""

    def run() -> list[tuple[int, Candidate]]:
        since = mining.options.since
        units = mining.history.units(parse_since(since))
        if not units:
            raise UserError(
                f"--since {since}: no commit is as new; the newest is of {mining.history.units()[0].day}"
            )
        mining.units = len(units)
        found = []
        for number, one in enumerate(scan(mining.history, units, mining.language, check_given_up)):
            if isinstance(one, Candidate):
                found.append((number, one))
            else:
                mining.leave(number, one)
            if number % 50 == 0:
                mining.tell(Funnel("scan", number, len(units), len(found)))
        mining.tell(Funnel("scan", len(units), len(units), len(found)))
        return found

    found = await run_in_thread(run)
    mining.candidates = len(found)
    return found


async def run_in_thread(function: Callable[P, T], *arguments: P.args, **more: P.kwargs) -> T:
    """Return what a function returns in a thread of its own.

    When the task that waits is cancelled, programs that ``run_apart`` runs there are killed, and the function ends at
    its next ``check_given_up``.
    """
    given_up = threading.Event()

    def work() -> T:
        with ended_by(given_up):
            return function(*arguments, **more)

    try:
        return await asyncio.to_thread(work)
    except asyncio.CancelledError:
        given_up.set()
        raise


async def newest_environment(mining: Mining) -> Environment:
    """Return the environment of the newest commit, in which most of its tests must pass.

    Raises:
        UserError: it cannot be built, or fewer pass.
    """
    mining.tell(Funnel("environment"))
    head = (await asyncio.to_thread(mining.history.units))[0]
    files = await asyncio.to_thread(mining.history.files, head.commit)
    tag = await asyncio.to_thread(mining.history.last_tag, head.commit)
    repo, missing = mining.options.repo, tuple[str, ...]()
    for _ in range(MAX_SETUPS):
        try:
            environment = await mining.environments.environment(files, head.day, tag, missing)
        except CannotInstall as error:
            hint = "" if mining.options.setup else " (give a command with --setup)"
            if re.search(r"[Rr]equires-python|satisfy Python|interpreter found", str(error)):
                hint = " (another Python: --sandbox docker --image docker:python:3.13)"
            raise UserError(f"{repo}: its packages cannot be installed: {error}{hint}") from error
        health = await _check_health(mining, head.commit, files, environment)
        further = [name for name in health["missing"] if name not in missing]
        if not further:
            break
        missing = (*missing, *further)
    ran = health["passed"] + health["failed"]
    if not ran or health["passed"] < HEALTHY * ran:
        remark = mining.environments.remarks.get(environment.name)
        packages = f"; its packages: {remark}" if remark else ""
        lfs = (
            "; the repository keeps files by git-lfs, which are not there"
            if any(entry.data.startswith(b"version https://git-lfs") for entry in files.values())
            else ""
        )
        raise UserError(
            f"{repo}: {health['passed']} of {ran} tests pass at its newest commit, and {HEALTHY:.0%} are needed: "
            f"{health['why'][:400]}{lfs}{packages}; the tests' output is in {health['log']} (packages can be given "
            "with --setup, the call of the tests with --test)"
        )
    mining.tell(Funnel("environment", 1, 1, health["passed"], mining.bench.processor_s))
    return environment


async def _check_health(
    mining: Mining, commit: str, files: Snapshot, environment: Environment
) -> Mapping[str, Any]:
    """Run all tests of a commit; return how many pass, why others fail, and which packages they miss."""
    key = f"health {commit} {environment.name}"
    health: Mapping[str, Any] | None = mining.journal.get(key)
    if health is not None:
        return health
    try:
        exam = mining.bench.complete_exam(mining.workspace(files), environment)
    except ValueError as error:
        raise UserError(f"{mining.options.repo}: {error}") from error
    run = await mining.bench.run(exam, b"", Survey())
    log = mining.options.work / "logs" / f"tests-{commit[:12]}-{environment.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(run.log)
    counts = Counter(run.outcomes.values())
    health = {
        "passed": counts["passed"],
        "failed": counts["failed"] + len(run.broken),
        "why": explain_failures(run),
        "missing": find_missing(run, files),
        "log": str(log),
    }
    if counts["passed"]:
        mining.journal.put(key, health)
    return health


async def validate_history(
    mining: Mining, found: Sequence[tuple[int, Candidate]], newest: Environment
) -> list[HistoryTask]:
    """Return the tasks of the history, the newest first, until there are as many as wanted.

    In an update these are the new ones; all that the suite has stay.
    """
    new, old, passed = divide_candidates(found, read_splits(mining.options.out))
    for number, candidate in passed:
        mining.leave(number, Left(candidate.unit, "validate", "not tried, for it is older than a task is"))
    new = spread_candidates(new, mining.options.history)
    tasks = await _validate(mining, new, newest, mining.options.history)
    return [*tasks, *await _validate(mining, old, newest, len(old))] if old else tasks


Numbered = Sequence[tuple[int, Candidate]]


def spread_candidates(found: Numbered, wanted: int) -> Numbered:
    """Return candidates in an order whose beginnings are spread over the history and its modules.

    Spans of the history, as many as tasks are wanted, take turns; in each the candidate comes first whose modules had
    the fewest before it.
    """
    count = max(1, min(wanted, len(found)))
    spans = [list(found[len(found) * n // count : len(found) * (n + 1) // count]) for n in range(count)]
    uses: Counter[str] = Counter()
    order: list[tuple[int, Candidate]] = []
    while any(spans):
        for span in filter(None, spans):
            chosen = min(span, key=lambda each: (max(uses[name] for name in each[1].code), each[0]))
            span.remove(chosen)
            uses.update(chosen[1].code)
            order.append(chosen)
    return order


def divide_candidates(found: Numbered, before: Collection[str]) -> tuple[Numbered, Numbered, Numbered]:
    """Return the candidates that are newer than every task of a suite, those that are its tasks, and all others.

    A further task that is older than one that is searched on would be held out, and the other's files hold its fix.

    Args:
        found: with their numbers, the newest first.
        before: ids of the tasks that are there.
    """
    is_task = [task_id("history", one.unit.commit) in before for _, one in found]
    first = is_task.index(True) if any(is_task) else len(found)
    old = [one for one, known in zip(found, is_task, strict=True) if known]
    passed = [one for one, known in zip(found[first:], is_task[first:], strict=True) if not known]
    return found[:first], old, passed


async def _validate(mining: Mining, found: Numbered, newest: Environment, wanted: int) -> list[HistoryTask]:
    tasks = list[HistoryTask]()
    waiting = list(found)
    tried = 0
    while waiting and len(tasks) < wanted and not mining.bench.is_spent() and not mining.has_spent:
        batch, waiting = waiting[: mining.options.workers], waiting[mining.options.workers :]
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(_one_unit(mining, one, newest)) for _, one in batch]
        for (number, candidate), done in zip(batch, running, strict=True):
            validated, stated = done.result()
            tried += 1
            if len(tasks) >= wanted or stated is None:
                waiting.insert(0, (number, candidate))
            elif validated.reason or stated.reason:
                stage = "validate" if validated.reason else "statement"
                mining.leave(number, Left(candidate.unit, stage, validated.reason or stated.reason))
            else:
                tasks.append(HistoryTask(candidate, validated, stated))
                name = task_id("history", candidate.unit.commit)
                mining.lines[f"unit {number:08}"] = unit_line(candidate.unit, stage="task", task=name)
        mining.tell(Funnel("validate", tried, len(found), len(tasks), mining.bench.processor_s))
    why = (
        f"{wanted} tasks were found in other units"
        if len(tasks) >= wanted
        else "the model's budget is used up"
        if mining.has_spent
        else "the processor time is used up"
    )
    for number, candidate in waiting:
        mining.leave(number, Left(candidate.unit, "validate", f"not tried, for {why}"))
    numbers = {candidate.unit.commit: number for number, candidate in found}
    return sorted(tasks, key=lambda task: numbers[task.found.unit.commit])


async def _one_unit(
    mining: Mining, candidate: Candidate, newest: Environment
) -> tuple[Validated, Stated | None]:
    """Return the answer on a unit; no statement where the model's budget does not cover it."""
    history, journal = mining.history, mining.journal
    validated = await validate(candidate, history, mining.environments, newest, mining.bench, journal)
    if validated.reason:
        return validated, Stated()
    change = await asyncio.to_thread(read_change, history, candidate.unit, candidate.code)
    unit = candidate.unit
    message = f"{unit.message}\n\n{await asyncio.to_thread(history.branch_messages, unit)}".strip()
    evidence = make_evidence(
        message, change, validated.failures, change.workspace, issue_of(message, mining.issues)
    )
    return validated, await state_task(mining, unit.commit, evidence)


async def state_task(mining: Mining, key: str, evidence: Evidence) -> Stated | None:
    """Return the statement of a task; None where the model's budget does not cover it."""
    try:
        return await state(key, evidence, mining.journal, mining.ask)
    except BudgetExhausted:
        mining.has_spent = True
        return None


def task_id(kind: str, of: str) -> str:
    """Return a task's id, which tells neither the commit nor the fix."""
    return f"{kind}-{hashlib.sha256(of.encode()).hexdigest()[:10]}"


def holdout_count(options: MiningOptions, tasks: int) -> int:
    """Return the number of tasks, the newest ones, that are kept for reports."""
    return round(options.holdout * tasks)


def read_splits(out: Path) -> Mapping[str, str]:
    """Return the split of each task of a mined suite that exists; empty if it does not."""
    import tomllib

    if not (out / "tasks").is_dir():
        return {}
    return {
        file.parent.name: str(tomllib.loads(file.read_text(encoding="utf-8"))["split"])
        for file in sorted((out / "tasks").glob("*/task.toml"))
    }


def replace_suite(draft: Path, out: Path) -> None:
    """Put a finished suite in the place of the one that stands there, if any, whose calibration is kept."""
    if (out / CALIBRATION).is_file():
        shutil.copy2(out / CALIBRATION, draft / CALIBRATION)
    old = out.with_name(f"{out.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        out.rename(old)
    draft.rename(out)
    shutil.rmtree(old, ignore_errors=True)


def suite_name(history: History) -> str:
    """Return the name of the repository's folder."""
    folder = history.folder.resolve()
    name = (folder.parent.name if folder.name in (".git", "repo") else folder.name).removesuffix(".git")
    return "".join("-" if each in "/+: " else each for each in name)
