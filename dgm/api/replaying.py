"""``replay``: repeat decisions, lineages or evaluations of a run, and compare the results with the record."""

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from dgm import assemble
from dgm.analysis.agents import find_agent
from dgm.api.arguments import (
    SettingValues,
    apply_assignments,
    assignments_of,
    check_amount,
    model_of,
    path_of,
    split_engine,
)
from dgm.api.evaluating import (
    EvaluationChoice,
    EvaluationRequest,
    begin_session,
    build_settings,
    contestant_of,
)
from dgm.api.evaluation_session import open_evaluation
from dgm.api.running import run_session
from dgm.api.solving import OnProgress, print_progress
from dgm.api.watcher import Watcher
from dgm.archive.finding import check_unpacked, find_run
from dgm.archive.run import Run, RunKind
from dgm.domain import AgentId, TaskId
from dgm.errors import Hint, UserError
from dgm.evaluation.schedule import find_entered
from dgm.models.scripted import Script
from dgm.render.evaluation_text import evaluation_line, step_line
from dgm.replay.again import ReplayOptions, find_graded, replay_evaluations, replay_lineage
from dgm.replay.decisions import decide_again
from dgm.sandboxes.engine_address import use_engine
from dgm.simulation import check_performed
from dgm.views.replay import DecisionsReplay, EvaluationReplay, LiveReplay, RecordReplay, ReplayView

What = Literal["decisions", "lineage", "evaluations", "work"]
LIVE_SETTABLE = ("models", "providers", "limits", "workers", "sandbox")


class OpenRun(Protocol):
    """A run that is open, such as ``dgm.open("first")``."""

    @property
    def run(self) -> Run:
        """The run itself."""


def replay(
    run: OpenRun | str | Path,
    *agents: str | int,
    what: What = "decisions",
    live: str | Script | None = None,
    max_usd: float | None = None,
    settings: SettingValues | None = None,
    task: str | None = None,
    into: str | Path | None = None,
    allow_paid: bool = False,
    watcher: Watcher | None = None,
    on_progress: OnProgress | None = print_progress,
) -> ReplayView:
    """Repeat what a run did, and compare the results with its record.

    No key is needed and nothing is written into the run, unless another model repeats the work (live).

    Args:
        run: Name or path of a run.
        agents: Ids, best, seed or commits [default: all; best for a lineage].
        what: Decisions of the policy, the lineage of an agent, evaluations (recorded patches are graded again), or
            work (agents work again on recorded replies).
        live: Model that repeats the evaluations for real, in a run of its own.
        max_usd: Spending limit of a live replay, earlier sessions included.
        settings: A setting such as workers=4 or sandbox=docker.
        task: Only evaluations of this task.
        into: Folder of a live replay [default: in the run].
        allow_paid: Whether the model ``auto`` may stand for one that costs money.
        watcher: Is informed and asked on the way.
        on_progress: Is called with each line of progress; by default they are printed on stderr. None: silent.

    Raises:
        UserError: what is wrong, before anything is spent.
        ArchiveCorrupt: a trace, a commit or an event of the run is damaged.
        Infrastructure: a sandbox or the model failed.
    """
    check_amount("max_usd", max_usd)
    _check_arguments(what, live, agents, task, {"max_usd": max_usd, "into": into})
    settings, engines = split_engine(settings)
    watcher = watcher or Watcher(allow_paid=allow_paid)
    report = on_progress or (lambda _: None)
    with ExitStack() as opened:
        opened.enter_context(use_engine(engines))
        recorded = (
            opened.enter_context(Run.open(find_run(str(run)))) if isinstance(run, str | Path) else run.run
        )
        members = [find_agent(recorded, str(agent)).id for agent in agents]
        if what == "lineage" and not members:
            members = [find_agent(recorded, "best").id]
        if what == "decisions":
            return DecisionsReplay.of(recorded, decide_again(recorded))
        only = None if task is None else TaskId(task)
        assignments = assignments_of(settings)
        if live is None:
            return run_session(lambda: _repeat(recorded, what, members, only, assignments, report), watcher)
        if into is None:
            check_unpacked(recorded.folder)
        chosen = EvaluationChoice(
            model=model_of(live), max_usd=max_usd, into=path_of(into), assignments=assignments
        )
        return run_session(lambda: _repeat_live(recorded, members, only, chosen, watcher), watcher)


