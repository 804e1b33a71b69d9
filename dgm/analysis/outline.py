"""The data of a list of agents of a long run, read from the indices of its log alone: parents and tallies.

This takes about a second for a million evaluations, and folding them takes ten. ``Tree`` has the same columns and
everything else about a run.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, Self

from dgm.archive.clades import sum_clades
from dgm.archive.codec import action_of
from dgm.archive.event_fields import parse_body
from dgm.archive.store import EventStore
from dgm.bounded_reading import parse_json, refuse_odd_values
from dgm.domain import Action, ActionId, AgentId, Tally, Verdict
from dgm.errors import ArchiveCorrupt

_MOST_VALUES = 20_000_000
"""Bound of the values of one column, which has one for each agent."""
RECENT = 5_000
"""Number of rows at the end of the log that are searched for actions in flight."""
STEPS = 1_000_000
"""Maximum number of additions for descendants of crossovers; beyond it, clades are not counted."""

# Each query returns one row, so that another thread can run meanwhile. Each uses one index alone: SQLite would also
# read the table if the expression were inside the aggregate. A test counts the bytes that are read.
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
    """The interface that a list of agents reads; ``Tree`` and ``Outline`` have it."""

    own_resolved: "array[int]"
    own_unresolved: "array[int]"
    clade_resolved: "array[int]"
    clade_unresolved: "array[int]"
    seq: int
    """Number of the last event that is counted."""

    def own(self, agent: AgentId) -> Tally:
        """Return the tally of the agent's own verdicts."""
        ...

    def clade(self, agent: AgentId) -> Tally | None:
        """Return the tally of the agent and all its descendants, each once; None if clades are not counted."""
        ...

    def first_parent(self, agent: AgentId) -> AgentId | None:
        """Return the lineage parent of the agent; ``None`` for a seed."""
        ...

    def ancestors(self, agent: AgentId) -> Iterator[AgentId]:
        """Yield all ancestors down to the seed, each once and never before its descendants."""
        ...

    def children(self, agent: AgentId) -> Sequence[AgentId]:
        """Return the agents that name this one as a parent, in order of birth."""
        ...


class Outline:
    """The agents of a run at one moment (``Members``), and the actions in flight then."""

    def __init__(
        self, births: Sequence[Sequence[int]], graded: Mapping[int, int], solved: Mapping[int, int]
    ) -> None:
        """Compute the tallies; the arguments give each agent's parents, verdicts, and resolved verdicts."""
        count = len(births)
        self.own_resolved = array("q", (solved.get(agent, 0) for agent in range(count)))
        self.own_unresolved = array(
            "q", (graded.get(agent, 0) - solved.get(agent, 0) for agent in range(count))
        )
        self.seq = 0
        self.in_flight: Mapping[ActionId, Action] = {}
        """Actions among the last rows of the log that had not ended; if nobody writes the log, they never will."""
        self._first = array("q", (parents[0] if parents else -1 for parents in births))
        self._further = {agent: parents[1:] for agent, parents in enumerate(births) if len(parents) > 1}
        sums = sum_clades(self._first, self._further, (self.own_resolved, self.own_unresolved), STEPS)
        self.clades_counted = sums is not None
        """False if counting would take too long because of many crossovers; the columns of clades are 0 then."""
        nothing = array("q", bytes(8 * count))
        self.clade_resolved, self.clade_unresolved = sums or (nothing, nothing[:])
        self._children: dict[int, list[AgentId]] = {}
        for agent, parents in enumerate(births):
            for parent in dict.fromkeys(parents):
                self._children.setdefault(parent, []).append(AgentId(agent))

    @classmethod
    @refuse_odd_values("events.db")
    def read(cls, store: EventStore) -> Self:
        """Read the indices; another thread may run meanwhile.

        Raises:
            UserError: the log lacks the indices, see ``has_indices``.
            ArchiveCorrupt: their content cannot be a run.
        """
        with store.at_one_moment():
            last = store.newest()
            ids, births = _query_columns(store, _BIRTHS)
            graded, solved = _query_counts(store, _GRADED), _query_counts(store, _RESOLVED)
            for gone in store.withdrawals():
                graded[gone.what.agent] -= 1
                solved[gone.what.agent] = solved.get(gone.what.agent, 0) - (gone.verdict is Verdict.RESOLVED)
            tail = store.query(_TAIL, (last - RECENT,))
        if ids != list(range(len(ids))) or any(
            parent >= agent for agent, those in enumerate(births) for parent in those
        ):
            raise ArchiveCorrupt(
                "events.db: its agents are not numbered in the order of their births; "
                "restore the run from a copy"
            )
        if any(agent not in range(len(ids)) for agent in graded):
            raise ArchiveCorrupt(
                "events.db: a verdict on an agent that was not born; restore the run from a copy"
            )
        outline = cls(births, graded, solved)
        outline.seq = last
        outline.in_flight = _find_in_flight(tail)
        return outline

    def __len__(self) -> int:
        return len(self._first)

    def own(self, agent: AgentId) -> Tally:
        """Return the tally of the agent's own verdicts."""
        return Tally(self.own_resolved[agent], self.own_unresolved[agent])

    def clade(self, agent: AgentId) -> Tally | None:
        """Return the tally of the agent and all its descendants, each once; None if clades are not counted."""
        return (
            Tally(self.clade_resolved[agent], self.clade_unresolved[agent]) if self.clades_counted else None
        )

    def first_parent(self, agent: AgentId) -> AgentId | None:
        """Return the lineage parent of the agent; ``None`` for a seed."""
        parent = self._first[agent]
        return AgentId(parent) if parent >= 0 else None

    def ancestors(self, agent: AgentId) -> Iterator[AgentId]:
        """Yield all ancestors down to the seed, each once and never before its descendants."""
        waiting = self._parents(agent)
        while waiting:
            nearest = max(waiting)
            yield AgentId(nearest)
            waiting.remove(nearest)
            waiting |= self._parents(nearest)

    def _parents(self, agent: int) -> set[int]:
        return {self._first[agent], *self._further.get(agent, ())} - {-1}

    def children(self, agent: AgentId) -> Sequence[AgentId]:
        """Return the agents that name this one as a parent, in order of birth."""
        return self._children.get(agent, ())


def trace_lineage(members: Members, agent: AgentId) -> list[AgentId]:
    """Return the agents from a root to the agent, along first parents."""
    found = [agent]
    while (parent := members.first_parent(found[-1])) is not None:
        found.append(parent)
    return found[::-1]


def has_indices(store: EventStore) -> bool:
    """Return whether the log has the indices for an outline.

    A log from an older dgm gets them the next time it is written.
    """
    return bool(store.query(_INDICES)[0][0] == 2)


def _query_columns(store: EventStore, sql: str) -> tuple[list[Any], list[Any]]:
    one, other = store.query(sql)[0]
    return parse_json(one, most_values=_MOST_VALUES), parse_json(other, most_values=_MOST_VALUES)


def _query_counts(store: EventStore, sql: str) -> dict[int, int]:
    return dict(zip(*_query_columns(store, sql), strict=True))


def _find_in_flight(rows: Sequence[tuple[Any, ...]]) -> dict[ActionId, Action]:
    open_yet: dict[ActionId, str] = {}
    for kind, action, body in rows:
        open_yet.pop(action, None)
        if kind == "action_started":
            open_yet[action] = body
    return {action: action_of(parse_body(body)) for action, body in open_yet.items()}
