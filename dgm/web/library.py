"""The runs that a server shows, by the names in its addresses."""

import asyncio
import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from dgm.archive.finding import SUFFIX, archive_folders, find_run, find_runs_in
from dgm.archive.log import FILE
from dgm.archive.run import LIVING
from dgm.errors import UserError
from dgm.paths import NOT_RUNS
from dgm.views.gauges import Readings, read_gauges
from dgm.views.run_list import BROKEN, RunListView, RunRow
from dgm.web.markup import address_name
from dgm.web.shared import SHARE, SharedRun

log = logging.getLogger(__name__)
INNER = "+"
"""Stands in an address between the name of a run and that of a run inside it: ``first+holdout``."""
IDLE_S, OPEN = 900.0, 8
"""A run that nobody asked for in this time is closed; so is the one that was not asked for longest if more are open."""
Signature = tuple[int, int] | None
LIST_S = 2.0
"""Minimum seconds between two readings of the list of runs."""
LIST_WAIT_S = 0.5
"""Seconds after which an older list is shown."""


class Library:
    """The runs of some folders, or one run; opened when they are asked for."""

    def __init__(self, *, run: Path | None = None, folder: Path | None = None) -> None:
        """Show one run, the runs of a folder, or those of all folders in which runs are looked for."""
        self._run, self._folder = run and run.absolute(), folder and folder.absolute()
        self._open: dict[str, SharedRun] = {}
        self._list: RunListView | None = None
        self._list_due = 0.0
        self._reading: Future[RunListView] | None = None
        self._readings: dict[str, tuple[int, Readings]] = {}
        self._rows: dict[Path, tuple[list[Signature], RunRow]] = {}

    def paths(self) -> Mapping[str, Path]:
        """Return the name in an address → folder or packed file of each run, without the runs inside others."""
        if self._run is not None:
            return {address_name(self._run.name): self._run}
        paths: dict[str, Path] = {}
        for folder in [self._folder] if self._folder else archive_folders():
            packed = sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []
            for path in (*find_runs_in(folder), *packed):
                if not path.name.startswith(".") and path.name not in NOT_RUNS:
                    paths.setdefault(address_name(path.name), path)
        return paths

    async def open(self, name: str) -> SharedRun:
        """Return the run of a name.

        Raises:
            UserError: there is none.
            ArchiveCorrupt: it is a packed run, and the file is damaged.
        """
        now = time.monotonic()
        known = self._open.get(name)
        if known and known.is_outdated:
            self._open.pop(name).close()
            known = None
        if known is None:
            folder = await asyncio.to_thread(self._find, name)
            if name not in self._open:
                self._open[name] = SharedRun(folder)
            known = self._open[name]
        known.used_at = now
        idle = sorted(
            (run.used_at, other) for other, run in self._open.items() if not run.listeners and other != name
        )
        for used_at, other in idle:
            if used_at < now - IDLE_S or len(self._open) > OPEN:
                self._open.pop(other).close()
        return known

    def _find(self, name: str) -> Path:
        paths = self.paths()
        outer, mark, inner = name.rpartition(INNER)
        if name in paths:
            path = paths[name]
            return find_run(str(path)) if path.suffix == SUFFIX and path.is_file() else path
        if mark and outer in paths:
            for path in find_runs_in(self._find(outer)):
                if address_name(path.name) == inner:
                    return path
        raise UserError("no such run here")

    def named(self, view: RunListView) -> Iterator[tuple[str, RunRow]]:
        """Yield each row that has a name in addresses, with it; no damaged run has one."""
        names = {path.absolute(): name for name, path in self.paths().items()}
        for row in view.runs:
            if name := names.get(Path(row.folder).absolute()):
                yield name, row

    async def list(self) -> RunListView:
        """Return all runs as they were some seconds ago, or longer ago where reading them takes long."""
        if self._reading is None or (self._reading.done() and time.monotonic() >= self._list_due):
            self._reading = self._start_reading()
        reading = asyncio.wrap_future(self._reading)
        if self._list is not None:
            await asyncio.wait((reading,), timeout=LIST_WAIT_S)
            if not reading.done():
                return self._list
        self._list = await reading
        return self._list

    def _start_reading(self) -> Future[RunListView]:
        future: Future[RunListView] = Future()
        future.set_running_or_notify_cancel()

        def read() -> None:
            started = time.monotonic()
            try:
                future.set_result(self._read_list())
            except Exception as error:  # noqa: BLE001  (it is raised where the list is awaited)
                future.set_exception(error)
            self._list_due = time.monotonic() + max(LIST_S, SHARE * (time.monotonic() - started))

        # Nothing waits for it at the end of the program.
        threading.Thread(target=read, name="run-list", daemon=True).start()
        return future

    async def read_gauges(self) -> Sequence[tuple[str, Readings]]:
        """Return the gauges of every run that can be read, by its name in addresses."""
        runs: list[tuple[str, Readings]] = []
        for name, row in self.named(await self.list()):
            if row.events is None:
                continue
            known = self._readings.get(name)
            if known is None or known[0] != row.events or row.state in LIVING:
                try:
                    run = await self.open(name)
                    _, readings = await run.compute(
                        "gauges", lambda source: read_gauges(source.view()), slow=True
                    )
                except BROKEN as error:
                    log.warning("%s has no metrics: %r", name, error)
                    continue
                known = self._readings[name] = row.events, readings
            runs.append((name, known[1]))
        return runs

    def _read_list(self) -> RunListView:
        if self._run is None:
            return RunListView.load(self._folder, self._read_row)
        return RunListView(folders=(str(self._run.parent),), runs=(self._read_row(self._run),))

    def _read_row(self, folder: Path) -> RunRow:
        signature = [_read_signature(folder / name) for name in ("run.json", FILE, f"{FILE}-wal", "run.lock")]
        known = self._rows.get(folder)
        if known and known[0] == signature and known[1].state not in LIVING:
            return known[1]
        row = RunRow.load(folder)
        self._rows[folder] = signature, row
        return row

    def close(self) -> None:
        """Close all runs."""
        for run in self._open.values():
            run.close()
        self._open.clear()


def _read_signature(file: Path) -> Signature:
    """Return what changes with the content of a file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
