"""The tree of agents as a fold of the events: parents and children, verdicts of each agent, actions in flight.

A verdict is added to its agent and to every ancestor when it is applied. So the tally of a clade (an agent and all its
descendants; clade metaproductivity, arXiv:2510.21614, section 3) is read in O(1), and reading never recomputes
anything. The policies choose the next step; the store keeps the events on disk.
"""

import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from dgm.archive.approvals import WaitingChild
from dgm.archive.clades import update_clades
from dgm.archive.deaths import CANNOT_GO_ON, StillbornStreak, forget_all, may_mend
from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    CallBooked,
    CallRefused,
    CallStarted,
    ChildProposed,
    Event,
    ModelCalled,
    ModelLearned,
    ModelNoted,
    Recorded,
    RunChanged,
    RunPaused,
    RunStarted,
    RunStopped,
    TaskGraded,
    VerdictWithdrawn,
)
from dgm.archive.flips import FlipCounts, flip
from dgm.archive.genealogy import Genealogy
from dgm.archive.model_facts import ModelFacts
from dgm.archive.spend import Spend
from dgm.archive.watch import Watch
from dgm.archive.withdrawals import Withdrawals
from dgm.domain import (
    Action,
    ActionId,
    Agent,
    AgentId,
    Budget,
    Evaluate,
    Expand,
    Tally,
    TaskId,
    Usage,
    Verdict,
)
from dgm.errors import ArchiveCorrupt


