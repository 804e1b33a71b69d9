"""Steps of long work on standard error: live rows with the time on a terminal, a few lines elsewhere."""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dgm.cli.output import make_console
from dgm.sandboxes.preparing import LOGGER
from dgm.show.safe import one_line
from dgm.steps import OnStep, Step

LINES = 10
"""Lines of a countable step where standard error is no terminal, about."""
NAME_CELLS, NOTE_CELLS = 60, 60


@contextmanager
def show_steps() -> Iterator[OnStep]:
    """Show steps until the end of the block."""
    show_preparations()
    if not sys.stderr.isatty():
        yield _Lines().show
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=make_console(stderr=True), transient=True) as progress:
        rows = {}

        def show(step: Step) -> None:
            count = f"{step.done:,} of {step.total:,}" if step.total else ""
            if step.name not in rows:
                rows[step.name] = progress.add_task(_markup_free(step.name), total=None, count="", note="")
            progress.update(
                rows[step.name],
                completed=step.done,
                total=step.total or None,
                count=count,
                note=_markup_free(one_line(step.note, NOTE_CELLS)),
            )

        yield show


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


class _Lines:
    def __init__(self) -> None:
        self._began = time.monotonic()
        self._printed: dict[str, int] = {}

    def show(self, step: Step) -> None:
        tenth = LINES * step.done // step.total if step.total else 0
        if self._printed.get(step.name, -1) == tenth:
            return
        self._printed[step.name] = tenth
        count = f"{step.done:,} of {step.total:,}" if step.total else ""
        seconds = time.monotonic() - self._began
        clock = f"({seconds / 60:.0f} min)" if seconds >= 60 else ""
        words = (one_line(step.name, NAME_CELLS), count, one_line(step.note, NOTE_CELLS), clock)
        sys.stderr.write(f"{'  '.join(filter(None, words))}\n")


def _markup_free(text: str) -> str:
    from rich.markup import escape

    return escape(one_line(text, NAME_CELLS))
