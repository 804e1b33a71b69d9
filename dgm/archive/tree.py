"""The tree of agents as a fold of the events: descent, verdicts of each agent, actions in flight.

A verdict is added to its agent and to every ancestor when it is applied. So the tally of a clade (an agent and all its
descendants; clade metaproductivity, arXiv:2510.21614, section 3) is read in O(1), and reading never recomputes
anything. The policies choose the next step; the log keeps the events on disk.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from operator import add, attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dgm.archive.curriculum import Counts, Curriculum, shift_of_tasks
from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentNoted,
    AgentStillborn,
    CallBooked,
    CallRefused,
    CallStarted,
    ChildProposed,
    Event,
    ModelCalled,
    ModelLearned,
    ModelNoted,
    NoteKind,
    PromotionDecided,
    PromotionSpent,
    PromotionStarted,
    Recorded,
    RunChanged,
    RunPaused,
    RunStarted,
    RunStopped,
    TaskGraded,
    TasksChanged,
    VerdictWithdrawn,
)
from dgm.archive.measures import FirstAttempts, reward_of
from dgm.domain import (
    NO_ACTION,
    SEED,
    Action,
    ActionId,
    Agent,
    AgentId,
    Born,
    Budget,
    Evaluate,
    Evaluation,
    Expand,
    Objective,
    Tally,
    TaskId,
    Usage,
    Verdict,
)
from dgm.errors import ArchiveCorrupt

if TYPE_CHECKING:
    from networkx import DiGraph


_amounts = attrgetter(*(each.name for each in fields(Usage)))
_NOTHING = _amounts(Usage())
CHECK_ROLE = "check"
"""The role of checks of models, which belong to no action."""
PROMOTION_ROLE = "promotion"
"""The role of all calls of promotion evaluations, which have a log of their own."""
PROMOTION_EVENTS = (PromotionStarted, PromotionSpent, PromotionDecided)
"""Events of which policies see nothing."""
Key = tuple[ActionId, int]
"""Action and number of a call."""
_SUMMED, _FINDINGS, _KEPT, _BROKEN, _REWARD = 6, 2, 3, 4, 5
"""Number of first columns of a tree that are summed over clades; those of findings, predictions and rewards."""
REWARD_UNIT = 10**6
"""Rewards are summed in whole millionths, so that a sum does not depend on its order."""


class Spend:
    """The fold of every model call: the only place that sums money, so that nothing counts twice."""

    def __init__(self) -> None:
        # Fields of a Usage in order: creating a Usage for each of a million sums would take most of the time.
        self._total: tuple[Any, ...] = _NOTHING
        self._by: dict[tuple[str, str], tuple[Any, ...]] = {}
        self._of: dict[ActionId, tuple[Any, ...]] = {}
        self._open: dict[Key, CallStarted] = {}
        self._cut: dict[Key, CallBooked] = {}

    @property
    def open(self) -> Mapping[Key, CallStarted]:
        """Started calls without an end; they are not in the sums."""
        return MappingProxyType(self._open)

    @property
    def cut(self) -> Mapping[Key, CallBooked]:
        """Calls cut off by the death of a process, until their repetition is answered.

        The sums hold their worst case.
        """
        return MappingProxyType(self._cut)

    @property
    def total(self) -> Usage:
        """The sum over all calls."""
        return Usage(*self._total)

    @property
    def by(self) -> Mapping[tuple[str, str], Usage]:
        """Role and model → the sum over their calls."""
        return {who: Usage(*sums) for who, sums in self._by.items()}

    def of(self, action: ActionId) -> Usage:
        """Return the sum over one action's calls; zero if it made none. Token details are not kept."""
        return Usage(*self._of.get(action, ())[:4])

    def apply(
        self, event: ModelCalled | CallStarted | CallBooked | ModelLearned | ModelNoted | PromotionSpent
    ) -> None:
        """Fold one event in."""
        match event:
            case PromotionSpent(model, usage):
                self._add(NO_ACTION, usage, (PROMOTION_ROLE, model))
            case ModelCalled(action, number, model, role):
                self._open.pop((action, number), None)
                self._add(action, event.usage, (role, model))
            case CallStarted(action, number):
                self._open[action, number] = event
            case CallBooked(action, number, model, role, usage, still_open):
                self._open.pop((action, number), None)
                self._cut.pop((action, number), None)
                if still_open:
                    self._cut[action, number] = event
                self._add(action, usage, (role, model))
            case ModelLearned(model, usage=usage) if usage.calls:
                self._add(NO_ACTION, usage, (CHECK_ROLE, model))
            case _:
                pass

    def _add(self, action: ActionId, usage: Usage, who: tuple[str, str]) -> None:
        amounts = _amounts(usage)
        self._total = tuple(map(add, self._total, amounts))
        self._by[who] = tuple(map(add, self._by.get(who, _NOTHING), amounts))
        self._of[action] = tuple(map(add, self._of.get(action, _NOTHING), amounts))


