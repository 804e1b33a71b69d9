"""Usage by agent and action, split by role and model, and the results and cost of each operator's expansions.

Failed and stillborn work is included. Every model call of a run belongs to exactly one account of exactly one agent, so
the accounts add up to the run's spend, up to the last event that the run's tree has read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from dgm.archive.events import (
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    CallBooked,
    CallRefused,
    ChildProposed,
    ModelCalled,
)
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import ActionId, AgentId, Cost, Evaluate, Expand, Tally, Usage
from dgm.policies.curriculum import comparable_tallies
from dgm.stats import JUDGED, paired_bootstrap

RoleAndModel = tuple[str, str]


class Purpose(StrEnum):
    """The purpose of an action, relative to the agent that its cost is charged to."""

    MAKING = "making"
    """The expansion that created the agent."""
    EVALUATING = "evaluating"
    """Work on tasks, including lost and invalid tries."""
    STILLBORN = "stillborn"
    """An expansion with the agent as first parent that gave no child: stillborn, or lost."""
    UNFINISHED = "unfinished"
    """An expansion that may still give a child: in flight, to be repeated, or its child waits for approval."""


@dataclass(frozen=True, slots=True)
class ActionLine:
    """One action of an agent."""

    action: ActionId
    purpose: Purpose
    by: Mapping[RoleAndModel, Usage]
    """Ordered by first call; empty if no call was answered."""

    @property
    def usage(self) -> Usage:
        """The sum over roles and models."""
        return sum(self.by.values(), Usage())


@dataclass(frozen=True, slots=True)
class AgentAccount:
    """The usage of one agent."""

    lines: Sequence[ActionLine]
    """Ordered by action."""

    def of(self, purpose: Purpose) -> Usage:
        """Return the sum over the actions of one purpose."""
        return sum((line.usage for line in self.lines if line.purpose is purpose), Usage())

    @property
    def total(self) -> Usage:
        """The sum over all actions of the agent."""
        return sum((line.usage for line in self.lines), Usage())

    @property
    def by(self) -> Mapping[RoleAndModel, Usage]:
        """The sum over all actions of the agent, by role and model."""
        sums: dict[RoleAndModel, Usage] = {}
        for line in self.lines:
            for who, usage in line.by.items():
                sums[who] = sums.get(who, Usage()) + usage
        return sums


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """A request of an agent that the gateway refused."""

    code: str
    message: str
    times: int
    action: ActionId
    """The first action that made the request."""


class Accounts:
    """The accounts of all agents, computed once at construction. Later events do not change them."""

    def __init__(self, run: Run) -> None:
        self._run, self._until = run, run.tree.seq
        self._calls = read_usage(run)
        tree = run.tree
        unfinished = {*tree.waiting, *tree.pending, *tree.to_redo()}
        births = {agent.action: agent.id for agent in tree.agents}
        self._lines: list[list[ActionLine]] = [[] for _ in tree.agents]
        self._workers: list[list[ActionId]] = [[] for _ in tree.agents]
        starts = {event.id: event.action for event in run.store.events(ActionStarted, until=tree.seq)}
        for action, what in sorted(starts.items()):
            if isinstance(what, Evaluate):
                worker = charged = what.agent
                purpose = Purpose.EVALUATING
            else:
                worker = what.parents[0]
                charged = births.get(action, worker)
                purpose = Purpose.UNFINISHED if action in unfinished else Purpose.STILLBORN
                purpose = Purpose.MAKING if action in births else purpose
            self._lines[charged].append(ActionLine(action, purpose, self.action(action)))
            self._workers[worker].append(action)

    def of(self, agent: AgentId) -> AgentAccount:
        """Return the agent's usage: its making, its evaluations, and its stillborn or unfinished children."""
        return AgentAccount(self._lines[agent])

    def clade(self, agent: AgentId) -> Usage:
        """Return the usage of the agent and all its descendants, each counted once."""
        members = self._run.tree.clade_members(agent)
        return sum((self.of(member).total for member in members if member < len(self._lines)), Usage())

    def action(self, action: ActionId) -> Mapping[RoleAndModel, Usage]:
        """Return the usage of one action over all its tries, by role and model."""
        return self._calls.get(action, {})

    def refusals(self, agent: AgentId) -> Sequence[RefusedRequest]:
        """Return the refused requests of the agent's evaluations and expansions, the most frequent first."""
        workers, actions = set(self._workers[agent]), dict[tuple[str, str], list[ActionId]]()
        for event in self._run.store.events(CallRefused, until=self._until):
            if event.action in workers:
                actions.setdefault((event.code, event.message), []).append(event.action)
        refused = [
            RefusedRequest(code, message, len(each), min(each)) for (code, message), each in actions.items()
        ]
        return sorted(refused, key=lambda request: -request.times)


