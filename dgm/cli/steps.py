"""Steps of long work on standard error: live rows with the time on a terminal, a few lines elsewhere."""

import logging
import sys
import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from dgm.render.safe import one_line
from dgm.sandboxes.preparing import LOGGER
from dgm.steps import Step

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LINES = 10
"""Lines of a countable step where standard error is no terminal, about."""
NAME_CELLS, NOTE_CELLS = 60, 60


class StepDisplay(AbstractContextManager["StepDisplay"]):
    """Shows each step that it is called with; nothing before the first."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._printed: dict[str, int] = {}
        self._progress: Progress | None = None
        self._rows: dict[str, TaskID] = {}
        show_preparations()

    def __call__(self, step: Step) -> None:
        """Show a step."""
        if not sys.stderr.isatty() and self._progress is None:
            self._print(step)
            return
        if self._progress is None:
            self._progress = _make_progress()
            self._progress.start()
        from rich.markup import escape

        name = escape(one_line(step.name, NAME_CELLS))
        if step.name not in self._rows:
            for row in self._rows.values():
                self._progress.stop_task(row)
                self._progress.update(row, total=1, completed=1)
            self._rows[step.name] = self._progress.add_task(name, total=None, count="", note="")
        self._progress.update(
            self._rows[step.name],
            completed=step.done,
            total=step.total or None,
            count=_count_text(step),
            note=escape(one_line(step.note, NOTE_CELLS)),
        )

    def pause(self) -> None:
        """Take the display away until the next step, as for a question."""
        if self._progress is not None:
            self._progress.stop()
        self._progress, self._rows = None, {}

    def __exit__(self, *_: object) -> None:
        self.pause()

    def _print(self, step: Step) -> None:
        part = LINES * step.done // step.total if step.total else 0
        if self._printed.get(step.name, -1) == part:
            return
        self._printed[step.name] = part
        seconds = time.monotonic() - self._began
        clock = f"({seconds / 60:.0f} min)" if seconds >= 60 else ""
        words = (one_line(step.name, NAME_CELLS), _count_text(step), one_line(step.note, NOTE_CELLS), clock)
        sys.stderr.write(f"{'  '.join(filter(None, words))}\n")


def _count_text(step: Step) -> str:
    return f"{step.done:,} of {step.total:,}" if step.total else ""


def _make_progress() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)


def show_preparations() -> None:
    """Print what takes minutes before anything begins, such as the build of an image, to standard error."""
    logger = logging.getLogger(LOGGER)
    if not logger.handlers:
        logger.addHandler(_StandardError())
        logger.propagate = False
        logger.setLevel(logging.INFO)


class _StandardError(logging.Handler):
    """Writes to what standard error is at the moment: a live display replaces it."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"{one_line(record.getMessage(), 1_000)}\n")