Column = NDArray[np.int64]
_Number = TypeVar("_Number", np.int64, np.float64)
CANNOT_GO_ON = "cannot go on"
"""The reason in ``RunStopped`` when a session ended because its children die."""
MENDING_SECTIONS = frozenset({"models", "providers", "limits", "sandbox"})
"""Sections of the settings whose change may remove the cause of stillbirths."""


@dataclass(frozen=True, slots=True)
class WaitingChild:
    """A child that is ready to be born once a person approves it."""

    child: Born
    since: float
    """Unix time."""


@dataclass(slots=True)
class Watch:
    """Wall time over all sessions, without the time between them; a fold of the times of events, in Unix seconds."""

    began: float = 0.0
    """Unix time at which the last session began; 0 before the first event."""
    last: float = 0.0
    """Unix time of the last event; 0 before the first one."""
    promoting: float = 0.0
    """The part of ``seconds`` in which rounds of promotion were performed."""
    _promotes: bool = False
    _closed: float = 0.0

    @property
    def seconds(self) -> float:
        """Summed time from first to last event of each session, in seconds."""
        return self._closed + self.last - self.began

    def begin(self, at: float) -> None:
        """Begin a session; the time since the last one does not count."""
        self._closed = self.seconds
        self.began = self.last = at

    def passed(self, recorded: Recorded) -> None:
        """Note the time of an event, unless it is a note or one of promotion, which may lie between sessions.

        If the clock was set back, no time is subtracted.
        """
        if isinstance(recorded.event, AgentNoted):
            return
        if isinstance(recorded.event, PROMOTION_EVENTS):
            self._promotes = True
            return
        if not self.began:
            self.began = recorded.at
        if self._promotes:
            self.promoting += max(0.0, recorded.at - self.last)
            self._promotes = False
        self.last = max(self.last, recorded.at)


class ModelFacts:
    """Learned facts about the models of a run.

    Attributes:
        abilities: model → all known abilities, in the form that ``dgm.models.abilities`` writes.
        words: model → learned facts as text, in order, each once.
        waits: the last noted wait; None if there was none.
    """

    def __init__(self) -> None:
        self.abilities: dict[str, Mapping[str, Any]] = {}
        self.words: dict[str, dict[str, None]] = {}
        self.waits: ModelNoted | None = None

    def apply(self, event: ModelLearned | ModelNoted) -> None:
        """Fold in one event."""
        if isinstance(event, ModelLearned):
            self.abilities[event.model] = event.abilities
        elif event.kind is NoteKind.WAITS:
            self.waits = event
            return
        if event.words or isinstance(event, ModelNoted):
            self.words.setdefault(event.model, {})[event.words] = None


@dataclass(slots=True)
class Promotions:
    """The rounds of promotion: a fold of their events."""

    rounds: list[PromotionStarted] = field(default_factory=list)
    """All that were begun; the last one may be open."""
    accepted: list[AgentId | None] = field(default_factory=list)
    """The agent that each ended round promoted; None: not yet."""
    evaluations: int = 0
    """Graded evaluations of the search when the last round began."""

    @property
    def open(self) -> PromotionStarted | None:
        """The round that is to be finished; None if there is none."""
        return self.rounds[-1] if len(self.rounds) > len(self.accepted) else None

    @property
    def certified(self) -> AgentId | None:
        """The agent that was promoted last; None if none was."""
        return next((agent for agent in reversed(self.accepted) if agent is not None), None)

    @property
    def incumbent(self) -> AgentId:
        """The agent that candidates are compared with: the certified one, at first the seed."""
        return self.certified or SEED

    @property
    def count(self) -> int:
        """Number of promotions."""
        return sum(agent is not None for agent in self.accepted)

    @property
    def rejected(self) -> AbstractSet[AgentId]:
        """Candidates that were compared with the incumbent: the same tasks and a lower level cannot accept them."""
        return {
            agent
            for done, _ in zip(self.rounds, self.accepted, strict=False)
            if done.incumbent == self.incumbent
            for agent in done.candidates
        }

    def apply(self, event: PromotionStarted | PromotionDecided, agents: int, evaluations: int) -> None:
        """Fold in an event of a tree with so many agents and graded evaluations; raises ``ArchiveCorrupt``."""
        current = self.open
        if isinstance(event, PromotionStarted):
            fits = current is None and (event.number, event.incumbent) == (
                len(self.rounds) + 1,
                self.incumbent,
            )
            rules = {(begun.alpha, begun.limit) for begun in self.rounds} or {(event.alpha, event.limit)}
            fits = fits and 0 < event.alpha < 1 and rules == {(event.alpha, event.limit)}
            fits = fits and 0 < len(event.candidates) <= event.limit and max(event.candidates) < agents
            fits = fits and event.incumbent not in event.candidates
            self.rounds.append(event)
            self.evaluations = evaluations
        else:
            candidates = current.candidates if current and current.number == event.number else ()
            fits = bool(candidates) and event.accepted in {None, *candidates}
            self.accepted.append(event.accepted)
        if not fits:
            raise ArchiveCorrupt(f"round {event.number} of promotion does not fit here")


