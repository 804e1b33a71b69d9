"""Rows with conversations in a new Parquet file, cleaned as JSON on the way, as in a pack.

They are written in pieces, so that a long run needs hardly more memory than a short one.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dgm.bounded_reading import refuse_odd_values
from dgm.exports.conversations import dump_json
from dgm.exports.scrub import Scrubber
from dgm.exports.tables import import_pyarrow

if TYPE_CHECKING:
    import pyarrow as pa

PIECE_BYTES = 16_000_000
"""Size of the rows, as JSON, that are held at once."""

Row = dict[str, Any]


class RowWriter:
    """A new Parquet file that takes rows one by one."""

    def __init__(self, file: Path, columns: str, scrubber: Scrubber) -> None:
        self.rows = 0
        self._pa, parquet = import_pyarrow()
        self._columns = dict(word.split(":") for word in columns.split())
        self._schema = self._make_schema(self._pa.json_())
        self._scrubber = scrubber
        self._file = parquet.ParquetWriter(file, self._schema)
        self._piece: list[Row] = []
        self._bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._flush()
        self._file.close()

    def add(self, row: Row) -> None:
        """Clean a row and write it, soon."""
        data = self._scrubber.clean(dump_json({name: row[name] for name in self._columns}))
        clean = json.loads(data)
        for name, kind in self._columns.items():
            if kind == "json":
                clean[name] = _encode_each(clean[name])
            elif kind == "messages":
                for message in clean[name]:
                    message["tool_calls"] = _encode_each(message.get("tool_calls"))
        self._piece.append(clean)
        self._bytes += len(data)
        self.rows += 1
        if self._bytes > PIECE_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._piece:
            # Rows cannot be made into Arrow's JSON directly.
            with refuse_odd_values("recorded model calls"):
                table = self._pa.Table.from_pylist(self._piece, self._make_schema(self._pa.string()))
            self._file.write_table(table.cast(self._schema))
            self._piece.clear()
            self._bytes = 0

    def _make_schema(self, json_type: "pa.DataType") -> "pa.Schema":
        pa, text = self._pa, self._pa.string()
        words = dict.fromkeys(("role", "content", "reasoning_content", "tool_call_id"), text)
        message = pa.struct({**words, "tool_calls": pa.list_(json_type)})
        file = pa.struct(dict.fromkeys(("path", "mode", "encoding", "content"), text))
        types = {
            "json": pa.list_(json_type),
            "messages": pa.list_(message),
            "strings": pa.list_(text),
            "files": pa.list_(file),
        }
        return pa.schema([(name, types.get(kind, kind)) for name, kind in self._columns.items()])


def _encode_each(values: Sequence[object] | None) -> list[str] | None:
    return [json.dumps(value, ensure_ascii=False) for value in values] if values else None
