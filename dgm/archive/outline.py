"""What a list of agents shows of a long run, read from the indices of its log alone: parents and tallies.

A million evaluations take about a second this way, and ten when they are folded. What else there is to know of a run
is left to ``Tree``, which has the same columns.
"""

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, Self

from dgm.archive.clades import clade_sums
from dgm.archive.codec import action_of
from dgm.archive.store import EventStore
from dgm.domain import Action, ActionId, AgentId, Tally, Verdict
from dgm.errors import ArchiveCorrupt

RECENT = 5_000
"""Rows at the end of the log in which actions under way are looked for."""
STEPS = 1_000_000
"""Additions for the descendants of crossovers after which clades are left uncounted."""

# Each is answered in one row, so that another thread runs meanwhile, and from one index alone: SQLite would look
# into the table as well if it saw the expression inside of the aggregate. A test counts the bytes that are read.
_BIRTHS = """
SELECT json_group_array(id), json_group_array(json(parents)) FROM (
    SELECT json_extract(body, '$.id') AS id, json_extract(body, '$.parents') AS parents
    FROM events INDEXED BY births WHERE kind = 'agent_born' ORDER BY id LIMIT -1
)
"""
_GRADED = """
SELECT json_group_array(agent), json_group_array(n) FROM (
    SELECT agent, count(*) AS n FROM (
        SELECT json_extract(body, '$.agent') AS agent FROM events INDEXED BY graded_once
        WHERE kind = 'task_graded' AND json_extract(body, '$.verdict') <> 'invalid' LIMIT -1
    ) GROUP BY agent
)
"""
_RESOLVED = """
SELECT json_group_array(agent), json_group_array(n) FROM (
    SELECT agent, count(*) AS n FROM (
        SELECT json_extract(body, '$.agent') AS agent FROM events INDEXED BY resolved
        WHERE kind = 'task_graded' AND json_extract(body, '$.verdict') = 'resolved' LIMIT -1
    ) GROUP BY agent
)
"""
_INDICES = "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name IN ('births', 'resolved')"
_TAIL = """
SELECT kind, action, body FROM events WHERE seq > ? AND kind IN
    ('action_started', 'agent_born', 'agent_stillborn', 'child_proposed', 'task_graded', 'action_lost') ORDER BY seq
"""


class Members(Protocol):
    """What a list of agents reads; a ``Tree`` has it, and an ``Outline``."""

    own_resolved: "array[int]"
    own_unresolved: "array[int]"
    clade_resolved: "array[int]"
    clade_unresolved: "array[int]"
    seq: int
    """Of the last event that is counted."""

    def own(self, agent: AgentId) -> Tally:
        """The agent's own verdicts."""
        ...

    def clade(self, agent: AgentId) -> Tally | None:
        """The verdicts of the agent and all its descendants, each once; None while they are not counted."""
        ...

    def first_parent(self, agent: AgentId) -> AgentId | None:
        """The parent whose line the agent stands on; ``None`` for a seed."""
        ...

    def ancestors(self, agent: AgentId) -> Iterator[AgentId]:
        """Parents, their parents … down to the seed, each once and never before its descendants."""
        ...

    def children(self, agent: AgentId) -> Sequence[AgentId]:
        """The agents that name this one as a parent, by birth."""
        ...


