"""Adoption of a run that a stranger may have made: it is rewritten once, here, into files that we create.

Each event passes the decoder, each trace and call is unpacked within bounds, and git checks each object. From then on
the run is like any other, and nothing that reads it has to defend itself. ``verify`` checks that a run agrees with its
log: every trace's name, every git object, every ref and every descent.

Runs of the previous version had ``events.db`` and a folder ``traces``: they are rewritten once, when first opened.
Still earlier versions are not read.
"""

import hashlib
import re
import secrets
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from dgm.archive.durable import make_folder, sync_file, sync_folder, write_durably
from dgm.archive.events import (
    SCHEMA_VERSION,
    Event,
    ModelCalled,
    Recorded,
    decode,
    traces_of,
    write_out_surrogates,
)
from dgm.archive.git import Objects
from dgm.archive.journal import CallReader
from dgm.archive.lock import error_of_write, keep_writers_out
from dgm.archive.log import APPLICATION_ID, FILE, LATEST, translate_errors, write_log
from dgm.archive.repository import make_repository
from dgm.archive.run import EARLIER_LOG, INNER_RUNS, Run, RunKind, find_unborn, read_config
from dgm.bounded_reading import open_file, parse_json, read_file
from dgm.domain import COMMIT, Agent, Born, CommitId, Digest, Name
from dgm.errors import ArchiveCorrupt, DgmError, UserError

MAX_BYTES = 256_000_000
"""Maximum size of a trace, a request or a reply in bytes."""
_PIECE = 1 << 20
_STEPS = 1_000_000
_FREE_STEPS = 500_000_000
"""Steps that reading a log may take; a few seconds. Honest scans take less than one for each byte of the log."""
_STEPS_PER_BYTE = 20
_PACK = re.compile(r"pack/pack-[0-9a-f]{40}\.pack")
_LOOSE = re.compile(r"[0-9a-f]{2}/[0-9a-f]{38}")
_TABLES = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ? AND sql LIKE 'CREATE TABLE%'"


class _Settings(Struct):
    """The types of those settings that are read before ``dgm.config`` checks them all."""

    benchmark: str = ""
    model: Name = ""
    operator: Name = ""
    workers: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    seed: Annotated[int, Meta(ge=-(10**15), le=10**15)] = 0
    policy: dict[str, Any] = {}
    budget: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    gates: dict[str, Any] = {}
    models: dict[str, Any] = {}


class _Config(Struct):
    """The types of the values in ``run.json``."""

    id: Annotated[str, Meta(pattern="^[A-Za-z0-9_.-]*\\Z", max_length=100)] = ""
    """It becomes a part of the names of folders and a label of containers."""
    name: Name = ""
    created: Annotated[float, Meta(ge=0, lt=LATEST)] = 0.0
    sandbox: Name = ""
    settings: _Settings = msgspec.field(default_factory=_Settings)
    versions: dict[str, str | None] = {}
    objects: dict[str, dict[str, str]] = {}
    kind: RunKind = RunKind.SEARCH
    plan: dict[str, Any] = {}


def adopt(source: Path, folder: Path) -> None:
    """Write a run and its inner runs anew.

    Args:
        source: the files of a run, of this version or the previous one; nothing else in them is read or changed.
        folder: the new folder. If an error is raised, it may be incomplete.

    Raises:
        ArchiveCorrupt: something is damaged or missing; names the first fault.
        UserError: a version made it that is not read.
        Infrastructure: the disk is full or failing.
    """
    for part in ("", *INNER_RUNS):
        if not part or (source / part / "run.json").exists():
            _adopt_part(source / part, folder / part)
    verify(folder)


