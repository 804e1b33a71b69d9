"""Assembly of a run's parts from its settings; the only module that knows them all."""

import logging
import platform
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from dgm import __version__, plugins
from dgm.analysis.budgets import open_goals, refuse_unreachable
from dgm.analysis.objective import METRICS, metrics_of, objective_of, record_metrics
from dgm.archive.events import Event, Recorded, RunStarted
from dgm.archive.lock import machine_name
from dgm.archive.run import Run
from dgm.benchmarks.grader_version import differ_in_grader, name_grader
from dgm.benchmarks.opening import check_images, open_suite, statement_of
from dgm.benchmarks.opening import parts as benchmark_parts
from dgm.config import CurriculumSettings, Settings
from dgm.domain import SEED, ActionId, Budget, Split, TaskId
from dgm.errors import UserError
from dgm.gateway.journal import RunJournal
from dgm.gateway.ledger import Ledger
from dgm.gateway.server import LendingRules
from dgm.meta import operators
from dgm.meta.contract import OWN_EDITOR, read_contract
from dgm.meta.operators import freeze_editor, load_editor, open_operators
from dgm.meta.prompts import KEY as PROMPTS
from dgm.meta.prompts import Prompts, load_frozen, load_shipped
from dgm.meta.seeds import freeze_origin, read_seed, read_seeds, seeds_of
from dgm.models.builtin import DryRun
from dgm.models.choose import OFFLINE, OFFLINE_VERSION, all_names, drawing_of, open_models
from dgm.policies.curriculum import choose_tasks, refuse_misfit
from dgm.policies.registry import POLICIES, open_policy, refuse_idle
from dgm.protocols import Benchmark, LentModel, Needs, Operator, Policy, SandboxEngine
from dgm.sandboxes.choose import choose, publish_live
from dgm.sandboxes.engine_address import note_engine
from dgm.sandboxes.threads import allow_threads
from dgm.search.loop import GatewayAvailability, LoopHooks, Search
from dgm.search.prepare import AgentIndex, RunController
from dgm.search.start import check_budget_ends_run, prices_of, settings_of
from dgm.worker.session import LentModels, call_limits, open_session
from dgm.worker.worker import Worker, commit_seed

log = logging.getLogger(__name__)

OnEvent = Callable[[Recorded], None]

IMAGE = "python"
"""Recipe of the sandboxes in which agents are checked and improve themselves."""
THREADS_PER_WORKER = 2
"""Blocking calls of one action at once, such as those that open or remove a sandbox."""
OBJECTS = "objects"
"""Key of a run's configuration: kind → reference → version of what a program passed as an object."""


@dataclass(frozen=True, slots=True)
class RunParts:
    """The sandbox engine and the benchmark of a run."""

    engine: SandboxEngine
    benchmark: Benchmark


def parts_of(settings: Settings) -> RunParts:
    """Return the sandbox engine and the benchmark that the settings name.

    Raises:
        UserError: there is no such engine or suite on this machine, or an image of a task lacks a program.
    """
    engine = choose(settings.sandbox, settings)
    benchmark = open_suite(settings.benchmark, engine, settings.benchmarks, settings.grading)
    check_images(benchmark)
    return RunParts(engine, benchmark)


def read_statement(run: Run, task: TaskId) -> str | None:
    """Return a task's problem as agents get it, from the run's benchmark; start and fetch nothing.

    None if the benchmark is not on this machine, has changed since the run began, or has no such task.
    """
    settings, version = settings_of(run), run.config["versions"]["benchmark"]
    return statement_of(settings.benchmark, version, task, settings.benchmarks)


def check_settings(settings: Settings) -> None:
    """Check the settings of a new run before any model is called.

    Raises:
        UserError: there is no such policy or operator, a setting would have no effect, the seed is negative, or
            the seed agent is not an agent.
    """
    # The setting itself has no bound, because runs begun without one must stay readable.
    if settings.seed < 0:
        raise UserError(f"seed = {settings.seed}: expected a number from 0 on")
    open_policy(settings, needs_of(settings))
    refuse_idle(settings.policy)
    read_seeds(settings)


def check_goals(budget: Budget, settings: Settings, parts: RunParts) -> None:
    """Make sure that the goals of a session can be reached.

    Raises:
        UserError: one cannot.
    """
    objective_of(settings, metrics_of(parts.benchmark, settings))
    if settings.promotion.every and not parts.benchmark.tasks(Split.PROMOTION):
        raise UserError(
            f"benchmark {parts.benchmark.name} has no promotion tasks", argument="promotion.every"
        )
    refuse_misfit(settings, budget, len(parts.benchmark.tasks(Split.SEARCH)))
    # A third-party policy may try a task more than once.
    if settings.policy.name in POLICIES:
        refuse_unreachable(budget, len(parts.benchmark.tasks(Split.SEARCH)))


