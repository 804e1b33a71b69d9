"""Evaluations and model calls as tables, in CSV or Parquet: a row per event, in the order of the log.

Rows are read from the log in pieces, so that a long run needs hardly more memory than a short one.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from dgm.analysis.accounts import Accounts
from dgm.archive.events import CallBooked, ModelCalled, ModelLearned, PromotionSpent, TaskGraded
from dgm.archive.run import Run, identity_of
from dgm.archive.tree import CHECK_ROLE, PROMOTION_ROLE
from dgm.domain import NO_ACTION
from dgm.errors import UserError
from dgm.exports.files import new_file
from dgm.render.safe import neutralise

PIECE = 50_000
"""Maximum number of rows of a Parquet file that are held at once."""
_FORMULA = ("=", "+", "-", "@", "\t")

Cell = int | float | str | None
Row = tuple[Cell, ...]


class ColumnKind(StrEnum):
    """The kind of value in a column."""

    WHOLE = "int64"
    NUMBER = "float64"
    TEXT = "string"
    """Neutralised text: control and formatting characters are written out."""
    TIME = "time"
    """Seconds since 1970; in CSV as ISO 8601 in UTC, in Parquet as a timestamp in microseconds."""


Columns = Sequence[tuple[str, ColumnKind]]


@dataclass(frozen=True, slots=True)
class ExportTable:
    """Columns, and a function that gives the rows of a run for those behind ``run``, ``policy`` and ``seed``."""

    columns: Columns
    read: Callable[[Run], Iterator[Row]]

    def rows(self, run: Run) -> Iterator[Row]:
        """Yield the rows of a run, each with the run's name, policy and seed, so that tables can be joined."""
        identity = identity_of(run)
        for row in self.read(run):
            yield (identity.run, identity.policy, identity.seed, *row)


def _table(columns: str, read: Callable[[Run], Iterator[Row]]) -> ExportTable:
    pairs = (word.split(":") for word in f"run:string policy:string seed:int64 {columns}".split())
    return ExportTable(tuple((name, ColumnKind(kind)) for name, kind in pairs), read)


def _evaluation_rows(run: Run) -> Iterator[Row]:
    withdrawn = run.store.withdrawn(run.tree.seq)
    for item in run.store.read(0, run.tree.seq):
        seq, at, event = item.seq, item.at, item.event
        if isinstance(event, TaskGraded) and seq not in withdrawn:
            grade, usage = event.outcome, event.outcome.cost.usage
            yield (
                *(seq, at, event.action, grade.agent, grade.task, grade.attempt + 1),
                *(grade.verdict.value, grade.score, grade.reason, grade.cost.seconds),
                *(usage.calls, usage.input_tokens, usage.output_tokens, usage.usd),
            )


def _spend_rows(run: Run) -> Iterator[Row]:
    """Yield a row for each answered call, booking of an unanswered call, check of a model, and promotion session."""
    accounts = Accounts(run)
    payers = {
        line.action: (agent.id, line.purpose.value)
        for agent in run.tree.agents
        for line in accounts.of(agent.id).lines
    }
    for item in run.store.read(0, run.tree.seq):
        seq, at, event = item.seq, item.at, item.event
        match event:
            case ModelCalled(action, number, _, role):
                seconds = event.seconds
            case CallBooked(action, number, _, role):
                seconds = 0.0
            case ModelLearned() if event.usage.calls:
                action, number, role, seconds = NO_ACTION, 0, CHECK_ROLE, 0.0
            case PromotionSpent():
                action, number, role, seconds = NO_ACTION, 0, PROMOTION_ROLE, 0.0
            case _:
                continue
        usage = event.usage
        yield (
            *(seq, at, action, number, *payers.get(action, (None, "")), role, event.model),
            *(usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.written_tokens),
            *(usage.reasoning_tokens, usage.usd, seconds),
        )


