"""Live replay: another model repeats parts of a recorded run in a small run of its own, compared pair by pair."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from dgm.analysis.budgets import Ending, Reason, find_ending
from dgm.analysis.lineage import Lineage
from dgm.archive.events import ActionLost, ActionStarted, AgentBorn, AgentStillborn, Recorded, RunStopped
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import (
    Action,
    ActionId,
    Agent,
    AgentId,
    Born,
    CommitId,
    Evaluate,
    Expand,
    Stillborn,
    TaskId,
    Usage,
    Verdict,
)
from dgm.errors import ArchiveCorrupt, Infrastructure
from dgm.evaluation.exam import OPERATOR, Comparison, compare_verdicts, find_candidate
from dgm.replay.recording import RecordedOrders, ReplayRun
from dgm.worker.worker import Worker

DONE = Ending(Reason.NOTHING_LEFT, "all of it was done before")
Pair = tuple[AgentId, TaskId]


class PairsPolicy:
    """A policy that evaluates the given pairs of agent and task, once each, in order; it never expands."""

    name = "pairs"
    keeps_state = False

    def __init__(self, pairs: Sequence[Pair]) -> None:
        """Take pairs whose agents are already entered in the run that is searched."""
        self._pairs = pairs

    def next(self, tree: Tree, rng: Random) -> Action | None:  # noqa: ARG002  (nothing is left to chance)
        """Return the first pair that was not tried; None when all were."""
        return next(
            (Evaluate(agent, task) for agent, task in self._pairs if task not in tree.tried(agent)), None
        )

    def observe(self, event: Recorded) -> None:
        """Keep nothing."""


@dataclass(frozen=True, slots=True)
class LiveEvaluations:
    """Agents of a run on tasks, by another model; in each comparison the live verdicts are the second."""

    folder: Path
    """Folder of the run in which the work is recorded."""
    ending: Ending
    missing: int
    """Pairs of agent and task without a live verdict (yet)."""
    against_record: Comparison
    """Comparison over all pairs."""
    agents: Mapping[AgentId, Comparison]
    """Agent → that comparison for it alone."""
    spend: Usage
    """Usage of all sessions of the live run."""


def compare_results(run: Run, live: Run, pairs: Sequence[Pair], ended: Ending) -> LiveEvaluations:
    """Return the results in ``live`` of the pairs, whose agents are those of ``run``.

    Args:
        run: the recorded run.
        live: the run in which the pairs were evaluated.
        pairs: all of them.
        ended: how the last session of ``live`` ended.
    """
    stand_ins = {agent: find_candidate(live, run.tree.agents[agent]) for agent, _ in pairs}

    def now(agent: AgentId, task: TaskId) -> Verdict | None:
        stand_in = stand_ins[agent]
        return None if stand_in is None else live.tree.verdict(stand_in, task)

    rows = [(agent, task, run.tree.verdict(agent, task), now(agent, task)) for agent, task in pairs]
    return LiveEvaluations(
        folder=live.folder,
        ending=ended,
        missing=sum(now is None for *_, now in rows),
        against_record=compare_verdicts(
            (f"agent {agent} {task}", then, now) for agent, task, then, now in rows
        ),
        agents={
            agent: compare_verdicts((task, then, now) for member, task, then, now in rows if member == agent)
            for agent in stand_ins
        },
        spend=live.tree.spend,
    )


@dataclass(frozen=True, slots=True)
class LiveStep:
    """One agent of a lineage, made again by another model from its recorded parent."""

    agent: AgentId
    """The agent's number in the recorded run."""
    commit: CommitId
    """The recorded commit."""
    born: CommitId | None
    """Commit of the live child; None if it was stillborn."""
    stage: str
    """The stage at which a stillborn child failed; empty if it was born."""
    said: str
    """The live child's rationale, or why it was stillborn."""
    same: bool
    """Whether the live child is the recorded one, byte for byte."""


@dataclass(frozen=True, slots=True)
class LiveLineage:
    """A lineage, made again step by step by another model."""

    folder: Path
    """Folder of the run in which the work is recorded."""
    ending: Ending
    steps: Sequence[LiveStep]
    """The steps that are done, in order."""
    missing: int
    """Number of steps that are not done (yet)."""
    spend: Usage
    """Usage of all sessions of the live run."""


