"""Questions about a run that only its log can answer: what an agent did, and whether someone is writing."""

import json
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from dgm.archive.events import ActionStarted, ChildProposed, Recorded, TaskGraded
from dgm.archive.run import Run
from dgm.archive.store import EventStore
from dgm.domain import ActionId, AgentId, Born, Evaluation

LIVING = ("running", "paused")
"""What ``state`` says while a process writes the run; what is under way in any other state is not worked on."""
_PROPOSED = (
    "SELECT seq, at, kind, action, body FROM events WHERE kind = 'child_proposed' AND seq <= ? ORDER BY seq"
)


def evaluations_of(run: Run, agent: AgentId, before: ActionId | None = None) -> Mapping[ActionId, Evaluation]:
    """The agent's resolved and unresolved evaluations by action, in the order of their verdicts; no withdrawn ones.

    Args:
        run: the run.
        agent: the agent.
        before: only what was known when this action was first started.
    """
    until = _first_start(run, before) if before is not None else None
    last = sys.maxsize if until is None else until
    return {
        recorded.event.action: recorded.event.outcome
        for recorded in run.store.graded(agent, last)
        if isinstance(recorded.event, TaskGraded) and recorded.seq < last
    }


def _first_start(run: Run, action: ActionId) -> int | None:
    starts = [item.seq for item in run.store.of_action(action) if isinstance(item.event, ActionStarted)]
    return starts[0] if starts else None


def unborn(run: Run) -> Mapping[ActionId, Born]:
    """Children that a person was asked about and that are no agents, by action: those that wait, and the rejected.

    An expansion that was ordered meanwhile may name them: its edit is compared with theirs.
    """
    born = {agent.action for agent in run.tree.agents}
    events = (run.store.decoded(row).event for row in run.store.query(_PROPOSED, (run.tree.seq,)))
    return {
        event.action: event.outcome
        for event in events
        if isinstance(event, ChildProposed) and event.action not in born
    }


def state(run: Run) -> str:
    """``running``, ``paused`` (its provider is away), ``interrupted`` (its process died), or how it ended."""
    if run.tree.stop_reason:
        return run.tree.stop_reason
    if writer(run.folder) is None:
        return "interrupted"
    return "paused" if run.tree.paused else "running"


def stream(run: Run, every_s: float = 1.0) -> Iterator[Recorded]:
    """Every event that is appended from now on, each once; ends when nobody writes the run any more.

    The run's tree has read all that there is when the first of several new events is handed out.

    Args:
        run: open to read; its tree says up to where it was read already.
        every_s: how often the log is looked at.
    """
    while True:
        # Asked first, so that what a writer leaves last is not missed.
        written = writer(run.folder) is not None
        yield from run.follow()
        if not written:
            return
        time.sleep(every_s)


def follow_log(store: EventStore, folder: Path, after: int, every_s: float = 0.5) -> Iterator[Recorded]:
    """Every event after number ``after``, each once, as they are appended; ends when nobody writes the run any more.

    Nothing is folded, so that a long log costs no memory.

    Args:
        store: the run's log, open to read.
        folder: the run.
        after: number of an event.
        every_s: how often the log is looked at.
    """
    while True:
        # Asked first, so that what a writer leaves last is not missed.
        written = writer(folder) is not None
        for recorded in store.read(after):
            after = recorded.seq
            yield recorded
        if not written:
            return
        time.sleep(every_s)


def writer(folder: Path) -> tuple[int, str] | None:
    """Pid and host of the process that is writing the run in this folder; None where there is none.

    It is looked up without touching the lock, so that asking never gets in a writer's way. On another host nobody can
    tell whether the process still lives: it is taken for alive.
    """
    lock = folder / "events.lock"
    try:
        holder = json.loads(lock.read_bytes())
        pid, host = int(holder["pid"]), str(holder["host"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return (pid, host) if host != socket.gethostname() or _holds(pid, lock) else None


def _holds(pid: int, lock: Path) -> bool:
    """Whether a process of this host has the file open."""
    wanted = str(lock.resolve())
    try:
        return any(_is_link_to(opened, wanted) for opened in Path(f"/proc/{pid}/fd").iterdir())
    except PermissionError:
        return True
    except OSError:
        return False


def _is_link_to(opened: Path, wanted: str) -> bool:
    """Return whether an entry of ``/proc/PID/fd`` links to the file; False if it was closed meanwhile."""
    try:
        return str(opened.readlink()) == wanted
    except FileNotFoundError:
        return False