def read_usage(
    run: Run, actions: Sequence[ActionId] | None = None
) -> Mapping[ActionId, Mapping[RoleAndModel, Usage]]:
    """Return the usage of actions over all their tries; those without calls are left out. None: all actions."""
    usage: dict[ActionId, dict[RoleAndModel, Usage]] = {}
    for event in _read_calls(run, actions):
        by, who = usage.setdefault(event.action, {}), (event.role, event.model)
        by[who] = by.get(who, Usage()) + event.usage
    return usage


def _read_calls(run: Run, actions: Sequence[ActionId] | None) -> Iterator[ModelCalled | CallBooked]:
    if actions is None:
        yield from run.store.events(ModelCalled, CallBooked, until=run.tree.seq)
        return
    for action in dict.fromkeys(actions):
        for item in run.store.events_of_action(action):
            if isinstance(item.event, ModelCalled | CallBooked) and item.seq <= run.tree.seq:
                yield item.event


VETTING = "vetting"
"""Name of the trace of an expansion that records the time of each stage."""


@dataclass(frozen=True, slots=True)
class MeanGain:
    """The mean gain of children with its 95 % bootstrap interval.

    A child's gain is its own rate minus the best rate of its parents.
    """

    mean: float
    low: float | None
    """None if there are fewer than two children."""
    high: float | None


@dataclass(slots=True)
class StageTime:
    """The time of one stage of vetting."""

    runs: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class OperatorLine:
    """The results and cost of one operator."""

    operator: str
    tried: int = 0
    """Started expansions, each counted once."""
    born: int = 0
    waiting: int = 0
    """Children that wait for a person."""
    stillborn: dict[str, int] = field(default_factory=dict)
    """Stillborn children by the stage that failed."""
    aims: dict[str, int] = field(default_factory=dict)
    """Expansions by aim, if the operator has aims."""
    gains: list[float] = field(default_factory=list)
    """Gain of each judged child.

    A child is judged if it has ``JUDGED`` verdicts (or as many as there are tasks) and its parents have any.
    """
    promises: Tally = field(default_factory=Tally)
    """Kept (as resolved) and broken predictions of its children."""
    spend: Usage = field(default_factory=Usage)
    """Usage of the model calls of all its expansions, over all their tries."""
    seconds: float = 0.0
    """Wall time of ended expansions, in seconds."""
    vetting: dict[str, StageTime] = field(default_factory=dict)
    """Vetting times by stage, in the order of the stages."""

    @property
    def unfinished(self) -> int:
        """Expansions that are in flight or given up."""
        return self.tried - self.born - self.waiting - sum(self.stillborn.values())

    @property
    def judged(self) -> int:
        """Children that are compared with their parents."""
        return len(self.gains)

    @property
    def better(self) -> int:
        """Judged children with a higher own rate than the best of their parents."""
        return sum(gain > 0 for gain in self.gains)

    @property
    def gain(self) -> MeanGain | None:
        """The mean gain; None without a judged child."""
        if not self.gains:
            return None
        mean = sum(self.gains) / len(self.gains)
        if len(self.gains) < 2:
            return MeanGain(mean, None, None)
        return MeanGain(mean, *_bootstrap_interval(tuple(self.gains)))


