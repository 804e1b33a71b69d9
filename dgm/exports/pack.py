"""A run as one publishable file: equal runs give equal bytes, without keys and without personal paths.

The log is append-only, and an event's data is on disk before the event. So all events up to any one are a consistent
run, and a run can be packed while it is written. Traces that no such event names are left out. The log is rewritten
instead of copied. Its bodies change where something is replaced, and a copy's pages would reveal the writer's history.
``dgm.archive.packed`` defines the file format.
"""

import hashlib
import itertools
import os
import re
import sqlite3
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from dgm import __version__
from dgm.archive.event_fields import parse_body
from dgm.archive.events import CallBooked, CallStarted, ModelCalled
from dgm.archive.finding import SUFFIX
from dgm.archive.history import find_unborn
from dgm.archive.journal import CallReader, CallWriter
from dgm.archive.log_file import MAX_ROW_BYTES
from dgm.archive.packed import MEMBER, Manifest, PackedRun, PackMember, write_pack
from dgm.archive.repository import AgentRepository, make_repository, read_files
from dgm.archive.run import Run
from dgm.archive.schema import SCHEMA
from dgm.archive.store import Row
from dgm.archive.traces import Traces
from dgm.bounded_reading import read_file
from dgm.domain import CommitId, Digest
from dgm.errors import UserError
from dgm.exports.files import new_file
from dgm.exports.scrub import LocalIdentity, MatchGrade, Scrubber, ScrubPattern

_HOLDOUT = "holdout"
_CALLS = ("model_called", "call_started", "call_booked")
_CALL_TRACES = re.compile(r',"(request|reply)":"[0-9a-f]{64}"')
"""Names of the traces of a call, which runs before schema 5 have; the copy has the calls in their table."""
_ALWAYS_ALIKE = ("--threads=1", "--no-reuse-delta", "--no-reuse-object")


def pack(folder: Path, file: Path, identity: LocalIdentity, *, force_agents: bool = False) -> Manifest:
    """Pack the run in ``folder`` into the new file ``file``, which appears completely or not at all.

    Args:
        folder: the run; a process may write it meanwhile.
        file: the path of the new file; ends in ``.dgm``.
        identity: the facts about this machine that must not be published.
        force_agents: publish agents unchanged even if their source holds something personal or something that looks
            like a key. A source that holds a secret of this environment is refused nevertheless.

    Raises:
        UserError: the file exists, or an agent cannot be published; names agent, file and line.
        ArchiveCorrupt: a part of the run is missing or damaged.
    """
    if file.suffix != SUFFIX:
        raise UserError(f"{file}: a packed run's name ends in {SUFFIX}")
    with (
        new_file(file) as target,
        tempfile.TemporaryDirectory(prefix=f".{file.name}.", dir=target.parent) as scratch,
    ):
        draft = Path(scratch)
        scrubber = make_scrubber(folder, identity)
        least = MatchGrade.SECRET if force_agents else MatchGrade.PERSONAL
        counts: dict[str, int] = {}
        # The holdout evaluation first: the search is read later, so it has all agents that the evaluation names.
        if (folder / _HOLDOUT / "run.json").exists():
            holdout = _RunCopier(folder / _HOLDOUT, draft / _HOLDOUT, scrubber, least).write()
            counts = {f"holdout_{name}": count for name, count in holdout.items()}
        counts = {**_RunCopier(folder, draft, scrubber, least).write(), **counts}
        with Run.open(draft) as copy:
            run = PackedRun(id=str(copy.config.get("id", "")), name=folder.resolve().name)
        names = [path.relative_to(draft).as_posix() for path in draft.rglob("*") if path.is_file()]
        members = tuple(_describe(draft, name) for name in sorted(names) if MEMBER.fullmatch(name))
        replaced = dict(sorted(scrubber.replaced.items()))
        manifest = Manifest(dgm=__version__, run=run, counts=counts, replaced=replaced, members=members)
        write_pack(target, draft, manifest)
    return manifest


def _describe(folder: Path, name: str) -> PackMember:
    with (folder / name).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return PackMember(name, (folder / name).stat().st_size, digest)


def make_scrubber(folder: Path, identity: LocalIdentity) -> Scrubber:
    """Return what takes keys and personal names out of the data of the run in ``folder``."""
    with Run.open(folder) as run:
        layers = [run.config.get("settings", {}), *(change for _, change in run.tree.changes)]
    tables = [settings for settings in layers if isinstance(settings, dict)]
    values = [settings.get(name) for settings in tables for name in ("benchmark", "seed_agent")]
    paths = [value for value in values if isinstance(value, str) and value.startswith("/")]
    return Scrubber(identity.patterns(dict.fromkeys((str(folder.absolute()), str(folder.resolve()))), paths))


