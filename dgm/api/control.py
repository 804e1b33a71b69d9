"""Requests to a run that another process may perform: stop it, answer for children that wait, note something.

Requests, answers and notes are files beside the run's log, which the process that performs the search reads.
"""

from pathlib import Path
from typing import Literal

from dgm.analysis.agents import find_agent
from dgm.archive.events import ActionLost, AgentBorn, AgentNoted, AgentStillborn
from dgm.archive.finding import find_run
from dgm.archive.live import (
    NOTE_CHARS,
    ApprovalAnswer,
    UnreadableApproval,
    put_answer,
    put_note,
    read_answer,
    stop_run,
)
from dgm.archive.run import Run, RunKind, writer
from dgm.domain import ActionId, AgentId
from dgm.errors import ArchiveBusy, UserError
from dgm.render.safe import one_line
from dgm.views.agents import WaitingChildView
from dgm.views.values import View

REASON_CELLS = 300
"""Longest reason why a child no longer waits."""


class StopView(View):
    """The answer to a request to stop."""

    run: str
    stopped: bool
    """True if a process was running the search and was asked to stop."""
    pid: int | None = None
    host: str = ""
    """The process's machine, if it is another one."""


def stop(run: str | Path, *, now: bool = False) -> StopView:
    """Ask a running search to end: it starts nothing new and records what is under way.

    Args:
        run: Name or folder of the run.
        now: Do not wait for the actions that are under way.

    Raises:
        UserError: there is no such run, or its folder cannot be written.
    """
    folder = find_run(str(run))
    name, holder = folder.resolve().name, stop_run(folder, now=now)
    if holder is None:
        return StopView(run=name, stopped=False)
    return StopView(run=name, stopped=True, pid=holder.pid, host="" if holder.is_reachable else holder.host)


class ApprovalView(View):
    """The children of a run that wait for approval, and the answer that was given now."""

    run: str
    folder: str
    running: bool
    """True if the search is running and reads an answer within a second; otherwise ``resume`` reads it."""
    children: tuple[WaitingChildView, ...]
    answered: int | None = None
    """The child that was answered for now."""
    replaced: str = ""
    """The earlier answer for it, with its reason, that the search had not read yet."""


def approve(
    run: str | Path,
    child: int | None = None,
    answer: Literal["yes", "no"] | None = None,
    *,
    reason: str = "",
) -> ApprovalView:
    """List the children that wait for approval (gates.approve), or answer for one.

    A running search goes on meanwhile, and reads an answer within a second; otherwise it is read when the run is
    resumed.

    Args:
        run: Name or folder of the run.
        child: Number of a child.
        answer: Whether to accept it.
        reason: Why, in one line.

    Raises:
        UserError: it does not wait, children of this run never do, or the folder cannot be written.
    """
    with Run.open(find_run(str(run), write=True)) as opened:
        return approve_child(opened, child, answer, reason)


def approve_child(
    run: Run, child: int | None = None, answer: Literal["yes", "no"] | None = None, reason: str = ""
) -> ApprovalView:
    """Answer as ``approve`` for a child of an open run."""
    _check_gate(run)
    if (child is None) != (answer is None) or (reason and child is None):
        raise UserError("give a child's number, yes or no, and perhaps a reason", argument="child")
    replaced = ""
    if child is not None:
        action = ActionId(child)
        if action not in run.tree.waiting:
            raise UserError(
                f"{run.name}: child {child} {one_line(describe_decided(run, action), REASON_CELLS)}"
            )
        replaced = _earlier_answer(run, action)
        put_answer(run.folder, action, ApprovalAnswer(answer == "yes", reason))
    children = (WaitingChildView.load(run, action, waiting) for action, waiting in run.tree.waiting.items())
    return ApprovalView(
        run=run.name,
        folder=str(run.folder),
        running=writer(run.folder) is not None,
        children=tuple(children),
        answered=child,
        replaced=replaced,
    )


class NotedView(View):
    """A note about an agent."""

    run: str
    agent: int
    text: str
    recorded: bool
    """False if a running search will record it when its next action ends, or else ``resume``."""


def note(run: str | Path, agent: int | str, text: str) -> NotedView:
    """Say something about an agent: all that edit it or a descendant from now on read it among the evidence.

    A running search goes on meanwhile, and records the note when its next action ends.

    Args:
        run: Name or folder of the run.
        agent: An id, "best", "seed" or a commit.
        text: At most 1,000 characters; never what hidden tests check.

    Raises:
        UserError: there is no such agent, the text is empty or too long, or the folder cannot be written.
    """
    with Run.open(find_run(str(run), write=True)) as opened:
        return note_agent(opened, find_agent(opened, str(agent)).id, text)


def note_agent(run: Run, agent: AgentId, text: str) -> NotedView:
    """Note as ``note`` about an agent of an open run."""
    text = " ".join(text.split())
    if not 0 < len(text) <= NOTE_CHARS:
        raise UserError(f"a note has from 1 to {NOTE_CHARS:,} characters, not {len(text):,}")
    event = AgentNoted(agent, text)
    try:
        with Run.open(run.folder, write=True) as written:
            written.append(event)
    except ArchiveBusy:
        put_note(run.folder, event)
        return NotedView(run=run.name, agent=agent, text=text, recorded=False)
    return NotedView(run=run.name, agent=agent, text=text, recorded=True)


def describe_decided(run: Run, action: ActionId) -> str:
    """Return why a child does not wait: how it was decided, or that there is none."""
    recorded = run.outcome(action) if 0 < action < run.tree.next_action else None
    match recorded.event if recorded else None:
        case AgentBorn(id=agent, decided=by):
            return f"was born as agent {agent} already{f' ({by})' if by else ''}"
        case AgentStillborn(_, dead):
            return f"was stillborn already ({dead.stage}: {dead.reason})"
        case ActionLost():
            return "does not exist: the expansion was lost"
        case _:
            return f"does not wait; waiting: {', '.join(map(str, run.tree.waiting)) or 'none'}"


def _check_gate(run: Run) -> None:
    if not run.config.get("settings", {}).get("gates", {}).get("approve"):
        why = (
            "is simulated" if run.kind is RunKind.SIMULATION else "asks nobody, because gates.approve is off"
        )
        raise UserError(
            f"{run.name} {why}; children wait in runs that begin with the setting gates.approve=true"
        )


def _earlier_answer(run: Run, action: ActionId) -> str:
    try:
        earlier = read_answer(run.folder, action)
    except UnreadableApproval:
        return ""
    return f"{'yes' if earlier.yes else 'no'} {earlier.reason}".rstrip() if earlier else ""
