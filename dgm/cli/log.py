"""``dgm log``: print the events of a run, and follow new ones on request."""

import json
import sys
from collections.abc import Iterable, Iterator

import click

from dgm.archive.codec import KINDS, encode
from dgm.archive.events import Recorded
from dgm.archive.history import follow_log, writer
from dgm.archive.overview import read_overview
from dgm.archive.store import EventStore
from dgm.cli.arguments import open_run, run_argument
from dgm.errors import UserError
from dgm.publish.finding import find_run
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
    if kind is not None and kind not in KINDS:
        raise UserError(f"--kind {kind}: there are {', '.join(KINDS)}")
    if after is not None and tail is not None:
        raise UserError("--after and --tail both say where to begin; give one of them")
    if follow:
        _follow_run(run_name, after, FIRST if tail is None and after is None else tail, kind, as_json)
        return
    with open_run(run_name) as run:
        events = run.store.read(after or 0 if tail is None else _find_tail_start(run.store, tail, kind))
        _print_events(_filter_kind(events, kind), as_json)


def _follow_run(run_name: str, after: int | None, tail: int | None, kind: str | None, as_json: bool) -> None:
    folder = find_run(run_name)
    name = one_line(folder.resolve().name, 120)
    ended_before = writer(folder) is None
    try:
        with EventStore.open(folder / "events.db", write=False) as store:
            begin = after or 0 if tail is None else _find_tail_start(store, tail, kind)
            for recorded in _filter_kind(follow_log(store, folder, begin), kind):
                _print_events([recorded], as_json)
                sys.stdout.flush()
        state = one_line(read_overview(folder).state, 120)
        sys.stderr.write(
            f"{name} is not running ({state})\n" if ended_before else f"{name} has ended ({state})\n"
        )
    except KeyboardInterrupt:
        return


def _filter_kind(events: Iterable[Recorded], kind: str | None) -> Iterator[Recorded]:
    return (each for each in events if kind is None or kind == encode(each.event)[0])


def _find_tail_start(store: EventStore, count: int, kind: str | None) -> int:
    """Return the number of the event before the last ``count`` events of a kind."""
    if count == 0:
        return store.newest()
    which = "WHERE kind = :kind" if kind else ""
    rows = store.query(
        f"SELECT min(seq) FROM (SELECT seq FROM events {which} ORDER BY seq DESC LIMIT :count)",
        {"count": count, **({"kind": kind} if kind else {})},
    )
    first = rows[0][0]
    return store.newest() if first is None else int(first) - 1


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