class _RunCopier:
    """A run, or the holdout evaluation in it, being copied into a folder that will be packed."""

    def __init__(self, folder: Path, draft: Path, scrubber: Scrubber, least: MatchGrade) -> None:
        self._folder = folder
        self._draft = draft
        self._repository = AgentRepository(folder / "agents.git")
        self._scrubber = scrubber
        self._least = least
        self._names: dict[Digest, Digest] = {}

    def write(self) -> Mapping[str, int]:
        """Write the cleaned copy; return the numbers of events, agents and traces."""
        self._draft.mkdir(parents=True, exist_ok=True)
        frozen = self._scrubber.clean(read_file(self._folder / "run.json"))
        (self._draft / "run.json").write_bytes(frozen)
        with Run.open(self._folder) as run:
            agents = [agent.commit for agent in run.tree.agents]
            named = {f"agents/{agent}": commit for agent, commit in enumerate(agents)}
            waiting = {f"waiting/{action}": child.commit for action, child in find_unborn(run).items()}
            self._check_sources(run.name, {**named, **waiting})
            rows = (self._row(row, run.traces) for row in itertools.islice(run.store.rows(), run.tree.seq))
            _write_log(self._draft / "events.db", rows, lambda log: self._write_calls(run, log))
            events = run.tree.seq
        self._write_repository({**named, **waiting})
        traces = len(set(self._names.values()))
        return {"events": events, "agents": len(agents), "traces": traces}

    def _row(self, row: Row, traces: Traces) -> Row:
        seq, at, kind, action, body = row
        if kind in _CALLS:
            body = _CALL_TRACES.sub("", body)
        clean = self._scrubber.clean(body.encode()).decode()
        for digest in _traces_of(parse_body(body)):
            if digest not in self._names:
                self._names[digest] = self._keep(self._scrubber.clean(traces.get(digest)))
            clean = clean.replace(f'"{digest}"', f'"{self._names[digest]}"')
        return seq, at, kind, action, clean

    def _write_calls(self, run: Run, log: sqlite3.Connection) -> None:
        reader = CallReader(run.store, run.traces)
        writer = CallWriter(self._pack_call, unanswered_bytes=sys.maxsize)
        calls, until = run.tree.model_calls, run.tree.seq
        unanswered: list[CallStarted | CallBooked] = [*calls.open.values(), *calls.cut.values()]
        for call in unanswered:
            writer.begin(log, call.action, call.number, reader.request(call))
        for item in run.store.select("kind = 'model_called' AND seq <= ?", (until,)):
            if isinstance(paid := item.event, ModelCalled):
                writer.answer(log, paid.action, paid.number, reader.request(paid), reader.reply(paid))

    def _pack_call(self, data: bytes) -> bytes:
        """Leave a cleaned request or reply uncompressed, unless a reader would refuse so large a row."""
        clean = self._scrubber.clean(data)
        return zlib.compress(clean, 0 if len(clean) < MAX_ROW_BYTES / 2 else -1)

    def _keep(self, data: bytes) -> Digest:
        """Store a trace uncompressed: compressing the whole pack finds what traces have in common."""
        digest = Digest(hashlib.sha256(data).hexdigest())
        path = self._draft / "traces" / digest[:2] / f"{digest[2:]}.z"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zlib.compress(data, 0))
        return digest

    def _check_sources(self, run: str, named: Mapping[str, CommitId]) -> None:
        seen: set[str] = set()
        with self._repository.objects() as objects:
            for who, commit in named.items():
                kind, _, number = who.partition("/")
                where = (
                    f"agent {number}" if kind == "agents" else f"the child that waits for approval ({who})"
                )
                for name, entry in read_files(objects, objects.tree_of(commit), seen):
                    text = os.fsencode(name) + b"\n" + entry.data
                    if match := self._scrubber.first(text, self._least):
                        pattern, offset = match
                        raise _cannot_publish(
                            f"{run}: {where}: {name}", text.count(b"\n", 0, offset), pattern
                        )

    def _write_repository(self, named: Mapping[str, CommitId]) -> None:
        repository = self._draft / "agents.git"
        make_repository(repository)
        refs = sorted((f"refs/heads/{who}", commit) for who, commit in named.items())
        lines = [
            "# pack-refs with: peeled fully-peeled sorted ",
            *(f"{commit} {ref}" for ref, commit in refs),
        ]
        (repository / "packed-refs").write_text("\n".join(lines) + "\n")
        if not named:
            return
        wanted = dict.fromkeys(named.values())
        packed = self._repository.pack_objects(wanted, *_ALWAYS_ALIKE)
        (repository / "objects" / "pack" / f"pack-{packed[-20:].hex()}.pack").write_bytes(packed)


def _write_log(path: Path, rows: Iterator[Row], write_calls: Callable[[sqlite3.Connection], None]) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=OFF")
        connection.execute("PRAGMA synchronous=OFF")
        connection.executescript(f"BEGIN; {SCHEMA} COMMIT;")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
        write_calls(connection)
        connection.execute("COMMIT")
        connection.execute("VACUUM")


def _traces_of(body: Mapping[str, Any]) -> list[Digest]:
    traces = body.get("traces", {})
    named = [*traces.values()] if isinstance(traces, dict) else []
    return [Digest(value) for value in named if re.fullmatch(r"[0-9a-f]{64}", str(value))]


def _cannot_publish(where: str, line: int, pattern: ScrubPattern) -> UserError:
    what = f"{where}: {f'line {line}' if line else 'its name'} holds {pattern.what}"
    if pattern.grade is MatchGrade.SECRET:
        return UserError(
            f"{what}; such an agent cannot be published: change the secret, then unset it and pack again"
        )
    return UserError(
        f"{what}, and replacing it would change the agent's commit; set this to publish it unchanged",
        argument="force_agents",
    )