def enter_ancestors(live: Run, run: Run, leaf: AgentId) -> None:
    """Enter every ancestor of ``leaf`` with its descent, so that commit ids of children are comparable.

    Raises:
        ArchiveCorrupt: an ancestor's source does not match its commit id.
    """
    for ancestor in sorted(run.tree.ancestors(leaf)):
        agent = run.tree.agents[ancestor]
        if find_candidate(live, agent) is not None:
            continue
        parents = _find_stand_ins(live, run, agent)
        commits = [live.tree.agents[parent].commit for parent in parents]
        commit = live.repository.commit(run.repository.source(agent.commit), commits)
        if commit != agent.commit:
            raise ArchiveCorrupt(
                f"{run.folder / 'agents.git'}: agent {agent.id} is not its commit {agent.commit}"
            )
        live.append(live.birth(Born(parents, OPERATOR, commit, agent.commit), ActionId(0)))


def live_steps(live: Run, run: Run, leaf: AgentId) -> list[LiveStep]:
    """Return the steps that are done."""
    children = Lineage(run.tree, leaf).agents[1:]
    done = (_finished_step(live, agent, ActionId(number)) for number, agent in enumerate(children, 1))
    return [step for step in done if step is not None]


async def perform_lineage(
    run: Run, live: Run, leaf: AgentId, worker: Worker, on_step: Callable[[LiveStep], None]
) -> Ending:
    """Make each missing agent of the lineage again; record all paid work in ``live``.

    Args:
        run: the recorded run.
        live: a run of its own, in which the leaf's ancestors are entered; step n of the lineage is its action
            n.
        leaf: the last agent of the lineage.
        worker: of ``live``, with the model that is tried.
        on_step: hears of each step when it is done.
    """
    for action in list(live.tree.pending):
        live.append(ActionLost(action, "the process that performed it ended"))
    worker = replace(worker, run=ReplayRun(run, live, live.folder))
    orders = RecordedOrders(run, worker.settings)
    over = Ending(Reason.NOTHING_LEFT, "every step is done")
    for number, agent in enumerate(Lineage(run.tree, leaf).agents[1:], 1):
        action = ActionId(number)
        if _finished_step(live, agent, action) is None:
            stop = find_ending(live.tree, worker.session.gateway.ledger.exhausted) or await _perform_step(
                run, live, agent, action, (worker, orders)
            )
            if stop:
                over = stop
                break
        step = _finished_step(live, agent, action)
        if step:
            on_step(step)
    live.append(RunStopped(over.reason.value))
    return over


async def _perform_step(
    run: Run, live: Run, agent: Agent, action: ActionId, how: tuple[Worker, RecordedOrders]
) -> Ending | None:
    worker, orders = how
    parents = _find_stand_ins(live, run, agent)
    recorded = orders.expansion(agent.action)
    what = Expand(parents, agent.operator, aim=recorded.action.aim)
    live.append(ActionStarted(action, what, again=live.tree.tries(action) > 0))
    order = replace(
        recorded,
        id=action,
        action=replace(recorded.action, parents=parents),
        parents=tuple(live.tree.agents[parent] for parent in parents),
    )
    try:
        outcome = await worker.perform(order)
    except Infrastructure as error:
        live.append(ActionLost(action, str(error)))
        spent = find_ending(live.tree, worker.session.gateway.ledger.exhausted)
        return spent or Ending(Reason.OUTAGE, worker.session.gateway.caller.refused or str(error))
    match outcome:
        case Born():
            live.append(live.birth(outcome, action))
        case Stillborn():
            live.append(AgentStillborn(action, outcome))
    return None


def _find_stand_ins(live: Run, run: Run, agent: Agent) -> tuple[AgentId, ...]:
    found = [find_candidate(live, run.tree.agents[parent]) for parent in agent.parents]
    return tuple(parent for parent in found if parent is not None)


def _finished_step(live: Run, agent: Agent, action: ActionId) -> LiveStep | None:
    recorded = live.outcome(action)
    match recorded.event if recorded else None:
        case AgentBorn(outcome=child):
            same = child.commit == agent.commit
            return LiveStep(agent.id, agent.commit, child.commit, "", child.rationale, same)
        case AgentStillborn(outcome=dead):
            return LiveStep(agent.id, agent.commit, None, dead.stage, dead.reason, False)
        case _:
            return None
