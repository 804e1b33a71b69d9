"""The output of ``dgm simulate``: progress, tables, JSON, Markdown and curves."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from dgm.cli.output import emit_json, make_console
from dgm.sessions.studies import StudyResults, list_worlds, write_text
from dgm.simulate.tables import LEGEND, Table, caution, tables, warning

if TYPE_CHECKING:
    from rich.table import Table as RichTable

WIDTH = 130
"""Columns of tables if the output is no terminal."""
EVERY_S = 60.0
"""Seconds between lines of progress if there is no terminal."""


def show_list(as_json: bool) -> None:
    """Print the families of worlds and the policies, a line each."""
    listed = list_worlds()
    if as_json:
        emit_json(listed)
        return
    for group in dict.fromkeys(family["group"] for family in listed["families"]):
        sys.stdout.write(f"{group} families of worlds:\n")
        for family in listed["families"]:
            if family["group"] == group:
                sys.stdout.write(f"  {family['name']:<20} {family['about']}\n")
    sys.stdout.write("policies:\n")
    for policy in listed["policies"]:
        sys.stdout.write(f"  {policy['name']:<20} {policy['about']}\n")


def show_results(results: StudyResults, as_json: bool) -> None:
    """Print the results of the study."""
    if as_json:
        emit_json(results.record())
        return
    by_cell = results.by_cell
    out = make_console()
    if not sys.stdout.isatty():
        out.width = WIDTH
    for cell, rows in by_cell.items():
        out.print(f"[bold]{cell.title}[/bold]")
        for table in tables(rows):
            out.print(_make_rich_table(table))
        if warned := warning(rows):
            out.print(warned)
    if cautious := caution(chain(*by_cell.values())):
        out.print(cautious)
    out.print(LEGEND.format(reference=results.reference))


def write_files(results: StudyResults, curves: Path | None, document: Path | None) -> None:
    """Write the requested files: the anytime curves and the tables.

    Raises:
        UserError: a file cannot be written.
    """
    if curves is not None:
        write_text(curves, results.curves())
    if document is not None:
        write_text(document, results.markdown())


@contextmanager
def show_progress() -> Iterator[Callable[[int, int], None]]:
    """Show the number of finished trials and the remaining time: a bar on a terminal, else a line a minute."""
    if sys.stderr.isatty():
        with _show_bar() as say:
            yield say
        return
    began = said = time.monotonic()

    def line(done: int, of: int) -> None:
        nonlocal said
        now = time.monotonic()
        if done and now - said >= EVERY_S:
            said = now
            left = (now - began) / done * (of - done) / 60
            sys.stderr.write(f"{done} of {of} trials, about {left:.0f} min left\n")
            sys.stderr.flush()

    yield line


@contextmanager
def _show_bar() -> Iterator[Callable[[int, int], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("trials"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # Trials differ in length, and take turns over families and policies.
    with Progress(
        *columns, console=make_console(stderr=True), transient=True, speed_estimate_period=1800.0
    ) as shown:
        task = shown.add_task("trials", total=None)
        yield lambda done, of: shown.update(task, completed=done, total=of)


def _make_rich_table(table: Table) -> "RichTable":
    from rich.box import SIMPLE
    from rich.table import Table as RichTable

    shown = RichTable(title=table.title, box=SIMPLE, title_justify="left", padding=(0, 1, 0, 0))
    for number, name in enumerate(table.header):
        shown.add_column(name, justify="left" if number == 0 else "right", no_wrap=True)
    for row in table.rows:
        shown.add_row(*row)
    return shown
