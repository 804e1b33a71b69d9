"""Usage by agent and action, split by role and model. Failed and stillborn work is included.

Every model call of a run belongs to exactly one account of exactly one agent, so the accounts add up to the run's
spend. They are summed in SQL from the log alone, up to the last event that the run's tree has read.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dgm.archive.run import Run
from dgm.domain import ActionId, AgentId, Evaluate, Usage

RoleAndModel = tuple[str, str]

_CALLS = """
SELECT action, json_extract(body, '$.role') AS role, json_extract(body, '$.model') AS model,
    sum(json_extract(body, '$.usage[0]')),
    sum(json_extract(body, '$.usage[1]')),
    sum(json_extract(body, '$.usage[2]')),
    sum(json_extract(body, '$.usage[3]')),
    sum(coalesce(json_extract(body, '$.usage[4]'), 0)),
    sum(coalesce(json_extract(body, '$.usage[5]'), 0)),
    sum(coalesce(json_extract(body, '$.usage[6]'), 0))
FROM events WHERE kind IN ('model_called', 'call_booked') AND seq <= ? {which}
GROUP BY action, role, model ORDER BY action, min(seq)
"""
_OF_ACTIONS = "AND action IN (SELECT value FROM json_each(?))"
_STARTS = """
SELECT DISTINCT action, json_extract(body, '$.agent'), json_extract(body, '$.parents[0]')
FROM events WHERE kind = 'action_started' AND seq <= ? ORDER BY action
"""
_EVALUATED = """
SELECT action FROM events WHERE kind = 'task_graded' AND json_extract(body, '$.verdict') <> 'invalid'
    AND json_extract(body, '$.agent') = ? AND seq <= ?
"""
_STARTS_OF = """
SELECT DISTINCT action, json_extract(body, '$.agent') FROM events
WHERE kind = 'action_started' AND seq <= :until
    AND :agent IN (json_extract(body, '$.agent'), json_extract(body, '$.parents[0]'))
"""
_REFUSALS = """
SELECT json_extract(body, '$.code') AS code, json_extract(body, '$.message') AS message, count(*), min(action)
FROM events WHERE kind = 'call_refused' AND seq <= ? AND action IN (SELECT value FROM json_each(?))
GROUP BY code, message ORDER BY count(*) DESC, min(seq)
"""


class Purpose(StrEnum):
    """The purpose of an action, relative to the agent that its cost is charged to."""

    MAKING = "making"
    """The expansion that created the agent."""
    EVALUATING = "evaluating"
    """Work on tasks, including lost and invalid tries."""
    STILLBORN = "stillborn"
    """An expansion with the agent as first parent that gave no child: stillborn, or lost."""
    UNFINISHED = "unfinished"
    """An expansion that may still give a child: in flight, to be repeated, or its child waits for a person."""


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
        found: dict[RoleAndModel, Usage] = {}
        for line in self.lines:
            for who, usage in line.by.items():
                found[who] = found.get(who, Usage()) + usage
        return found


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
        self._run = run
        self._until = run.tree.seq
        self._calls: dict[ActionId, dict[RoleAndModel, Usage]] = {}
        for action, role, model, *counts in run.store.query(_CALLS.format(which=""), (self._until,)):
            self._calls.setdefault(ActionId(action), {})[role, model] = Usage(*counts)
        tree = run.tree
        open_yet = {*tree.waiting, *tree.pending, *tree.to_redo()}
        births = {agent.action: agent.id for agent in run.tree.agents}
        self._lines: list[list[ActionLine]] = [[] for _ in run.tree.agents]
        self._own: list[list[ActionId]] = [[] for _ in run.tree.agents]
        for number, evaluated, parent in run.store.query(_STARTS, (self._until,)):
            action = ActionId(number)
            by = self._calls.get(action, {})
            worker = AgentId(parent if evaluated is None else evaluated)
            self._own[worker].append(action)
            if evaluated is not None:
                self._lines[evaluated].append(ActionLine(action, Purpose.EVALUATING, by))
            elif action in births:
                self._lines[births[action]].append(ActionLine(action, Purpose.MAKING, by))
            else:
                purpose = Purpose.UNFINISHED if action in open_yet else Purpose.STILLBORN
                self._lines[parent].append(ActionLine(action, purpose, by))

        self._totals = [sum((line.usage for line in lines), Usage()) for lines in self._lines]

    def of(self, agent: AgentId) -> AgentAccount:
        """Return the agent's usage: its making, its evaluations, and its stillborn or unfinished children."""
        return AgentAccount(self._lines[agent])

    def clade(self, agent: AgentId) -> Usage:
        """Return the usage of the agent and all its descendants, each counted once."""
        return sum((self._totals[member] for member in self._members(agent)), Usage())

    def action(self, action: ActionId) -> Mapping[RoleAndModel, Usage]:
        """Return the usage of one action over all its tries, by role and model."""
        return self._calls.get(action, {})

    def refusals(self, agent: AgentId) -> Sequence[RefusedRequest]:
        """Return the refused requests of the agent's evaluations and expansions, the most frequent first."""
        return refusals_of(self._run, self._own[agent], self._until)

    def _members(self, agent: AgentId) -> Iterator[AgentId]:
        tree = self._run.tree
        seen = {agent}
        waiting = [agent]
        while waiting:
            member = waiting.pop()
            if member >= len(self._lines):
                continue
            yield member
            new = [child for child in tree.children(member) if child not in seen]
            seen.update(new)
            waiting += new


