"""Tables in files: CSV, which every program reads, or Parquet, which keeps types and takes a fifth of the room."""

import csv
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from dgm.archive.run import Run
from dgm.errors import UserError
from dgm.export.fresh import check_suffix, new_file
from dgm.export.tables import PIECE, Cell, ColumnKind, ExportTable
from dgm.show.safe import neutralise

_FORMULA = ("=", "+", "-", "@", "\t")

Columns = Sequence[tuple[str, ColumnKind]]
Writer = Callable[[Columns, Iterable[tuple[Cell, ...]], Path], int]


def write_table(run: Run, table: ExportTable, target: Path) -> int:
    """Write a table of a run into a new file, ``.csv`` or ``.parquet``; return the number of rows.

    Raises:
        UserError: the name has another ending, pyarrow is not installed, or the file cannot be made.
        ArchiveCorrupt: the log is damaged.
    """
    write = (
        _write_csv if check_suffix(target, (".csv", ".parquet"), "a table") == ".csv" else _parquet_writer()
    )
    with new_file(target) as draft:
        return write(table.columns, table.rows(run), draft)


def write_csv(columns: Columns, rows: Iterable[tuple[Cell, ...]], file: TextIO) -> int:
    """Write a head and rows as CSV, texts neutralised; return the number of rows."""
    count = 0
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(name for name, _ in columns)
    kinds = [kind for _, kind in columns]
    for row in rows:
        writer.writerow(_csv_cell(cell, kind) for cell, kind in zip(row, kinds, strict=True))
        count += 1
    return count


def _write_csv(columns: Columns, rows: Iterable[tuple[Cell, ...]], draft: Path) -> int:
    with draft.open("w", encoding="utf-8", newline="") as file:
        return write_csv(columns, rows, file)


def _csv_cell(cell: Cell, kind: ColumnKind) -> Cell:
    match kind, cell:
        case ColumnKind.TEXT, str():
            text = neutralise(cell)
            # A spreadsheet would compute a text that begins so; texts of agents must not be computed.
            return f"'{text}" if text.startswith(_FORMULA) else text
        case ColumnKind.TIME, float():
            return _utc_time(cell).isoformat(timespec="microseconds")
        case _:
            return cell


def _utc_time(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def _parquet_writer() -> Writer:
    """Return the writer of Parquet, in groups of ``PIECE`` rows.

    Raises:
        UserError: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise UserError(
            "Parquet needs pyarrow, which is not installed: pip install 'dgm[parquet]', or name a .csv"
        ) from error
    types: dict[ColumnKind, Any] = {
        ColumnKind.WHOLE: pa.int64(),
        ColumnKind.NUMBER: pa.float64(),
        ColumnKind.TEXT: pa.string(),
        ColumnKind.TIME: pa.timestamp("us", tz="UTC"),
    }
    values: dict[ColumnKind, Callable[[Any], Any]] = {ColumnKind.TEXT: neutralise, ColumnKind.TIME: _utc_time}

    def write(columns: Columns, rows: Iterable[tuple[Cell, ...]], draft: Path) -> int:
        schema = pa.schema([(name, types[kind]) for name, kind in columns])
        waiting, count = iter(rows), 0
        with parquet.ParquetWriter(draft, schema) as file:
            while piece := list(islice(waiting, PIECE)):
                arrays = [
                    pa.array(
                        [None if cell is None else values.get(kind, _keep_cell)(cell) for cell in cells],
                        types[kind],
                    )
                    for (_, kind), cells in zip(columns, zip(*piece, strict=True), strict=True)
                ]
                file.write_table(pa.Table.from_arrays(arrays, schema=schema))
                count += len(piece)
        return count

    return write


def _keep_cell(cell: Cell) -> Cell:
    return cell
