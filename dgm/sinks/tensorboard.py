"""TensorBoard: event files in ``FOLDER/RUN``, with curves over evaluations, and in ``FOLDER/RUN/usd`` over money.

A point is one record with a checksum, so it is there or not. A file is continued after its last whole record; a file
that TensorBoard has open stays valid.
"""

import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dgm.archive.events import Recorded
from dgm.errors import UserError
from dgm.sinks.feed import Feed, Point, read_parameters, summarise
from dgm.sinks.sink import SinkContext

MICRO_USD = 1_000_000
"""Steps per USD in the curves over money: TensorBoard's steps are whole numbers."""
_STEP = "evaluations"
"""Tag of the number of a record's point."""
_U64, _U32 = struct.Struct("<Q"), struct.Struct("<I")
_STRING = 7
"""TensorFlow's type of texts."""


class TensorBoardSink:
    """A sink that needs no server and no TensorFlow."""

    def __init__(self, context: SinkContext) -> None:
        if not context.rest:
            raise UserError("tensorboard: needs a folder, such as tensorboard:runs")
        folder = Path(context.rest).expanduser() / context.run.name
        parameters = read_parameters(context.run)
        table = _format_table(parameters.values)
        self._run = context.run
        self._files = {
            unit: _EventFile(path / f"events.out.tfevents.0.{parameters.id}", table)
            for unit, path in (("evaluations", folder), ("usd", folder / "usd"))
        }
        self._points: list[Point] = []

    def observe(self, recorded: Recorded, feed: Feed) -> None:
        """Keep the point of an event, unless both files have it."""
        del recorded
        if feed.step > min(file.last for file in self._files.values()) and (point := feed.point()):
            self._points.append(point)

    def deliver(self) -> int:
        """Append a record for each point."""
        for point in self._points:
            for unit, file in self._files.items():
                step = point.step if unit == "evaluations" else round(point.values["spend/usd"] * MICRO_USD)
                if point.step > file.last:
                    file.write(step, point)
        for file in self._files.values():
            file.sync()
        count = len(self._points)
        self._points.clear()
        return count

    def finish(self, feed: Feed) -> None:
        """Append the end of the run as a text, unless it is the last record."""
        self._files["evaluations"].write_text("end", _format_table(summarise(self._run, feed)), feed)

    def close(self) -> None:
        """Close both files."""
        for file in self._files.values():
            file.close()


class _EventFile:
    """One event file, open to append to."""

    def __init__(self, path: Path, parameters: str) -> None:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event: Any = event_pb2.Event
        self._summary: Any = summary_pb2.Summary
        self.last = 0
        """Number of the last recorded point."""
        self._text = ""
        path.parent.mkdir(parents=True, exist_ok=True)
        records = list(_read_records(path))
        for data, _ in records:
            for value in self._event.FromString(data).summary.value:
                self.last = int(value.simple_value) if value.tag == _STEP else self.last
                self._text = value.tensor.string_val[0].decode() if value.tensor.string_val else self._text
        self._file = path.open("ab")
        self._file.truncate(records[-1][1] if records else 0)
        self._records: Any = RecordWriter(self._file)
        if not records:
            self._write(self._event(file_version="brain.Event:2"))
        if len(records) <= 1:
            self._write(self._text_event("parameters", parameters, 0, 0.0))

    def write(self, step: int, point: Point) -> None:
        """Append a point."""
        numbers = {**point.values, _STEP: float(point.step)}
        values = [self._summary.Value(tag=tag, simple_value=value) for tag, value in numbers.items()]
        self._write(self._event(wall_time=point.at, step=step, summary=self._summary(value=values)))
        self.last = point.step

    def write_text(self, tag: str, text: str, feed: Feed) -> None:
        """Append a text, unless it is the last one."""
        if text != self._text:
            self._write(self._text_event(tag, text, self.last, feed.tree.last_at))
            self.sync()

    def sync(self) -> None:
        """Make all records durable."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def _text_event(self, tag: str, text: str, step: int, at: float) -> Any:  # noqa: ANN401  (a message of protobuf)
        self._text = text
        tensor = {"dtype": _STRING, "tensor_shape": {"dim": [{"size": 1}]}, "string_val": [text.encode()]}
        value = {"tag": tag, "metadata": {"plugin_data": {"plugin_name": "text"}}, "tensor": tensor}
        return self._event(wall_time=at, step=step, summary=self._summary(value=[value]))

    def _write(self, event: Any) -> None:  # noqa: ANN401
        self._records.write(event.SerializeToString())


def _format_table(rows: Mapping[str, object]) -> str:
    """Return a table in Markdown."""
    return "| | |\n|---|---|" + "".join(f"\n| {name} | {value} |" for name, value in rows.items())


def _read_records(path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield each whole record of a file of TensorFlow, and where it ends; stop at a torn one."""
    from tensorboard.summary.writer.record_writer import masked_crc32c

    if not path.exists():
        return
    with path.open("rb") as file:
        end = 0
        while len(header := file.read(12)) == 12:
            (size,) = _U64.unpack(header[:8])
            if header[8:] != _U32.pack(masked_crc32c(header[:8])) or size > path.stat().st_size:
                return
            data, checksum = file.read(size), file.read(4)
            if len(data) < size or checksum != _U32.pack(masked_crc32c(data)):
                return
            end += 16 + size
            yield data, end