def refusals_of(run: Run, actions: Sequence[ActionId], until: int | None = None) -> Sequence[RefusedRequest]:
    """Return the refused requests of some actions, the most frequent first.

    Args:
        run: the run.
        actions: for example those of the lines of an ``AgentAccount``.
        until: number of the last event that counts; None: the last that the tree has read.
    """
    last = run.tree.seq if until is None else until
    rows = run.store.query(_REFUSALS, (last, json.dumps(actions)))
    return [RefusedRequest(code, message, times, ActionId(action)) for code, message, times, action in rows]


def account_of(run: Run, agent: AgentId, *, whole: bool) -> AgentAccount:
    """Return the account of one agent like ``Accounts.of``, without computing the accounts of all others.

    Args:
        run: the run.
        agent: the agent.
        whole: read the whole log to find every start of an action. Without it, lost and abandoned actions and stillborn
            children are missing.
    """
    tree, until = run.tree, run.tree.seq
    purposes = {
        ActionId(action): Purpose.EVALUATING for (action,) in run.store.query(_EVALUATED, (agent, until))
    }
    open_yet = {**tree.pending, **tree.to_redo()}
    if whole:
        starts = run.store.query(_STARTS_OF, {"until": until, "agent": agent})
    else:
        starts = [
            (action, what.agent if isinstance(what, Evaluate) else None)
            for action, what in open_yet.items()
            if agent == (what.agent if isinstance(what, Evaluate) else what.parents[0])
        ]
        starts += [
            (action, None) for action, child in tree.waiting.items() if child.child.parents[0] == agent
        ]
    unfinished = {*tree.waiting, *open_yet}
    born = {tree.agents[child].action for child in tree.children(agent)}
    for action, evaluated in starts:
        if evaluated is not None:
            purposes[action] = Purpose.EVALUATING
        elif action not in born:
            purposes[action] = Purpose.UNFINISHED if action in unfinished else Purpose.STILLBORN
    if tree.agents[agent].parents:
        purposes[tree.agents[agent].action] = Purpose.MAKING
    calls = read_usage(run, sorted(purposes))
    return AgentAccount(
        [ActionLine(action, purposes[action], calls.get(action, {})) for action in sorted(purposes)]
    )


def read_usage(run: Run, actions: Sequence[ActionId]) -> Mapping[ActionId, Mapping[RoleAndModel, Usage]]:
    """Return the usage of some actions over all their tries; actions without calls are left out."""
    found: dict[ActionId, dict[RoleAndModel, Usage]] = {}
    rows = run.store.query(_CALLS.format(which=_OF_ACTIONS), (run.tree.seq, json.dumps(actions)))
    for action, role, model, *counts in rows:
        found.setdefault(ActionId(action), {})[role, model] = Usage(*counts)
    return found