def _adopt_part(source: Path, folder: Path) -> None:
    config = dict(read_config(source / "run.json"))
    try:
        msgspec.convert(config, _Config)
    except ValueError as error:
        raise ArchiveCorrupt(f"{source / 'run.json'}: not what dgm wrote: {error}") from error
    make_folder(folder)
    _rewrite_log(source, folder / FILE)
    sync_file(folder / FILE)
    write_durably(folder / "run.json", read_file(source / "run.json"))
    with Run.open(folder) as run:
        refs = {f"agents/{agent.id}": agent.commit for agent in run.tree.agents}
        refs |= {f"waiting/{action}": child.commit for action, child in find_unborn(run).items()}
    _import_objects(source / "agents.git", folder / "agents.git")
    lines = [f"{commit} refs/heads/{name}" for name, commit in sorted(refs.items()) if commit]
    head = "# pack-refs with: peeled fully-peeled sorted "
    write_durably(
        folder / "agents.git" / "packed-refs", "".join(f"{line}\n" for line in [head, *lines]).encode()
    )


def _import_objects(source: Path, repository: Path) -> None:
    """Make a repository of the objects of another one, whose configuration and refs are not read."""
    make_repository(repository)
    objects = repository / "objects"
    for path in sorted((source / "objects").glob("*/*")):
        name = path.relative_to(source / "objects")
        if _PACK.fullmatch(str(name)):
            _copy_file(path, objects / name)
            Objects(repository).run(
                "index-pack",
                "--strict",
                f"--max-input-size={MAX_BYTES}",
                str(objects.resolve() / name),
            )
        elif _LOOSE.fullmatch(str(name)):
            make_folder((objects / name).parent)
            _copy_file(path, objects / name)


def _copy_file(path: Path, target: Path) -> None:
    """Copy a regular file; a link is refused."""
    with open_file(path) as file, target.open("xb") as copy:
        shutil.copyfileobj(file, copy)
    sync_file(target)


def _rewrite_log(source: Path, target: Path) -> None:
    name = EARLIER_LOG if (source / EARLIER_LOG).exists() else FILE
    if not (source / name).exists():
        raise ArchiveCorrupt(f"{source / name}: missing")
    with tempfile.TemporaryDirectory(prefix=".", dir=target.parent) as scratch:
        # Only these two files: SQLite can be led by any other beside them to files outside this folder.
        for end in ("", "-wal"):
            if not end or (source / f"{name}{end}").exists():
                _copy_file(source / f"{name}{end}", Path(scratch, f"{name}{end}"))
        path = Path(scratch, name)
        with _reading(source / name, path) as connection:
            is_current = name == FILE
            named: dict[Digest, None] = {}
            traces = (
                connection.execute("SELECT sha256, zlib FROM blobs")
                if is_current
                else _read_named_traces(source, named)
            )
            write_log(
                target,
                _read_events(source / name, connection, is_current, named),
                _read_calls(source / name, connection),
                _read_traces(source / name, traces),
            )


@contextmanager
def _reading(place: Path, copy: Path) -> Iterator[sqlite3.Connection]:
    """Open a copy of a stranger's database; statements together may take so many steps for each byte."""
    steps, limit = 0, _FREE_STEPS + _STEPS_PER_BYTE * copy.stat().st_size

    def count() -> int:
        nonlocal steps
        steps += _STEPS
        return int(steps > limit)

    with translate_errors(place), closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_BYTES + _PIECE)
        connection.set_progress_handler(count, _STEPS)
        for pragma in ("cell_size_check=ON", "query_only=ON"):
            connection.execute(f"PRAGMA {pragma}")
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise ArchiveCorrupt(f"{place}: not a log that dgm wrote")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise UserError(f"{place}: written by a newer dgm (schema {version}); upgrade dgm")
        tables = ("events", "calls", "blobs") if place.name == FILE else ("events", "calls")
        if place.name != FILE:
            _check_version(place, connection)
        for table in tables:
            if not connection.execute(_TABLES, (table,)).fetchone()[0]:
                raise ArchiveCorrupt(f"{place}: it has no table {table!r}")
        yield connection


