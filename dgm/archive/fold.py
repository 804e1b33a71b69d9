"""Folds stored rows into a tree without making a value of each event, so that a long run opens in seconds.

Three kinds of event are nearly all of a long run; of those only the first few fields are read, in the order in which
``codec`` writes them, the others are read like any event. A test holds this to be the same as applying every event.
"""

import gc
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dgm.archive.store import EventStore, Row
from dgm.archive.tree import Tree
from dgm.domain import Evaluate, Usage, Verdict
from dgm.errors import ArchiveCorrupt

_scan = json.JSONDecoder().raw_decode
# How ``codec`` writes them; whatever does not match is read as JSON.
_started = re.compile(r'\{"agent":(\d+),"task":"([^"\\]*)","attempt":(\d+)\}').fullmatch
_graded = re.compile(r'\{"agent":(\d+),"task":"([^"\\]*)","attempt":(\d+),"verdict":"([a-z]+)"[,}]').match
_VERDICTS = {verdict.value: verdict for verdict in Verdict}


PAUSE_ROWS = 256
"""Rows between two calls of ``pause``."""


def fold(store: EventStore, tree: Tree, pause: Callable[[], None] | None = None) -> None:
    """Brings the tree up to the end of the log.

    Args:
        store: the log.
        tree: is not to be read before this returns.
        pause: called after every ``PAUSE_ROWS`` rows, by the thread that folds. It may wait, to let other threads
            at the interpreter, or raise, to end the fold; a tree that was not folded to the end is of no use.

    Raises:
        ArchiveCorrupt: an event cannot be read, or cannot follow what came before; names its number.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        with tree.many():
            rows = store.rows(tree.seq)
            _fold_rows(store, tree, rows if pause is None else _pausing(rows, pause))
    finally:
        if collecting:
            gc.enable()


def _pausing(rows: Iterable[Row], pause: Callable[[], None]) -> Iterator[Row]:
    for number, row in enumerate(rows, 1):
        yield row
        if not number % PAUSE_ROWS:
            pause()


def _fold_rows(store: EventStore, tree: Tree, rows: Iterable[Row]) -> None:
    seq, latest = 0, 0.0
    # Not of the types that they are used as: a call of NewType for each would take a tenth of the time.
    action: Any
    agent: Any
    task: Any
    attempt: Any
    for row in rows:
        seq, at, kind, action, body = row
        try:
            if kind == "task_graded" and action is not None:
                agent, task, attempt, verdict = _verdict_in(body)
                tree.graded(action, agent, task, attempt, _VERDICTS[verdict])
            elif kind == "action_started" and (found := _started(body)) and action is not None:
                agent, task, attempt = int(found[1]), found[2], int(found[3])
                tree.started(action, Evaluate(agent, task, attempt), False)
            elif kind == "model_called" and action is not None:
                fields, _ = _scan(body)
                who = (fields["role"], fields["model"])
                tree.model_calls.called(action, fields["number"], Usage(*fields.get("usage", ())), who)
            else:
                tree.passed(seq - 1, latest)
                tree.apply(store.decoded(row))
                latest = 0.0  # a session may begin at an earlier time than the last one ended
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            message = (
                str(error)
                if isinstance(error, ArchiveCorrupt)
                else f"does not fit what came before: {error!r}"
            )
            raise ArchiveCorrupt(f"event {seq}: {message}") from error
        if at > latest:
            latest = at
    if seq:
        tree.passed(seq, latest)


def _verdict_in(body: str) -> tuple[Any, Any, int, str]:
    """Agent, task, attempt and verdict in the body of a ``task_graded`` event."""
    found = _graded(body)
    if found and body[-1] == "}":
        agent, task, attempt, verdict = found.groups()
        return int(agent), task, int(attempt), verdict
    fields, _ = _scan(body)
    return fields["agent"], fields["task"], fields["attempt"], fields["verdict"]
