"""A mining: validated changes of the history and faults put in, written as a suite, verified, and put in its place.

The same call goes on where it was ended.
"""

import asyncio
import hashlib
import json
import re
import shutil
import threading
import tomllib
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from dgm.archive.lock import machine_name
from dgm.benchmarks.environments import FOLDER, Environment, ask_tool, read_environments
from dgm.benchmarks.grade import Survey
from dgm.benchmarks.languages import LANGUAGES, Language, Results, language_of
from dgm.benchmarks.mining.bugs import TRIES, Bug, Ground, bug_change, bug_id, place_bugs, prepare_ground
from dgm.benchmarks.mining.calls import find_call
from dgm.benchmarks.mining.changes import prepare_workspace, read_change
from dgm.benchmarks.mining.environment import CannotInstall, Environments, Tool, with_generated
from dgm.benchmarks.mining.history import History, Unit
from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.leaks import Evidence
from dgm.benchmarks.mining.paths import is_code_file, is_test_file
from dgm.benchmarks.mining.scan import Candidate, Left, scan
from dgm.benchmarks.mining.statements import Ask, Stated, issue_of, make_evidence, read_issues, state
from dgm.benchmarks.mining.validation import (
    AGENT_TIMEOUT_S,
    TEST_TIMEOUT_S,
    Validated,
    Workbench,
    explain_failures,
    find_missing,
    validate,
)
from dgm.benchmarks.mining.writing import LEFT_FILE, MinedTask, read_license, unit_line, write_suite
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.test_spec import Provenance, TestSpec, is_report_pattern
from dgm.benchmarks.verification import verify_with_notes
from dgm.config import MiningSettings
from dgm.domain import Snapshot, TaskId
from dgm.errors import BudgetExhausted, UserError
from dgm.processes import check_given_up, ended_by
from dgm.protocols import Builder, SandboxEngine
from dgm.steps import OnStep, Step

P = ParamSpec("P")
T = TypeVar("T")
BY_REPORTS = (Language.CPP, Language.JVM)
"""Languages whose tests are read from reports that the test command writes."""
DEFAULT_BUGS = 30
MAX_SETUPS = 4
"""Maximum number of times that packages are installed because tests miss some."""
HEALTHY = 0.8
"""Share of the newest commit's tests that must pass."""
STEPS = {
    "scan": "reading the history",
    "environment": "installing packages, running the newest tests",
    "validate": "running changes with their tests, before and after the fix",
    "bugs": "putting faults in",
    "write": "writing the suite",
    "verify": "verifying tasks",
}
HARD_LINES, EASY_LINES = 40, 8
"""Changed lines of a fix from which a task counts as hard, and up to which as easy."""
Numbered = Sequence[tuple[int, Candidate]]


@dataclass(frozen=True, slots=True)
class MiningOptions:
    """Choices for a mining."""

    repo: Path
    out: Path
    """Folder of the suite."""
    history: int = 50
    """Maximum number of tasks from the history."""
    bugs: int | None = None
    """Maximum number of tasks with a fault that is put in; pairs of faults, a fifth as many, come on top. None: 30 in
    Python; in other languages no faults are put in."""
    setup: str = ""
    """Shell command that installs packages into ``$DGM_PACKAGES``."""
    test: str = ""
    """Command that runs the tests; ``calls`` says which of its options each language keeps."""
    model: str = ""
    """Model that writes the statements; empty: they show the failing tests."""
    update: bool = False
    """True if ``out`` exists and gets tasks from newer commits."""
    workers: int = 2
    settings: MiningSettings = field(default_factory=MiningSettings)

    @property
    def work(self) -> Path:
        """Folder of the journal and the environments, beside the suite."""
        return self.out.parent / f"{self.out.name}.mining"

    @property
    def journal(self) -> Path:
        """File with the finished work."""
        return self.work / "journal.jsonl"

    def check(self) -> None:
        """Refuse options that are wrong whatever the repository holds.

        Raises:
            UserError: no task is asked for, a day or a pattern is none, the suite's folder is in use, or an update
                lacks what the first mining left.
        """
        if self.history == 0 and self.bugs == 0 and not self.update:
            raise UserError("0 tasks of the history and 0 faults leave nothing to mine", argument="history")
        for pattern in self.settings.reports:
            if not is_report_pattern(pattern):
                raise UserError(
                    f"{pattern!r}: expected files in the workspace or below $DGM_BUILD/, as in 'build/**/*.xml'",
                    argument="mining.reports",
                )
        parse_since(self.settings.since)
        if self.out.exists() and not self.update:
            raise UserError(f"{self.out}: exists; name another folder, or add what is new with update")
        if self.update and not self.out.exists():
            raise UserError(f"{self.out}: missing, so there is nothing to update", argument="update")
        if self.update and not ((self.out / LEFT_FILE).is_file() and self.journal.is_file()):
            raise UserError(
                f"{self.out}: cannot be updated without {LEFT_FILE} in it and {self.journal}, as its mining left "
                "them; mine a suite of its own with mining.since, and merge the two",
                argument="update",
            )


