"""Replay of lineages and evaluations: agents work again on recorded replies, or their patches are graded again.

The usual sandboxes and gateway are used, with recorded replies behind them and no money.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dgm import assemble
from dgm.analysis.agents import trace_lineage
from dgm.archive.adopt import check_descent
from dgm.archive.events import Event, Recorded, TaskGraded
from dgm.archive.log import Traces
from dgm.archive.measures import measure
from dgm.archive.repository import AgentRepository, make_repository
from dgm.archive.run import Run, RunKind
from dgm.archive.volatile_text import mask_text
from dgm.config import Settings
from dgm.domain import (
    SEED,
    ActionId,
    Agent,
    AgentId,
    Born,
    Budget,
    CommitId,
    Digest,
    Evaluate,
    Evaluation,
    Outcome,
    Snapshot,
    Stillborn,
    TaskId,
    Usage,
    Verdict,
)
from dgm.errors import ArchiveCorrupt, DgmError, Hint, Infrastructure, UserError
from dgm.gateway.journal import RunJournal
from dgm.gateway.ledger import Ledger
from dgm.gateway.server import LendingRules
from dgm.messages import BegunCall, CutCall, PaidCall
from dgm.meta.rubric import RUBRIC
from dgm.models.builtin import DryRun, RecordedModel
from dgm.models.choose import drawing_of, names_by_role
from dgm.models.pricing import FREE, Prices
from dgm.processes import StandstillWatch
from dgm.protocols import Model
from dgm.sandboxes.choose import open_kind
from dgm.search.prepare import AgentIndex
from dgm.search.start import current_settings_at, group_by_settings
from dgm.simulation import check_performed
from dgm.worker.conduct import apply_conduct
from dgm.worker.session import LentModels, call_limits, open_session
from dgm.worker.worker import Worker

QUOTED_CHARS = 70
"""Characters quoted of each side of a difference."""


class Match(StrEnum):
    """Comparison of a repeated result with its record."""

    SAME = "same"
    DIFFERENT = "different"
    CUT_SHORT = "cut short"
    """The results differ, but a time-out or a limit of memory ended the agent's work then or now."""
    NOT_PERFORMED = "not performed"
    """The infrastructure failed; this says nothing about the record."""
    NOTHING = "nothing to grade"
    """The agent left no patch that could be graded."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first difference from the record."""

    action: ActionId
    what: str
    """One line; timings, addresses and temporary paths are masked in its quotations."""
    call: int | None = None
    """Number of the action's model call, from 1; None if all calls were answered from the record."""

    def __str__(self) -> str:
        where = f"action {self.action}" if self.call is None else f"action {self.action}, call {self.call}"
        return f"{where}: {self.what}"


def describe_differing_files(recorded: Snapshot, again: Snapshot) -> str:
    """Return the files in which two snapshots differ, with the first differing line, as a text."""
    paths = sorted(path for path in {*recorded, *again} if recorded.get(path) != again.get(path))
    if not paths:
        return "the files are the same, the parents are not"
    first = paths[0]
    more = f" (and {len(paths) - 1} other files)" if len(paths) > 1 else ""
    if first not in again or first not in recorded:
        return f"{first} is only there {'in the record' if first in recorded else 'now'}{more}"
    one, other = recorded[first], again[first]
    if one.data == other.data:
        return f"{first}: mode {one.mode:o} against {other.mode:o}{more}"
    return f"{first}: {describe_differing_line(one.data, other.data)}{more}"


def describe_differing_line(recorded: bytes, again: bytes) -> str:
    """Return the first line in which two texts differ, as a text with the recorded line first."""
    ours, theirs = (data.decode("utf-8", "replace").splitlines() for data in (recorded, again))
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False), 1):
        if one != other:
            return f"line {number}: {quote_difference(one, other)}"
    if len(ours) == len(theirs):
        return "only in line endings"
    number = min(len(ours), len(theirs))
    longer, whose = (ours, "recorded") if len(ours) > len(theirs) else (theirs, "new")
    return f"line {number + 1}: only in the {whose} one: {longer[number][:QUOTED_CHARS]!r}"


