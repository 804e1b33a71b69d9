"""Runs of the previous version, which had ``events.db`` and a folder ``traces``: rewritten once, when first opened.

Earlier versions than that are not read.
"""

import secrets
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from dgm.archive.durable import sync_file, sync_folder
from dgm.archive.events import Event, Recorded, traces_of, write_out_surrogates
from dgm.archive.lock import error_of_write, keep_writers_out
from dgm.archive.log import FILE, translate_errors, write_log
from dgm.bounded_reading import parse_json
from dgm.domain import COMMIT, Digest
from dgm.errors import ArchiveCorrupt, DgmError, UserError

LOG = "events.db"
LOCK = "events.lock"
SCHEMA = 5
EVENTS = "SELECT seq, at, kind, action, body FROM events ORDER BY seq"
CALLS = "SELECT action, number, request, reply FROM calls ORDER BY action, number"
_USAGE = (
    "calls",
    "input_tokens",
    "output_tokens",
    "usd",
    "cached_tokens",
    "written_tokens",
    "reasoning_tokens",
)
_ENTERED = ("candidate", "control", "predictions")
"""Operators of agents that were entered to be evaluated; their rationale was their key."""
_COST = ("usage", "seconds", "traces")


def convert_run(folder: Path) -> None:
    """Give a run of the previous version its ``run.db``, then remove the files that it replaces.

    The new file appears complete and durable, or not at all; a later call goes on where a dead process stopped.

    Raises:
        ArchiveBusy: a process writes the run.
        ArchiveCorrupt: an event is damaged.
        UserError: the folder is read-only, or a still earlier version made the run.
        Infrastructure: the disk is full or failing.
    """
    with keep_writers_out(folder / LOCK):
        draft = folder / f".{secrets.token_hex(6)}"
        try:
            if not (folder / FILE).exists():
                _write_converted(folder, draft)
                sync_file(draft)
                draft.replace(folder / FILE)
                sync_folder(folder)
            shutil.rmtree(folder / "traces", ignore_errors=True)
            for end in ("-wal", "-shm", ""):
                (folder / f"{LOG}{end}").unlink(missing_ok=True)
        except OSError as error:
            raise error_of_write(folder / FILE, error) from error
        finally:
            draft.unlink(missing_ok=True)


def _write_converted(folder: Path, draft: Path) -> None:
    path = folder / LOG
    named: dict[Digest, None] = {}

    def read_events() -> Iterator[Recorded]:
        for seq, at, kind, action, body in connection.execute(EVENTS):
            event = read_event(f"{path}: event {seq}", kind, action, body)
            named.update(dict.fromkeys(traces_of(event)))
            yield Recorded(seq, at, event)

    uri = path.resolve().as_uri() + "?mode=ro"
    with translate_errors(path), closing(sqlite3.connect(uri, uri=True)) as connection:
        check_version(path, connection)
        write_log(draft, read_events(), connection.execute(CALLS), read_traces(folder, named))


def check_version(path: Path, connection: sqlite3.Connection) -> None:
    """Raise unless a log has the schema of the previous version.

    Raises:
        UserError: it has an earlier one.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA:
        raise UserError(f"{path}: schema {version} is no longer read; open the run with the dgm that made it")


def read_traces(folder: Path, named: Mapping[Digest, None]) -> Iterator[tuple[Digest, bytes]]:
    """Yield the compressed traces of some names; those that are missing are left out."""
    for digest in named:
        path = folder / "traces" / digest[:2] / f"{digest[2:]}.z"
        if path.is_file():
            yield digest, path.read_bytes()


def read_event(place: str, kind: object, action: object, body: object) -> Event:
    """Return the event in a row of the previous version.

    Raises:
        ArchiveCorrupt: it holds none; the message begins with ``place``.
        UserError: it is of a still earlier version.
    """
    try:
        values = write_out_surrogates(parse_json(str(body)))
        if values.get("request"):
            raise UserError(f"{place}: its form is no longer read; open the run with the dgm that made it")
        event: Event = msgspec.convert(_nest(str(kind), action, values), Event)
    except DgmError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ArchiveCorrupt(f"{place}: {error}") from error
    return event


def _nest(kind: str, action: object, body: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON of today for an event's body, whose values lay beside each other."""
    for key in ("usage", "most"):
        if key in body:
            body[key] = dict(zip(_USAGE, body[key], strict=False))
    if "commit" in body and not COMMIT.fullmatch(body["commit"]):
        body["commit"] = ""
    event = {"event": kind, "action": action}
    match kind:
        case "action_started":
            again = body.pop("again", False)
            what = {"type": "evaluate" if "task" in body else "expand", **body}
            return {"event": kind, "id": action, "action": what, "again": again}
        case "task_graded" | "child_proposed" | "agent_born" | "agent_stillborn":
            beside = ("id", "again") if kind != "agent_stillborn" else ()
            beside = (*beside, "decided") if kind == "agent_born" else beside
            event |= {key: body.pop(key) for key in beside if key in body}
            if kind == "agent_born" and body["operator"] in _ENTERED:
                event["key"] = "control" if body["operator"] == "control" else body["rationale"]
            cost = {key: body.pop(key) for key in _COST if key in body}
            return {**event, "outcome": {**body, "cost": cost}}
        case "verdict_withdrawn":
            what = {key: body.pop(key) for key in ("agent", "task", "attempt")}
            return {**event, **body, "what": {"type": "evaluate", **what}}
        case "run_started" if body.get("control"):
            names = ("usd", "tokens", "seconds", "attempts")
            return {**event, **body, "control": dict(zip(names, body["control"], strict=True))}
        case _:
            return {**event, **body}