def _read_events(
    place: Path, connection: sqlite3.Connection, is_current: bool, named: dict[Digest, None]
) -> Iterator[Recorded]:
    for number, (seq, at, kind, action, body) in enumerate(connection.execute(_EVENTS), 1):
        where = f"{place}: event {number}"
        if seq != number or type(at) is not float or not 0.0 <= at < LATEST:
            raise ArchiveCorrupt(f"{where}: missing, or its time is none")
        if is_current:
            try:
                event = decode(body)
            except (ValueError, TypeError, RecursionError) as error:
                raise ArchiveCorrupt(f"{where}: {error}") from error
        else:
            event = read_event(where, kind, action, body)
        named.update(dict.fromkeys(traces_of(event)))
        yield Recorded(seq, at, event)


def _read_calls(
    place: Path, connection: sqlite3.Connection
) -> Iterator[tuple[int, int, bytes, bytes | None]]:
    for action, number, request, reply in connection.execute(_CALLS):
        if type(action) is not int or type(number) is not int:
            raise ArchiveCorrupt(f"{place}: a call has no number")
        where = f"{place}: call {number} of action {action}"
        yield action, number, _repack(where, request), None if reply is None else _repack(where, reply)


def _read_traces(place: Path, traces: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Digest, bytes]]:
    for digest, packed in traces:
        where = f"{place}: trace {str(digest)[:64]}"
        _check_content(where, digest, packed)
        yield digest, _repack(where, packed)


def _check_content(place: str, digest: object, packed: Any) -> None:  # noqa: ANN401  (a stranger's values)
    content = hashlib.sha256()
    for piece in inflate(place, packed):
        content.update(piece)
    if content.hexdigest() != digest:
        raise ArchiveCorrupt(f"{place}: its content has another hash")


def _repack(place: str, packed: Any) -> bytes:  # noqa: ANN401  (a stranger's value)
    """Return a zlib stream compressed anew; only a piece of its content is in memory at a time."""
    zipper = zlib.compressobj()
    stream = b"".join(zipper.compress(piece) for piece in inflate(place, packed))
    return stream + zipper.flush()


def inflate(place: str, packed: Any) -> Iterator[bytes]:  # noqa: ANN401  (a stranger's value)
    """Yield the content of one zlib stream of at most ``MAX_BYTES``, in pieces of at most 1 MiB.

    Raises:
        ArchiveCorrupt: it is none; the message begins with ``place``.
    """
    unzip, size = zlib.decompressobj(), 0
    try:
        for start in range(0, len(packed), _PIECE):
            rest = packed[start : start + _PIECE]
            while rest and size <= MAX_BYTES:
                piece = unzip.decompress(rest, _PIECE)
                size += len(piece)
                yield piece
                rest = unzip.unconsumed_tail
        last = unzip.flush() if size <= MAX_BYTES else b""
    except (zlib.error, TypeError) as error:
        raise ArchiveCorrupt(f"{place}: damaged ({error})") from error
    if not unzip.eof or unzip.unused_data or size + len(last) > MAX_BYTES:
        raise ArchiveCorrupt(f"{place}: damaged: it ends too early, too late or after {MAX_BYTES} bytes")
    yield last


def verify(folder: Path) -> Mapping[str, int]:
    """Check a run and its inner runs; return the number of checked items by kind.

    Raises:
        ArchiveCorrupt: there is a fault; names the first one.
    """
    counts = dict(_verify_folder(folder))
    for inner in INNER_RUNS:
        if (folder / inner / "run.json").exists():
            counts |= {f"{inner}_{name}": count for name, count in _verify_folder(folder / inner).items()}
    return counts


def _verify_folder(folder: Path) -> Mapping[str, int]:
    with Run.open(folder) as run:
        reader = CallReader(run.store)
        stored = {Digest(name) for (name,) in run.store.query("SELECT sha256 FROM blobs")}
        for name in stored:
            for (packed,) in run.store.query("SELECT zlib FROM blobs WHERE sha256 = ?", (name,)):
                _check_content(f"{run.store.path}: trace {name}", name, packed)
        exchanges = 0
        for recorded in run.store.read():
            event = recorded.event
            with _name_position(f"named by event {recorded.seq}"):
                if isinstance(event, ModelCalled):
                    reader.request(event)
                    reader.reply(event)
                    exchanges += 1
            for digest in set(traces_of(event)) - stored:
                raise ArchiveCorrupt(
                    f"{run.store.path}: trace {digest} is missing (named by event {recorded.seq})"
                )
        for cut in run.tree.model_calls.cut.values():
            with _name_position("counted at its worst case"):
                reader.request(cut)
        run.repository.fsck()
        check_descent(run)
        return {
            "events": run.tree.seq,
            "exchanges": exchanges,
            "traces": len(stored),
            "agents": len(run.tree.agents),
        }


