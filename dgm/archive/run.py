"""A run as one folder: configuration, log and agents, opened, written and followed together.

A commit is written before the event that names it, a trace in its transaction. The process that writes appends every
event here and nowhere else, so its tree always agrees with the log.
"""

import gc
import json
import platform
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from dgm.archive.durable import make_runs_folder, write_durably
from dgm.archive.events import (
    SCHEMA_VERSION,
    ActionLost,
    AgentBorn,
    AgentStillborn,
    ChildProposed,
    Event,
    Recorded,
    RunStarted,
    TaskGraded,
)
from dgm.archive.lock import MAX_BYTES, Holder, is_locked, parse_holder
from dgm.archive.log import FILE, Log, Traces, Write
from dgm.archive.repository import AgentRepository
from dgm.archive.tree import Tree
from dgm.bounded_reading import read_file, read_json
from dgm.domain import ActionId, AgentId, Born, Evaluation, Snapshot
from dgm.errors import ArchiveCorrupt, UserError

EARLIER_LOG = "events.db"
"""The log of a run of the previous version."""
PAUSE_EVENTS = 256
"""Number of events between two calls of ``pause`` when a run is opened."""
_FORMAT = 1
_TABLES = ("policy", "budget", "limits", "gates", "models")
_ENDS = (AgentBorn, AgentStillborn, TaskGraded, ActionLost)


class RunKind(StrEnum):
    """The purpose of a run."""

    SEARCH = "search"
    HOLDOUT = "holdout"
    """The evaluation of a search's agents on its holdout tasks."""
    PROMOTION = "promotion"
    """The evaluation of a search's candidates for promotion."""
    EVALUATION = "evaluation"
    """Agents, or the patches of a file, on the tasks of a benchmark."""
    REPLAY = "replay"
    """Evaluations of another run, repeated by another model."""
    SIMULATION = "simulation"


INNER_RUNS = ("holdout", "promotion")
"""Folders of the runs in a search's folder that belong to it and are packed with it."""


class _Table(dict[str, Any]):
    """A table of ``run.json``; a key that it lacks is named in an ``ArchiveCorrupt``."""

    def __init__(self, table: Mapping[str, Any], location: str) -> None:
        super().__init__(
            (key, _Table(value, f"{location}.{key}") if isinstance(value, dict) else value)
            for key, value in table.items()
        )
        self._location = location

    def __missing__(self, key: str) -> Any:  # noqa: ANN401  (never returns)
        raise ArchiveCorrupt(f"{self._location} has no {key!r}; restore the run from a copy")


