"""``dgm status``: the activity, progress and estimated end of a search; once, or repeatedly."""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from dgm.analysis.activity import read_activity
from dgm.analysis.activity_record import activity_record
from dgm.analysis.best import BestAgent, find_best
from dgm.analysis.goals import StandstillCount
from dgm.analysis.summary import run_facts
from dgm.archive.history import LIVING, state
from dgm.archive.run import Run
from dgm.cli.arguments import as_json, open_run, run_argument
from dgm.cli.output import emit_json, make_console
from dgm.show.activity import activity_lines
from dgm.show.spans import Line
from dgm.show.status import status_lines
from dgm.show.terminal import style_line, write_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

EVERY_S = 2.0


class StatusReader:
    """The status of a run that may be growing; slow parts are computed again only after new events."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._best: BestAgent | None = None
        self._known = (-1, -1)
        self._count: StandstillCount | None = None

    def follow(self) -> None:
        """Read the events appended to the log since the last call."""
        new = self._run.follow()
        if self._count is not None:
            self._count.follow(new)

    def document(self) -> dict[str, Any]:
        """Return the summary of the run and its current activity."""
        run, tree = self._run, self._run.tree
        known = (tree.evaluations, len(tree.agents))
        if known != self._known:
            self._best, self._known = find_best(run) if tree.agents else None, known
        if self._count is None or self._count.patience != tree.budget.patience:
            self._count = StandstillCount(run) if tree.budget.patience is not None else None
        facts = run_facts(run, None if self._best is None else self._best.agent)
        standstill = None if self._count is None else self._count.standstill
        return {**facts, **activity_record(run, read_activity(run, time.time()), self._best, standstill)}

    def lines(self, document: Mapping[str, Any]) -> Sequence[Line]:
        """Return a document as lines for people."""
        living = document["state"] in LIVING
        return [*status_lines(self._run, document), *activity_lines(document, living=living)]

    @property
    def living(self) -> bool:
        """Whether a process is writing the run."""
        return state(self._run) in LIVING


@click.command()
@run_argument
@click.option(
    "--watch",
    is_flag=True,
    help="Show it again every two seconds until the run ends: in place on a terminal, block by block elsewhere, "
    "with --json one document a line.",
)
@as_json
def status(run_name: str, watch: bool, as_json: bool) -> None:
    """Say what a search is doing, how far it is, what it has spent, and when it will end."""
    with open_run(run_name) as run:
        reader = StatusReader(run)
        if not watch:
            document = reader.document()
            emit_json(document) if as_json else write_lines(reader.lines(document))
            return
        screen = make_console()
        in_place = not as_json and screen.is_terminal and not screen.is_dumb_terminal
        try:
            if in_place:
                _redraw(reader, screen)
            else:
                _repeat(reader, as_json)
        except KeyboardInterrupt:
            # Ctrl-C is the normal way to leave here.
            pass
        if in_place:
            write_lines(reader.lines(reader.document()))


def _redraw(reader: StatusReader, screen: "Console") -> None:
    """Show the status in place until the run ends."""
    from rich.live import Live

    with Live(_status_text(reader), console=screen, screen=True, auto_refresh=False) as live:
        while reader.living:
            time.sleep(EVERY_S)
            reader.follow()
            live.update(_status_text(reader), refresh=True)


def _status_text(reader: StatusReader) -> "Text":
    from rich.text import Text

    shown = (style_line(each, sys.stdout) for each in reader.lines(reader.document()))
    return Text("\n").join(Text.from_ansi(each) for each in shown)


def _repeat(reader: StatusReader, as_json: bool) -> None:
    """Print the status again and again until the run ends."""
    while True:
        living = reader.living
        document = reader.document()
        if as_json:
            sys.stdout.write(json.dumps(document, ensure_ascii=True) + "\n")
        else:
            write_lines([*reader.lines(document), ()])
        sys.stdout.flush()
        if not living:
            return
        time.sleep(EVERY_S)
        reader.follow()
