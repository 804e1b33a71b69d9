"""``dgm log``: print the events of a run, and follow new ones on request."""

import json
import sys
from collections.abc import Iterable

import click

from dgm.archive.codec import encode
from dgm.archive.events import Recorded
from dgm.archive.finding import find_run
from dgm.archive.history import writer
from dgm.archive.overview import read_overview
from dgm.archive.selection import EventSelection
from dgm.archive.store import EventStore
from dgm.cli.arguments import open_run, run_argument
from dgm.show.events import log_line
from dgm.show.safe import one_line
from dgm.show.terminal import write_lines

FIRST = 10
"""Number of existing events that ``--follow`` prints first."""


@click.command()
@run_argument
@click.option("--after", type=click.IntRange(min=0), help="Print events after this number (default 0).")
@click.option("--tail", type=click.IntRange(min=0), help="Print only so many of the events that there are.")
@click.option("--kind", help="Print events of this kind only, such as task_graded.")
@click.option(
    "--follow",
    is_flag=True,
    help=f"Print the last {FIRST} events (--after or --tail: others), then each as it comes, until the run ends.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document a line and nothing else.")
def log(
    run_name: str, after: int | None, tail: int | None, kind: str | None, follow: bool, as_json: bool
) -> None:
    """Print the events of a run, oldest first.

    --follow of a run that nobody writes prints what there is and ends; Ctrl-C ends it at any time. Both are exit
    code 0.
    """
    chosen = EventSelection(after, FIRST if follow and tail is None and after is None else tail, kind)
    if follow:
        _follow_run(run_name, chosen, as_json)
        return
    with open_run(run_name) as run:
        _print_events(chosen.read(run.store), as_json)


def _follow_run(run_name: str, chosen: EventSelection, as_json: bool) -> None:
    folder = find_run(run_name)
    name = one_line(folder.resolve().name, 120)
    ended_before = writer(folder) is None
    try:
        with EventStore.open(folder / "events.db", write=False) as store:
            for recorded in chosen.follow(store, folder):
                _print_events([recorded], as_json)
                sys.stdout.flush()
        state = one_line(read_overview(folder).state, 120)
        sys.stderr.write(
            f"{name} is not running ({state})\n" if ended_before else f"{name} has ended ({state})\n"
        )
    except KeyboardInterrupt:
        return


def _print_events(events: Iterable[Recorded], as_json: bool) -> None:
    if as_json:
        for recorded in events:
            _print_record(recorded)
    else:
        write_lines(map(log_line, events), crop=True)


def _print_record(recorded: Recorded) -> None:
    name, action, body = encode(recorded.event)
    document = {"seq": recorded.seq, "at": recorded.at, "kind": name, "action": action}
    sys.stdout.write(json.dumps({**document, "body": json.loads(body)}) + "\n")