def quote_difference(recorded: str, again: str) -> str:
    """Quote both texts from just before their first difference, masked unless masking makes them equal."""
    one, other = mask_text(recorded), mask_text(again)
    if one == other:
        one, other = recorded, again
    parted = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    near = max(0, parted - 20)
    return f"{one[near : near + QUOTED_CHARS]!r} against {other[near : near + QUOTED_CHARS]!r}"


ROLES = ("solve", "improve", "diagnose", "probe")


class ReplayJournal(RunJournal):
    """The journal of a replay: it finds paid calls and records nothing."""

    def cut_calls(self, action: ActionId) -> Sequence[CutCall]:  # noqa: ARG002  (nothing is asked again)
        """Return none: a replay repeats no call."""
        return ()

    async def begin(self, call: BegunCall) -> None:
        """Refuse the call: a replay asks no model; raise as ``record``."""
        raise DgmError(f"action {call.key.action}: a replay asks no model")

    def book(self, action: ActionId, number: int, model: str, role: str, usage: Usage) -> None:
        """Book nothing."""

    def lose(self, call: BegunCall) -> None:
        """Book nothing."""

    def learned(
        self, model: str, abilities: Mapping[str, Any], words: str, usage: Usage | None = None
    ) -> None:
        """Keep nothing."""

    async def record(self, call: PaidCall, settles: Sequence[CutCall] = ()) -> None:  # noqa: ARG002
        """Refuse the call: the models of a replay do not answer.

        Raises:
            DgmError: always.
        """
        raise DgmError(f"action {call.key.action}: a replay pays for no call")

    def refuse(self, action: ActionId, role: str, status: int, code: str, message: str) -> None:
        """Keep nothing: the agent's refusals are in the record already."""


def make_recorded_models(
    run: Run, settings: Settings, unanswered: dict[ActionId, tuple[int, str]]
) -> Mapping[str, Model]:
    """Return models that answer under the recorded models' names, by the keys of ``open_models``.

    Args:
        run: the recorded run.
        settings: of the run.
        unanswered: as for ``RecordedModel``.
    """
    wanted = names_by_role(settings)
    asked: dict[str, list[str]] = {}
    for role, name in run.tree.spend_by:
        asked.setdefault(role, []).append(name)
    several = [choice.model for choices in drawing_of(settings).choices.values() for choice in choices]
    names = {name: name for name in several} | {
        role: _choose_name(asked.get(role, [settings.model]), wanted.get(role, wanted["solve"]))
        for role in {**dict.fromkeys(ROLES), **asked}
    }
    return {key: RecordedModel(name, unanswered) for key, name in names.items()}


def _choose_name(names: Sequence[str], wanted: str) -> str:
    """Return the name in the settings if the record has calls of it, else the last recorded name."""
    return wanted if wanted in names else names[-1]


class ReplayRun(Run):
    """A recorded run for a worker that makes things again; new commits and traces lie in another folder."""

    def __init__(self, recorded: Run, folder: Path) -> None:
        """Read what ``folder`` lacks from the recorded run, which stays the owner of its log."""
        super().__init__(recorded.folder, recorded.config, recorded.store)
        self.tree = recorded.tree
        make_repository(folder / "agents.git")
        # It finds the recorded objects without copying them.
        self.repository = AgentRepository(folder / "agents.git", recorded.folder / "agents.git")

    def append(self, event: Event) -> Recorded:
        """Refuse the event: a replay writes no events.

        Raises:
            DgmError: always.
        """
        return self.append_many((event,))[0]

    def append_many(self, events: Sequence[Event]) -> Sequence[Recorded]:
        """Refuse the events; raise as ``append``."""
        names = ", ".join(type(event).__name__ for event in events)
        raise DgmError(f"{self.name}: a replay writes nothing into the run that it replays ({names})")