def parse_since(since: str) -> str:
    """Return the beginning of a day as git reads it; empty for an empty text.

    Raises:
        UserError: it is no day.
    """
    try:
        return f"{date.fromisoformat(since)} 00:00:00 +0000" if since else ""
    except ValueError as error:
        raise UserError(f"{since!r}: expected a day such as 2024-01-31", argument="mining.since") from error


@dataclass(frozen=True, slots=True)
class HistoryTask:
    """A change that is a task, and its statement."""

    candidate: Candidate
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
    on_step: OnStep
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
        default = DEFAULT_BUGS if self.language is Language.PYTHON else 0
        return default if self.options.bugs is None else self.options.bugs

    def workspace(self, files: Snapshot) -> Snapshot:
        """Return a commit's files as a workspace."""
        return prepare_workspace(self.language, files)

    def leave(self, number: int, left: Left) -> None:
        """Note a unit that becomes no task."""
        self.lines[f"unit {number:08}"] = unit_line(left.unit, stage=left.stage, reason=left.reason)
        self.reasons[f"{left.stage}: {left.reason.partition(':')[0]}"] += 1

    def report(self, stage: str, done: int = 0, total: int = 0, kept: int = 0) -> None:
        """Report the progress of a stage."""
        minutes = self.bench.processor_s / 60
        parts = [f"{kept} kept" if kept else "", f"{minutes:.1f} min of processor" if minutes else ""]
        self.on_step(Step(STEPS[stage], done, total, ", ".join(filter(None, parts))))


MakeBuilder = Callable[[Mapping[str, str], str, bool], Builder]
"""Opens builds by the labels of their sandboxes, the image, and whether they see passwords of the user's indexes."""


@asynccontextmanager
async def open_mining(
    options: MiningOptions,
    engine: SandboxEngine,
    make_builder: MakeBuilder,
    on_step: OnStep,
    ask: Ask | None,
) -> AsyncIterator[Mining]:
    """Open the repository, the journal and the sandboxes of a mining.

    Raises:
        UserError: there is no such repository, the suite exists, or its mining was begun with other options.
        Infrastructure: the sandbox failed.
    """
    options.check()
    chosen = options.settings
    history = await asyncio.to_thread(History, options.repo)
    language = await asyncio.to_thread(find_language, history, options)
    issues = read_issues(Path(chosen.issues)) if chosen.issues else {}
    labels = {"dgm.run": f"mine-{uuid.uuid4().hex}", "dgm.host": machine_name()}
    record = LANGUAGES[language]
    image = chosen.image or record.image
    tool = Tool(language, *await ask_tool(engine, image, labels, language))
    results_depend_on = {
        "repository": str(options.repo.resolve()),
        f"{record.program} in the sandbox": f"{tool.version} {tool.machine}",
        **({"mining.image": image} if chosen.image else {}),
        "setup": options.setup,
        "test": options.test,
        **({"mining.reports": " ".join(chosen.reports)} if chosen.reports else {}),
        "model": options.model,
        "seed": chosen.seed,
        **(
            {"mining.issues": hashlib.sha256(repr(sorted(issues.items())).encode()).hexdigest()}
            if issues
            else {}
        ),
    }
    journal = MiningJournal(options.journal, results_depend_on)
    builder = make_builder(labels, chosen.image or record.build_image or image, bool(options.setup))
    environments = Environments(options.work, tool, journal, builder, options.setup)
    limit_s = float("inf") if chosen.processor_hours is None else chosen.processor_hours * 3600
    call = partial(find_call, language, command=options.test, reports=chosen.reports)
    bench = Workbench(engine, labels, image, call, limit_s=limit_s)
    try:
        yield Mining(options, history, journal, environments, bench, on_step, language, ask, issues)
    finally:
        journal.close()
        await engine.reap(labels)