def create(folder: Path, settings: Settings, parts: RunParts) -> Run:
    """Create a new run with its seed agent as agent 0, and further roots as the next ones.

    Raises:
        UserError: the seed agent cannot be used, the budget can never run out, or the folder exists.
    """
    check_settings(settings)
    prices_of(settings)
    check_budget_ends_run(settings.budget.budget(), settings)
    objective_of(settings, metrics_of(parts.benchmark, settings))
    seeds = read_seeds(settings)
    edited = [source for _, source, _ in seeds if read_contract(source).editor != OWN_EDITOR]
    editor = freeze_editor(edited[0]) if edited else {}
    record = {**record_of(folder, settings, parts), **editor, **freeze_origin(seeds[0][2])}
    run = Run.create(folder, record)
    run.append(_run_started_event(settings, settings.budget.budget(), parts.benchmark, resumed=False))
    for name, source, _ in seeds:
        run.append(run.birth(commit_seed(run, source, name if len(seeds) > 1 else ""), ActionId(0)))
    return run


def _finish_creation(run: Run, settings: Settings, parts: RunParts) -> None:
    """Finish creating a run whose creator died: append RunStarted and the births of roots if missing."""
    if run.tree.seq == 0:
        run.append(_run_started_event(settings, settings.budget.budget(), parts.benchmark, resumed=False))
    names = seeds_of(settings)
    for name in names[len(run.tree.agents) :]:
        run.append(run.birth(commit_seed(run, read_seed(name), name if len(names) > 1 else ""), ActionId(0)))


def operators_of(run: Run, settings: Settings) -> Mapping[str, Operator]:
    """Return the operators of a run, with the prompts that it was begun with.

    Raises:
        UserError: one is a plug-in that is not installed.
        ArchiveCorrupt: the prompts are not what dgm wrote.
    """
    where = str(run.folder / "run.json")
    return open_operators(
        settings, IMAGE, load_frozen(run.config, where), editor=load_editor(run.config, where)
    )


def needs_of(settings: Settings) -> Mapping[str, Needs]:
    """Return what the operators named in the settings need of the archive, by name.

    Raises:
        UserError: one is a plug-in that is not installed.
    """
    return operators.needs_of(open_operators(settings, IMAGE, Prompts(load_shipped())))


def budget_of(run: Run, settings: Settings) -> Budget:
    """Return the budget of the run's last session, or the settings' budget if it has had none."""
    return run.tree.budget if run.tree.seq else settings.budget.budget()


def record_resume(run: Run, budget: Budget, parts: RunParts, mended: Sequence[Event] = ()) -> None:
    """Record that a run continues, within ``budget``.

    Args:
        run: open to write.
        budget: of this session.
        parts: of the run.
        mended: events of what changes from here on; they are appended together with the new session.
    """
    warn_changed_objects(run)
    settings = settings_of(run)
    began = run.config["versions"].get(OFFLINE, "1")
    if OFFLINE in all_names(settings) and began != OFFLINE_VERSION:
        text = (
            "%s: began with version %s of the offline model and goes on with %s; their results do not compare"
        )
        log.warning(text, run.name, began, OFFLINE_VERSION)
    _finish_creation(run, settings, parts)
    # After the start of the session, because the time since the last session belongs to no session.
    started = _run_started_event(settings, budget, parts.benchmark, resumed=True)
    if parts.benchmark.version != run.config["versions"]["benchmark"]:
        started = replace(started, benchmark=parts.benchmark.version)
    run.append_many([started, *mended])


def check_benchmark(run: Run, parts: RunParts) -> None:
    """Check that new verdicts are of the same tasks as the run's; warn where another grader gives them.

    Raises:
        UserError: the benchmark has changed since the run began.
    """
    before = run.benchmarks()[-1]
    if change := describe_grader_change(run, parts):
        log.warning(change)
    elif parts.benchmark.version != before:
        began_with = run.config["versions"].get("dgm", "an older version")
        raise UserError(
            f"{run.name}: benchmark {parts.benchmark.name} has changed since the run began "
            f"({before[:12]} then, {parts.benchmark.version[:12]} now); its verdicts would not compare. "
            f"The run was begun by dgm {began_with}: go on with that dgm, or set "
            "benchmark to the path of the suite of then"
        )


def describe_grader_change(run: Run, parts: RunParts) -> str:
    """Return a sentence if the run's last session was graded by another grader; empty if not."""
    before, now = run.benchmarks()[-1], parts.benchmark.version
    if not differ_in_grader(before, now):
        return ""
    return (
        f"{run.name}: its verdicts are of {name_grader(before)}, and further ones would be of {name_grader(now)}, "
        "which may judge the same patch otherwise"
    )


