"""The end of a mining: its tasks divided by time, written, verified, and put in their place."""

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dgm.benchmarks.environments import FOLDER, Environment, read_environments
from dgm.benchmarks.mining.bugs import TRIES, Bug, Ground, PlacedBug, bug_files, place_bugs, prepare_ground
from dgm.benchmarks.mining.changes import read_change
from dgm.benchmarks.mining.environment import CannotInstall, with_generated
from dgm.benchmarks.mining.history import History, Unit
from dgm.benchmarks.mining.statements import Ask, make_evidence
from dgm.benchmarks.mining.validation import AGENT_TIMEOUT_S, TEST_TIMEOUT_S
from dgm.benchmarks.mining.writing import MinedTask, SuiteFacts, read_license, write_suite
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.test_spec import Provenance
from dgm.benchmarks.verification import verify_with_notes
from dgm.domain import TaskId
from dgm.errors import UserError
from dgm.protocols import SandboxEngine
from dgm.sessions.mining import (
    HistoryTask,
    Mining,
    holdout_count,
    newest_environment,
    open_mining,
    read_splits,
    replace_suite,
    scan_history,
    state_task,
    suite_name,
    task_id,
    validate_history,
)
from dgm.sessions.mining_options import Funnel, MiningOptions, Tell

HARD_LINES, EASY_LINES = 40, 8
"""Changed lines of a fix from which a task counts as hard, and up to which as easy."""


@dataclass(frozen=True, slots=True)
class MiningReport:
    """Result of a mining."""

    suite: Path
    version: str
    tasks: Mapping[str, int]
    """Kind of task → number."""
    splits: Mapping[str, int]
    units: int
    candidates: int
    left: Mapping[str, int]
    """Why units, bugs and tasks were left out → number, the most frequent first."""
    processor_s: float
    packages: Sequence[str] = ()
    """How the packages that were installed differ from what commits declare, a line each."""

    def record(self) -> Mapping[str, Any]:
        """Return the document that ``dgm benchmark mine --json`` prints."""
        return {
            "suite": str(self.suite),
            "version": self.version,
            "tasks": dict(self.tasks),
            "splits": dict(self.splits),
            "units": self.units,
            "candidates": self.candidates,
            "left_out": dict(self.left),
            "processor_s": round(self.processor_s, 1),
            "packages": list(self.packages),
        }


async def mine(
    options: MiningOptions, engine: SandboxEngine, tell: Tell, ask: Ask | None = None
) -> MiningReport:
    """Mine a suite out of a repository; the same call goes on where it was ended.

    Args:
        options: what is mined.
        engine: opens the sandboxes.
        tell: is called with the progress.
        ask: asks a model for statements; None: they show the failing tests.

    Raises:
        UserError: the repository cannot be mined, or nothing of it is a task.
        Infrastructure: a sandbox or the model failed.
    """
    async with open_mining(options, engine, tell, ask) as mining:
        found = await scan_history(mining)
        newest = await newest_environment(mining)
        tasks = await validate_history(mining, found, newest)
        made = await asyncio.to_thread(_history_tasks, mining, tasks)
        if mining.bugs:
            made += await _bug_tasks(mining, newest, tasks, [task.split for task in made])
        if not made:
            reasons = ", ".join(f"{why} ({n})" for why, n in mining.reasons.most_common(3))
            raise UserError(f"{options.repo}: no task was found: {reasons or 'it has no history'}")
        return await _finish(mining, made, engine)


def _history_tasks(mining: Mining, tasks: Sequence[HistoryTask]) -> list[MinedTask]:
    options, before = mining.options, read_splits(mining.options.out)
    newest = holdout_count(options, len(tasks))
    spdx = read_license(mining.history.files(mining.history.head))[0]
    environments = read_environments(options.work)
    made = []
    for number, task in enumerate(tasks):
        unit, change = task.found.unit, read_change(mining.history, task.found.unit, task.found.code)
        name = task_id("history", unit.commit)
        # Files of a new task hold the fixes of all older ones, so that it may not be searched on.
        split = before.get(name, "holdout") if before else "holdout" if number < newest else "search"
        lines = sum(one.lines for one in unit.changes if one.path in task.found.code)
        tests = replace(
            mining.bench.tests_of(change),
            fail_to_pass=task.statement.choose(task.validated.fail_to_pass),
            pass_to_pass=task.validated.pass_to_pass,
        )
        made.append(
            MinedTask(
                id=name,
                split=split,
                workspace=with_generated(change.workspace, environments[task.validated.environment]),
                start=b"",
                fix=change.fix,
                hidden=change.hidden,
                tests=tests,
                environment=task.validated.environment,
                statement=task.statement.text,
                difficulty="hard" if lines >= HARD_LINES else "easy" if lines <= EASY_LINES else "medium",
                provenance=Provenance(
                    "history", unit.commit, unit.day, spdx, "a change of the repository's own", options.seed,
                    task.found.code,
                ),
            )
        )  # fmt: skip
    return made