def find_language(history: History, options: MiningOptions) -> Language:
    """Return the language to mine: that which is asked for, else the one of most test files, and of most code.

    Raises:
        UserError: the repository has no code in it, an option is not for it, or the call of its tests cannot be read.
    """
    counts = count_files(history.files(history.head))
    wanted = options.settings.language
    language = Language(wanted) if wanted else max(counts, key=lambda each: counts[each])
    if not counts[language][1]:
        known = wanted or " or ".join(Language)
        raise UserError(f"{options.repo}: no code in {known} at its newest commit")
    if options.settings.reports and language not in BY_REPORTS:
        known = " and ".join(BY_REPORTS)
        raise UserError(f"is for {known}, and this is {language}; leave it out", argument="mining.reports")
    if options.bugs and language is not Language.PYTHON:
        raise UserError(
            f"faults are put into Python only, and this is {language}; leave it out", argument="bugs"
        )
    if LANGUAGES[language].results is Results.PYTEST:
        try:
            find_call(language, {}, options.test)
        except ValueError as error:
            raise UserError(str(error)) from error
    return language


def count_files(files: Snapshot) -> Mapping[Language, tuple[int, int]]:
    """Return the numbers of test files and of code files in each language."""
    tests = Counter(language_of(name) for name in files if is_test_file(name))
    code = Counter(language_of(name) for name in files if is_code_file(name))
    return {language: (tests[language], code[language]) for language in Language}


async def scan_history(mining: Mining) -> Numbered:
    """Return the candidates with their numbers, the newest first."""

    def run() -> Numbered:
        since = mining.options.settings.since
        units = mining.history.units(parse_since(since))
        if not units:
            newest = mining.history.units()[0].day
            raise UserError(
                f"{since}: no commit is as new; the newest is of {newest}", argument="mining.since"
            )
        mining.units = len(units)
        candidates = []
        for number, unit in enumerate(scan(mining.history, units, mining.language, check_given_up)):
            if isinstance(unit, Candidate):
                candidates.append((number, unit))
            else:
                mining.leave(number, unit)
            if number % 50 == 0:
                mining.report("scan", number, len(units), len(candidates))
        mining.report("scan", len(units), len(units), len(candidates))
        return candidates

    candidates = await run_in_thread(run)
    mining.candidates = len(candidates)
    return candidates


async def run_in_thread(function: Callable[P, T], *arguments: P.args, **more: P.kwargs) -> T:
    """Return what a function returns in a thread of its own.

    When the task that waits is cancelled, programs that ``run_apart`` runs there are killed, and the function ends at
    its next ``check_given_up``.
    """
    cancelled = threading.Event()

    def work() -> T:
        with ended_by(cancelled):
            return function(*arguments, **more)

    try:
        return await asyncio.to_thread(work)
    except asyncio.CancelledError:
        cancelled.set()
        raise


async def newest_environment(mining: Mining) -> Environment:
    """Return the environment of the newest commit, in which most of its tests must pass.

    Raises:
        UserError: it cannot be built, or fewer pass.
    """
    mining.report("environment")
    head = (await asyncio.to_thread(mining.history.units))[0]
    files = await asyncio.to_thread(mining.history.files, head.commit)
    tag = await asyncio.to_thread(mining.history.last_tag, head.commit)
    repo, missing = mining.options.repo, tuple[str, ...]()
    for _ in range(MAX_SETUPS):
        try:
            environment = await mining.environments.environment(files, head.day, tag, missing)
        except CannotInstall as error:
            hint = "" if mining.options.setup else "; give a command that installs them (setup)"
            if re.search(r"[Rr]equires-python|satisfy Python|interpreter found", str(error)):
                hint = "; another Python: sandbox=docker, mining.image=docker:python:3.13"
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
            f"{health['why'][:400]}{lfs}{packages}; the tests' output is in {health['log']}; say how packages are "
            "installed (setup) and how tests are called (test)"
        )
    mining.report("environment", 1, 1, health["passed"])
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


async def validate_history(mining: Mining, found: Numbered, newest: Environment) -> list[HistoryTask]:
    """Return the tasks of the history, the newest first, until there are as many as wanted.

    In an update these are the new ones; all that the suite has stay.
    """
    new, old, passed = divide_candidates(found, read_splits(mining.options.out))
    for number, candidate in passed:
        mining.leave(number, Left(candidate.unit, "validate", "not tried, for it is older than a task is"))
    new = spread_candidates(new, mining.options.history)
    tasks = await _validate(mining, new, newest, mining.options.history)
    return [*tasks, *await _validate(mining, old, newest, len(old))] if old else tasks