OUT_OF_MEMORY = 137
LATE = 0.8
"""Share of its time after which an agent that made no further call may have ended because of the clock."""


@dataclass(frozen=True, slots=True)
class StepAgain:
    """One agent of a lineage, made again."""

    agent: AgentId
    action: ActionId
    """0 for the seed: no action is performed, and its source is committed again."""
    match: Match
    commit: CommitId
    """The recorded commit."""
    again: CommitId | None
    """The new commit; None if no child was born."""
    divergence: Divergence | None
    """Set unless ``match`` is ``SAME``."""
    seconds: float


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
class ReplayOptions:
    """Choices for repeating evaluations."""

    perform: bool = False
    """Let the agents work again on recorded replies; else only grade the patches that they left."""
    workers: int = 1
    """Number of evaluations at once."""
    on_result: Callable[[EvaluationAgain], None] = lambda _: None
    """Called with each result when it is done."""


@dataclass(frozen=True, slots=True)
class Replayer:
    """A worker on the recorded replies of a run."""

    run: Run
    worker: Worker
    unanswered: Mapping[ActionId, tuple[int, str]]
    """Action → number of its first call without a recorded reply, and the difference."""

    def explain_failure(self, action: ActionId, reason: str) -> tuple[Match, Divergence]:
        """Return what a failure of the infrastructure stands for: a call that was not recorded, or nothing."""
        if action in self.unanswered:
            call, what = self.unanswered[action]
            return Match.DIFFERENT, Divergence(action, " ".join(what.split()), call)
        return Match.NOT_PERFORMED, Divergence(action, f"the infrastructure failed: {reason}")


@asynccontextmanager
async def open_replayer(run: Run, settings: Settings, parts: assemble.RunParts) -> AsyncIterator[Replayer]:
    """Open a worker that answers agents from the record of ``run``; nothing it makes outlives the context.

    Raises:
        Infrastructure: the sandboxes' engine failed.
    """
    unanswered: dict[ActionId, tuple[int, str]] = {}
    models = {**make_recorded_models(run, settings, unanswered), "dry-run": DryRun()}
    prices = Prices.load(settings)
    # Prices matter only if an action's money limit made the gateway refuse a call.
    known = {
        model.name: prices.of(model.name) if prices.knows(model.name) else FREE for model in models.values()
    }
    lent = LentModels(
        models,
        ReplayJournal(run),
        Ledger(known, Usage, Budget),
        call_limits(settings.limits),
        LendingRules(settings.models.aliases, drawing_of(settings)),
    )
    with TemporaryDirectory(prefix="dgm-replay-", ignore_cleanup_errors=True) as scratch:
        async with open_session(parts.engine, run.source(SEED), settings.limits, lent) as session:
            again, operators = ReplayRun(run, Path(scratch)), assemble.operators_of(run, settings)
            yield Replayer(
                run, Worker(again, session, parts.benchmark, operators, settings, AgentIndex(run)), unanswered
            )


def _open_at(run: Run, until: int, sandbox: str | None) -> AbstractAsyncContextManager[Replayer]:
    """Open a replayer with the settings that held at event ``until``.

    Raises:
        UserError: no sandbox or no such benchmark here, the benchmark has changed since, or the run is
            simulated.
    """
    check_performed(run)
    assemble.warn_changed_objects(run)
    settings = current_settings_at(run, until)
    kind = sandbox or choose_sandbox(run, until)
    parts = assemble.parts_of(settings.model_copy(update={"sandbox": kind}))
    assemble.check_benchmark(run, parts)
    return open_replayer(run, settings, parts)


def choose_sandbox(run: Run, until: int | None = None) -> str:
    """Return the run's own kind of sandbox (at event ``until``), or ``auto`` if that is not available here."""
    kind = run.sandbox(until)
    try:
        if kind != "auto":
            open_kind(kind)
    except UserError:
        return "auto"
    return kind


