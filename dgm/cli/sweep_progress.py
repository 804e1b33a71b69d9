"""The progress of a sweep for people: a live table on a terminal, else a line for each start and end."""

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dgm.archive.run import Run
from dgm.cli.output import make_console
from dgm.errors import DgmError
from dgm.experiments.performing import Sweep, SweepEvent, SweepEventKind
from dgm.experiments.run_state import RunStage, SweepRunState, state_of
from dgm.experiments.sweep_plan import PlannedRun
from dgm.show.spans import plain_text
from dgm.show.sweep_rows import ended_text, outcome_text, run_line
from dgm.show.terminal import speaks_utf8
from dgm.show.words import clock_text, count_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

RECENT = 5
"""Number of recently ended runs that the live table shows."""
EVERY_S = 2.0


class SweepProgress:
    """A listener to every start and end of a run; it prints a line each, or keeps the data of the live table."""

    def __init__(self, name: str, runs: Sequence[PlannedRun], *, quiet: bool) -> None:
        self._name = name
        self._runs = runs
        self._quiet = quiet
        self._began = time.monotonic()
        self._recent: list[str] = []
        self._shown: list[str] = []
        self._open: dict[str, Run] = {}
        self._seen: dict[str, SweepRunState] = {}
        self._sweep: Sweep | None = None
        self.live: Live | None = None

    def attach(self, sweep: Sweep) -> None:
        """Show this sweep."""
        self._sweep = sweep

    def told(self, told: SweepEvent) -> None:
        """Show an event of a run."""
        if self._sweep is None:
            return
        if told.moment is SweepEventKind.ENDED:
            self._close(told.run.name)
            text = ended_text(told.run, self._sweep.standings[told.run.name], told.failure)
        else:
            text = f"{told.run.name}  {told.moment.value}"
        self._say(text)

    def say_stopping(self, *, again: bool) -> None:
        """Show that the sweep is being stopped."""
        running = count_text(len(self._sweep.running) if self._sweep else 0, "run")
        self._say(
            "stopping at once" if again else f"stopping: waiting for {running} (once more to stop at once)"
        )

    async def watch(self) -> None:
        """Read the progress of the running runs every two seconds, if there is a live table."""
        while self.live is not None:
            self._refresh()
            await asyncio.sleep(EVERY_S)

    def close(self) -> None:
        """Close the open runs."""
        for name in list(self._open):
            self._close(name)
        if self.live is not None:
            self._refresh()

    def __rich__(self) -> "RenderableType":
        from rich.panel import Panel
        from rich.text import Text

        # A separate thread draws this, so it must not read a run.
        lines = [f"time  {clock_text(time.monotonic() - self._began)}", *self._shown, "", *self._recent]
        text = Text("\n".join(lines), no_wrap=True, overflow="ellipsis")
        return Panel(text, title=f"sweep {self._name}", title_align="left")

    def _say(self, text: str) -> None:
        if self.live is not None:
            self._recent = [*self._recent, text][-RECENT:]
            self._refresh()
        elif not self._quiet:
            text = text if speaks_utf8(sys.stdout) else text.encode("ascii", "replace").decode()
            sys.stdout.write(time.strftime("%H:%M:%S  ") + text + "\n")
            sys.stdout.flush()

    def _refresh(self) -> None:
        sweep = self._sweep
        if sweep is None or not sweep.standings:
            return
        running = [run for run in self._runs if run.name in sweep.running]
        for run in running:
            self._read(sweep, run.name)
        width = max(len(run.name) for run in self._runs)
        self._shown = [
            outcome_text(sweep),
            "",
            *(plain_text(run_line(run, self._seen[run.name], width, failed=False)) for run in running),
        ]

    def _read(self, sweep: Sweep, name: str) -> None:
        # Keep this apart from the sweep's own standings: between two reads a run may end, or be cut off.
        self._seen.setdefault(name, SweepRunState(RunStage.RUNNING))
        folder = sweep.folder.run(name)
        if not (folder / "run.json").exists():
            return
        try:
            run = self._open.get(name)
            if run is None:
                run = self._open[name] = Run.open(folder)
            run.follow()
            found = state_of(run)
        except DgmError:
            # The run's own process reports the damage when it meets it.
            self._close(name)
            return
        self._seen[name] = SweepRunState(RunStage.RUNNING, found.words, found.facts)

    def _close(self, name: str) -> None:
        if run := self._open.pop(name, None):
            run.close()


@contextmanager
def sweep_progress(name: str, runs: Sequence[PlannedRun], *, quiet: bool) -> Iterator[SweepProgress]:
    """Show a sweep's progress until the context ends; ``quiet`` prints nothing."""
    shown = SweepProgress(name, runs, quiet=quiet)
    if quiet or not sys.stdout.isatty():
        yield shown
        return
    from rich.live import Live

    with Live(shown, console=make_console(), refresh_per_second=4) as live:
        shown.live = live
        yield shown
