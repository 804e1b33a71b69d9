"""Check that a run agrees with its log: every trace's name, every git object, every ref and every descent."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from dgm.archive.events import (
    AgentBorn,
    AgentStillborn,
    CallBooked,
    CallStarted,
    ChildProposed,
    ModelCalled,
    Recorded,
    TaskGraded,
)
from dgm.archive.git_process import GitObjects
from dgm.archive.history import find_unborn
from dgm.archive.journal import read_reply, read_request
from dgm.archive.run import Run
from dgm.domain import AgentId, CommitId, Cost, Digest
from dgm.errors import ArchiveCorrupt
from dgm.publish.finding import locate_run
from dgm.publish.unpacking import unpack


def verify(folder: Path) -> Mapping[str, int]:
    """Check a run and the examination in it; return the number of checked items by kind.

    Raises:
        ArchiveCorrupt: there is a fault; names the first one.
    """
    counts = _verify_folder(folder)
    if (folder / "holdout" / "run.json").exists():
        examined = _verify_folder(folder / "holdout")
        return {**counts, **{f"holdout_{name}": count for name, count in examined.items()}}
    return counts


def verify_file(file: Path) -> Mapping[str, int]:
    """Check each checksum in the manifest of a packed run, then ``verify`` it; raises like both and ``unpack``."""
    with tempfile.TemporaryDirectory(prefix="dgm-") as scratch:
        manifest = unpack(file, Path(scratch, "run"))
        try:
            return {"members": len(manifest.members), **verify(Path(scratch, "run"))}
        except ArchiveCorrupt as error:
            raise ArchiveCorrupt(str(error).replace(str(Path(scratch, "run")), str(file))) from error


def verify_named(name: str) -> Mapping[str, int]:
    """Check a run or a packed run by its name or path; raises like ``locate_run``, ``verify`` and ``verify_file``."""
    place = locate_run(name)
    return verify(place) if place.is_dir() else verify_file(place)


def _verify_folder(folder: Path) -> Mapping[str, int]:
    with Run.open(folder) as run:
        checked: set[Digest] = set()
        exchanges = 0
        for recorded in run.store.read():
            if isinstance(recorded.event, ModelCalled):
                _check_exchange(run, recorded)
                exchanges += 1
            elif isinstance(recorded.event, CallStarted | CallBooked) and recorded.event.request:
                _check_request(run, recorded.seq, Digest(recorded.event.request))
            for name, digest in _cost_of(recorded).traces.items():
                if digest not in checked:
                    _check_trace(run, recorded, name, digest)
                    checked.add(digest)
        # Also check all other traces. A process that died may have left some that no event names; that is no fault.
        stored = sorted((folder / "traces").glob("??/*.z"))
        for path in stored:
            digest = Digest(path.parent.name + path.stem)
            if digest not in checked:
                run.traces.get(digest)
        run.repository.fsck()
        _check_descent(run)
        return {
            "events": run.tree.seq,
            "exchanges": exchanges,
            "traces": len(stored),
            "agents": len(run.tree.agents),
        }


def _cost_of(recorded: Recorded) -> Cost:
    match recorded.event:
        case TaskGraded(_, outcome) | AgentStillborn(_, outcome) | ChildProposed(_, outcome):
            return outcome.cost
        case AgentBorn():
            return recorded.event.cost
        case _:
            return Cost()


def _check_exchange(run: Run, recorded: Recorded) -> None:
    if isinstance(recorded.event, ModelCalled):
        try:
            read_request(run, recorded.event.request)
            read_reply(run, recorded.event.reply)
        except ArchiveCorrupt as error:
            raise ArchiveCorrupt(f"{error} (named by event {recorded.seq})") from error


def _check_request(run: Run, seq: int, request: Digest) -> None:
    try:
        read_request(run, request)
    except ArchiveCorrupt as error:
        raise ArchiveCorrupt(f"{error} (named by event {seq})") from error


def _check_trace(run: Run, recorded: Recorded, name: str, digest: Digest) -> None:
    try:
        run.traces.get(digest)
    except ArchiveCorrupt as error:
        raise ArchiveCorrupt(f"{error} (the {name} of event {recorded.seq})") from error


def _check_descent(run: Run) -> None:
    refs = run.repository.refs()
    with GitObjects(run.folder / "agents.git") as objects:
        for where, fault in _find_faults(run, refs, objects):
            raise ArchiveCorrupt(f"{run.folder / 'agents.git'}: {where}: {fault}")


def _find_faults(
    run: Run, refs: Mapping[AgentId, CommitId], objects: GitObjects
) -> Iterator[tuple[str, str]]:
    for agent in run.tree.agents:
        if refs.get(agent.id) != agent.commit:
            yield f"agent {agent.id}", f"its ref is {refs.get(agent.id)}, the log says {agent.commit}"
        expected = tuple(run.tree.agents[parent].commit for parent in agent.parents)
        found = objects.parents_of(agent.commit)
        if found != expected:
            yield f"agent {agent.id}", f"its commit has parents {found}, the log says {expected}"
    asked = run.repository.waiting_refs()
    for action, child in find_unborn(run).items():
        where = f"the child of action {action}"
        if asked.get(action) != child.commit:
            yield where, f"its ref is {asked.get(action)}, the log says {child.commit}"
        expected = tuple(run.tree.agents[parent].commit for parent in child.parents)
        found = objects.parents_of(child.commit)
        if found != expected:
            yield where, f"its commit has parents {found}, the log says {expected}"