# Lineages


async def replay_lineage(
    run: Run,
    leaf: AgentId,
    sandbox: str | None = None,
    on_step: Callable[[StepAgain], None] = lambda _: None,
) -> list[StepAgain]:
    """Make every agent from the seed to ``leaf`` again on recorded replies, and compare commit ids.

    Each step starts from the recorded parent, so that one divergence does not hide later ones.

    Args:
        run: open to read.
        leaf: the last agent of the lineage.
        sandbox: the name of an engine, or ``auto``; default: as in the run, or ``auto`` if that is not
            available here.
        on_step: hears of each step when it is done.

    Raises:
        UserError: no such agent, no sandbox or benchmark, the benchmark has changed since, or nothing made the agent.
        ArchiveCorrupt: a trace, a commit or an event is damaged; the message names it.
        Infrastructure: the sandboxes' engine failed.
    """
    if run.kind is not RunKind.SEARCH:
        check_performed(run)
        raise UserError(f"{run.name}: its agents were evaluated and not made; replay the run that made them")
    agents = trace_lineage(run.tree, leaf)
    steps = []
    async with AsyncExitStack() as opened:
        replayers = {
            action: replayer
            for until, some in group_by_settings(run, [agent.action for agent in agents])
            for replayer in [await opened.enter_async_context(_open_at(run, until, sandbox))]
            for action in some
        }
        await asyncio.to_thread(check_descent, run, agents)
        for agent in agents:
            steps.append(await _remake_agent(replayers[agent.action], agent))
            on_step(steps[-1])
    return steps


async def _remake_agent(replayer: Replayer, agent: Agent) -> StepAgain:
    began = time.monotonic()
    outcome: Outcome | Infrastructure
    async with StandstillWatch() as watch:
        try:
            outcome = await _perform_step(replayer, agent)
        except Infrastructure as error:
            outcome = error
        if not isinstance(outcome, Born):
            outcome = watch.find_standstill() or outcome
    again = outcome.commit if isinstance(outcome, Born) else None
    match, divergence = await asyncio.to_thread(_compare_step, replayer, agent, outcome)
    return StepAgain(agent.id, agent.action, match, agent.commit, again, divergence, time.monotonic() - began)


async def _perform_step(replayer: Replayer, agent: Agent) -> Outcome:
    run, worker = replayer.run, replayer.worker
    if agent.action:
        starts = run.store.starts_of_action(agent.action)
        if not starts:
            raise ArchiveCorrupt(f"{run.folder / 'run.db'}: action {agent.action} was never started")
        return await worker.perform(agent.action, starts[-1][1])
    parents = [run.tree.agents[parent].commit for parent in agent.parents]
    source = await asyncio.to_thread(run.repository.source, agent.commit)
    commit = await asyncio.to_thread(worker.run.repository.commit, source, parents)
    return Born(agent.parents, agent.operator, commit, agent.rationale)


def _compare_step(
    replayer: Replayer, agent: Agent, outcome: Outcome | Infrastructure
) -> tuple[Match, Divergence | None]:
    match outcome:
        case Infrastructure():
            return replayer.explain_failure(agent.action, str(outcome))
        case Born(commit=commit) if commit == agent.commit:
            return Match.SAME, None
        case Born(commit=commit):
            recorded = replayer.run.repository.source(agent.commit)
            what = describe_differing_files(recorded, replayer.worker.run.repository.source(commit))
            return Match.DIFFERENT, Divergence(agent.action, f"another commit: {what}")
        case Stillborn(stage=stage, reason=reason):
            what = f"born then, stillborn now ({stage}): {reason}"
            return Match.DIFFERENT, Divergence(agent.action, what)
        case _:
            raise AssertionError("an expansion has no other outcome")


# Evaluations


