"""A suite mined out of a repository: the stages in their order, resumable at any point."""

import asyncio
import hashlib
import shutil
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from dgm.benchmarks.calibration import FILE as CALIBRATION
from dgm.benchmarks.environments import Environment
from dgm.benchmarks.grade import Survey
from dgm.benchmarks.mining.declarations import read_declarations
from dgm.benchmarks.mining.epochs import Epochs
from dgm.benchmarks.mining.go_calls import module_name
from dgm.benchmarks.mining.history import History, Unit
from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.jvm_packages import check_maven
from dgm.benchmarks.mining.languages import Language
from dgm.benchmarks.mining.miner import Bench, Validated, read_change, validate
from dgm.benchmarks.mining.packages import SandboxPython
from dgm.benchmarks.mining.projects import PROJECTS, count_files
from dgm.benchmarks.mining.scan import Candidate, Left, scan
from dgm.benchmarks.mining.script_calls import read_manifest
from dgm.benchmarks.mining.statements import Ask
from dgm.benchmarks.mining.stating import Stated, make_evidence, state
from dgm.benchmarks.mining.stored_environments import CannotInstall
from dgm.benchmarks.mining.threads import run_in_thread
from dgm.benchmarks.mining.validation import find_cause
from dgm.benchmarks.mining.writing import left_line, unit_line
from dgm.domain import Snapshot
from dgm.errors import UserError
from dgm.processes import check_given_up
from dgm.protocols import SandboxEngine
from dgm.sandboxes.building import SandboxBuilder
from dgm.sessions.mining_checks import check_counts, check_folders, check_reports, parse_since
from dgm.sessions.mining_options import USUAL_BUGS, Funnel, MiningOptions, Tell
from dgm.this_machine import machine_name

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
    epochs: Epochs
    bench: Bench
    tell: Tell
    language: Language = Language.PYTHON
    ask: Ask | None = None
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
        return PROJECTS[self.language].prepare(files)

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
    if language is Language.JVM:
        files = await asyncio.to_thread(history.files, history.head)
        check_maven(options.repo, files, options.test, options.setup)
    labels = {"dgm.run": f"mine-{uuid.uuid4().hex}", "dgm.host": machine_name()}
    project = PROJECTS[language]
    pytest_words = pytest_options(options.test) if PROJECTS[language].call is None else ()
    python = SandboxPython(*await project.ask(engine, project.image, labels))
    kept = {
        "repository": str(options.repo.resolve()),
        f"{project.program} in the sandbox": f"{python.version} {python.machine}",
        "--setup": options.setup,
        "--test": options.test,
        **({"--report": " ".join(options.report)} if options.report else {}),
        "--statement-model": options.statement_model,
        "seed": options.seed,
    }
    journal = MiningJournal(options.work / "journal.jsonl", kept)
    builder = SandboxBuilder(engine, labels, project.builds_in or project.image)
    epochs = project.epochs(history, options.work, python, journal, builder, options.setup)
    limit = float("inf") if options.processor_hours is None else options.processor_hours * 3600
    bench = Bench(engine, labels, project.image, limit_s=limit)
    if project.call is None:
        bench.options = pytest_words
    else:
        more = {"reports": options.report} if project.by_reports else {}
        bench.call = partial(project.call, given=options.test, **more)
    try:
        yield Mining(options, history, journal, epochs, bench, tell, language, ask)
    finally:
        journal.close()
        await engine.reap(labels)


def find_language(history: History, options: MiningOptions) -> Language:
    """Return the language to mine: that which is asked for, else the one of most test files, and of most code.

    Raises:
        UserError: the repository has no code in it, or faults are asked for in a language without.
    """
    counts = count_files(history.files(history.head))
    found = options.language or max(counts, key=lambda one: counts[one])
    if not counts[found][1]:
        known = options.language or " or ".join(PROJECTS)
        raise UserError(f"{options.repo}: no code in {known} at its newest commit")
    if options.report and not PROJECTS[found].by_reports:
        known = " and ".join(one for one, project in PROJECTS.items() if project.by_reports)
        raise UserError(f"--report {options.report[0]}: is for {known}, and this is {found}; leave it out")
    if options.bugs and found is not Language.PYTHON:
        raise UserError(
            f"--bugs {options.bugs}: faults are put into Python only, and this is {found}; leave it out"
        )
    return found


def pytest_options(command: str) -> tuple[str, ...]:
    """Return the options of a command that calls pytest.

    Raises:
        UserError: it is not such a command.
    """
    import shlex

    if not command:
        return ()
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UserError(f"--test {command!r}: {error}") from error
    starts = (["pytest"], ["python", "-m", "pytest"], ["python3", "-m", "pytest"], ["py.test"])
    start = next((each for each in starts if words[: len(each)] == each), None)
    if start is None:
        raise UserError(f"--test {command!r}: must call pytest, as in --test 'pytest -m \"not slow\"'")
    return tuple(words[len(start) :])


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
        mining.epochs.know_tests(units)
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


