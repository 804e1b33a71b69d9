"""Search among the agents of a run by what a user types."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from dgm.archive.store import EventStore
from dgm.domain import AgentId

_NAMED = r"""
SELECT json_extract(body, '$.id') AS id FROM events WHERE kind = 'agent_born' AND seq <= :until AND (
    json_extract(body, '$.id') = :number
    OR json_extract(body, '$.commit') LIKE :begins ESCAPE '\'
    OR json_extract(body, '$.operator') LIKE :holds ESCAPE '\'
    OR json_extract(body, '$.rationale') LIKE :holds ESCAPE '\'
) ORDER BY id
"""
_TRIED = r"""
SELECT DISTINCT json_extract(body, '$.agent') AS agent FROM events INDEXED BY graded_once
WHERE kind = 'task_graded' AND json_extract(body, '$.verdict') <> 'invalid' AND seq <= :until
    AND json_extract(body, '$.task') LIKE :holds ESCAPE '\' ORDER BY agent
"""


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
