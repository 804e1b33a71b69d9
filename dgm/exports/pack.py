"""A run as one publishable file: equal runs give equal bytes, without keys and without personal paths.

The log is append-only, and an event's data is on disk with the event. So all events up to any one are a consistent
run, and a run can be packed while it is written. Traces that no such event names are left out. The log is rewritten
instead of copied. Its texts change where something is replaced, and a copy's pages would reveal the writer's history.
``dgm.archive.packed`` defines the file format.
"""

import hashlib
import os
import sqlite3
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from dgm import __version__
from dgm.archive.events import CallBooked, CallStarted, ModelCalled, Recorded, decode, encode, traces_of
from dgm.archive.finding import SUFFIX
from dgm.archive.git import read_files
from dgm.archive.journal import CallReader, CallWriter
from dgm.archive.log import FILE, SCHEMA, Traces, name_of, write_log
from dgm.archive.packed import MEMBER, Manifest, PackedRun, PackMember, write_pack
from dgm.archive.repository import AgentRepository, make_repository
from dgm.archive.run import INNER_RUNS, Run, find_unborn
from dgm.bounded_reading import read_file
from dgm.domain import CommitId, Digest
from dgm.errors import UserError
from dgm.exports.files import new_file
from dgm.exports.scrub import LocalIdentity, MatchGrade, Scrubber, ScrubPattern

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
        # The inner runs first: the search is read later, so it has all agents that they name.
        for inner in INNER_RUNS:
            if (folder / inner / "run.json").exists():
                copied = _RunCopier(folder / inner, draft / inner, scrubber, least).write()
                counts |= {f"{inner}_{name}": count for name, count in copied.items()}
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
    names = [name for value in values for name in (value if isinstance(value, list) else [value])]
    paths = [value for value in names if isinstance(value, str) and value.startswith("/")]
    return Scrubber(identity.patterns(dict.fromkeys((str(folder.absolute()), str(folder.resolve()))), paths))


class _RunCopier:
    """A run, or an inner run of it, being copied into a folder that will be packed."""

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
            write_log(
                self._draft / FILE,
                (self._clean_event(item, run.traces) for item in run.store.read(0, run.tree.seq)),
                self._clean_calls(run),
                self._take_traces(),
            )
            events = run.tree.seq
        self._write_repository({**named, **waiting})
        return {"events": events, "agents": len(agents), "traces": len(set(self._names.values()))}

    def _clean_event(self, item: Recorded, traces: Traces) -> Recorded:
        body = self._scrubber.clean(encode(item.event))
        for digest in traces_of(item.event):
            if digest not in self._names:
                clean = self._scrubber.clean(traces.get(digest))
                self._names[digest] = name = name_of(clean)
                (self._draft / name).write_bytes(clean)
            body = body.replace(f'"{digest}"'.encode(), f'"{self._names[digest]}"'.encode())
        return replace(item, event=decode(body))

    def _take_traces(self) -> Iterator[tuple[Digest, bytes]]:
        """Yield the cleaned traces uncompressed: compressing the pack finds what they have in common."""
        for name in sorted(set(self._names.values())):
            yield name, zlib.compress((self._draft / name).read_bytes(), 0)
            (self._draft / name).unlink()

    def _clean_calls(self, run: Run) -> Iterator[tuple[int, int, bytes, bytes | None]]:
        """Yield the rows of the calls that are answered, open or cut off, cleaned."""
        reader, until = CallReader(run.store), run.tree.seq
        with closing(sqlite3.connect(":memory:")) as calls:
            calls.executescript(SCHEMA)
            writer = CallWriter(self._pack_call, unanswered_bytes=sys.maxsize)
            unanswered: list[CallStarted | CallBooked] = [
                *run.tree.model_calls.open.values(),
                *run.tree.model_calls.cut.values(),
            ]
            for call in unanswered:
                writer.begin(calls, call.action, call.number, reader.request(call))
            for paid in run.store.events(ModelCalled, until=until):
                writer.answer(calls, paid.action, paid.number, reader.request(paid), reader.reply(paid))
            yield from calls.execute("SELECT * FROM calls ORDER BY action, number")

    def _pack_call(self, data: bytes) -> bytes:
        """Clean a request or a reply; like a trace, it is left uncompressed."""
        return zlib.compress(self._scrubber.clean(data), 0)

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
        if not named:
            return
        wanted = dict.fromkeys(named.values())
        packed = self._repository.pack_objects(wanted, *_ALWAYS_ALIKE)
        (repository / "objects" / "pack" / f"pack-{packed[-20:].hex()}.pack").write_bytes(packed)


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