class Tree:
    """The state of a run according to its events, held in memory.

    Columns are views with an entry per agent, by its id. Copy a column to keep it: it changes with the next verdict,
    and a birth replaces it. Mappings that methods return are live, too; reading never changes anything.
    """

    own_resolved: Column
    own_unresolved: Column
    own_findings: Column
    """Findings against the agent: in its evaluations, in its edit, and in its work on its children."""
    own_kept: Column
    """Predictions of the agent's edit that were kept; ``Prediction`` says when one is."""
    own_broken: Column
    clade_resolved: Column
    clade_unresolved: Column
    clade_findings: Column
    clade_kept: Column
    clade_broken: Column
    own_reward: Column
    """Sum of the rewards of the agent's evaluations, in ``REWARD_UNIT``; 0 unless the objective has a reward."""
    clade_reward: Column
    depths: Column
    """Number of steps to the root along first parents."""
    tried_count: Column
    """Number of tasks that ``tried`` names."""
    untried_count: Column
    """Number of active tasks that ``tried`` does not name."""
    pending_evaluations: Column
    expansions: Column
    """Expansions started with the agent as first parent; a repeated expansion counts once."""
    barren: Column
    """Stillborn children with the agent as first parent, since its last child that was born.

    Children rejected by a person, or by a time-out in a person's place, do not count: they could be made. All counts
    are reset after a session that could not go on, when changed settings may remove the cause.
    """
    stillbirths: Column
    """Stillborn children with the agent as first parent, except those that a person rejected."""
    flip_balance: Column
    """Tasks gained minus tasks lost against the agent's parents; 0 unless ``counts_flips``.

    Flips are a term of release engineering: reject a release that breaks more than it fixes (AgentDevel).
    """
    COLUMNS = (
        "own_resolved",
        "own_unresolved",
        "own_findings",
        "own_kept",
        "own_broken",
        "own_reward",
        "clade_resolved",
        "clade_unresolved",
        "clade_findings",
        "clade_kept",
        "clade_broken",
        "clade_reward",
        "depths",
        "tried_count",
        "untried_count",
        "pending_evaluations",
        "expansions",
        "barren",
        "stillbirths",
        "flip_balance",
    )

    def __init__(self) -> None:  # noqa: PLR0915  (a field a line)
        self.counts_flips = False
        """Whether agents that lost more than they gained may not have children."""
        self.expansions_begun = 0
        """Expansions started over all agents."""
        self.expansions_in_flight = 0
        """Expansions that run or wait to be repeated; those whose child waits for a person are not included."""
        self.deaths: list[AgentStillborn] = []
        """Stillborn children of the session since the last child that was born or waits for a person.

        Children rejected by a person, or by a time-out in a person's place, do not count: they could be made.
        """
        self.evaluations = 0
        """Evaluations graded resolved or unresolved; every attempt counts."""
        self.invalid = 0
        self.withdrawn = 0
        """Number of withdrawn verdicts."""
        self.budget = Budget()
        self.tasks: tuple[TaskId, ...] = ()
        """The search split, in the suite's order."""
        self.curriculum = Curriculum()
        self.objective = Objective()
        self.attempts = FirstAttempts()
        """First attempts; empty unless there is an objective."""
        self._front: tuple[int, frozenset[AgentId]] = 0, frozenset()
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
        self.model_calls, self.model_facts = Spend(), ModelFacts()
        self.promotions = Promotions()
        self.roots: list[AgentId] = []
        """Agents without parents, by id: the seed, and further agents that the search started from."""
        self._agents: list[Agent] = []
        self._children: list[list[AgentId]] = []
        self._aims: dict[ActionId, str] = {}
        self._verdicts: list[dict[TaskId, Verdict | None]] = []
        self._pending: dict[ActionId, Action] = {}
        self._redo: dict[ActionId, Action] = {}
        self._waiting: dict[ActionId, WaitingChild] = {}
        self._restarts: dict[ActionId, int] = {}
        self._child_numbers: dict[ActionId, int] = {}
        self._stillborn: dict[str, int] = {}
        self._withdrawals: dict[ActionId, list[tuple[int, ...]]] = {}
        self._findings: dict[ActionId, int] = {}
        """Number of findings of each evaluation that has some and whose verdict counts."""
        self._rewards: dict[ActionId, int] = {}
        self.flagged: set[AgentId] = set()
        """Agents with findings in their own edit."""
        self._watch = Watch()
        self._deferred = False
        self._table = np.zeros((len(self.COLUMNS), 16), dtype=np.int64)
        self._graph: DiGraph[int] | None = None
        self._comparable: tuple[int, tuple[Counts, Counts]] | None = None
        """The number of an event, and ``comparable`` after it."""
        self._gains: tuple[int, NDArray[np.float64]] = (-1, np.zeros((2, 0)))
        """Sums of gains and counted expansions by clade, and the number of the event up to which they hold."""
        self._cut_columns()

    # Descent

    @property
    def agents(self) -> Sequence[Agent]:
        """All members of the archive, in order of birth; an agent's id is its index."""
        return self._agents

    @property
    def graph(self) -> "DiGraph[int]":
        """The genealogy: an edge from each parent to its child, with ``order`` 0 for the lineage parent.

        It is live; copy it to change it. It is made when first asked for: importing ``networkx`` takes as long as a
        command that needs no graph.
        """
        if self._graph is None:
            from networkx import DiGraph

            self._graph = DiGraph()
        for agent in self._agents[len(self._graph) :]:
            self._graph.add_node(agent.id)
            for order, parent in enumerate(agent.parents):
                self._graph.add_edge(parent, agent.id, order=order)
        return self._graph

    def aim(self, agent: AgentId) -> str:
        """Return in one word the weakness that the agent's operator set out to fix; empty if it named none."""
        return self._aims.get(self._agents[agent].action, "")

    def children(self, agent: AgentId) -> Sequence[AgentId]:
        """Return the agents that name this one as a parent, in order of birth."""
        return self._children[agent]

    def first_parent(self, agent: AgentId) -> AgentId | None:
        """Return the lineage parent of the agent; ``None`` for a root."""
        parents = self._agents[agent].parents
        return parents[0] if parents else None

    def depth(self, agent: AgentId) -> int:
        """Return the number of steps to the root along first parents."""
        return int(self.depths[agent])

    def ancestors(self, agent: AgentId) -> Iterator[AgentId]:
        """Yield all ancestors down to the roots, each once and never before its descendants."""
        # Ten times as fast as networkx.ancestors, and every verdict asks.
        parents = self._agents[agent].parents
        while len(parents) == 1:
            yield parents[0]
            parents = self._agents[parents[0]].parents
        above, new = set[AgentId](), set(parents)
        while new:
            above |= new
            new = {parent for agent in new for parent in self._agents[agent].parents} - above
        yield from sorted(above, reverse=True)

    def clade_members(self, agent: AgentId) -> AbstractSet[AgentId]:
        """Return the agent and all its descendants; a crossover's child belongs to the clades of both parents."""
        members, waiting = {agent}, [agent]
        while waiting:
            children = set(self._children[waiting.pop()]) - members
            members |= children
            waiting += children
        return members

    def common_ancestor(self, agent: AgentId, other: AgentId) -> AgentId | None:
        """Return the youngest agent from which both descend, or which is one of them; None: they share no root."""
        from networkx import ancestors

        line = {agent, *ancestors(self.graph, agent)}
        return max(map(AgentId, line & {other, *ancestors(self.graph, other)}), default=None)

    # Verdicts and actions

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

    def to_redo(self) -> Mapping[ActionId, Action]:
        """Return actions to repeat: lost or invalid, not running and not given up."""
        return MappingProxyType(self._redo)

    @property
    def active(self) -> tuple[TaskId, ...]:
        """Tasks that agents are evaluated on now; ``tasks`` unless the run has a curriculum."""
        return self.curriculum.active

    def tries(self, action: ActionId) -> int:
        """Return the number of starts of the action."""
        return int(0 < action < self.next_action) + self._restarts.get(action, 0)

    def child_number(self, action: ActionId) -> int:
        """Return the number of expansions of the same first parent that were started before this one."""
        return self._child_numbers[action]

    def own(self, agent: AgentId) -> Tally:
        """Return the tally of the agent's own verdicts."""
        return Tally(int(self.own_resolved[agent]), int(self.own_unresolved[agent]))

    def clade(self, agent: AgentId) -> Tally:
        """Return the tally of the agent and all its descendants, each descendant once."""
        return Tally(int(self.clade_resolved[agent]), int(self.clade_unresolved[agent]))

    @property
    def comparable(self) -> tuple[Counts, Counts]:
        """``own_resolved`` and ``clade_resolved``, corrected for which tasks the verdicts are on; shapes (agents,).

        After a change of the active tasks, plain tallies flatter agents that met the easier ones (``shift_of_tasks``).
        The numbers of verdicts stay as they are. Without such a change these are the plain counts.
        """
        if self.curriculum.changes < 2:
            return self.own_resolved, self.clade_resolved
        if self._comparable is None or self._comparable[0] != self.seq:
            shift = shift_of_tasks(self._verdicts)
            clade_shift = self._sum_clades(shift[None, :])[0]
            counts = (
                np.clip(self.own_resolved - shift, 0.0, self.own_resolved + self.own_unresolved),
                np.clip(self.clade_resolved - clade_shift, 0.0, self.clade_resolved + self.clade_unresolved),
            )
            self._comparable = self.seq, counts
        return self._comparable[1]

    def promises(self, agent: AgentId) -> Tally:
        """Return how many of the agent's predictions were kept (as resolved) and broken (as unresolved)."""
        return Tally(int(self.own_kept[agent]), int(self.own_broken[agent]))

    def clade_promises(self, agent: AgentId) -> Tally:
        """Return the same over the agent and all its descendants, each descendant once."""
        return Tally(int(self.clade_kept[agent]), int(self.clade_broken[agent]))

    def clade_gain(self, agent: AgentId) -> tuple[float, int]:
        """Return the gain per expansion of the agent's clade, in rate, and the number of expansions that count.

        It scores how good the clade is at improving itself: the mean of g over the ended expansions whose first
        parent is in the clade. A stillborn child gains nothing: g = 0. A child is compared with its parent on the n > 0
        tasks that both have a first verdict on; of several parents, with the one of the highest posterior mean rate
        (1 + resolved) / (2 + verdicts). Then g = (gained - lost) / (n + 2): two verdicts of the prior say that nothing
        changed, so few tasks give a small gain, and a child that resolves what its parent resolved has g = 0. Losses
        count like gains; with max(0, g), chance alone would look like improvement. Children without a common task and
        lost expansions do not count. The result is (0, 0) if nothing counts. Policies tend to choose parents that were
        lucky, which lowers all gains a little.
        """
        if self._gains[0] != self.seq:
            self._gains = self.seq, self._sum_clades(self._sum_gains())
        total, count = self._gains[1][:, agent].tolist()
        return (total / count if count else 0.0), int(count)

    def _sum_gains(self) -> NDArray[np.float64]:
        """Return the sum of g and the number of counted expansions by first parent; see ``clade_gain``."""
        means = (1 + self.own_resolved) / (2 + self.own_resolved + self.own_unresolved)
        sums: NDArray[np.float64] = np.zeros((2, len(means)))
        sums[1] = self.stillbirths
        for agent in self._agents:
            if not agent.parents:
                continue
            before = self._verdicts[max(agent.parents, key=means.__getitem__)]
            pairs = [
                (before.get(task), verdict)
                for task, verdict in self._verdicts[agent.id].items()
                if verdict is not None and before.get(task) is not None
            ]
            if pairs:
                balance = sum((new is Verdict.RESOLVED) - (old is Verdict.RESOLVED) for old, new in pairs)
                sums[:, agent.parents[0]] += balance / (len(pairs) + 2), 1
        return sums

    def tried(self, agent: AgentId) -> AbstractSet[TaskId]:
        """Return tasks whose first attempt was started: graded, running, to be repeated, or given up."""
        return self._verdicts[agent].keys()

    def verdict(self, agent: AgentId, task: TaskId) -> Verdict | None:
        """Return the verdict of the first attempt; ``None`` if there is none (yet)."""
        return self._verdicts[agent].get(task)

    def verdicts(self, agent: AgentId) -> Mapping[TaskId, Verdict | None]:
        """Return ``verdict`` for each task that the agent has tried."""
        return MappingProxyType(self._verdicts[agent])

    def flip(self, agent: AgentId, task: TaskId) -> int:
        """Return 1 if the agent gained the task, -1 if it lost it, 0 otherwise, by first attempts.

        Gained: the agent resolved the task, at least one parent has tried it, and no parent resolved it. Lost: the
        agent did not resolve it, and a parent did. The value may change with a later verdict of a parent.
        """
        verdict = self.verdict(agent, task)
        if verdict is None:
            return 0
        parents = [self.verdict(parent, task) for parent in self._agents[agent].parents]
        if Verdict.RESOLVED in parents:
            return 0 if verdict is Verdict.RESOLVED else -1
        return int(verdict is Verdict.RESOLVED and Verdict.UNRESOLVED in parents)

    def times_withdrawn(self, action: ActionId) -> int:
        """Return how often the action's verdict was withdrawn, because its agent had been refused its model."""
        return len(self._withdrawals.get(action, ()))

    def void_calls(self, action: ActionId) -> frozenset[int]:
        """Return the numbers of model calls whose recorded answers are not served again to the action."""
        return frozenset().union(*self._withdrawals.get(action, ()))

    @property
    def front(self) -> frozenset[AgentId]:
        """The agents on the Pareto front of the objective; empty if it has none."""
        if self.objective.front and self._front[0] != self.seq:
            self._front = self.seq, self.attempts.front(self.objective.front)
        return self._front[1]

    # Spend and time

    @property
    def spend_by(self) -> Mapping[tuple[str, str], Usage]:
        """Total usage of model calls by role and model."""
        return self.model_calls.by

    @property
    def spend(self) -> Usage:
        """Total usage of all model calls; calls cut off by a process's death count at their worst case."""
        return self.model_calls.total

    @property
    def promotion_spend(self) -> Usage:
        """The part of ``spend`` that promotion evaluations took; policies leave it out."""
        return sum((usage for (role, _), usage in self.spend_by.items() if role == PROMOTION_ROLE), Usage())

    def spend_of(self, action: ActionId) -> Usage:
        """Return the usage of one action's model calls over all its tries."""
        return self.model_calls.of(action)

    @property
    def promotion_seconds(self) -> float:
        """The part of ``wall_seconds`` that rounds of promotion took; policies leave it out."""
        return self._watch.promoting

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

    # Updates

    def apply(self, recorded: Recorded) -> None:
        """Fold in one event; events must come once each, in the order of the log.

        Raises:
            ArchiveCorrupt: the event cannot follow the earlier ones.
        """
        match recorded.event:
            case TaskGraded(action, outcome):
                self._grade(action, outcome)
            case ActionStarted(action, what, again):
                self._start(action, what, again)
            case ModelCalled() | CallStarted() | CallBooked() | PromotionSpent():
                self.model_calls.apply(recorded.event)
            case ModelLearned() | ModelNoted() as event:
                self.model_calls.apply(event)
                self.model_facts.apply(event)
            case CallRefused(status=status):
                self.refusals += status >= 400
            case ChildProposed(action, child):
                self._forget(action)
                self.deaths.clear()
                self._waiting[action] = WaitingChild(child, recorded.at)
            case AgentBorn() as event:
                self._bear(event)
            case AgentStillborn(action, dead) as event:
                self._forget(action)
                self._stillborn[dead.stage] = self._stillborn.get(dead.stage, 0) + 1
                self._add(_FINDINGS, dead.parents[0], len(dead.findings))
                if not dead.decided:
                    self.barren[dead.parents[0]] += 1
                    self.stillbirths[dead.parents[0]] += 1
                    self.deaths.append(event)
            case ActionLost(action, _, final):
                self._lose(action, final)
            case VerdictWithdrawn(action, _, what, verdict, _, calls):
                self._withdraw(action, what, verdict)
                self._withdrawals.setdefault(action, []).append(calls)
            case event:
                self._apply_to_run(event, recorded)
        self.seq = recorded.seq
        self._watch.passed(recorded)

    def _apply_to_run(self, event: Event, recorded: Recorded) -> None:
        match event:
            case RunStarted(budget, tasks):
                self.counts_flips = event.flips
                self.objective = event.objective or Objective()
                self.deaths.clear()
                if self.stop_reason == CANNOT_GO_ON:
                    self.barren[:] = 0
                self.budget, self.tasks, self.stop_reason, self.paused = budget, tasks, "", ""
                self._watch.begin(recorded.at)
                if not self.curriculum.changes:
                    self.curriculum.active = tasks
                    self.untried_count[:] = len(tasks) - self.tried_count
            case TasksChanged():
                self.curriculum.apply(event, self.tasks, len(self._agents))
                active = frozenset(self.active)
                self.untried_count[:] = [len(active - tried.keys()) for tried in self._verdicts]
            case RunChanged(settings):
                self.changes.append((recorded.seq, settings))
                if not MENDING_SECTIONS.isdisjoint(settings):
                    self.barren[:] = 0
            case RunPaused(reason):
                self.paused = reason
            case AgentNoted(agent) if agent >= len(self._agents):
                raise ArchiveCorrupt(f"a note is about agent {agent}, and there are {len(self._agents)}")
            case PromotionStarted() | PromotionDecided():
                self.promotions.apply(event, len(self._agents), self.evaluations)
            case RunStopped(reason):
                self.stop_reason, self.paused = reason, ""
            case _:
                pass

    def _start(self, action: ActionId, what: Action, again: bool) -> None:
        if action < self.next_action:
            self._forget(action)
        self._pending[action] = what
        self.paused = ""
        if again:
            self._restarts[action] = self._restarts.get(action, 0) + 1
        self.next_action = max(self.next_action, ActionId(action + 1))
        if isinstance(what, Evaluate):
            self.pending_evaluations[what.agent] += 1
            if what.attempt == 0:
                self._record(what.agent, what.task, None)
            return
        self.expansions_in_flight += 1
        if action not in self._child_numbers:
            self._child_numbers[action] = int(self.expansions[what.parents[0]])
            self.expansions[what.parents[0]] += 1
            self.expansions_begun += 1
            if what.aim:
                self._aims[action] = sys.intern(what.aim)

    def _grade(self, action: ActionId, outcome: Evaluation) -> None:
        agent, task, attempt, verdict = outcome.agent, outcome.task, outcome.attempt, outcome.verdict
        what = self._forget(action)
        if verdict is Verdict.INVALID:
            self.invalid += 1
            self._redo[action] = what or Evaluate(agent, task, attempt)
            return
        if attempt == 0:
            self._judge(agent, task, verdict)
            if self.objective != Objective():
                self.attempts.add(outcome)
        self._count(agent, verdict, 1)
        if weights := self.objective.reward:
            self._rewards[action] = round(REWARD_UNIT * reward_of(outcome, weights))
            self._add(_REWARD, agent, self._rewards[action])
        if outcome.findings:
            self._findings[action] = len(outcome.findings)
            self._add(_FINDINGS, agent, len(outcome.findings))

    def _lose(self, action: ActionId, final: bool) -> None:
        what = self._forget(action)
        if what is not None and not final:
            self._redo[action] = what
            self.expansions_in_flight += isinstance(what, Expand)

    def _withdraw(self, action: ActionId, what: Evaluate, verdict: Verdict) -> None:
        known = self._verdicts[what.agent].get(what.task) if what.attempt == 0 else verdict
        if known is not verdict or verdict is Verdict.INVALID or action in self._pending:
            raise ArchiveCorrupt(f"action {action} has no verdict {verdict} that could be withdrawn")
        if what.attempt == 0:
            self._judge(what.agent, what.task, None)
            self.attempts.remove(what)
        self._count(what.agent, verdict, -1)
        self._add(_FINDINGS, what.agent, -self._findings.pop(action, 0))
        self._add(_REWARD, what.agent, -self._rewards.pop(action, 0))
        self._redo[action] = what
        self.withdrawn += 1

    def _count(self, agent: AgentId, verdict: Verdict, times: int) -> None:
        self.evaluations += times
        self._add(int(verdict is not Verdict.RESOLVED), agent, times)

    def _add(self, row: int, agent: AgentId, times: int) -> None:
        """Add to one of the first rows, and to the same row of clades."""
        if not times:
            return
        self._table[row, agent] += times
        if not self._deferred:
            self._table[_SUMMED + row, [agent, *self.ancestors(agent)]] += times

    @contextmanager
    def many(self) -> Iterator[None]:
        """Defer updates of clade tallies to the end of the context, and then do them all at once.

        This makes opening a long run several times faster.
        """
        before = self._table[:_SUMMED, : len(self._agents)].copy()
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False
            news = self._table[:_SUMMED, : len(self._agents)].copy()
            news[:, : before.shape[1]] -= before
            self._table[_SUMMED : 2 * _SUMMED, : len(self._agents)] += self._sum_clades(news)

    def _sum_clades(self, counts: NDArray[_Number]) -> NDArray[_Number]:
        """Return the sums of counts over clades; shapes (rows, agents).

        In one pass from the youngest to the oldest, an agent with one parent is added to it. Two paths may lead from a
        crossover to the same ancestor, so crossovers, each with what was added to it, go up as sets of bits.
        """
        sums = counts.T.copy()
        weights = np.zeros_like(sums)
        below = [0] * len(sums)
        for agent in reversed(self._agents):
            crossovers = bits = below[agent.id]
            below[agent.id] = 0
            if len(agent.parents) == 1:
                sums[agent.parents[0]] += sums[agent.id]
            else:
                weights[agent.id] = sums[agent.id]
                bits |= 1 << agent.id
            for parent in agent.parents:
                below[parent] |= bits
            if crossovers:
                packed = np.frombuffer(crossovers.to_bytes(len(sums) // 8 + 1, "little"), np.uint8)
                sums[agent.id] += np.unpackbits(packed, count=len(sums), bitorder="little") @ weights
        return sums.T

    def _bear(self, event: AgentBorn) -> None:
        child = event.outcome
        if event.id != len(self._agents) or any(parent >= event.id for parent in child.parents):
            raise ArchiveCorrupt(
                f"agent {event.id} with parents {child.parents} cannot be born as number {len(self._agents)}"
            )
        self._forget(event.action)
        self.deaths.clear()
        self._agents.append(
            Agent(
                event.id,
                child.parents,
                child.commit,
                child.operator,
                child.rationale,
                event.action,
                event.key,
                child.predictions,
            )
        )
        if not child.parents:
            self.roots.append(event.id)
        self._children.append([])
        self._verdicts.append({})
        if len(self._agents) > self._table.shape[1]:
            self._table = np.concatenate((self._table, np.zeros_like(self._table)), axis=1)
        self._cut_columns()
        self.untried_count[event.id] = len(self.active)
        for parent in dict.fromkeys(child.parents):
            self._children[parent].append(event.id)
        if child.parents:
            self.depths[event.id] = self.depths[child.parents[0]] + 1
            self.barren[child.parents[0]] = 0
        in_edit = sum(bool(finding.location) for finding in child.findings)
        if in_edit:
            self.flagged.add(event.id)
            self._add(_FINDINGS, event.id, in_edit)
        if child.parents:
            self._add(_FINDINGS, child.parents[0], len(child.findings) - in_edit)

    def _cut_columns(self) -> None:
        for name, row in zip(self.COLUMNS, self._table[:, : len(self._agents)], strict=True):
            setattr(self, name, row)

    def _judge(self, agent: AgentId, task: TaskId, verdict: Verdict | None) -> None:
        if not self.counts_flips:
            self._record(agent, task, verdict)
            return
        family = (agent, *self._children[agent])
        before = [self.flip(member, task) for member in family]
        self._record(agent, task, verdict)
        for member, flip in zip(family, before, strict=True):
            self.flip_balance[member] += self.flip(member, task) - flip

    def _record(self, agent: AgentId, task: TaskId, verdict: Verdict | None) -> None:
        verdicts = self._verdicts[agent]
        if task not in verdicts:
            self.tried_count[agent] += 1
            self.untried_count[agent] -= not self.curriculum.changes or task in self.active
            task = TaskId(sys.intern(task))
        if any(task == prediction.task for prediction in self._agents[agent].predictions):
            for state, times in ((verdicts.get(task), -1), (verdict, 1)):
                if state is not None:
                    self._add(_KEPT if state is Verdict.RESOLVED else _BROKEN, agent, times)
        verdicts[task] = verdict

    def _forget(self, action: ActionId) -> Action | None:
        """Return the action and forget that it runs, waits to be repeated, or waits for a person."""
        what = self._pending.pop(action, None)
        if isinstance(what, Evaluate):
            self.pending_evaluations[what.agent] -= 1
            return what
        self._waiting.pop(action, None)
        what = what or self._redo.pop(action, None)
        self.expansions_in_flight -= isinstance(what, Expand)
        return what
