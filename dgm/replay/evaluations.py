"""Replay of evaluations, compared with the record.

Either recorded patches are graded again, or the agents work again on recorded replies.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from dgm.archive.events import Recorded, TaskGraded
from dgm.archive.run import Run
from dgm.archive.traces import Traces
from dgm.archive.volatile_text import mask_text
from dgm.domain import ActionId, AgentId, Digest, Evaluate, Evaluation, TaskId, Verdict
from dgm.errors import Hint, Infrastructure, UserError
from dgm.processes import StandstillWatch
from dgm.replay.findings import (
    Divergence,
    Match,
    describe_differing_line,
    divergence_of_failure,
    quote_difference,
)
from dgm.search.orders import EvaluateOrder
from dgm.worker.worker import Worker

OUT_OF_MEMORY = 137
LATE = 0.8
"""Share of its time after which an agent that made no further call may have ended because of the clock."""
ENDING = " (the agent "
"""Start of the text that a worker adds to a reason if the agent's program ended badly."""


@dataclass(frozen=True, slots=True)
class EvaluationAgain:
    """One evaluation, repeated."""

    action: ActionId
    recorded: Evaluation
    match: Match
    verdict: Verdict | None
    """The new verdict; None if nothing could be graded."""
    reason: str
    """The new reason."""
    divergence: Divergence | None
    """Set unless ``match`` is ``SAME`` or ``NOTHING``."""
    seconds: float


@dataclass(frozen=True, slots=True)
class How:
    """Choices for repeating evaluations."""

    perform: bool = False
    """Let the agents work again on recorded replies; else only grade the patches that they left."""
    workers: int = 1
    """Number of evaluations at once."""
    on_result: Callable[[EvaluationAgain], None] = lambda _: None
    """Called with each result when it is done."""


def find_graded(
    run: Run, agents: Collection[AgentId] | None = None, task: TaskId | None = None
) -> Sequence[tuple[ActionId, Evaluation]]:
    """Return the resolved and unresolved evaluations of a run, in the order of the log; without withdrawn verdicts.

    Args:
        run: the run.
        agents: only of these; None for all.
        task: only of this; None for all.

    Raises:
        UserError: there are none.
    """
    gone = run.store.withdrawn()
    found = [
        (item.event.action, item.event.outcome)
        for item in run.store.read()
        if isinstance(item.event, TaskGraded) and item.seq not in gone and _is_selected(item, agents, task)
    ]
    if not found:
        who = "" if agents is None else f" by agent {', '.join(map(str, sorted(agents)))}"
        what = "" if task is None else f" of task {task!r}"
        raise UserError(
            f"run {run.name} has no graded evaluation{what}{who}",
            hint=Hint("all evaluations of an agent", "show", (run.name, "AGENT")),
        )
    return found


def _is_selected(item: Recorded, agents: Collection[AgentId] | None, task: TaskId | None) -> bool:
    if not isinstance(item.event, TaskGraded) or item.event.outcome.verdict is Verdict.INVALID:
        return False
    outcome = item.event.outcome
    return (agents is None or outcome.agent in agents) and (task is None or outcome.task == task)


async def replay_evaluations(
    run: Run, chosen: Sequence[tuple[ActionId, Evaluation]], worker: Worker, how: How
) -> list[EvaluationAgain]:
    """Repeat the chosen evaluations in fresh sandboxes; return the results in the order of ``chosen``.

    Args:
        run: the recorded run, which is only read.
        chosen: from ``find_graded``.
        worker: from ``open_worker(run, …)``.
        how: grade or perform, and how many at once.

    Raises:
        ArchiveCorrupt: a trace is missing or damaged; the message names it.
        UserError: the benchmark has no such task.
    """
    room = asyncio.Semaphore(how.workers)

    async def one(action: ActionId, recorded: Evaluation) -> EvaluationAgain:
        async with room:
            began = time.monotonic()
            make = _perform_again if how.perform else _regrade_patch
            async with StandstillWatch() as watch:
                match, now, divergence = await make(run, action, recorded, worker)
                stopped = watch.find_standstill()
            if stopped and match is Match.DIFFERENT:
                match, now, divergence = Match.NOT_PERFORMED, None, Divergence(action, str(stopped))
            verdict, reason = (now.verdict, now.reason) if now else (None, "")
            done = EvaluationAgain(
                action, recorded, match, verdict, reason, divergence, time.monotonic() - began
            )
            how.on_result(done)
            return done

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(*item)) for item in chosen]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return [task.result() for task in tasks]


