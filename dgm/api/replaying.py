"""``replay``: repeat decisions, lineages or evaluations of a run, and compare the results with the record."""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Literal, Protocol, get_args

from dgm import replay as replays
from dgm.analysis.best import find_agent
from dgm.api.arguments import SettingValues, assignments_of, check_amount, model_of, path_of, split_engine
from dgm.api.running import run_session
from dgm.api.solving import OnProgress, print_progress
from dgm.api.watcher import Watcher
from dgm.archive.finding import check_unpacked, find_run
from dgm.archive.run import Run
from dgm.domain import AgentId, TaskId
from dgm.errors import UserError
from dgm.evaluation.evaluating import apply_assignments
from dgm.launch import name_models
from dgm.models.scripted import Script
from dgm.render.evaluation_text import evaluation_line, live_step_line, live_verdict_line, step_line
from dgm.sandboxes.engine_address import use_engine
from dgm.views.replay import DecisionsReplay, EvaluationReplay, LiveReplay, RecordReplay, ReplayView

What = Literal["decisions", "lineage", "evaluations", "work"]


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
        live: Model that repeats the lineage or the evaluations for real, in a run of its own.
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
            return DecisionsReplay.of(recorded, replays.decisions(recorded))
        only = None if task is None else TaskId(task)
        assignments = assignments_of(settings)
        if live is None:
            return run_session(lambda: _repeat(recorded, what, members, only, assignments, report), watcher)
        if into is None:
            check_unpacked(recorded.folder)
        chosen = name_models(replays.live_settings(recorded, str(model_of(live)), assignments), watcher)
        means = replays.Live(chosen, path_of(into), max_usd)
        return run_session(lambda: _repeat_live(recorded, what, members, only, means, report), watcher)


def _check_arguments(
    what: What,
    live: str | Script | None,
    agents: Sequence[str | int],
    task: str | None,
    of_live: Mapping[str, object],
) -> None:
    if agents and agents[0] in get_args(What):
        raise UserError(f"{agents[0]!r} is no agent; it says what to repeat", argument="what")
    if what in ("decisions", "work") and live is not None:
        why = "a decision asks no model" if what == "decisions" else "work repeats recorded replies"
        raise UserError(f"{why}; choose lineage or evaluations", argument="what")
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
        steps = await replays.lineage(run, agents[0], sandbox, lambda step: report(step_line(step)))
        return RecordReplay.of(run, what, time.monotonic() - began, steps=steps)
    workers = chosen.workers if "workers" in chosen.model_fields_set else run.settings()["workers"]
    how = replays.How(
        what == "work", workers, lambda done: report(evaluation_line(EvaluationReplay.of(done)))
    )
    done = await replays.evaluations(run, agents or None, task, how, sandbox)
    return RecordReplay.of(
        run, what, time.monotonic() - began, evaluations=list(map(EvaluationReplay.of, done))
    )


async def _repeat_live(
    run: Run,
    what: What,
    agents: Sequence[AgentId],
    task: TaskId | None,
    live: replays.Live,
    report: OnProgress,
) -> ReplayView:
    """Repeat a lineage or evaluations by another model."""
    model = live.settings.model
    if what == "lineage":
        live = replace(live, on_step=lambda step: report(live_step_line(step)))
        return LiveReplay.of(run, model, await replays.live_lineage(run, agents[0], live), agents[0])
    live = replace(live, on_evaluation=lambda agent, done: report(live_verdict_line(agent, done)))
    return LiveReplay.of(run, model, await replays.live_evaluations(run, live, agents or None, task))
