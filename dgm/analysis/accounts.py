"""Usage by agent and action, split by role and model. Failed and stillborn work is included.

Every model call of a run belongs to exactly one account of exactly one agent, so the accounts add up to the run's
spend, up to the last event that the run's tree has read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dgm.archive.events import ActionStarted, CallBooked, CallRefused, ModelCalled
from dgm.archive.run import Run
from dgm.domain import ActionId, AgentId, Evaluate, Usage

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
        members, waiting = {agent}, [agent]
        while waiting:
            children = set(self._run.tree.children(waiting.pop())) - members
            members |= children
            waiting += children
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
    wanted = None if actions is None else frozenset(actions)
    usage: dict[ActionId, dict[RoleAndModel, Usage]] = {}
    for event in run.store.events(ModelCalled, CallBooked, until=run.tree.seq):
        if wanted is None or event.action in wanted:
            by, who = usage.setdefault(event.action, {}), (event.role, event.model)
            by[who] = by.get(who, Usage()) + event.usage
    return usage