class Outline:
    """The agents of a run at one moment: ``Members``, and what was under way."""

    def __init__(
        self, births: Sequence[Sequence[int]], graded: Mapping[int, int], solved: Mapping[int, int]
    ) -> None:
        """Adds up; arguments are the parents of each agent, and how many of its verdicts there are and are good."""
        count = len(births)
        self.own_resolved = array("q", (solved.get(agent, 0) for agent in range(count)))
        self.own_unresolved = array(
            "q", (graded.get(agent, 0) - solved.get(agent, 0) for agent in range(count))
        )
        self.seq = 0
        self.in_flight: Mapping[ActionId, Action] = {}
        """Actions among the last rows of the log that had not ended; where nobody writes it, they never will."""
        self._first = array("q", (parents[0] if parents else -1 for parents in births))
        self._further = {agent: parents[1:] for agent, parents in enumerate(births) if len(parents) > 1}
        sums = clade_sums(self._first, self._further, (self.own_resolved, self.own_unresolved), STEPS)
        self.clades_counted = sums is not None
        """False where that would take too long, with many crossovers; then the columns of clades are 0."""
        nothing = array("q", bytes(8 * count))
        self.clade_resolved, self.clade_unresolved = sums or (nothing, nothing[:])
        self._children: dict[int, list[AgentId]] = {}
        for agent, parents in enumerate(births):
            for parent in dict.fromkeys(parents):
                self._children.setdefault(parent, []).append(AgentId(agent))

    @classmethod
    def read(cls, store: EventStore) -> Self:
        """Reads the indices; another thread may run meanwhile.

        Raises:
            UserError: the log has no such indices, see ``has_indices``.
            ArchiveCorrupt: what they hold cannot be a run.
        """
        with store.at_one_moment():
            last = store.newest()
            ids, births = _columns(store, _BIRTHS)
            graded, solved = _counts(store, _GRADED), _counts(store, _RESOLVED)
            for gone in store.withdrawals():
                graded[gone.what.agent] -= 1
                solved[gone.what.agent] = solved.get(gone.what.agent, 0) - (gone.verdict is Verdict.RESOLVED)
            tail = store.query(_TAIL, (last - RECENT,))
        if ids != list(range(len(ids))) or any(
            parent >= agent for agent, those in enumerate(births) for parent in those
        ):
            raise ArchiveCorrupt(
                "events.db: its agents are not numbered in the order of their births; "
                "check the run with dgm archive verify"
            )
        if any(agent not in range(len(ids)) for agent in graded):
            raise ArchiveCorrupt(
                "events.db: a verdict on an agent that was not born; check it with dgm archive verify"
            )
        outline = cls(births, graded, solved)
        outline.seq = last
        outline.in_flight = _in_flight(tail)
        return outline

    def __len__(self) -> int:
        return len(self._first)

    def own(self, agent: AgentId) -> Tally:
        """The agent's own verdicts."""
        return Tally(self.own_resolved[agent], self.own_unresolved[agent])

    def clade(self, agent: AgentId) -> Tally | None:
        """The verdicts of the agent and all its descendants, each once; None where they are not counted."""
        return (
            Tally(self.clade_resolved[agent], self.clade_unresolved[agent]) if self.clades_counted else None
        )

    def first_parent(self, agent: AgentId) -> AgentId | None:
        """The parent whose line the agent stands on; ``None`` for a seed."""
        parent = self._first[agent]
        return AgentId(parent) if parent >= 0 else None

    def ancestors(self, agent: AgentId) -> Iterator[AgentId]:
        """Parents, their parents … down to the seed, each once and never before its descendants."""
        waiting = self._parents(agent)
        while waiting:
            nearest = max(waiting)
            yield AgentId(nearest)
            waiting.remove(nearest)
            waiting |= self._parents(nearest)

    def _parents(self, agent: int) -> set[int]:
        return {self._first[agent], *self._further.get(agent, ())} - {-1}

    def children(self, agent: AgentId) -> Sequence[AgentId]:
        """The agents that name this one as a parent, by birth."""
        return self._children.get(agent, ())


def has_indices(store: EventStore) -> bool:
    """Whether the log can be outlined; one that an older dgm made can be from the next time it is written."""
    return bool(store.query(_INDICES)[0][0] == 2)


def _columns(store: EventStore, sql: str) -> tuple[list[Any], list[Any]]:
    one, other = store.query(sql)[0]
    return json.loads(one), json.loads(other)


def _counts(store: EventStore, sql: str) -> dict[int, int]:
    return dict(zip(*_columns(store, sql), strict=True))


def _in_flight(rows: Sequence[tuple[Any, ...]]) -> dict[ActionId, Action]:
    open_yet: dict[ActionId, str] = {}
    for kind, action, body in rows:
        open_yet.pop(action, None)
        if kind == "action_started":
            open_yet[action] = body
    return {action: action_of(json.loads(body)) for action, body in open_yet.items()}
