"""Queries on a long run that the log answers without the tree, each bounded by the events its reader has read.

All of them read the log, so run them on a thread with its own store.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dgm.archive.events import AgentBorn, Recorded
from dgm.archive.store import EventStore
from dgm.bounded_reading import refuse_odd_values
from dgm.domain import ActionId, AgentId, Tally, TaskId, Verdict

_ASKED_AT_ONCE = 500
_VERDICTS = "kind = 'task_graded' AND json_extract(body, '$.verdict') <> 'invalid'"
_TRIED_BY = f"""
SELECT json_extract(body, '$.agent') AS agent, json_extract(body, '$.attempt') AS attempt,
    json_extract(body, '$.verdict'), action, seq
FROM events INDEXED BY graded_once
WHERE {_VERDICTS} AND json_extract(body, '$.task') = ? AND seq <= ? ORDER BY agent, attempt
"""
# Reads the two indices alone: the table is twenty times as large.
_TASKS = f"""
SELECT task, count(good), count(*) FROM (
    SELECT seq, json_extract(body, '$.task') AS task FROM events INDEXED BY graded_once
    WHERE {_VERDICTS} AND seq <= :until LIMIT -1
) LEFT JOIN (
    SELECT seq AS good FROM events INDEXED BY resolved
    WHERE kind = 'task_graded' AND json_extract(body, '$.verdict') = 'resolved' AND seq <= :until LIMIT -1
) ON good = seq GROUP BY task ORDER BY task
"""
_NAMED = r"""
SELECT json_extract(body, '$.id') AS id FROM events WHERE kind = 'agent_born' AND seq <= :until AND (
    json_extract(body, '$.id') = :number
    OR json_extract(body, '$.commit') LIKE :begins ESCAPE '\'
    OR json_extract(body, '$.operator') LIKE :holds ESCAPE '\'
    OR json_extract(body, '$.rationale') LIKE :holds ESCAPE '\'
) ORDER BY id
"""
_TRIED = rf"""
SELECT DISTINCT json_extract(body, '$.agent') AS agent FROM events INDEXED BY graded_once
WHERE {_VERDICTS} AND seq <= :until AND json_extract(body, '$.task') LIKE :holds ESCAPE '\' ORDER BY agent
"""


class TaskVerdict(NamedTuple):
    """One verdict on a task."""

    agent: AgentId
    attempt: int
    verdict: Verdict
    action: ActionId
    seq: int


def read_births(store: EventStore, agents: Sequence[AgentId]) -> Mapping[AgentId, AgentBorn]:
    """Return the births of agents (commit, operator, rationale); unknown agents are left out.

    Raises:
        ArchiveCorrupt: an event is damaged; names its number.
    """
    found: dict[AgentId, AgentBorn] = {}
    for start in range(0, len(agents), _ASKED_AT_ONCE):
        some = agents[start : start + _ASKED_AT_ONCE]
        which = f"kind = 'agent_born' AND json_extract(body, '$.id') IN ({', '.join('?' * len(some))})"
        for item in store.select(which, some):
            if isinstance(item.event, AgentBorn):
                found[item.event.id] = item.event
    return found


@refuse_odd_values("events.db")
def find_verdicts(store: EventStore, task: TaskId, until: int) -> Sequence[TaskVerdict]:
    """Return every verdict on a task, by agent and attempt; invalid and withdrawn ones do not count."""
    gone = store.withdrawn(until)
    return [
        TaskVerdict(agent, attempt, Verdict(verdict), action, seq)
        for agent, attempt, verdict, action, seq in store.query(_TRIED_BY, (task, until))
        if seq not in gone
    ]


@refuse_odd_values("events.db")
def tally_tasks(store: EventStore, until: int) -> Mapping[TaskId, Tally]:
    """Return the tally of each task that has a verdict, by name; every attempt counts.

    Raises:
        UserError: the log lacks the index, see ``outline.has_indices``.
    """
    rows = store.query(_TASKS, {"until": until})
    found = {TaskId(task): Tally(good, n - good) for task, good, n in rows}
    for gone in store.withdrawals(until):
        tally = found[gone.what.task]
        good = int(gone.verdict is Verdict.RESOLVED)
        found[gone.what.task] = Tally(tally.resolved - good, tally.unresolved + good - 1)
    return {task: tally for task, tally in found.items() if tally.n}


def find_matching(store: EventStore, words: str, until: int) -> Sequence[AgentId]:
    """Return the agents that match the words, ordered by number.

    A match is the agent of that number, an agent whose commit begins with the words, or one whose operator or rationale
    contains them. The case of letters from a to z does not matter. If nothing matches, return the agents with a verdict
    on a task whose name contains the words.
    """
    words = words.strip()
    if not words:
        return []
    quoted = words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    number = int(words) if words.isascii() and words.isdigit() and len(words) < 16 else -1
    asked: dict[str, float | str] = {
        "until": until,
        "number": number,
        "begins": f"{quoted}%",
        "holds": f"%{quoted}%",
    }
    rows = store.query(_NAMED, asked) or store.query(_TRIED, {"until": until, "holds": asked["holds"]})
    return [AgentId(row[0]) for row in rows]


def next_match(found: Sequence[AgentId], after: AgentId, *, backwards: bool = False) -> AgentId | None:
    """Return the next of some agents in order of number, seen from one of them; the last is followed by the first."""
    if not found:
        return None
    if backwards:
        return found[bisect_left(found, after) - 1]
    return found[bisect_right(found, after) % len(found)]


def read_last_events(store: EventStore, count: int) -> Sequence[Recorded]:
    """Return the last events, at most ``count``, in the order of the log."""
    newest = store.newest()
    return list(store.read(max(0, newest - count), count))
