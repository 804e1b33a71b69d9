"""What each agent and each action took, by role and model, failed and stillborn work included.

Every model call of a run is in exactly one account of exactly one agent, so that the accounts add up to the run's
spend. They are added up in SQL, from the log alone, as far as the run's tree has read it.
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
    """What an action was for, seen from the agent that its cost is put down to."""

    MAKING = "making"
    """The expansion that the agent was born of."""
    EVALUATING = "evaluating"
    """Work on tasks, lost and invalid tries included."""
    STILLBORN = "stillborn"
    """An expansion with the agent as first parent that gave no child: stillborn, or lost."""
    UNFINISHED = "unfinished"
    """One that may still give a child: under way, to be performed again, or its child waits for a person."""


@dataclass(frozen=True, slots=True)
class Line:
    """One action of an agent."""

    action: ActionId
    purpose: Purpose
    by: Mapping[RoleAndModel, Usage]
    """In the order of the first calls; empty where none was answered."""

    @property
    def usage(self) -> Usage:
        """The sum."""
        return sum(self.by.values(), Usage())


@dataclass(frozen=True, slots=True)
class Account:
    """What one agent took."""

    lines: Sequence[Line]
    """By action."""

    def of(self, purpose: Purpose) -> Usage:
        """The sum over the actions of one purpose."""
        return sum((line.usage for line in self.lines if line.purpose is purpose), Usage())

    @property
    def total(self) -> Usage:
        """The sum over all its actions."""
        return sum((line.usage for line in self.lines), Usage())

    @property
    def by(self) -> Mapping[RoleAndModel, Usage]:
        """The same by role and model."""
        found: dict[RoleAndModel, Usage] = {}
        for line in self.lines:
            for who, usage in line.by.items():
                found[who] = found.get(who, Usage()) + usage
        return found


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that the gateway did not give to an agent."""

    code: str
    message: str
    times: int
    action: ActionId
    """The first in which it was asked for."""


class Accounts:
    """The accounts of all agents of a run, as it stands when they are made; later events change nothing in them."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._until = run.tree.seq
        self._calls: dict[ActionId, dict[RoleAndModel, Usage]] = {}
        for action, role, model, *counts in run.store.query(_CALLS.format(which=""), (self._until,)):
            self._calls.setdefault(ActionId(action), {})[role, model] = Usage(*counts)
        tree = run.tree
        open_yet = {*tree.waiting, *tree.pending, *tree.to_redo()}
        births = {agent.action: agent.id for agent in run.tree.agents}
        self._lines: list[list[Line]] = [[] for _ in run.tree.agents]
        self._own: list[list[ActionId]] = [[] for _ in run.tree.agents]
        for number, evaluated, parent in run.store.query(_STARTS, (self._until,)):
            action = ActionId(number)
            by = self._calls.get(action, {})
            worker = AgentId(parent if evaluated is None else evaluated)
            self._own[worker].append(action)
            if evaluated is not None:
                self._lines[evaluated].append(Line(action, Purpose.EVALUATING, by))
            elif action in births:
                self._lines[births[action]].append(Line(action, Purpose.MAKING, by))
            else:
                purpose = Purpose.UNFINISHED if action in open_yet else Purpose.STILLBORN
                self._lines[parent].append(Line(action, purpose, by))

        self._totals = [sum((line.usage for line in lines), Usage()) for lines in self._lines]

    def of(self, agent: AgentId) -> Account:
        """What the agent took: to make it, to evaluate it, and for its children that did not live or do not yet."""
        return Account(self._lines[agent])

    def clade(self, agent: AgentId) -> Usage:
        """What the agent and all its descendants took, each of them once."""
        return sum((self._totals[member] for member in self._members(agent)), Usage())

    def action(self, action: ActionId) -> Mapping[RoleAndModel, Usage]:
        """What one action took over all its tries, by role and model."""
        return self._calls.get(action, {})

    def refusals(self, agent: AgentId) -> Sequence[Refusal]:
        """What the agent asked for in vain, at work on tasks or on its children; the most frequent first."""
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


def refusals_of(run: Run, actions: Sequence[ActionId], until: int | None = None) -> Sequence[Refusal]:
    """What was asked for in vain in some actions, the most frequent first.

    Args:
        run: the run.
        actions: such as those of an ``Account``'s lines.
        until: number of the last event that counts; the last that the tree has read if None.
    """
    last = run.tree.seq if until is None else until
    rows = run.store.query(_REFUSALS, (last, json.dumps(actions)))
    return [Refusal(code, message, times, ActionId(action)) for code, message, times, action in rows]


def account_of(run: Run, agent: AgentId, *, whole: bool) -> Account:
    """What one agent took, as ``Accounts.of``, without the accounts of all others.

    Args:
        run: the run.
        agent: the agent.
        whole: whether every start of an action is looked at, which reads the whole log. Without, what was lost and
            given up is left out, and so are stillborn children.
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
    calls = _calls_of(run, sorted(purposes))
    return Account([Line(action, purposes[action], calls.get(action, {})) for action in sorted(purposes)])


def _calls_of(run: Run, actions: Sequence[ActionId]) -> Mapping[ActionId, Mapping[RoleAndModel, Usage]]:
    found: dict[ActionId, dict[RoleAndModel, Usage]] = {}
    rows = run.store.query(_CALLS.format(which=_OF_ACTIONS), (run.tree.seq, json.dumps(actions)))
    for action, role, model, *counts in rows:
        found.setdefault(ActionId(action), {})[role, model] = Usage(*counts)
    return found