class Tree(Genealogy):
    """The state of a run according to its events, held in memory.

    The numeric columns (one entry per agent, indexed by its id) are plain arrays, so that ``numpy.array(column)``
    copies them at once. Treat them as read-only. Views that the methods return are live: they change with the next
    event, never by being read.
    """

    def __init__(self) -> None:
        super().__init__()
        self.own_resolved = array("q")
        self.own_unresolved = array("q")
        self.clade_resolved = array("q")
        self.clade_unresolved = array("q")
        self.tried_count = array("q")
        """Number of tasks per agent that ``tried`` names."""
        self.pending_evaluations = array("q")
        self.expansions = array("q")
        """Expansions started with the agent as first parent; a repeated expansion counts once."""
        self.expansions_begun = 0
        """Expansions started over all agents."""
        self.expansions_in_flight = 0
        """Expansions that run or wait to be repeated; those whose child waits for a person are not included."""
        self.barren = array("q")
        """Stillborn children with the agent as first parent, since its last child that was born.

        Children rejected by a person, or by a time-out in a person's place, do not count: they could be made. All
        counts are reset after a session that could not go on, when changed settings may remove the cause.
        """
        self.deaths = StillbornStreak()
        self.evaluations = 0
        """Evaluations graded resolved or unresolved; every attempt counts."""
        self.invalid = 0
        self.budget = Budget()
        self.tasks: tuple[TaskId, ...] = ()
        self.flips = FlipCounts()
        self.withdrawals = Withdrawals()
        self.changes: list[tuple[int, Mapping[str, Any]]] = []
        """Changed settings, nested, each with the number of its event."""
        self.seq = 0
        """Number of the last applied event."""
        self.next_action = ActionId(1)
        self.stop_reason = ""
        """Why the last session ended in good order; empty while a session runs, or if it was killed."""
        self.paused = ""
        """Why the run waits for its provider; empty if it does not wait."""
        self.refusals = 0
        """Number of agents' requests that the gateway refused."""
        self._verdicts: list[dict[TaskId, Verdict | None]] = []
        self._pending: dict[ActionId, Action] = {}
        self._redo: dict[ActionId, Action] = {}
        self._waiting: dict[ActionId, WaitingChild] = {}
        self._restarts: dict[ActionId, int] = {}
        self._child_numbers: dict[ActionId, int] = {}
        self._stillborn: dict[str, int] = {}
        self.model_calls, self.model_facts = Spend(), ModelFacts()
        self._watch = Watch()
        self._deferred = False

    # Queries

    @property
    def pending(self) -> Mapping[ActionId, Action]:
        """Started actions without an outcome, ordered by last start; expansions with a waiting child are left out."""
        return MappingProxyType(self._pending)

    @property
    def waiting(self) -> Mapping[ActionId, WaitingChild]:
        """Children that wait for a person's answer, by the expansion that made them, the longest waiting first."""
        return MappingProxyType(self._waiting)

    @property
    def stillborn(self) -> Mapping[str, int]:
        """Number of expansions without a child, by the stage that failed."""
        return MappingProxyType(self._stillborn)

    @property
    def spend_by(self) -> Mapping[tuple[str, str], Usage]:
        """Total usage of model calls by role and model."""
        return self.model_calls.by

    @property
    def spend(self) -> Usage:
        """Total usage of all model calls; calls cut off by a process's death count at their worst case."""
        return self.model_calls.total

    @property
    def wall_seconds(self) -> float:
        """Summed time from first to last event of each session, without the time between sessions."""
        return self._watch.seconds

    @property
    def session_began(self) -> float:
        """Unix time at which the last session began; 0 before the first event."""
        return self._watch.began

    @property
    def last_at(self) -> float:
        """Unix time of the last event; 0 before the first one."""
        return self._watch.last

    def spend_of(self, action: ActionId) -> Usage:
        """Return the usage of one action's model calls over all its tries."""
        return self.model_calls.of(action)

    def to_redo(self) -> Mapping[ActionId, Action]:
        """Return actions to repeat: lost or invalid, not running and not given up."""
        return MappingProxyType(self._redo)

    def tries(self, action: ActionId) -> int:
        """Return the number of starts of the action."""
        return int(0 < action < self.next_action) + self._restarts.get(action, 0)

    def child_number(self, action: ActionId) -> int:
        """Return the number of expansions of the same first parent that were started before this one."""
        return self._child_numbers[action]

    def own(self, agent: AgentId) -> Tally:
        """Return the tally of the agent's own verdicts."""
        return Tally(self.own_resolved[agent], self.own_unresolved[agent])

    def clade(self, agent: AgentId) -> Tally:
        """Return the tally of the agent and all its descendants, each descendant once."""
        return Tally(self.clade_resolved[agent], self.clade_unresolved[agent])

    def tried(self, agent: AgentId) -> AbstractSet[TaskId]:
        """Return tasks whose first attempt was started: graded, running, to be repeated, or given up."""
        return self._verdicts[agent].keys()

    def verdict(self, agent: AgentId, task: TaskId) -> Verdict | None:
        """Return the verdict of the first attempt; ``None`` if there is none (yet)."""
        return self._verdicts[agent].get(task)

    def verdicts(self, agent: AgentId) -> Mapping[TaskId, Verdict | None]:
        """Return ``verdict`` for each task that the agent has tried."""
        return MappingProxyType(self._verdicts[agent])

    # Updates

    def apply(self, recorded: Recorded) -> None:
        """Fold in one event; events must come once each, in the order of the log.

        Raises:
            ArchiveCorrupt: the event cannot follow the earlier ones.
        """
        match recorded.event:
            case TaskGraded(action, outcome):
                self.graded(action, outcome.agent, outcome.task, outcome.attempt, outcome.verdict)
            case ActionStarted(action, what, again):
                self.started(action, what, again)
            case ModelCalled() | CallStarted() | CallBooked() | ModelLearned() | ModelNoted():
                self.model_calls.apply(recorded.event)
                self.model_facts.apply(recorded.event)
            case CallRefused(status=status):
                self.refusals += status >= 400
            case ChildProposed(action, child):
                self._forget(action)
                self.deaths.forget()
                self._waiting[action] = WaitingChild(child, recorded.at)
            case AgentBorn():
                self._born(recorded.event)
            case AgentStillborn(action, dead):
                self._forget(action)
                self._stillborn[dead.stage] = self._stillborn.get(dead.stage, 0) + 1
                self.barren[dead.parents[0]] += not dead.decided
                self.deaths.add(recorded.event)
            case ActionLost(action, _, final):
                self._lose(action, final)
            case VerdictWithdrawn(action, _, what, verdict, _, calls):
                self._withdraw(action, what, verdict)
                self.withdrawals.add(action, calls)
            case event:
                self._apply_to_run(event, recorded)
        self.passed(recorded.seq, recorded.at)

    def _apply_to_run(self, event: Event, recorded: Recorded) -> None:
        match event:
            case RunStarted(budget, tasks):
                self.flips.counts = event.flips
                self.deaths.forget()
                if self.stop_reason == CANNOT_GO_ON:
                    forget_all(self.barren)
                self.budget, self.tasks, self.stop_reason, self.paused = budget, tasks, "", ""
                self._watch.begin(recorded.at)
            case RunChanged(settings):
                self.changes.append((recorded.seq, settings))
                if may_mend(settings):
                    forget_all(self.barren)
            case RunPaused(reason):
                self.paused = reason
            case RunStopped(reason):
                self.stop_reason, self.paused = reason, ""
            case _:
                pass

    def passed(self, seq: int, at: float) -> None:
        """Note the place in the log up to which the tree is folded."""
        self.seq = seq
        self._watch.passed(at)

    def started(self, action: ActionId, what: Action, again: bool) -> None:
        """Fold in an ``ActionStarted``."""
        if action < self.next_action:
            self._forget(action)
        self._pending[action] = what
        self.paused = ""
        if again:
            self._restarts[action] = self._restarts.get(action, 0) + 1
        if action >= self.next_action:
            self.next_action = ActionId(action + 1)
        if isinstance(what, Evaluate):
            self.pending_evaluations[what.agent] += 1
            if what.attempt == 0:
                self._try(what.agent, what.task, None)
            return
        self.expansions_in_flight += 1
        if action not in self._child_numbers:
            self._child_numbers[action] = self.expansions[what.parents[0]]
            self.expansions[what.parents[0]] += 1
            self.expansions_begun += 1
            if what.aim:
                self._aims[action] = sys.intern(what.aim)

    def graded(self, action: ActionId, agent: AgentId, task: TaskId, attempt: int, verdict: Verdict) -> None:
        """Fold in a ``TaskGraded``; an invalid one is to be repeated."""
        what = self._forget(action)
        if verdict is Verdict.INVALID:
            self.invalid += 1
            self._redo[action] = what or Evaluate(agent, task, attempt)
            return
        if attempt == 0:
            self._judge(agent, task, verdict)
        self._count(agent, verdict, 1)

    def _withdraw(self, action: ActionId, what: Evaluate, verdict: Verdict) -> None:
        known = self._verdicts[what.agent].get(what.task) if what.attempt == 0 else verdict
        if known is not verdict or verdict is Verdict.INVALID or action in self._pending:
            raise ArchiveCorrupt(f"action {action} has no verdict {verdict} that could be withdrawn")
        if what.attempt == 0:
            self._judge(what.agent, what.task, None)
        self._count(what.agent, verdict, -1)
        self._redo[action] = what

    def _count(self, agent: AgentId, verdict: Verdict, times: int) -> None:
        resolved = times if verdict is Verdict.RESOLVED else 0
        self.evaluations += times
        self.own_resolved[agent] += resolved
        self.own_unresolved[agent] += times - resolved
        if not self._deferred:
            self._add_to_clades(agent, resolved, times - resolved)

    @contextmanager
    def many(self) -> Iterator[None]:
        """Defer updates of clade tallies to the end of the context, and then do them all at once.

        This makes opening a long run several times faster.
        """
        before = self.own_resolved[:], self.own_unresolved[:]
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False
            own, clade = (
                (self.own_resolved, self.own_unresolved),
                (self.clade_resolved, self.clade_unresolved),
            )
            update_clades([agent.parents for agent in self._agents], own, before, clade)

    def _add_to_clades(self, agent: AgentId, resolved: int, unresolved: int) -> None:
        column, others = self.clade_resolved, self.clade_unresolved
        for one in (agent, *self.ancestors(agent)):
            column[one] += resolved
            others[one] += unresolved

    def _born(self, event: AgentBorn) -> None:
        child = event.outcome
        if event.id != len(self._agents) or any(parent >= event.id for parent in child.parents):
            raise ArchiveCorrupt(
                f"agent {event.id} with parents {child.parents} cannot be born as number {len(self._agents)}"
            )
        self._forget(event.action)
        self._add(Agent(event.id, child.parents, child.commit, child.operator, child.rationale, event.action))
        self._verdicts.append({})
        for column in self._counters():
            column.append(0)
        self.deaths.forget()
        if child.parents:
            self.barren[child.parents[0]] = 0

    def _counters(self) -> "Sequence[array[int]]":
        return (
            self.own_resolved,
            self.own_unresolved,
            self.clade_resolved,
            self.clade_unresolved,
            self.tried_count,
            self.pending_evaluations,
            self.expansions,
            self.barren,
            self.flips.balance,
        )

    def _judge(self, agent: AgentId, task: TaskId, verdict: Verdict | None) -> None:
        if not self.flips.counts:
            self._try(agent, task, verdict)
            return
        kin = (agent, *self._children[agent])
        before = [flip(self, one, task) for one in kin]
        self._try(agent, task, verdict)
        for one, was in zip(kin, before, strict=True):
            self.flips.balance[one] += flip(self, one, task) - was

    def _try(self, agent: AgentId, task: TaskId, verdict: Verdict | None) -> None:
        tried = self._verdicts[agent]
        if task in tried:
            tried[task] = verdict
        else:
            self.tried_count[agent] += 1
            tried[TaskId(sys.intern(task))] = verdict

    def _forget(self, action: ActionId) -> Action | None:
        running = self._pending.pop(action, None)
        if isinstance(running, Evaluate):
            self.pending_evaluations[running.agent] -= 1
            return running
        self._waiting.pop(action, None)
        what = running or self._redo.pop(action, None)
        self.expansions_in_flight -= isinstance(what, Expand)
        return what

    def _lose(self, action: ActionId, final: bool) -> None:
        what = self._forget(action)
        if what is not None and not final:
            self._redo[action] = what
            self.expansions_in_flight += isinstance(what, Expand)