async def _bug_tasks(
    mining: Mining, newest: Environment, tasks: Sequence[HistoryTask], splits: Sequence[str]
) -> list[MinedTask]:
    """Put bugs into the commit before the first holdout task, so that no workspace shows the fix of one."""
    held = [task for task, split in zip(tasks, splits, strict=True) if split == "holdout"]
    base = held[-1].found.unit.parent if held else mining.history.head
    files = await asyncio.to_thread(mining.history.files, base)
    unit = next(one for one in await asyncio.to_thread(mining.history.units) if one.commit == base)
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
    async for bug, placed in place_bugs(
        ground, mining.bugs, mining.bench, mining.journal, mining.options.seed
    ):
        tried += 1
        task = await _bug_task(mining, ground, (bug, placed), unit)
        if isinstance(task, MinedTask):
            made.append(task)
        else:
            where = [f"{site.path}:{site.line}" for site in bug.sites]
            line = {"bug": placed.id, "commit": base, "where": where, "stage": "bugs", "reason": task}
            mining.lines[f"zbug {tried:06}"] = json.dumps(line)
            mining.reasons[f"bugs: {task.partition(':')[0]}"] += 1
        total = TRIES * mining.bugs
        mining.tell(Funnel("bugs", tried, total, len(made), mining.bench.processor_s))
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
    mining: Mining, ground: Ground, tried: tuple[Bug, PlacedBug], unit: Unit
) -> MinedTask | str:
    bug, placed = tried
    if placed.reason:
        return placed.reason
    made = await asyncio.to_thread(bug_files, ground, bug, placed)
    evidence = make_evidence("", made, placed.failures, made.workspace)
    stated = await state_task(mining, placed.id, evidence)
    if stated is None:
        return "not tried, for the model's budget is used up"
    if stated.reason:
        return stated.reason
    pair = len(bug.sites) > 1
    recipe = " and ".join(f"{site.kind.value} in {site.path}" for site in bug.sites)
    spdx = read_license(ground.files)[0]
    return MinedTask(
        id=task_id("bug", placed.id),
        split="search",
        workspace=ground.files,
        start=made.start,
        fix=made.fix,
        hidden=made.hidden,
        tests=replace(
            mining.bench.tests(ground.files),
            fail_to_pass=stated.choose(placed.fail_to_pass),
            pass_to_pass=placed.pass_to_pass,
        ),
        environment=ground.environment.name,
        statement=stated.text,
        difficulty="medium" if pair else "easy",
        provenance=Provenance(
            "bug-pair" if pair else "bug",
            unit.commit,
            unit.day,
            spdx,
            recipe,
            mining.options.seed,
            tuple(sorted({site.path for site in bug.sites})),
        ),
    )


async def _finish(mining: Mining, made: Sequence[MinedTask], engine: SandboxEngine) -> MiningReport:
    """Write the suite, drop what does not verify, and put it in its place."""
    options, draft = mining.options, mining.options.work / "draft"
    facts = await asyncio.to_thread(_suite_facts, mining.history, mining.bench.image)
    kept = list(made)
    while True:
        mining.tell(Funnel("write", 0, 1, len(kept), mining.bench.processor_s))
        shutil.rmtree(draft, ignore_errors=True)
        await asyncio.to_thread(write_suite, draft, facts, kept, options.work / FOLDER, mining.lines)
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
    await asyncio.to_thread(replace_suite, draft, options.out)
    return MiningReport(
        options.out,
        suite.version,
        dict(sorted(Counter(task.provenance.kind for task in kept).items())),
        dict(sorted(Counter(task.split for task in kept).items())),
        mining.units,
        mining.candidates,
        dict(mining.reasons.most_common()),
        mining.bench.processor_s,
        sorted({*mining.environments.remarks.values()} - {""}),
    )


def _leave_task(lines: dict[str, str], name: str, defect: str) -> None:
    """Note a task that is not sound, in the place of its unit."""
    keys = [key for key, line in lines.items() if json.loads(line).get("task") == name]
    key = keys[0] if keys else f"zverify {name}"
    about = json.loads(lines[key]) if keys else {"task": name}
    lines[key] = json.dumps({**about, "stage": "verify", "reason": defect}, ensure_ascii=False)


async def _verify(mining: Mining, suite: SuiteBenchmark, names: Sequence[str]) -> Mapping[str, str]:
    """Return the tasks that are not sound, with a defect; each task is verified once."""
    slots, done, sound = asyncio.Semaphore(mining.options.workers), 0, 0

    async def one(name: str) -> str:
        nonlocal done, sound
        key = f"verify {name}"
        async with slots:
            defect = mining.journal.get(key)
            if defect is None:
                said = await verify_with_notes(suite, TaskId(name), mining.bench.labels)
                defect = next(iter(said.defects), "")
                mining.journal.put(key, defect)
        done += 1
        sound += not defect
        mining.tell(Funnel("verify", done, len(names), sound, mining.bench.processor_s))
        return str(defect)

    async with asyncio.TaskGroup() as group:
        running = {name: group.create_task(one(name)) for name in names}
    return {name: task.result() for name, task in running.items() if task.result()}


def _suite_facts(history: History, image: str) -> SuiteFacts:
    newest = history.units()[0]
    name = suite_name(history)
    spdx, text = read_license(history.files(newest.commit))
    return SuiteFacts(
        name, f"tasks mined out of the history and the code of {name}", spdx or "unknown", text, AGENT_TIMEOUT_S,
        TEST_TIMEOUT_S, image,
    )  # fmt: skip


def default_out(repo: Path) -> Path:
    """Return the suite's folder where none is named: beside the user, under the repository's name."""
    name = repo.resolve().name.removesuffix(".git") or "repository"
    return Path(f"{name}-suite")