def find_graded(
    run: Run, agents: Collection[AgentId] | None = None, task: TaskId | None = None
) -> Mapping[ActionId, Evaluation]:
    """Return the resolved and unresolved evaluations of a run, in the order of the log; without withdrawn verdicts.

    Args:
        run: the run.
        agents: only of these; None for all.
        task: only of this; None for all.

    Raises:
        UserError: there are none.
    """
    withdrawn = run.store.withdrawn()
    graded = {
        item.event.action: item.event.outcome
        for item in run.store.read()
        if isinstance(item.event, TaskGraded)
        and item.seq not in withdrawn
        and item.event.outcome.verdict is not Verdict.INVALID
        and (agents is None or item.event.outcome.agent in agents)
        and (task is None or item.event.outcome.task == task)
    }
    if not graded:
        who = "" if agents is None else f" by agent {', '.join(map(str, sorted(agents)))}"
        what = "" if task is None else f" of task {task!r}"
        raise UserError(
            f"run {run.name} has no graded evaluation{what}{who}",
            hint=Hint("all evaluations of an agent", "show", (run.name, "AGENT")),
        )
    return graded


async def replay_evaluations(
    run: Run,
    agents: Collection[AgentId] | None = None,
    task: TaskId | None = None,
    options: ReplayOptions | None = None,
    sandbox: str | None = None,
) -> Sequence[EvaluationAgain]:
    """Grade recorded patches again, or let the agents work again on recorded replies, in fresh sandboxes.

    Args:
        run: open to read.
        agents: whose evaluations; None for all.
        task: only of this task; None for all.
        options: grade or perform, and how many at once; default: grade, one at once.
        sandbox: as for ``replay_lineage``.

    Raises:
        UserError: there is no such evaluation or task, or an error of ``replay_lineage``.
        ArchiveCorrupt: a trace is missing or damaged; the message names it.
        Infrastructure: the sandboxes' engine failed.
    """
    graded = find_graded(run, agents, task)
    again: dict[ActionId, EvaluationAgain] = {}
    for until, actions in group_by_settings(run, graded):
        async with _open_at(run, until, sandbox) as replayer:
            chosen = {action: graded[action] for action in actions}
            again |= await repeat_evaluations(replayer, chosen, options or ReplayOptions())
    return [again[action] for action in graded]


async def repeat_evaluations(
    replayer: Replayer, chosen: Mapping[ActionId, Evaluation], options: ReplayOptions
) -> Mapping[ActionId, EvaluationAgain]:
    """Repeat evaluations of the run, as many at once as the options say; raise as ``replay_evaluations``."""
    free = asyncio.Semaphore(options.workers)

    async def repeat(action: ActionId, recorded: Evaluation) -> EvaluationAgain:
        async with free:
            began = time.monotonic()
            perform = _perform_again if options.perform else _regrade_patch
            async with StandstillWatch() as watch:
                match, now, divergence = await perform(replayer, action, recorded)
                stopped = watch.find_standstill()
            if stopped and match is Match.DIFFERENT:
                match, now, divergence = Match.NOT_PERFORMED, None, Divergence(action, str(stopped))
            verdict, reason = (now.verdict, now.reason) if now else (None, "")
            seconds = time.monotonic() - began
            done = EvaluationAgain(action, recorded, match, verdict, reason, divergence, seconds)
            options.on_result(done)
            return done

    try:
        async with asyncio.TaskGroup() as group:
            tasks = {
                action: group.create_task(repeat(action, recorded)) for action, recorded in chosen.items()
            }
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return {action: task.result() for action, task in tasks.items()}


_Result = tuple[Match, Evaluation | None, Divergence | None]


