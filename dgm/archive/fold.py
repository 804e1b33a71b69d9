"""Folds stored rows into a tree without making a value of each event, so that a long run opens in seconds.

Two kinds of event are nearly all of a long run; those are read straight from their JSON, the others like any
event. A test holds this to be the same as applying every event.
"""

import gc
import json
from collections.abc import Iterable

from dgm.archive.codec import action_of
from dgm.archive.store import EventStore, Row
from dgm.archive.tree import Tree
from dgm.domain import ActionId, AgentId, TaskId, Verdict
from dgm.errors import ArchiveCorrupt

_scan = json.JSONDecoder().raw_decode
_VERDICTS = {verdict.value: verdict for verdict in Verdict}


def fold(store: EventStore, tree: Tree) -> None:
    """Brings the tree up to the end of the log.

    Raises:
        ArchiveCorrupt: an event cannot be read, or cannot follow what came before; names its number.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        with tree.many():
            _fold_rows(store, tree, store.rows(tree.seq))
    finally:
        if collecting:
            gc.enable()


def _fold_rows(store: EventStore, tree: Tree, rows: Iterable[Row]) -> None:
    for row in rows:
        seq, at, kind, action, body = row
        try:
            if kind == "task_graded" and action is not None:
                fields, _ = _scan(body)
                verdict = _VERDICTS[fields["verdict"]]
                tree.graded(
                    ActionId(action),
                    AgentId(fields["agent"]),
                    TaskId(fields["task"]),
                    fields["attempt"],
                    verdict,
                )
            elif kind == "action_started" and action is not None:
                fields, _ = _scan(body)
                tree.started(ActionId(action), action_of(fields), fields.get("again", False))
            else:
                tree.apply(store.decoded(row))
                continue
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            message = (
                str(error)
                if isinstance(error, ArchiveCorrupt)
                else f"does not fit what came before: {error!r}"
            )
            raise ArchiveCorrupt(f"event {seq}: {message}") from error
        tree.passed(seq, at)
