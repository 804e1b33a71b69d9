"""Fold stored rows into a tree without creating a value for each event, so that a long run opens in seconds.

Nearly all events of a long run are of three kinds. Only the first few fields of those are read, in the order in which
``codec`` writes them. All others are read like any event. A test checks that the result equals applying every event.
"""

import gc
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dgm.archive.event_fields import UnusableField, check_fields
from dgm.archive.store import EventStore, Row
from dgm.archive.tree import Tree
from dgm.domain import Evaluate, Usage, Verdict
from dgm.errors import ArchiveCorrupt

_scan = json.JSONDecoder().raw_decode
# ``codec`` writes the bodies in this form; a body that does not match is read as JSON.
_named = r'\{"agent":(\d{1,15}),"task":"([^"\\]{0,10000})","attempt":(\d{1,15})'
_started = re.compile(_named + r"\}", re.ASCII).fullmatch
_graded = re.compile(_named + r',"verdict":"([a-z]+)"[,}]', re.ASCII).match
_NO_USAGE = (0, 0, 0, 0.0)
_VERDICTS = {verdict.value: verdict for verdict in Verdict}


PAUSE_ROWS = 256
"""Number of rows between two calls of ``pause``."""


def fold(store: EventStore, tree: Tree, pause: Callable[[], None] | None = None) -> None:
    """Bring the tree up to date with the end of the log.

    Args:
        store: the log.
        tree: the tree; do not read it before this function returns.
        pause: called after every ``PAUSE_ROWS`` rows, by the thread that folds. It may wait, to give other threads
            interpreter time, or raise, to abort the fold. A partly folded tree is unusable.

    Raises:
        ArchiveCorrupt: an event is unreadable, or cannot follow the earlier ones; names its number.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        with tree.many():
            rows = store.rows(tree.seq)
            _fold_rows(store, tree, rows if pause is None else _pause_between_rows(rows, pause))
    finally:
        if collecting:
            gc.enable()


def _pause_between_rows(rows: Iterable[Row], pause: Callable[[], None]) -> Iterator[Row]:
    for number, row in enumerate(rows, 1):
        yield row
        if not number % PAUSE_ROWS:
            pause()


def _fold_rows(store: EventStore, tree: Tree, rows: Iterable[Row]) -> None:
    seq, latest = 0, 0.0
    known: set[tuple[str, str]] = set()
    # Any avoids a call of NewType for each value, which would take a tenth of the time.
    action: Any
    agent: Any
    task: Any
    attempt: Any
    for row in rows:
        seq, at, kind, action, body = row
        try:
            if kind == "task_graded" and action is not None:
                agent, task, attempt, verdict = _read_verdict(body)
                tree.graded(action, agent, task, attempt, _VERDICTS[verdict])
            elif kind == "action_started" and (found := _started(body)) and action is not None:
                agent, task, attempt = int(found[1]), found[2], int(found[3])
                tree.started(action, Evaluate(agent, task, attempt), False)
            elif kind == "model_called" and action is not None:
                fields, _ = _scan(body)
                number, usage = fields["number"], fields.get("usage", _NO_USAGE)
                who = (fields["role"], fields["model"])
                check_fields({"number": number, "usage": usage})
                if who not in known:
                    check_fields({"role": who[0], "model": who[1]})
                    known.add(who)
                tree.model_calls.called(action, number, Usage(*usage), who)
            else:
                tree.passed(seq - 1, latest)
                tree.apply(store.decoded(row))
                latest = 0.0  # a session may begin at an earlier time than the last one ended
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise ArchiveCorrupt(f"event {seq}: {_explain(kind, error)}") from error
        if at > latest:
            latest = at
    if seq:
        tree.passed(seq, latest)


def _explain(kind: str, error: Exception) -> str:
    match error:
        case ArchiveCorrupt():
            return str(error)
        case UnusableField():
            return f"a {kind} event without a usable {error}"
        case _:
            return f"does not fit what came before: {error!r}"


def _read_verdict(body: str) -> tuple[Any, Any, int, str]:
    """Return the agent, task, attempt and verdict in the body of a ``task_graded`` event."""
    found = _graded(body)
    if found and body[-1] == "}":
        agent, task, attempt, verdict = found.groups()
        return int(agent), task, int(attempt), verdict
    fields, _ = _scan(body)
    check_fields(fields)
    return fields["agent"], fields["task"], fields["attempt"], fields["verdict"]