async def _regrade_patch(replayer: Replayer, action: ActionId, recorded: Evaluation) -> _Result:
    if "patch" not in recorded.cost.traces:
        return Match.NOTHING, None, None
    patch = await asyncio.to_thread(replayer.run.traces.get, recorded.cost.traces["patch"])
    worker = replayer.worker
    try:
        grade = await worker.benchmark.grade(recorded.task, patch, worker.session.spec.labels)
    except Infrastructure as error:
        return Match.NOT_PERFORMED, None, Divergence(action, f"the infrastructure failed: {error}")
    # What the agent's work showed is not seen again; what its patch shows is.
    grade = apply_conduct(grade, recorded.findings, worker.settings.conduct.on_misconduct)
    now = Evaluation(
        recorded.agent, recorded.task, recorded.attempt, grade.verdict, grade.reason, grade.score
    )
    # A worker adds notes on the agent's work to the reason; that work is not repeated.
    noted = mask_text(recorded.reason).startswith(f"{mask_text(grade.reason)} (")
    what = _describe_difference(recorded.verdict, grade.reason if noted else recorded.reason, now)
    return (Match.DIFFERENT, now, Divergence(action, what)) if what else (Match.SAME, now, None)


async def _perform_again(replayer: Replayer, action: ActionId, recorded: Evaluation) -> _Result:
    run, worker = replayer.run, replayer.worker
    what = Evaluate(recorded.agent, recorded.task, recorded.attempt)
    now = await worker.perform(action, what)
    if not isinstance(now, Evaluation):
        raise TypeError(f"an evaluation has no outcome {now!r}")
    made = worker.run.traces
    if now.verdict is Verdict.INVALID:
        match, divergence = replayer.explain_failure(action, now.reason)
    else:
        difference = await asyncio.to_thread(_find_difference, run.traces, recorded, made, now)
        if not difference:
            return Match.SAME, now, None
        match, divergence = Match.DIFFERENT, Divergence(action, difference)
    limit_s = worker.settings.limits.solve_limit_s(worker.benchmark.task(recorded.task).timeout_s)
    cut = await asyncio.to_thread(_explain_cut_short, recorded, now, run.traces, made)
    went_on = divergence.call == recorded.cost.usage.calls + 1
    if not cut and went_on and recorded.cost.seconds > LATE * limit_s:
        cut = f"the agent worked for {recorded.cost.seconds:.0f} s then, with a limit of {limit_s:.0f} s"
    if cut:
        return Match.CUT_SHORT, now, Divergence(action, f"{divergence.what} ({cut})", divergence.call)
    return match, now, divergence


def _find_difference(then: Traces, recorded: Evaluation, made: Traces, now: Evaluation) -> str:
    before, after = recorded.cost.traces.get("patch"), now.cost.traces.get("patch")
    if before == after:
        rubrics = measure(recorded, RUBRIC), measure(now, RUBRIC)
        judged = "the rubric: {} then, {} now".format(*rubrics) if rubrics[0] != rubrics[1] else ""
        return _describe_difference(recorded.verdict, recorded.reason, now) or judged
    if before is None or after is None:
        return (
            f"the patch: there was {'one' if before else 'none'}, now there is {'one' if after else 'none'}"
        )
    return f"the patch: {describe_differing_line(then.get(before), made.get(after))}"


def _describe_difference(verdict: Verdict, reason: str, now: Evaluation) -> str:
    if verdict is not now.verdict:
        return f"{verdict} then, {now.verdict} now: {now.reason}"
    if mask_text(reason) != mask_text(now.reason):
        return f"the reason: {quote_difference(reason, now.reason)}"
    return ""


def _explain_cut_short(recorded: Evaluation, now: Evaluation, then: Traces, made: Traces) -> str:
    for when, evaluation, traces in (("then", recorded, then), ("now", now, made)):
        digests: Mapping[str, Digest] = evaluation.cost.traces
        if "circumstances" not in digests:
            continue
        with traces.reading(digests["circumstances"]) as signs:
            if signs["timed_out"]:
                return f"the agent ran out of time {when}"
            if signs["exit_code"] == OUT_OF_MEMORY:
                return f"the agent was killed for its memory {when}"
    return ""
