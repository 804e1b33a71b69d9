"""Weights & Biases: a run of the project that the address names, with the id of dgm's own run, online or offline.

Online, the server says where the run stands. Offline (``WANDB_MODE=offline``), the files of former processes do.
"""

import os
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dgm.archive.events import Recorded
from dgm.sinks.feed import Feed, Point, best_patch, read_parameters, summarise
from dgm.sinks.sink import SinkContext

SETTLED_S = 5.0
"""Seconds after its last write in which the file of a killed process may still grow: its helper outlives it."""
_HEADER, _BLOCK = 7, 32_768
"""Sizes in bytes of the header of a file and of a record, and of a block of records (LevelDB's log format)."""
_FIRST_PARTS, _LAST_PARTS = (1, 2), (1, 4)
"""Types of records that begin and end what was written at once."""


class WandbSink:
    """The rest of the address is ``PROJECT`` or ``ENTITY/PROJECT``; empty: ``dgm``."""

    def __init__(self, context: SinkContext) -> None:
        import wandb

        self._context, self._wandb = context, wandb
        parameters = read_parameters(context.run)
        entity, _, project = context.rest.rpartition("/")
        folder = Path(os.environ.get("WANDB_DIR", "."))
        recorded = _read_last_step(folder / "wandb", parameters.id)
        self._run: Any = wandb.init(
            project=project or "dgm",
            entity=entity or None,
            id=parameters.id,
            name=parameters.run,
            resume="allow",
            dir=str(folder),
            config={**parameters.values},
            settings=wandb.Settings(silent=True, console="off", x_disable_stats=True, x_disable_meta=True),
        )
        self._last = recorded if self._run.offline else max(0, self._run.starting_step - 1)
        self._points: list[Point] = []

    def observe(self, recorded: Recorded, feed: Feed) -> None:
        """Keep the point of an event, unless it is recorded."""
        del recorded
        if feed.step > self._last and (point := feed.point()):
            self._points.append(point)

    def deliver(self) -> int:
        """Hand the points over; their numbers are the steps of the run."""
        for point in self._points:
            self._run.log({**point.values, "_timestamp": point.at}, step=point.step, commit=True)
            self._last = point.step
        count = len(self._points)
        self._points.clear()
        return count

    def finish(self, feed: Feed) -> None:
        """Write the run's end to its summary, and the best agent's changes as an artifact."""
        self._run.summary.update(dict(summarise(self._context.run, feed)))
        with best_patch(self._context.run, feed) as path:
            if path:
                artifact = self._wandb.Artifact(f"best-{self._run.id}", "agent")
                artifact.add_file(str(path))
                self._run.log_artifact(artifact)

    def close(self) -> None:
        """End the process of the library; it writes what it has."""
        self._run.finish()


def _read_last_step(folder: Path, run: str) -> int:
    """Return the number of the last point in the files of a run; 0 if there is none."""
    from wandb.proto.wandb_internal_pb2 import Record

    files = list(folder.glob(f"offline-run-*-{run}/run-{run}.wandb"))
    # A file of the future is as old as any: the clock was put back.
    while any(0 <= time.time() - file.stat().st_mtime < SETTLED_S for file in files):
        time.sleep(0.5)
    steps = [
        record.history.step.num
        for file in files
        for record in map(Record.FromString, read_records(file))
        if record.HasField("history")
    ]
    return max(steps, default=0)


def read_records(file: Path) -> Iterator[bytes]:
    """Yield each whole record of a file of W&B; stop at a torn one."""
    data, position, parts = file.read_bytes(), _HEADER, b""
    while position + _HEADER <= len(data):
        rest = _BLOCK - position % _BLOCK
        if rest < _HEADER:
            position += rest
            continue
        checksum, size, kind = struct.unpack_from("<IHB", data, position)
        part = data[position + _HEADER : position + _HEADER + size]
        if len(part) < size or zlib.crc32(part, zlib.crc32(bytes([kind]))) != checksum:
            return
        parts = part if kind in _FIRST_PARTS else parts + part
        position += _HEADER + size
        if kind in _LAST_PARTS:
            yield parts
