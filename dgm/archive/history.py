"""Questions about a run that only its log can answer: an agent's evaluations, and whether a process is writing."""

import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from dgm.archive.events import ChildProposed, Recorded, TaskGraded
from dgm.archive.lock import MAX_BYTES, Holder, is_locked, parse_holder
from dgm.archive.log import Log
from dgm.archive.run import Run
from dgm.bounded_reading import read_file
from dgm.domain import ActionId, AgentId, Born, Evaluation

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


def stream(run: Run, every_s: float = 1.0) -> Iterator[Recorded]:
    """Yield every event that is appended from now on, each once; stop when nobody writes the run any more.

    When the first of several new events is yielded, the run's tree has already read all of them.

    Args:
        run: open for reading; new events are those that its tree has not read.
        every_s: interval in seconds between two looks at the log.
    """
    while True:
        # Ask first, so that the last events of a writer are not missed.
        written = writer(run.folder) is not None
        yield from run.follow()
        if not written:
            return
        time.sleep(every_s)


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
