"""Evaluations and model calls as tables: a row per event, in the order of the log.

Rows are read from the log in pieces, so that a long run needs hardly more memory than a short one. Only the table of
payers grows with the run.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dgm.analysis.accounts import Accounts
from dgm.archive.events import CallBooked, Event, ModelCalled, ModelLearned, TaskGraded
from dgm.archive.identity import identity_of
from dgm.archive.run import Run
from dgm.archive.spend import CHECK_ROLE
from dgm.domain import NO_ACTION, ActionId, AgentId

PIECE = 50_000
"""Maximum number of rows that are held at once."""
_EVENTS = """
SELECT seq, at, kind, action, body FROM events
WHERE kind IN (SELECT value FROM json_each(?)) AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?
"""

Cell = int | float | str | None


class ColumnKind(StrEnum):
    """The kind of value in a column."""

    WHOLE = "int64"
    NUMBER = "float64"
    TEXT = "string"
    """Neutralised text: control and formatting characters are written out."""
    TIME = "time"
    """Seconds since 1970; in CSV as ISO 8601 in UTC, in Parquet as a timestamp in microseconds."""


OF_RUN = (("run", ColumnKind.TEXT), ("policy", ColumnKind.TEXT), ("seed", ColumnKind.WHOLE))
"""The first columns of every table, so that those of many runs can be joined."""


@dataclass(frozen=True, slots=True)
class ExportTable:
    """Columns, and a function that gives the rows of a run for them."""

    own: Sequence[tuple[str, ColumnKind]]
    """Columns behind ``OF_RUN``."""
    own_rows: Callable[[Run], Iterator[tuple[Cell, ...]]]

    @property
    def columns(self) -> Sequence[tuple[str, ColumnKind]]:
        """All columns."""
        return (*OF_RUN, *self.own)

    def rows(self, run: Run) -> Iterator[tuple[Cell, ...]]:
        """Yield the rows of a run, each with the run's name, policy and seed."""
        whose = identity_of(run)
        for row in self.own_rows(run):
            yield (whose.run, whose.policy, whose.seed, *row)


def _evaluation_rows(run: Run) -> Iterator[tuple[Cell, ...]]:
    gone = run.store.withdrawn(run.tree.seq)
    for seq, at, event in read_events(run, "task_graded"):
        if isinstance(event, TaskGraded) and seq not in gone:
            done, usage = event.outcome, event.outcome.cost.usage
            yield (
                seq,
                at,
                event.action,
                done.agent,
                done.task,
                done.attempt,
                done.verdict.value,
                done.score,
                done.reason,
                done.cost.seconds,
                usage.calls,
                usage.input_tokens,
                usage.output_tokens,
                usage.usd,
            )


def _spend_rows(run: Run) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each answered call, each booking of an unanswered call, and each check of a model."""
    payers = _map_payers(run)
    for seq, at, event in read_events(run, "model_called", "call_booked", "model_learned"):
        match event:
            case ModelCalled(action, number, _, role):
                seconds = event.seconds
            case CallBooked(action, number, _, role):
                seconds = 0.0
            case ModelLearned() if event.usage.calls:
                action, number, role, seconds = NO_ACTION, 0, CHECK_ROLE, 0.0
            case _:
                continue
        agent, purpose = payers.get(action, (None, ""))
        usage = event.usage
        yield (
            seq,
            at,
            action,
            number,
            agent,
            purpose,
            role,
            event.model,
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_tokens,
            usage.written_tokens,
            usage.reasoning_tokens,
            usage.usd,
            seconds,
        )


EVALUATIONS = ExportTable(
    (
        ("event", ColumnKind.WHOLE),
        ("graded_at", ColumnKind.TIME),
        ("action", ColumnKind.WHOLE),
        ("agent", ColumnKind.WHOLE),
        ("task", ColumnKind.TEXT),
        ("attempt", ColumnKind.WHOLE),
        ("verdict", ColumnKind.TEXT),
        ("score", ColumnKind.NUMBER),
        ("reason", ColumnKind.TEXT),
        ("seconds", ColumnKind.NUMBER),
        ("calls", ColumnKind.WHOLE),
        ("input_tokens", ColumnKind.WHOLE),
        ("output_tokens", ColumnKind.WHOLE),
        ("usd", ColumnKind.NUMBER),
    ),
    _evaluation_rows,
)
"""Every verdict that was not withdrawn, ``invalid`` ones included; tokens and money are those of its action over all
its tries until then."""
SPEND = ExportTable(
    (
        ("event", ColumnKind.WHOLE),
        ("called_at", ColumnKind.TIME),
        ("action", ColumnKind.WHOLE),
        ("number", ColumnKind.WHOLE),
        ("agent", ColumnKind.WHOLE),
        ("purpose", ColumnKind.TEXT),
        ("role", ColumnKind.TEXT),
        ("model", ColumnKind.TEXT),
        ("input_tokens", ColumnKind.WHOLE),
        ("output_tokens", ColumnKind.WHOLE),
        ("cached_tokens", ColumnKind.WHOLE),
        ("written_tokens", ColumnKind.WHOLE),
        ("reasoning_tokens", ColumnKind.WHOLE),
        ("usd", ColumnKind.NUMBER),
        ("seconds", ColumnKind.NUMBER),
    ),
    _spend_rows,
)
"""Every model call; ``agent`` and ``purpose`` are defined in ``dgm.analysis.accounts``."""


def read_events(run: Run, *kinds: str) -> Iterator[tuple[int, float, Event]]:
    """Yield number, time and event, as far as the run's tree has read the log."""
    # Not the SQL views: half a surrogate pair or NUL, which JSON can spell but no text holds, ends or cuts their rows.
    after = 0
    while rows := run.store.query(_EVENTS, (json.dumps(kinds), after, run.tree.seq, PIECE)):
        for seq, at, named, action, body in rows:
            after = seq
            yield seq, at, run.store.decoded((seq, at, named, action, body)).event


def _map_payers(run: Run) -> dict[ActionId, tuple[AgentId, str]]:
    accounts = Accounts(run)
    return {
        line.action: (agent.id, line.purpose.value)
        for agent in run.tree.agents
        for line in accounts.of(agent.id).lines
    }