def _check_arguments(
    what: What,
    live: str | Script | None,
    agents: Sequence[str | int],
    task: str | None,
    of_live: Mapping[str, object],
) -> None:
    if agents and agents[0] in get_args(What):
        raise UserError(
            f"{agents[0]!r} is no agent; it says what to repeat",
            argument="what",
            hint=Hint("to do that", "replay", ("RUN",), {"what": agents[0]}),
        )
    if what != "evaluations" and live is not None:
        raise UserError(f"another model repeats evaluations only, not {what}", argument="what")
    if what == "decisions" and (agents or task):
        raise UserError("decisions belong to the run, not to an agent or a task", argument="what")
    if what == "lineage" and (task or len(agents) > 1):
        raise UserError("a lineage is that of one agent", argument="what")
    for name, value in of_live.items():
        if value is not None and live is None:
            raise UserError("applies to live replays only; name a model, too", argument=name)


async def _repeat(
    run: Run,
    what: What,
    agents: Sequence[AgentId],
    task: TaskId | None,
    assignments: Sequence[str],
    report: OnProgress,
) -> ReplayView:
    """Repeat a lineage or evaluations on the record alone."""
    chosen = apply_assignments({}, assignments, ("workers", "sandbox"), "a replay")
    sandbox = chosen.sandbox if "sandbox" in chosen.model_fields_set else None
    began = time.monotonic()
    if what == "lineage":
        steps = await replay_lineage(run, agents[0], sandbox, lambda step: report(step_line(step)))
        return RecordReplay.of(run, what, time.monotonic() - began, steps=steps)
    workers = chosen.workers if "workers" in chosen.model_fields_set else run.settings()["workers"]
    options = ReplayOptions(
        what == "work", workers, lambda done: report(evaluation_line(EvaluationReplay.of(done)))
    )
    done = await replay_evaluations(run, agents or None, task, options, sandbox)
    return RecordReplay.of(
        run, what, time.monotonic() - began, evaluations=list(map(EvaluationReplay.of, done))
    )


async def _repeat_live(
    run: Run, agents: Sequence[AgentId], task: TaskId | None, chosen: EvaluationChoice, watcher: Watcher
) -> LiveReplay:
    """Evaluate the same agents with another model on the same tasks, and compare the verdicts in pairs.

    A second call with the same arguments continues where the first ended, and pays for nothing twice.
    """
    check_performed(run)
    settings = build_settings(run, chosen, watcher, LIVE_SETTABLE, "a live replay")
    parts = assemble.parts_of(settings)
    assemble.check_benchmark(run, parts)
    graded = find_graded(run, agents or None, task).values()
    pairs = [(done.agent, done.task) for done in graded if done.attempt == 0]
    members = {agent: run.tree.agents[agent] for agent, _ in pairs}
    plan = {
        "what": "evaluations",
        "benchmark": parts.benchmark.name,
        "pairs": [list(pair) for pair in pairs],
        "of": run.config["id"],
        "version": parts.benchmark.version,
        "commits": {str(agent): member.commit for agent, member in members.items()},
        "settings": settings.model_dump(mode="json", include={"model", "models", "providers", "limits"}),
    }
    contestants = [contestant_of(run, member) for member in members.values()]
    keys = {agent: contestant.key for agent, contestant in zip(members, contestants, strict=True)}
    request = EvaluationRequest(
        contestants=contestants,
        base=run.folder,
        prefix="live",
        of=run.config["id"],
        settings=settings,
        chosen=chosen,
        pairs=[(keys[agent], task) for agent, task in pairs],
    )
    folder = chosen.into or _choose_folder(run, settings.model, plan)
    live = await open_evaluation(folder, plan, settings, parts, watcher, RunKind.REPLAY)
    tasks = [parts.benchmark.task(task) for task in dict.fromkeys(task for _, task in pairs)]
    session = await begin_session(live, request, parts, tasks, watcher)
    with live:
        ending = await session.perform(watcher)
        ids = {agent: find_entered(live, key) for agent, key in keys.items()}
        verdicts = {
            (agent, task): None if (entered := ids[agent]) is None else live.tree.verdict(entered, task)
            for agent, task in pairs
        }
        return LiveReplay.of(run, live, settings.model, verdicts, ending)


def _choose_folder(run: Run, model: str, plan: Mapping[str, Any]) -> Path:
    """Return the folder of an earlier live replay by the same plan, or a new one in the run's."""
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", model).strip("-.")
    number = 1
    while (folder := run.folder / f"live-{slug}-{number}").exists():
        if (folder / "run.json").exists():
            with Run.open(folder) as earlier:
                if earlier.plan == plan:
                    break
        number += 1
    return folder