EVALUATIONS = _table(
    "event:int64 graded_at:time action:int64 agent:int64 task:string attempt:int64 verdict:string score:float64 "
    "reason:string seconds:float64 calls:int64 input_tokens:int64 output_tokens:int64 usd:float64",
    _evaluation_rows,
)
"""Every verdict that was not withdrawn, ``invalid`` ones included; tokens and money are those of its action over all
its tries until then."""
SPEND = _table(
    "event:int64 called_at:time action:int64 number:int64 agent:int64 purpose:string role:string model:string "
    "input_tokens:int64 output_tokens:int64 cached_tokens:int64 written_tokens:int64 reasoning_tokens:int64 "
    "usd:float64 seconds:float64",
    _spend_rows,
)
"""Every model call; ``agent`` and ``purpose`` are defined in ``dgm.analysis.accounts``."""


def write_table(run: Run, table: ExportTable, target: Path) -> int:
    """Write a table of a run into a new file, Parquet if its name ends in ``.parquet``, else CSV; return the rows.

    Raises:
        UserError: pyarrow is not installed, or the file cannot be made.
        ArchiveCorrupt: the log is damaged.
    """
    with new_file(target) as draft:
        if target.suffix.lower() == ".parquet":
            return _write_parquet(table.columns, table.rows(run), draft)
        with draft.open("w", encoding="utf-8", newline="") as file:
            return write_csv(table.columns, table.rows(run), file)


def write_csv(columns: Columns, rows: Iterable[Row], file: TextIO) -> int:
    """Write a head and rows as CSV, texts neutralised; return the number of rows."""
    count = 0
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(name for name, _ in columns)
    for count, row in enumerate(rows, 1):  # noqa: B007  (the number of rows)
        writer.writerow(_csv_cell(cell, kind) for cell, (_, kind) in zip(row, columns, strict=True))
    return count


def _csv_cell(cell: Cell, kind: ColumnKind) -> Cell:
    match kind, cell:
        case ColumnKind.TEXT, str():
            text = neutralise(cell)
            # A spreadsheet would compute a text that begins so; texts of agents must not be computed.
            return f"'{text}" if text.startswith(_FORMULA) else text
        case ColumnKind.TIME, float():
            return datetime.fromtimestamp(cell, UTC).isoformat(timespec="microseconds")
        case _:
            return cell


def import_pyarrow(alternative: str = "") -> tuple[Any, Any]:
    """Return the modules ``pyarrow`` and ``pyarrow.parquet``; ``alternative`` ends the message where they are missing.

    Raises:
        UserError: pyarrow is not installed.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise UserError(
            f"Parquet needs pyarrow, which is not installed: pip install 'dgm[parquet]'{alternative}"
        ) from error
    return pyarrow, parquet


def _write_parquet(columns: Columns, rows: Iterable[Row], draft: Path) -> int:
    pa, parquet = import_pyarrow(", or name a .csv")
    schema = pa.schema(
        (name, pa.timestamp("us", tz="UTC") if kind is ColumnKind.TIME else kind.value)
        for name, kind in columns
    )
    remaining, count = iter(rows), 0
    with parquet.ParquetWriter(draft, schema) as file:
        while piece := list(islice(remaining, PIECE)):
            cells = [
                [_parquet_cell(cell, kind) for cell in column]
                for (_, kind), column in zip(columns, zip(*piece, strict=True), strict=True)
            ]
            arrays = [pa.array(values, field.type) for values, field in zip(cells, schema, strict=True)]
            file.write_table(pa.Table.from_arrays(arrays, schema=schema))
            count += len(piece)
    return count


def _parquet_cell(cell: Cell, kind: ColumnKind) -> Cell | datetime:
    match kind, cell:
        case ColumnKind.TEXT, str():
            return neutralise(cell)
        case ColumnKind.TIME, float():
            return datetime.fromtimestamp(cell, UTC)
        case _:
            return cell
