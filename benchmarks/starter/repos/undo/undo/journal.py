"""Store a history as JSON, and read it back."""

import json

from .changes import Delete, Group, Insert
from .errors import HistoryError

_KINDS = {"insert": Insert, "delete": Delete}


def to_record(change):
    """Return a change as plain data."""
    if isinstance(change, Group):
        return {"kind": "group", "label": change.label, "changes": [to_record(part) for part in change.changes]}
    kind = "insert" if isinstance(change, Insert) else "delete"
    return {"kind": kind, "at": change.at, "lines": list(change.lines)}


def from_record(record):
    """Return the change that :func:`to_record` made plain."""
    try:
        if record["kind"] == "group":
            return Group(record["label"], tuple(from_record(part) for part in record["changes"]))
        return _KINDS[record["kind"]](record["at"], tuple(record["lines"]))
    except KeyError as error:
        raise HistoryError(f"not a change: {record!r}") from error


def dump(history):
    """Return the steps of a history as JSON text."""
    steps = {name: [to_record(change) for change in getattr(history, name)()] for name in ("done", "undone")}
    return json.dumps(steps, sort_keys=True)


def load(text, history):
    """Take the stored steps over into a history of the same document."""
    steps = json.loads(text)
    history.restore(*([from_record(record) for record in steps[name]] for name in ("done", "undone")))
