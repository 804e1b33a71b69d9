"""Live replays: another model repeats parts of a run, recorded in a run of their own."""

import asyncio
import platform
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm import assemble
from dgm.analysis.budgets import Ending
from dgm.analysis.lineage import Lineage
from dgm.archive.events import Recorded, RunStarted, TaskGraded
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.consents import remember_own
from dgm.domain import AgentId, Budget, Evaluation, TaskId
from dgm.errors import UserError
from dgm.evaluation.evaluating import apply_assignments
from dgm.evaluation.exam import enter_agent, find_candidate
from dgm.models.reach import list_reach
from dgm.replay.evaluations import find_graded
from dgm.replay.live_steps import (
    DONE,
    LiveEvaluations,
    LiveLineage,
    LiveStep,
    Pair,
    PairsPolicy,
    compare_results,
    enter_ancestors,
    live_steps,
    perform_lineage,
)
from dgm.replay.recorded import PLAN, choose_sandbox
from dgm.search.availability import GatewayAvailability
from dgm.search.loop import LoopHooks, Search
from dgm.search.model_checks import check_models, note_checks
from dgm.search.run_controller import RunController
from dgm.search.run_settings import require_consent
from dgm.search.stopping import perform_until_stopped
from dgm.simulation import check_performed


@dataclass(frozen=True, slots=True)
class Live:
    """The settings, place, limit and callbacks of a live replay."""

    settings: Settings
    """From ``live_settings``."""
    into: Path | None = None
    """Folder of the run that records the replay; default: ``live-<model>-<n>`` in the run's own folder."""
    max_usd: float | None = None
    """Limit on the cost over all its sessions, in USD; None: no limit."""
    on_evaluation: Callable[[AgentId, Evaluation], None] = lambda _agent, _evaluation: None
    """Called with every verdict; the first argument is the agent in the recorded run."""
    on_step: Callable[[LiveStep], None] = lambda _: None
    """Called with every step of a lineage."""


def live_settings(run: Run, model: str, assignments: Sequence[str] = ()) -> Settings:
    """Return the run's settings with another model for all roles.

    Args:
        run: the recorded run.
        model: a full name, or ``auto``.
        assignments: ``a.b=c`` texts, for ``models.*``, ``providers.*``, ``limits.*``, ``workers`` and ``sandbox``.

    Raises:
        ConsentNeeded: the run may be a stranger's, and names addresses of its own.
        UserError: a setting is unknown, does not fit or would make it another experiment; or the run is
            simulated.
    """
    check_performed(run)
    base = assemble.settings_of(run).model_dump(mode="json")
    base["models"] |= {"solve": None, "improve": None, "diagnose": None}
    base |= {"sandbox": choose_sandbox(run), "model": model}
    settings = apply_assignments(
        base, assignments, ("models", "providers", "limits", "workers", "sandbox"), "a live replay"
    )
    require_consent(run, settings)
    return settings


async def live_evaluations(
    run: Run, live: Live, agents: Collection[AgentId] | None = None, task: TaskId | None = None
) -> LiveEvaluations:
    """Evaluate the same agents with another model on the same tasks, and compare the verdicts in pairs.

    A second call with the same arguments continues where the first ended, and pays for nothing twice.

    Args:
        run: open to read.
        live: how.
        agents: whose evaluations; None for all.
        task: only of this task.

    Raises:
        UserError: no such agent or task, or the model cannot be used (key, price, name).
        ArchiveBusy: another process is writing the live run.
        Infrastructure: the provider or the sandboxes' engine does not answer.
    """
    parts = assemble.parts_of(live.settings)
    assemble.check_benchmark(run, parts)
    first = [outcome for _, outcome in find_graded(run, agents, task) if outcome.attempt == 0]
    pairs = [(outcome.agent, outcome.task) for outcome in first]
    plan = {"what": "evaluations", "benchmark": parts.benchmark.name, "pairs": [list(pair) for pair in pairs]}
    with await _open_live_run(run, live, plan, parts) as made:
        if _has_untried(run, made, pairs):
            await _begin_session(made, live, tuple(dict.fromkeys(task for _, task in pairs)))
            ids = {agent: enter_agent(made, run, run.tree.agents[agent]) for agent, _ in pairs}
            policy = PairsPolicy([(ids[agent], task) for agent, task in pairs])
            heard = _make_listener(live, {ids[agent]: agent for agent in ids})

            async def work(begins: Callable[[Search], None]) -> Ending:
                async with assemble.open_worker(made, live.settings, parts) as worker:
                    around = LoopHooks(heard, GatewayAvailability(worker.session.gateway))
                    search = Search(RunController(made, live.settings), policy, worker, live.settings, around)
                    begins(search)
                    return await search.go()

            ended = await perform_until_stopped(made, work)
        else:
            ended = DONE
        return compare_results(run, made, pairs, ended)


