"""A suite of validated changes and of faults put in: divided by time, written, verified, and put in its place."""

import asyncio
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dgm.benchmarks.environments import FOLDER, Environment, read_environments
from dgm.benchmarks.mining.bugs import TRIES, Bug, Ground, PlacedBug, bug_files, place_bugs, prepare_ground
from dgm.benchmarks.mining.changes import read_change
from dgm.benchmarks.mining.environment import CannotInstall, with_generated
from dgm.benchmarks.mining.history import History, Unit
from dgm.benchmarks.mining.session import (
    HistoryTask,
    Mining,
    newest_environment,
    read_splits,
    scan_history,
    state_task,
    task_id,
    validate_history,
)
from dgm.benchmarks.mining.statements import make_evidence
from dgm.benchmarks.mining.validation import AGENT_TIMEOUT_S, TEST_TIMEOUT_S
from dgm.benchmarks.mining.writing import MinedTask, SuiteFacts, read_license, write_suite
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.test_spec import Provenance
from dgm.benchmarks.verification import verify_with_notes
from dgm.domain import TaskId
from dgm.errors import UserError
from dgm.protocols import SandboxEngine

HARD_LINES, EASY_LINES = 40, 8
"""Changed lines of a fix from which a task counts as hard, and up to which as easy."""


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
    options, before = mining.options, read_splits(mining.options.out)
    newest = round(options.settings.holdout * len(tasks))
    spdx = read_license(mining.history.files(mining.history.head))[0]
    environments = read_environments(options.work)
    made = []
    for number, task in enumerate(tasks):
        unit, change = (
            task.candidate.unit,
            read_change(mining.history, task.candidate.unit, task.candidate.code),
        )
        name = task_id("history", unit.commit)
        # Files of a new task hold the fixes of all older ones, so that it may not be searched on.
        split = before.get(name, "holdout") if before else "holdout" if number < newest else "search"
        lines = sum(file.lines for file in unit.changes if file.path in task.candidate.code)
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
                    "history", unit.commit, unit.day, spdx, "a change of the repository's own", options.settings.seed,
                    task.candidate.code,
                ),
            )
        )  # fmt: skip
    return made


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
    async for bug, placed in place_bugs(
        ground, mining.bugs, mining.bench, mining.journal, mining.options.settings.seed
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
        mining.report("bugs", tried, total, len(made))
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
            mining.options.settings.seed,
            tuple(sorted({site.path for site in bug.sites})),
        ),
    )


async def _finish(
    mining: Mining, made: Sequence[MinedTask], engine: SandboxEngine
) -> tuple[SuiteBenchmark, Sequence[MinedTask]]:
    """Write the suite, drop what does not verify, and put it in its place."""
    options, draft = mining.options, mining.options.work / "draft"
    facts = await asyncio.to_thread(_suite_facts, mining.history, mining.bench.image)
    kept = list(made)
    while True:
        mining.report("write")
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


def _suite_facts(history: History, image: str) -> SuiteFacts:
    newest = history.units()[0]
    folder = history.folder.resolve()
    name = (folder.parent.name if folder.name in (".git", "repo") else folder.name).removesuffix(".git")
    name = "".join("-" if letter in "/+: " else letter for letter in name)
    spdx, text = read_license(history.files(newest.commit))
    return SuiteFacts(
        name, f"tasks mined out of the history and the code of {name}", spdx or "unknown", text, AGENT_TIMEOUT_S,
        TEST_TIMEOUT_S, image,
    )  # fmt: skip
