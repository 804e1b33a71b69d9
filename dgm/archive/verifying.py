"""Check that a run agrees with its log: every trace's name, every git object, every ref and every descent."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from dgm.archive.events import ModelCalled, traces_of
from dgm.archive.history import find_unborn
from dgm.archive.journal import CallReader
from dgm.archive.run import Run
from dgm.domain import Agent, Born, CommitId, Digest
from dgm.errors import ArchiveCorrupt


def verify(folder: Path) -> Mapping[str, int]:
    """Check a run and its holdout evaluation; return the number of checked items by kind.

    Raises:
        ArchiveCorrupt: there is a fault; names the first one.
    """
    counts = _verify_folder(folder)
    if (folder / "holdout" / "run.json").exists():
        examined = _verify_folder(folder / "holdout")
        return {**counts, **{f"holdout_{name}": count for name, count in examined.items()}}
    return counts


def _verify_folder(folder: Path) -> Mapping[str, int]:
    with Run.open(folder) as run:
        reader = CallReader(run.store)
        stored = {Digest(name) for (name,) in run.store.query("SELECT sha256 FROM blobs")}
        for digest in stored:
            run.traces.get(digest)
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