@contextmanager
def _name_position(position: str) -> Iterator[None]:
    try:
        yield
    except ArchiveCorrupt as error:
        raise ArchiveCorrupt(f"{error} ({position})") from error


def check_descent(run: Run, agents: Sequence[Agent] | None = None) -> None:
    """Check that log, refs and commits record the same descent.

    Args:
        run: the run.
        agents: only of these; None: of all agents, and of the children that a person was asked about.

    Raises:
        ArchiveCorrupt: they differ; names the first one concerned.
    """
    refs, asked = run.repository.refs(), run.repository.waiting_refs()
    named: list[tuple[str, CommitId | None, Agent | Born]] = [
        (f"agent {agent.id}", refs.get(agent.id), agent)
        for agent in (run.tree.agents if agents is None else agents)
    ]
    if agents is None:
        unborn = find_unborn(run).items()
        named += [(f"the child of action {action}", asked.get(action), child) for action, child in unborn]
    with run.repository.objects() as objects:
        for who, ref, child in named:
            where = f"{run.folder / 'agents.git'}: {who}"
            if ref != child.commit:
                raise ArchiveCorrupt(f"{where}: its ref is {ref}, the log says {child.commit or 'no commit'}")
            expected = tuple(run.tree.agents[parent].commit for parent in child.parents)
            parents = objects.parents_of(child.commit)
            if parents != expected:
                raise ArchiveCorrupt(f"{where}: its commit has parents {parents}, the log says {expected}")


_EARLIER_LOCK = "events.lock"
_EARLIER_SCHEMA = 5
_EVENTS = "SELECT seq, at, kind, action, body FROM events ORDER BY seq"
_CALLS = "SELECT action, number, request, reply FROM calls ORDER BY action, number"
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
    with keep_writers_out(folder / _EARLIER_LOCK):
        draft = folder / f".{secrets.token_hex(6)}"
        try:
            if not (folder / FILE).exists():
                _write_converted(folder, draft)
                sync_file(draft)
                draft.replace(folder / FILE)
                sync_folder(folder)
            shutil.rmtree(folder / "traces", ignore_errors=True)
            for end in ("-wal", "-shm", ""):
                (folder / f"{EARLIER_LOG}{end}").unlink(missing_ok=True)
        except OSError as error:
            raise error_of_write(folder / FILE, error) from error
        finally:
            draft.unlink(missing_ok=True)


def _write_converted(folder: Path, draft: Path) -> None:
    path = folder / EARLIER_LOG
    named: dict[Digest, None] = {}

    def read_events() -> Iterator[Recorded]:
        for seq, at, kind, action, body in connection.execute(_EVENTS):
            event = read_event(f"{path}: event {seq}", kind, action, body)
            named.update(dict.fromkeys(traces_of(event)))
            yield Recorded(seq, at, event)

    uri = path.resolve().as_uri() + "?mode=ro"
    with translate_errors(path), closing(sqlite3.connect(uri, uri=True)) as connection:
        _check_version(path, connection)
        write_log(draft, read_events(), connection.execute(_CALLS), _read_named_traces(folder, named))


def _check_version(path: Path, connection: sqlite3.Connection) -> None:
    """Raise unless a log has the schema of the previous version.

    Raises:
        UserError: it has an earlier one.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != _EARLIER_SCHEMA:
        raise UserError(f"{path}: schema {version} is no longer read; open the run with the dgm that made it")


def _read_named_traces(folder: Path, named: Mapping[Digest, None]) -> Iterator[tuple[Digest, bytes]]:
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
