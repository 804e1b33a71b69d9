"""Questions about a run that only its log can answer: what an agent did, and whether someone is writing."""

import json
import socket
from collections.abc import Mapping
from pathlib import Path

from dgm.archive.events import ActionStarted, TaskGraded
from dgm.archive.run import Run
from dgm.domain import ActionId, AgentId, Evaluation


def evaluations_of(run: Run, agent: AgentId, before: ActionId | None = None) -> Mapping[ActionId, Evaluation]:
    """The agent's resolved and unresolved evaluations by action, in the order of their verdicts.

    Args:
        run: the run.
        agent: the agent.
        before: only what was known when this action was first started.
    """
    until = _first_start(run, before) if before is not None else None
    return {
        recorded.event.action: recorded.event.outcome
        for recorded in run.store.graded(agent)
        if isinstance(recorded.event, TaskGraded) and (until is None or recorded.seq < until)
    }


def _first_start(run: Run, action: ActionId) -> int | None:
    starts = [item.seq for item in run.store.of_action(action) if isinstance(item.event, ActionStarted)]
    return starts[0] if starts else None


def state(run: Run) -> str:
    """``running``, ``interrupted`` (its process died), or how its last session ended."""
    if run.tree.stop_reason:
        return run.tree.stop_reason
    return "running" if writer(run.folder) is not None else "interrupted"


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
        return any(str(opened.readlink()) == wanted for opened in Path(f"/proc/{pid}/fd").iterdir())
    except PermissionError:
        return True
    except OSError:
        return False