async def live_lineage(run: Run, leaf: AgentId, live: Live) -> LiveLineage:
    """Repeat each expansion from the seed to ``leaf`` with another model, from its recorded parent and evidence.

    A second call with the same arguments continues where the first ended, and pays for nothing twice. The
    errors are those of ``live_evaluations``.
    """
    parts = assemble.parts_of(live.settings)
    assemble.check_benchmark(run, parts)
    steps = len(Lineage(run.tree, leaf).agents) - 1
    with await _open_live_run(run, live, {"what": "lineage", "agent": leaf}, parts) as made:
        if len(live_steps(made, run, leaf)) < steps:
            await _begin_session(made, live, run.tree.tasks)
            await asyncio.to_thread(enter_ancestors, made, run, leaf)

            async def work(_: Callable[[Search], None]) -> Ending:
                async with assemble.open_worker(made, live.settings, parts) as worker:
                    return await perform_lineage(run, made, leaf, worker, live.on_step)

            ended = await perform_until_stopped(made, work)
        else:
            ended = DONE
        done = live_steps(made, run, leaf)
        return LiveLineage(made.folder, ended, done, steps - len(done), made.tree.spend)


async def _open_live_run(run: Run, live: Live, plan: Mapping[str, Any], parts: assemble.RunParts) -> Run:
    """Return the live run of this plan, open to write; create it if there is none."""
    settings = live.settings
    commits = {str(agent): run.tree.agents[agent].commit for agent, _ in plan.get("pairs", ())}
    frozen = settings.model_dump(mode="json", include={"model", "models", "providers", "limits"})
    version = parts.benchmark.version
    whole = {**plan, "of": run.config["id"], "version": version, "commits": commits, "settings": frozen}
    folder = _choose_folder(run, live, whole)
    if (folder / "run.json").exists():
        return Run.open(folder, write=True)
    checks = await check_models(settings)
    remember_own(list_reach(settings))
    new = Run.create(folder, {**assemble.record_of(folder, settings, parts), PLAN: whole})
    note_checks(new, settings, checks)
    return new


def _choose_folder(run: Run, live: Live, plan: Mapping[str, Any]) -> Path:
    if live.into:
        if (live.into / "run.json").exists():
            with Run.open(live.into) as there:
                if there.config.get(PLAN) != plan:
                    raise UserError(f"{live.into}: a run of something else; choose another folder")
        return live.into
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", live.settings.model).strip("-.")
    number = 1
    while (folder := run.folder / f"live-{slug}-{number}").exists():
        if (folder / "run.json").exists():
            with Run.open(folder) as there:
                if there.config.get(PLAN) == plan:
                    break
        number += 1
    return folder


async def _begin_session(made: Run, live: Live, tasks: tuple[TaskId, ...]) -> None:
    if made.tree.agents:
        known = made.tree.model_facts.abilities
        note_checks(made, live.settings, await check_models(live.settings, known))
    made.append(
        RunStarted(Budget(usd=live.max_usd), tasks, resumed=bool(made.tree.agents), kernel=platform.release())
    )


def _make_listener(live: Live, recorded: Mapping[AgentId, AgentId]) -> Callable[[Recorded], None]:
    def heard(event: Recorded) -> None:
        if isinstance(event.event, TaskGraded):
            live.on_evaluation(recorded[event.event.outcome.agent], event.event.outcome)

    return heard


def _has_untried(run: Run, made: Run, pairs: Sequence[Pair]) -> bool:
    """Return whether a pair has no verdict yet and was not given up."""
    for agent, task in pairs:
        entered = find_candidate(made, run.tree.agents[agent])
        if entered is None or task not in made.tree.tried(entered):
            return True
    return bool(made.tree.pending or made.tree.to_redo())