_Found = tuple[Match, Evaluation | None, Divergence | None]


async def _regrade_patch(run: Run, action: ActionId, recorded: Evaluation, worker: Worker) -> _Found:
    if "patch" not in recorded.cost.traces:
        return Match.NOTHING, None, None
    patch = await asyncio.to_thread(run.traces.get, recorded.cost.traces["patch"])
    try:
        grade = await worker.benchmark.grade(recorded.task, patch, worker.session.spec.labels)
    except Infrastructure as error:
        return Match.NOT_PERFORMED, None, Divergence(action, f"the infrastructure failed: {error}")
    now = Evaluation(
        recorded.agent, recorded.task, recorded.attempt, grade.verdict, grade.reason, grade.score
    )
    said = recorded.reason
    if grade.verdict is Verdict.UNRESOLVED and ENDING in said and ENDING not in grade.reason:
        # The end of the agent's program belongs to its work, which is not repeated.
        said = said[: said.rindex(ENDING)]
    what = _describe_difference(recorded.verdict, said, now)
    return (Match.DIFFERENT, now, Divergence(action, what)) if what else (Match.SAME, now, None)


async def _perform_again(run: Run, action: ActionId, recorded: Evaluation, worker: Worker) -> _Found:
    what = Evaluate(recorded.agent, recorded.task, recorded.attempt)
    now = await worker.perform(EvaluateOrder(action, what, run.tree.agents[recorded.agent]))
    if not isinstance(now, Evaluation):
        raise TypeError(f"an evaluation has no outcome {now!r}")
    divergence = await asyncio.to_thread(_compare_evaluations, run, action, recorded, now, worker.run.traces)
    if divergence is None:
        return Match.SAME, now, None
    limit_s = worker.settings.limits.solve_limit_s(worker.benchmark.task(recorded.task).timeout_s)
    cut = await asyncio.to_thread(_explain_cut_short, recorded, now, run.traces, worker.run.traces)
    if (
        not cut
        and divergence.call == recorded.cost.usage.calls + 1
        and recorded.cost.seconds > LATE * limit_s
    ):
        cut = f"the agent worked for {recorded.cost.seconds:.0f} s then, with a limit of {limit_s:.0f} s"
    if cut:
        return Match.CUT_SHORT, now, Divergence(action, f"{divergence.what} ({cut})", divergence.call)
    if now.verdict is Verdict.INVALID and divergence.call is None:
        return Match.NOT_PERFORMED, now, divergence
    return Match.DIFFERENT, now, divergence


def _compare_evaluations(
    run: Run, action: ActionId, recorded: Evaluation, now: Evaluation, made: Traces
) -> Divergence | None:
    if now.verdict is Verdict.INVALID:
        found = divergence_of_failure(action, now.reason)
        return found or Divergence(action, f"the infrastructure failed: {now.reason}")
    then, again = recorded.cost.traces.get("patch"), now.cost.traces.get("patch")
    if then != again:
        return Divergence(action, f"the patch: {_describe_patch_diff(run.traces, then, made, again)}")
    what = _describe_difference(recorded.verdict, recorded.reason, now)
    return Divergence(action, what) if what else None


def _describe_patch_diff(then: Traces, recorded: Digest | None, now: Traces, made: Digest | None) -> str:
    if recorded is None or made is None:
        return "there was none, now there is one" if made else "there was one, now there is none"
    return describe_differing_line(then.get(recorded), now.get(made))


def _describe_difference(verdict: Verdict, reason: str, now: Evaluation) -> str:
    if verdict is not now.verdict:
        return f"{verdict} then, {now.verdict} now: {now.reason}"
    if mask_text(reason) != mask_text(now.reason):
        return f"the reason: {quote_difference(reason, now.reason)}"
    return ""


def _explain_cut_short(recorded: Evaluation, now: Evaluation, then: Traces, made: Traces) -> str:
    for when, evaluation, traces in (("then", recorded, then), ("now", now, made)):
        kept: Mapping[str, Digest] = evaluation.cost.traces
        if "circumstances" not in kept:
            continue
        with traces.reading(kept["circumstances"]) as signs:
            if signs["timed_out"]:
                return f"the agent ran out of time {when}"
            if signs["exit_code"] == OUT_OF_MEMORY:
                return f"the agent was killed for its memory {when}"
    return ""