def spread_candidates(candidates: Numbered, wanted: int) -> Numbered:
    """Return candidates in an order whose beginnings are spread over the history and its modules.

    Spans of the history, as many as tasks are wanted, take turns; in each the candidate comes first whose modules had
    the fewest before it.
    """
    total = len(candidates)
    count = max(1, min(wanted, total))
    spans = [list(candidates[total * n // count : total * (n + 1) // count]) for n in range(count)]
    uses: Counter[str] = Counter()
    order: list[tuple[int, Candidate]] = []
    while any(spans):
        for span in filter(None, spans):
            chosen = min(span, key=lambda item: (max(uses[name] for name in item[1].code), item[0]))
            span.remove(chosen)
            uses.update(chosen[1].code)
            order.append(chosen)
    return order


def divide_candidates(candidates: Numbered, before: Collection[str]) -> tuple[Numbered, Numbered, Numbered]:
    """Return the candidates that are newer than every task of a suite, those that are its tasks, and all others.

    A further task that is older than one that is searched on would be held out, and the other's files hold its fix.

    Args:
        candidates: with their numbers, the newest first.
        before: ids of the tasks that are there.
    """
    is_task = [task_id("history", candidate.unit.commit) in before for _, candidate in candidates]
    first = is_task.index(True) if any(is_task) else len(candidates)
    old = [item for item, known in zip(candidates, is_task, strict=True) if known]
    passed = [item for item, known in zip(candidates[first:], is_task[first:], strict=True) if not known]
    return candidates[:first], old, passed


async def _validate(
    mining: Mining, candidates: Numbered, newest: Environment, wanted: int
) -> list[HistoryTask]:
    tasks, waiting, tried = list[HistoryTask](), list(candidates), 0
    while waiting and len(tasks) < wanted and not mining.bench.is_spent() and not mining.has_spent:
        batch, waiting = waiting[: mining.options.workers], waiting[mining.options.workers :]
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(_validate_unit(mining, item, newest)) for _, item in batch]
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
        mining.report("validate", tried, len(candidates), len(tasks))
    reason = (
        f"{wanted} tasks were found in other units"
        if len(tasks) >= wanted
        else "the model's budget is used up"
        if mining.has_spent
        else "the processor time is used up"
    )
    for number, candidate in waiting:
        mining.leave(number, Left(candidate.unit, "validate", f"not tried, for {reason}"))
    numbers = {candidate.unit.commit: number for number, candidate in candidates}
    return sorted(tasks, key=lambda task: numbers[task.candidate.unit.commit])


async def _validate_unit(
    mining: Mining, candidate: Candidate, newest: Environment
) -> tuple[Validated, Stated | None]:
    """Return the answer on a unit; no statement where the model's budget does not cover it."""
    history, journal, unit = mining.history, mining.journal, candidate.unit
    validated = await validate(candidate, history, mining.environments, newest, mining.bench, journal)
    if validated.reason:
        return validated, Stated()
    change = await asyncio.to_thread(read_change, history, unit, candidate.code)
    message = f"{unit.message}\n\n{await asyncio.to_thread(history.branch_messages, unit)}".strip()
    issue = issue_of(message, mining.issues)
    evidence = make_evidence(message, change, validated.failures, issue)
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


def read_splits(out: Path) -> Mapping[str, str]:
    """Return the split of each task of a mined suite that exists; empty if it does not."""
    return {
        file.parent.name: str(tomllib.loads(file.read_text(encoding="utf-8"))["split"])
        for file in sorted((out / "tasks").glob("*/task.toml"))
    }


async def mine_suite(mining: Mining, engine: SandboxEngine) -> tuple[SuiteBenchmark, Sequence[MinedTask]]:
    """Mine a suite out of an open repository; return it with its tasks.

    Raises:
        UserError: the repository cannot be mined, or nothing of it is a task.
        Infrastructure: a sandbox or the model failed.
    """
    candidates = await scan_history(mining)
    newest = await newest_environment(mining)
    tasks = await validate_history(mining, candidates, newest)
    mined = await asyncio.to_thread(_history_tasks, mining, tasks)
    if mining.bugs:
        mined += await _bug_tasks(mining, newest, tasks, [task.split for task in mined])
    if not mined:
        reasons = ", ".join(f"{reason} ({n})" for reason, n in mining.reasons.most_common(3))
        raise UserError(f"{mining.options.repo}: no task was found: {reasons or 'it has no history'}")
    return await _finish(mining, mined, engine)


def _history_tasks(mining: Mining, tasks: Sequence[HistoryTask]) -> list[MinedTask]:
    settings, before = mining.options.settings, read_splits(mining.options.out)
    newest = round(settings.holdout * len(tasks))
    spdx = read_license(mining.history.files(mining.history.head))[0]
    environments = read_environments(mining.options.work)
    made = []
    for number, task in enumerate(tasks):
        unit, code, validated = task.candidate.unit, task.candidate.code, task.validated
        change, name = read_change(mining.history, unit, code), task_id("history", unit.commit)
        lines = sum(file.lines for file in unit.changes if file.path in code)
        made.append(
            MinedTask(
                id=name,
                # Files of a new task hold the fixes of all older ones, so that it may not be searched on.
                split=before.get(name, "holdout") if before else "holdout" if number < newest else "search",
                workspace=with_generated(change.workspace, environments[validated.environment]),
                start=b"",
                fix=change.fix,
                hidden=change.hidden,
                tests=_choose_tests(mining.bench.tests_of(change), validated, task.statement),
                environment=validated.environment,
                statement=task.statement.text,
                difficulty="hard" if lines >= HARD_LINES else "easy" if lines <= EASY_LINES else "medium",
                provenance=Provenance(
                    "history",
                    unit.commit,
                    unit.day,
                    spdx,
                    "a change of the repository's own",
                    settings.seed,
                    code,
                ),
            )
        )
    return made


def _choose_tests(tests: TestSpec, validated: Validated, stated: Stated) -> TestSpec:
    chosen = stated.choose(validated.fail_to_pass)
    return replace(tests, fail_to_pass=chosen, pass_to_pass=validated.pass_to_pass)


async def _bug_tasks(
    mining: Mining, newest: Environment, tasks: Sequence[HistoryTask], splits: Sequence[str]
) -> list[MinedTask]:
    """Put bugs into the commit before the first holdout task, so that no workspace shows the fix of one."""
    held = [task for task, split in zip(tasks, splits, strict=True) if split == "holdout"]
    base = held[-1].candidate.unit.parent if held else mining.history.head
    files = await asyncio.to_thread(mining.history.files, base)
    unit = next(unit for unit in await asyncio.to_thread(mining.history.units) if unit.commit == base)
    ground: Ground | str = "no environment"
    for environment in await _environments(mining, newest, unit):
        place = mining.options.work / "coverage" / f"{base[:12]}-{environment.name}"
        key = f"ground {base} {environment.name}"
        ground = await prepare_ground(files, environment, mining.bench, (mining.journal, key), place)
        if isinstance(ground, Ground):
            break
    if isinstance(ground, str):
        mining.lines["bugs"] = json.dumps({"commit": base, "stage": "bugs", "reason": ground})
        mining.reasons[f"bugs: {ground}"] += 1
        return []
    made: list[MinedTask] = []
    tried = 0
    seed = mining.options.settings.seed
    async for bug, placed in place_bugs(ground, mining.bugs, mining.bench, mining.journal, seed):
        tried += 1
        task = await _bug_task(mining, ground, (bug, placed), unit)
        if isinstance(task, MinedTask):
            made.append(task)
        else:
            where = [f"{site.path}:{site.line}" for site in bug.sites]
            line = {"bug": bug_id(bug), "commit": base, "where": where, "stage": "bugs", "reason": task}
            mining.lines[f"zbug {tried:06}"] = json.dumps(line)
            mining.reasons[f"bugs: {task.partition(':')[0]}"] += 1
        mining.report("bugs", tried, TRIES * mining.bugs, len(made))
    return made


async def _environments(mining: Mining, newest: Environment, unit: Unit) -> Sequence[Environment]:
    files = await asyncio.to_thread(mining.history.files, unit.commit)
    try:
        tag = await asyncio.to_thread(mining.history.last_tag, unit.commit)
        own = await mining.environments.environment(files, unit.day, tag)
    except CannotInstall:
        return [newest]
    return [newest] if own.name == newest.name else [own, newest]


async def _bug_task(
    mining: Mining, ground: Ground, tried: tuple[Bug, Validated], unit: Unit
) -> MinedTask | str:
    bug, placed = tried
    if placed.reason:
        return placed.reason
    start, change = await asyncio.to_thread(bug_change, ground, bug, placed.fail_to_pass)
    stated = await state_task(mining, bug_id(bug), make_evidence("", change, placed.failures))
    if stated is None:
        return "not tried, for the model's budget is used up"
    if stated.reason:
        return stated.reason
    kind = "bug-pair" if len(bug.sites) > 1 else "bug"
    recipe = " and ".join(f"{site.kind.value} in {site.path}" for site in bug.sites)
    spdx, modules = read_license(ground.files)[0], tuple(sorted({site.path for site in bug.sites}))
    return MinedTask(
        id=task_id("bug", bug_id(bug)),
        split="search",
        workspace=ground.files,
        start=start,
        fix=change.fix,
        hidden=change.hidden,
        tests=_choose_tests(mining.bench.tests(ground.files), placed, stated),
        environment=ground.environment.name,
        statement=stated.text,
        difficulty="easy" if kind == "bug" else "medium",
        provenance=Provenance(
            kind, unit.commit, unit.day, spdx, recipe, mining.options.settings.seed, modules
        ),
    )


async def _finish(
    mining: Mining, made: Sequence[MinedTask], engine: SandboxEngine
) -> tuple[SuiteBenchmark, Sequence[MinedTask]]:
    """Write the suite, drop what does not verify, and put it in its place."""
    options, draft = mining.options, mining.options.work / "draft"
    kept = list(made)
    while True:
        mining.report("write")
        shutil.rmtree(draft, ignore_errors=True)
        await asyncio.to_thread(_write, mining, draft, kept)
        suite = SuiteBenchmark(draft, engine)
        unsound = await _verify(mining, suite, [task.id for task in kept])
        if not unsound:
            break
        for name, defect in unsound.items():
            _leave_task(mining.lines, name, defect)
            mining.reasons[f"verify: {defect.partition(':')[0]}"] += 1
        kept = [task for task in kept if task.id not in unsound]
        if not kept:
            raise UserError(f"{options.repo}: no task is sound: {next(iter(unsound.values()))}")
    await asyncio.to_thread(_replace_suite, draft, options.out)
    return suite, kept


def _replace_suite(draft: Path, out: Path) -> None:
    """Put a finished suite in the place of the one that stands there, if any."""
    old = out.with_name(f"{out.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        out.rename(old)
    draft.rename(out)
    shutil.rmtree(old, ignore_errors=True)


def _leave_task(lines: dict[str, str], name: str, defect: str) -> None:
    """Note a task that is not sound, in the place of its unit."""
    keys = [key for key, line in lines.items() if json.loads(line).get("task") == name]
    key = keys[0] if keys else f"zverify {name}"
    about = json.loads(lines[key]) if keys else {"task": name}
    lines[key] = json.dumps({**about, "stage": "verify", "reason": defect}, ensure_ascii=False)


async def _verify(mining: Mining, suite: SuiteBenchmark, names: Sequence[str]) -> Mapping[str, str]:
    """Return the tasks that are not sound, with a defect; each task is verified once."""
    slots, done, sound = asyncio.Semaphore(mining.options.workers), 0, 0

    async def verify(name: str) -> str:
        nonlocal done, sound
        key = f"verify {name}"
        async with slots:
            defect = mining.journal.get(key)
            if defect is None:
                result = await verify_with_notes(suite, TaskId(name), mining.bench.labels)
                defect = next(iter(result.defects), "")
                mining.journal.put(key, defect)
        done += 1
        sound += not defect
        mining.report("verify", done, len(names), sound)
        return str(defect)

    mining.report("verify", 0, len(names))
    async with asyncio.TaskGroup() as group:
        running = {name: group.create_task(verify(name)) for name in names}
    return {name: task.result() for name, task in running.items() if task.result()}


def _write(mining: Mining, draft: Path, tasks: Sequence[MinedTask]) -> None:
    folder = mining.history.folder.resolve()
    name = (folder.parent.name if folder.name in (".git", "repo") else folder.name).removesuffix(".git")
    name = re.sub(r"[/+: ]", "-", name)
    spdx, text = read_license(mining.history.files(mining.history.head))
    write_suite(
        draft,
        {
            "name": name,
            "description": f"tasks mined out of the history and the code of {name}",
            "license": spdx or "unknown",
            "defaults": {
                "image": mining.bench.image,
                "timeout_s": AGENT_TIMEOUT_S,
                "test_timeout_s": TEST_TIMEOUT_S,
            },
        },
        tasks,
        license_text=text,
        environments=mining.options.work / FOLDER,
        units=mining.lines,
    )