async def newest_environment(mining: Mining) -> Environment:
    """Return the environment of the newest commit, in which most of its tests must pass.

    Raises:
        UserError: it cannot be built, or fewer pass.
    """
    mining.tell(Funnel("environment"))
    head = (await asyncio.to_thread(mining.history.units))[0]
    files = await asyncio.to_thread(mining.history.files, head.commit)
    repo = mining.options.repo
    try:
        environment = await mining.epochs.environment(files, head.day)
    except CannotInstall as error:
        hint = "" if mining.options.setup else " (give a command with --setup)"
        raise UserError(f"{repo}: its packages cannot be installed: {error}{hint}") from error
    key = f"health {head.commit}"
    known = mining.journal.get(key)
    if known is None:
        bench = mining.bench
        try:
            whole = bench.whole(mining.workspace(files), environment)
        except ValueError as error:
            raise UserError(f"{repo}: {error}") from error
        run = await bench.run(whole, b"", Survey())
        broken = [f"{name}: {_last_line(said)}" for name, said in run.broken.items()]
        log = run.log.decode("utf-8", "replace")
        known = {
            "passed": sum(outcome == "passed" for outcome in run.outcomes.values()),
            "failed": sum(outcome == "failed" for outcome in run.outcomes.values()) + len(run.broken),
            "why": next(
                iter(
                    [
                        *run.foreign,
                        *broken,
                        *([] if run.outcomes else [find_cause(log)]),
                        run.problem or _last_line(log),
                    ]
                )
            ),
        }
        if known["passed"]:
            mining.journal.put(key, known)
    ran = known["passed"] + known["failed"]
    if not ran or known["passed"] < HEALTHY * ran:
        remark = mining.epochs.remarks.get(environment.name)
        packages = f"; its packages: {remark}" if remark else ""
        raise UserError(
            f"{repo}: {known['passed']} of {ran} tests pass at its newest commit, and {HEALTHY:.0%} are needed: "
            f"{known['why'][:200]}{packages} (packages can be given with --setup, the call of the tests with --test)"
        )
    mining.tell(Funnel("environment", 1, 1, known["passed"], mining.bench.processor_s))
    return environment


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]


async def validate_history(
    mining: Mining, found: Sequence[tuple[int, Candidate]], newest: Environment
) -> list[HistoryTask]:
    """Return the tasks of the history, the newest first, until there are as many as wanted.

    In an update these are the new ones; all that the suite has stay.
    """
    new, old, passed = divide_candidates(found, read_splits(mining.options.out))
    for number, candidate in passed:
        mining.leave(number, Left(candidate.unit, "validate", "not tried, for it is older than a task is"))
    tasks = await _validate(mining, new, newest, mining.options.history)
    return [*tasks, *await _validate(mining, old, newest, len(old))] if old else tasks


Numbered = Sequence[tuple[int, Candidate]]


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
    while waiting and len(tasks) < wanted and not mining.bench.is_spent():
        batch, waiting = waiting[: mining.options.workers], waiting[mining.options.workers :]
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(_one_unit(mining, one, newest)) for _, one in batch]
        for (number, candidate), done in zip(batch, running, strict=True):
            validated, stated = done.result()
            tried += 1
            if len(tasks) >= wanted:
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
        "the processor time is used up"
        if len(tasks) < wanted
        else f"{wanted} tasks were found in newer units"
    )
    for number, candidate in waiting:
        mining.leave(number, Left(candidate.unit, "validate", f"not tried, for {why}"))
    return tasks


async def _one_unit(mining: Mining, candidate: Candidate, newest: Environment) -> tuple[Validated, Stated]:
    history, journal = mining.history, mining.journal
    validated = await validate(candidate, history, mining.epochs, newest, mining.bench, journal)
    if validated.reason:
        return validated, Stated()
    change = await asyncio.to_thread(read_change, history, candidate)
    unit = candidate.unit
    message = f"{unit.message}\n\n{await asyncio.to_thread(history.branch_messages, unit)}".strip()
    evidence = make_evidence(message, change, validated.failures, change.workspace)
    return validated, await state(unit.commit, evidence, journal, mining.ask)


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


def suite_name(history: History, newest: Unit) -> str:
    """Return the project's name, else the folder's."""
    files = history.files(newest.commit)
    package = read_manifest(files).get("name")
    declared = read_declarations(files).project or (package if isinstance(package, str) else "")
    declared = declared or module_name(files)
    folder = history.folder.resolve()
    name = declared or (folder.parent.name if folder.name in (".git", "repo") else folder.name).removesuffix(
        ".git"
    )
    return "".join("-" if each in "/+: " else each for each in name.lstrip("@"))