def record_of(folder: Path, settings: Settings, parts: RunParts) -> Mapping[str, Any]:
    """Return the contents of a new run's ``run.json``."""
    return {
        "id": uuid.uuid4().hex[:16],
        "name": folder.name,
        "created": time.time(),
        "settings": settings.model_dump(mode="json"),
        "sandbox": parts.engine.name,
        "seed_agent": seeds_of(settings)[0],
        "versions": {
            "dgm": __version__,
            "python": platform.python_version(),
            "benchmark": parts.benchmark.version,
            **({OFFLINE: OFFLINE_VERSION} if OFFLINE in all_names(settings) else {}),
        },
        PROMPTS: load_shipped(),
        **({METRICS: metrics} if (metrics := record_metrics(metrics_of(parts.benchmark, settings))) else {}),
        **({OBJECTS: objects} if (objects := _object_versions(settings)) else {}),
    }


def _object_versions(settings: Settings) -> Mapping[str, Mapping[str, str | None]]:
    """Return the version of each object that the settings name by reference, by kind."""
    names = {
        "policies": [settings.policy.name],
        "operators": settings.operator_names,
        "benchmarks": benchmark_parts(settings.benchmark),
    }
    return {
        group: {name: plugins.digest_of(group, name) for name in group_names if plugins.is_reference(name)}
        for group, group_names in names.items()
        if any(map(plugins.is_reference, group_names))
    }


def warn_changed_objects(run: Run) -> None:
    """Warn if a policy, operator or benchmark that was passed as an object has changed since the run began.

    Raises:
        UserError: one cannot be imported again.
    """
    for group, versions in run.config.get(OBJECTS, {}).items():
        for name, version in versions.items():
            if plugins.digest_of(group, name) != version:
                log.warning("%s: %s, one of its %s, has changed since the run began", run.name, name, group)


def _run_started_event(
    settings: Settings, budget: Budget, benchmark: Benchmark, *, resumed: bool
) -> RunStarted:
    tasks = tuple(task.id for task in benchmark.tasks(Split.SEARCH))
    started = RunStarted(budget, tasks, resumed, settings.gates.flips, kernel=platform.release())
    return replace(started, objective=objective_of(settings, metrics_of(benchmark, settings)))


@asynccontextmanager
async def open_worker(
    run: Run, settings: Settings, parts: RunParts, on_event: OnEvent = lambda _: None
) -> AsyncIterator[Worker]:
    """Open a worker with everything that it needs; the gateway and all sandboxes end with it."""
    allow_threads(THREADS_PER_WORKER * settings.workers)
    await parts.engine.reap({"dgm.run": run.config["id"], "dgm.host": machine_name()})
    note_engine(run.config["id"], parts.engine.name)
    models: dict[str, LentModel] = {**open_models(settings), "dry-run": DryRun()}
    models["probe"] = models["solve"]
    journal = RunJournal(run, on_event)
    journal.book_cut_calls()
    lent = LentModels(
        models,
        journal,
        Ledger(prices_of(settings), lambda: run.tree.spend, lambda: run.tree.budget),
        call_limits(settings.limits),
        LendingRules(settings.models.aliases, drawing_of(settings)),
        run.tree.model_facts.abilities,
    )
    async with (
        open_session(parts.engine, run.source(SEED), settings.limits, lent, run.config["id"]) as session,
        publish_live(run.folder, session.gateway.caller.count_live, parts.engine),
    ):
        yield Worker(run, session, parts.benchmark, operators_of(run, settings), settings, AgentIndex(run))


@asynccontextmanager
async def search(
    run: Run, settings: Settings, parts: RunParts, on_event: OnEvent, schedule: Policy | None = None
) -> AsyncIterator[Search]:
    """Open a search that is ready to go.

    Args:
        run: open to write.
        settings: of the session.
        parts: of the run.
        on_event: hears every event that it records.
        schedule: the policy of an evaluation, which has no goals beside its budget; default: the run's policy.
    """
    policy = schedule or open_policy(settings, needs_of(settings))
    async with open_worker(run, settings, parts, on_event) as worker:
        controller = RunController(run, settings, operators.needs_of(worker.operators))
        goals = None if schedule else open_goals(run, settings.promotion.every)
        rule = CurriculumSettings() if schedule else settings.curriculum
        changes = partial(choose_tasks, rule=rule, seed=settings.seed)
        supply = GatewayAvailability(worker.session.gateway)
        hooks = LoopHooks(on_event, supply, goals=goals, change_tasks=changes)
        yield Search(controller, policy, worker, settings, hooks)