@lru_cache(maxsize=64)
def _bootstrap_interval(gains: tuple[float, ...]) -> tuple[float, float]:
    """Return the bootstrap interval; cached because one report asks for it in several places."""
    return paired_bootstrap(gains)


def operators_of(run: Run, *, timed: bool = True) -> Sequence[OperatorLine]:
    """Return a line for each operator of the run, ordered by first expansion, as of the run's tree.

    Args:
        run: the run.
        timed: whether to read the traces that record the time of each stage of vetting.

    Raises:
        ArchiveCorrupt: an event is damaged, or with ``timed`` a trace is damaged or missing.
    """
    tree, tallies = run.tree, comparable_tallies(run.tree)
    lines: dict[str, OperatorLine] = {}
    of: dict[ActionId, OperatorLine] = {}
    for event in run.store.events(ActionStarted, until=tree.seq):
        what = event.action
        if not isinstance(what, Expand) or event.id in of:
            continue
        line = of[event.id] = lines.setdefault(what.operator, OperatorLine(what.operator))
        line.tried += 1
        line.spend += tree.spend_of(event.id)
        if what.aim:
            line.aims[what.aim] = line.aims.get(what.aim, 0) + 1
    for end in run.store.events(AgentBorn, AgentStillborn, ChildProposed, until=tree.seq):
        match end:
            case AgentBorn(action, child, outcome) if action in of:
                of[action].born += 1
                of[action].promises += tree.promises(child)
                gain = gain_of(tree, child, tallies.__getitem__)
                of[action].gains += [] if gain is None else [gain]
                _add_time(of[action], run, outcome.cost, timed)
            case AgentStillborn(action, outcome) if action in of:
                dead = of[action].stillborn
                dead[outcome.stage] = dead.get(outcome.stage, 0) + 1
                _add_time(of[action], run, outcome.cost, timed)
            case ChildProposed(action, outcome) if action in of and action in tree.waiting:
                of[action].waiting += 1
                _add_time(of[action], run, outcome.cost, timed)
    for line in lines.values():
        line.vetting = _drop_unused_stages(line.vetting)
    return list(lines.values())


def stage_times(run: Run, cost: Cost) -> Mapping[str, StageTime]:
    """Return the time of each stage of vetting in one expansion; empty if it was not recorded.

    Raises:
        ArchiveCorrupt: the trace is missing or damaged.
    """
    return _drop_unused_stages(_read_stage_times(run, cost))


def _read_stage_times(run: Run, cost: Cost) -> dict[str, StageTime]:
    """Return the times of all stages in order.

    Skipped stages are included with no run: all children pass the same stages, so the first child fixes the order.
    """
    found: dict[str, StageTime] = {}
    if VETTING in cost.traces:
        with run.traces.reading(cost.traces[VETTING]) as record:
            for ran in record["stages"]:
                stage = found.setdefault(str(ran["stage"]), StageTime())
                if ran["result"] != "skipped":
                    stage.runs += 1
                    stage.seconds += float(ran["seconds"])
    return found


def _drop_unused_stages(stages: Mapping[str, StageTime]) -> dict[str, StageTime]:
    return {name: took for name, took in stages.items() if took.runs}


def _add_time(line: OperatorLine, run: Run, cost: Cost, timed: bool) -> None:
    line.seconds += cost.seconds
    for name, took in _read_stage_times(run, cost).items() if timed else ():
        stage = line.vetting.setdefault(name, StageTime())
        stage.runs += took.runs
        stage.seconds += took.seconds


def gain_of(tree: Tree, child: AgentId, tally_of: Callable[[AgentId], Tally]) -> float | None:
    """Return an agent's rate minus the best rate of its parents; None if it is not judged (``OperatorLine.gains``).

    Args:
        tree: the run.
        child: the agent.
        tally_of: returns the comparable tally of an agent.
    """
    tally = tally_of(child)
    rates = [parent.rate for parent in map(tally_of, tree.agents[child].parents) if parent.n]
    if tally.n < max(1, min(JUDGED, len(tree.active))) or not rates:
        return None
    return tally.rate - max(rates)