class Run:
    """An open run. Reading is safe while another process writes; ``with`` closes it."""

    def __init__(self, folder: Path, config: Mapping[str, Any], store: Log) -> None:
        folder = folder.absolute()
        self.folder = folder
        self.name = folder.resolve().name
        self.config = config
        """The resolved configuration, frozen when the run was created."""
        self.kind = RunKind(config.get("kind", RunKind.SEARCH))
        self.plan: Mapping[str, Any] = config.get("plan", {})
        """The facts that must be the same in all sessions of an evaluation, replay or simulation."""
        self.store = store
        self.tree = Tree()
        self.repository = AgentRepository(folder / "agents.git")
        self.traces = Traces(store)
        self._lock = threading.Lock()
        self._folding = threading.Lock()
        self._unfolded: deque[Recorded] = deque()

    @classmethod
    def create(cls, folder: Path, config: Mapping[str, Any]) -> Self:
        """Create a run and open it for writing; an incomplete run never appears under its name.

        Raises:
            UserError: the folder exists, or its parent is read-only.
            Infrastructure: the disk is full.
        """
        if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
            raise UserError(f"{folder}: already exists; resume it, or choose another name")
        make_runs_folder(folder.parent)
        draft = folder.with_name(f".{folder.name}.new")
        shutil.rmtree(draft, ignore_errors=True)
        frozen = {
            "format": _FORMAT,
            "schema": SCHEMA_VERSION,
            "python": platform.python_version(),
            "config": config,
        }
        write_durably(draft / "run.json", json.dumps(frozen, indent=2, ensure_ascii=False).encode() + b"\n")
        AgentRepository.create(draft / "agents.git")
        Log.open(draft / FILE, write=True).close()
        draft.replace(folder)
        return cls.open(folder, write=True)

    @classmethod
    def open(cls, folder: Path, *, write: bool = False, pause: Callable[[], None] | None = None) -> Self:
        """Open a run and fold its events.

        Args:
            folder: the run.
            write: whether events are to be appended.
            pause: called after every ``PAUSE_EVENTS`` events, by the thread that folds. It may wait, to give other
                threads interpreter time, or raise, to abort the opening.

        Raises:
            UserError: there is no run, a newer dgm made it, or it is read-only and ``write`` is set.
            ArchiveBusy: ``write`` is set, and another process writes the run.
            ArchiveCorrupt: a part of it is damaged; names the file and the first fault.
        """
        config = read_config(folder / "run.json")
        if (folder / EARLIER_LOG).exists():
            from dgm.archive.adopt import convert_run

            convert_run(folder)
        if not (folder / FILE).exists():
            raise ArchiveCorrupt(f"{folder / FILE}: missing; restore it from a copy")
        for path in (folder / FILE, folder / f"{FILE}-wal"):
            if path.is_symlink() or (path.exists() and not path.is_file()):
                raise ArchiveCorrupt(f"{path}: a link, or not a file; put the file itself there")
        run = cls(folder, config, Log.open(folder / FILE, write=write))
        try:
            run._fold(pause)
        except BaseException:
            run.close()
            raise
        return run

    def append(self, event: Event) -> Recorded:
        """Make an event durable, then fold it into the tree; raises like ``Log.append``."""
        return self.append_many((event,))[0]

    def append_many(self, events: Sequence[Event]) -> Sequence[Recorded]:
        """Make all of the events durable in one commit, or none, then fold them; raises like ``append``."""
        recorded = self.commit(events)
        self.fold_committed()
        return recorded

    def commit(self, events: Sequence[Event], write: Write | None = None) -> Sequence[Recorded]:
        """Make events durable like ``Log.append_many``, in any thread; the tree gets them when it folds next."""
        with self._lock:
            recorded = self.store.append_many(events, write)
            self._unfolded.extend(recorded)
        return recorded

    def fold_committed(self) -> None:
        """Fold what was committed since the last time into the tree, in the order of the log."""
        with self._folding:
            while self._unfolded:
                self.tree.apply(self._unfolded.popleft())

    def follow(self, most: int | None = None) -> Sequence[Recorded]:
        """Fold the events appended since the last call and return them.

        Only readers need this. The result is empty if nothing was appended.

        ``most`` limits the number of events; the rest comes with the next call.
        """
        new = list(self.store.read(self.tree.seq, most))
        for recorded in new:
            self._apply(recorded)
        return new

    def birth(self, outcome: Born, action: ActionId, decided: str = "", key: str = "") -> AgentBorn:
        """Name the commit under the next free agent id, durably, and return the event of the birth."""
        agent = AgentId(len(self.tree.agents))
        self.repository.name(agent, outcome.commit)
        return AgentBorn(action, agent, outcome, decided, key)

    def source(self, agent: AgentId) -> Snapshot:
        """Return an agent's source."""
        return self.repository.source(self.tree.agents[agent].commit)

    def settings(self, until: int | None = None) -> Mapping[str, Any]:
        """Return the settings in their JSON form: the frozen ones with all later changes.

        Args:
            until: number of the last event whose changes count; None: the last that the tree has read.
        """
        settings: Mapping[str, Any] = self.config.get("settings", {})
        for seq, change in self.tree.changes:
            if until is None or seq <= until:
                settings = merge_tables(settings, change)
        return _Table(settings, f"{self.folder / 'run.json'}: settings")

    def sandbox(self, until: int | None = None) -> str:
        """Return the kind of sandbox that the run uses, or used at event ``until``; it may be ``auto``."""
        sandbox: str = self.config["sandbox"]
        for seq, change in self.tree.changes:
            if "sandbox" in change and (until is None or seq <= until):
                sandbox = change["sandbox"]
        return sandbox

    def benchmarks(self) -> Sequence[str]:
        """Return the versions of the benchmark that the run's sessions had, each once, the last one last."""
        original = str(self.config["versions"].get("benchmark", ""))
        versions = [event.benchmark or original for event in self.store.events(RunStarted)]
        return list(dict.fromkeys(reversed([original, *versions])))[::-1]

    def outcome(self, action: ActionId) -> Recorded | None:
        """Return the last event of an action that is not a start or a model call; ``None`` if there is none yet."""
        ends = [item for item in self.store.events_of_action(action) if isinstance(item.event, _ENDS)]
        return ends[-1] if ends else None

    def close(self) -> None:
        """Close the log and let the next writer in."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fold(self, pause: Callable[[], None] | None) -> None:
        """Bring the tree up to date with the end of the log."""
        collecting = gc.isenabled()
        gc.disable()  # the events of a long run are no garbage
        try:
            with self.tree.many():
                for recorded in self.store.read(self.tree.seq):
                    self._apply(recorded)
                    if pause and not recorded.seq % PAUSE_EVENTS:
                        pause()
        finally:
            if collecting:
                gc.enable()

    def _apply(self, recorded: Recorded) -> None:
        try:
            self.tree.apply(recorded)
        except (ArchiveCorrupt, LookupError, OverflowError) as error:
            raise ArchiveCorrupt(
                f"{self.store.path}: event {recorded.seq} does not fit what came before: {error}"
            ) from error


def read_config(path: Path) -> Mapping[str, Any]:
    """Return the configuration in a run's ``run.json``.

    Raises:
        UserError: there is no such file, it is unreadable, or a newer dgm made it.
        ArchiveCorrupt: its content is not in dgm's format.
    """
    try:
        frozen = read_json(path)
        version, config = int(frozen["format"]), frozen["config"]
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UserError(f"{path.parent}: not a run (it has no run.json)") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except ArchiveCorrupt:
        raise
    except (ValueError, LookupError, TypeError, OverflowError) as error:
        raise ArchiveCorrupt(f"{path}: not what dgm wrote ({error!r}); restore it from a copy") from error
    if version > _FORMAT:
        raise UserError(
            f"{path}: made by a newer dgm (format {version}, this one reads {_FORMAT}); upgrade dgm"
        )
    if not isinstance(config, dict) or not isinstance(config.get("settings", {}), dict):
        raise ArchiveCorrupt(f"{path}: its config or settings are no table; restore it from a copy")
    settings = config.get("settings", {})
    odd = [name for name in _TABLES if not isinstance(settings.get(name, {}), dict)]
    config = {**_name_kind(config, path.parent), **config}
    if odd or config.get("kind", RunKind.SEARCH) not in list(RunKind):
        fault = f"settings.{odd[0]} is no table" if odd else "its kind is unknown"
        raise ArchiveCorrupt(f"{path}: {fault}; restore it from a copy")
    return _Table(config, str(path))


def _name_kind(config: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return the kind and plan of a run of the previous version, which marked them by a key of the kind's name."""
    for kind in (RunKind.EVALUATION, RunKind.REPLAY, RunKind.SIMULATION):
        if kind in config:
            return {"kind": kind, "plan": config[kind]}
    return {"kind": RunKind.HOLDOUT} if folder.name == "holdout" and "kind" not in config else {}


