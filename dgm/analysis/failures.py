"""The failures of a run, counted by kind: where its evaluations and expansions went."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dgm.archive.event_fields import parse_body
from dgm.archive.events import ActionLost, AgentStillborn, CallRefused, TaskGraded
from dgm.archive.reasons import kind_of
from dgm.archive.run import Run
from dgm.bounded_reading import refuse_odd_values

MOST = 12
"""Number of different reasons that are counted separately."""
OTHERS = "others"

# The first condition avoids parsing the JSON of every verdict.
_FAILED = """
seq <= ? AND (
    kind IN ('agent_stillborn', 'action_lost', 'call_refused')
    OR kind = 'task_graded' AND body LIKE '%"verdict":"invalid"%'
    AND json_extract(body, '$.verdict') = 'invalid'
)
"""
# Half a surrogate pair in a reason is read by Python and not by SQL, which cannot hand it out.
_UNRESOLVED = """
SELECT seq, body FROM events WHERE seq <= ? AND kind = 'task_graded' AND body LIKE '%"verdict":"unresolved"%'
"""
_Key = TypeVar("_Key", str, tuple[str, str])


@dataclass(frozen=True, slots=True)
class FailureCounts:
    """The failures of a run as far as its tree has read it.

    Reasons are ordered by frequency. Every reason is one line, with ``#`` for numbers.
    """

    stillborn: Mapping[tuple[str, str], int]
    """Expansions without a child, by operator and stage."""
    invalid: Sequence[tuple[str, int]]
    """Evaluations whose infrastructure failed, by reason; every try counts."""
    lost: Sequence[tuple[str, int]]
    """Actions that ended without an outcome, by reason; every try counts."""
    refused: Mapping[str, int]
    """Requests of agents that the gateway refused, by code."""


def count_failures(run: Run) -> FailureCounts:
    """Count the failures of a run in one pass over the log.

    Raises:
        ArchiveCorrupt: an event is damaged; names its number.
    """
    stillborn: Counter[tuple[str, str]] = Counter()
    invalid: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for item in run.store.select(_FAILED, (run.tree.seq,)):
        match item.event:
            case AgentStillborn(_, dead):
                stillborn[dead.operator, dead.stage] += 1
            case TaskGraded(_, graded):
                invalid[kind_of(graded.reason)] += 1
            case ActionLost(_, reason, _):
                lost[kind_of(reason)] += 1
            case CallRefused(_, _, status, code, _) if status >= 400:
                refused[code] += 1
    return FailureCounts(
        _sort_counts(stillborn), _most_frequent(invalid), _most_frequent(lost), _sort_counts(refused)
    )


@refuse_odd_values("events.db")
def count_unresolved(run: Run) -> Sequence[tuple[str, int]]:
    """Count the unresolved verdicts that stand, by kind of reason, ordered by frequency."""
    counts: Counter[str] = Counter()
    gone = run.store.withdrawn(run.tree.seq)
    for seq, body in run.store.query(_UNRESOLVED, (run.tree.seq,)):
        graded = parse_body(body)
        if graded.get("verdict") == "unresolved" and seq not in gone:
            counts[kind_of(str(graded.get("reason", "")))] += 1
    return _most_frequent(counts)


def _sort_counts(counts: Counter[_Key]) -> dict[_Key, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _most_frequent(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return the ``MOST`` most frequent reasons, and all others as one entry."""
    kinds = list(_sort_counts(counts).items())
    rest = sum(count for _, count in kinds[MOST:])
    return [*kinds[:MOST], *([(OTHERS, rest)] if rest else [])]