UNKNOWN_POLICY = ""
"""Policy of a run that was started before runs recorded theirs."""


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """The identity of a run for other programs."""

    run: str
    """The run's name; for a run inside another one ``OUTER/INNER``, such as ``myrun/holdout``."""
    policy: str
    seed: int

    def __str__(self) -> str:
        return f"run {self.run}, policy {self.policy}, seed {self.seed}"

    def record(self) -> dict[str, str | int]:
        """Return the identity in its JSON form."""
        return {"run": self.run, "policy": self.policy, "seed": self.seed}


def identity_of(run: Run) -> RunIdentity:
    """Return the name, the policy and the seed of a run."""
    outer = run.folder.resolve().parent
    name = f"{outer.name}/{run.name}" if (outer / "run.json").is_file() else run.name
    settings = run.settings()
    policy = settings.get("policy", {}).get("name", UNKNOWN_POLICY)
    return RunIdentity(name, str(policy), int(settings.get("seed", 0)))


Table = Mapping[str, Any]
"""Settings in their JSON form: section → name → value."""


def merge_tables(base: Table, over: Table) -> dict[str, Any]:
    """Return ``base`` overlaid with ``over``: tables are merged, other values are replaced."""
    merged = dict(base)
    for key, value in over.items():
        inner = merged.get(key)
        merged[key] = (
            merge_tables(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
        )
    return merged


def diff_tables(before: Table, after: Table) -> dict[str, Any]:
    """Return the table that turns ``before`` into ``after`` by ``merge_tables``.

    ``merge_tables`` cannot remove keys, so keys that ``after`` lacks are ignored.
    """
    found: dict[str, Any] = {}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            if inner := diff_tables(old, value):
                found[key] = inner
        elif key not in before or old != value:
            found[key] = value
    return found


def format_assignments(table: Table) -> list[str]:
    """Return a nested table as texts such as ``models.solve = "offline"``, the form that ``--set`` takes."""
    return [f"{'.'.join(map(_quote_key, path))} = {json.dumps(value)}" for path, value in _iter_leaves(table)]


def _iter_leaves(table: Table, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from _iter_leaves(value, (*prefix, name))
        else:
            yield (*prefix, name), value


def _quote_key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else json.dumps(name)


LIVING = ("running", "paused")
"""Values of ``state`` while a process writes the run; in any other state no action is in flight."""


def evaluations_of(run: Run, agent: AgentId, before: ActionId | None = None) -> Mapping[ActionId, Evaluation]:
    """Return the agent's resolved and unresolved evaluations by action, in the order of their verdicts.

    Withdrawn verdicts are left out.

    Args:
        run: the run.
        agent: the agent.
        before: if given, return only verdicts that were known when this action was first started.
    """
    starts = run.store.starts_of_action(before) if before is not None else ()
    last = starts[0][0] if starts else sys.maxsize
    return {
        recorded.event.action: recorded.event.outcome
        for recorded in run.store.graded(agent, last)
        if isinstance(recorded.event, TaskGraded) and recorded.seq < last
    }


def find_unborn(run: Run) -> Mapping[ActionId, Born]:
    """Return children that a person was asked about and that are not agents, by action: waiting and rejected ones.

    An expansion that was ordered meanwhile may need them, because its edit is compared with theirs.
    """
    born = {agent.action for agent in run.tree.agents}
    proposed = run.store.events(ChildProposed, until=run.tree.seq)
    return {event.action: event.outcome for event in proposed if event.action not in born}


def state(run: Run) -> str:
    """Return ``running``, ``paused`` (its provider is away), ``interrupted`` (its process died), or how it ended."""
    if run.tree.stop_reason:
        return run.tree.stop_reason
    if writer(run.folder) is None:
        return "interrupted"
    return "paused" if run.tree.paused else "running"


def follow_log(store: Log, folder: Path, after: int, every_s: float = 0.5) -> Iterator[Recorded]:
    """Yield every event after number ``after``, each once, as it is appended.

    Stops when nobody writes the run any more.

    Nothing is folded, so a long log costs no memory.

    Args:
        store: the run's log, open for reading.
        folder: the run's folder.
        after: number of an event.
        every_s: interval in seconds between two looks at the log.
    """
    while True:
        # Ask first, so that the last events of a writer are not missed.
        written = writer(folder) is not None
        for recorded in store.read(after):
            after = recorded.seq
            yield recorded
        if not written:
            return
        time.sleep(every_s)


def writer(folder: Path) -> Holder | None:
    """Return the process that is writing the run in this folder; None if there is none.

    The lock itself is asked; a process that takes it at that very moment tries again. A process on another machine
    cannot be checked; it is assumed to be alive.
    """
    lock = folder / "run.lock"
    try:
        holder = parse_holder(read_file(lock, MAX_BYTES))
    except (OSError, ValueError):
        return None
    return holder if not holder.is_known or is_locked(lock) else None
