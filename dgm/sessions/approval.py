"""Answers for children that wait for a person; the search reads them and goes on meanwhile.

Only answers are written, never the run's log, so that this works beside a running search and without one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dgm.archive.approvals import ApprovalAnswer, UnreadableApproval, put_answer, read_answer
from dgm.archive.events import ActionLost, AgentBorn, AgentStillborn
from dgm.archive.run import Run
from dgm.domain import ActionId
from dgm.errors import UserError
from dgm.show.approve_rows import child_record, parse_action_id
from dgm.show.safe import one_line
from dgm.simulation import PLAN as SIMULATION

WIDTH = 300
"""Maximum length of the reason why a child no longer waits, in characters."""


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """An answer that was written, and the unread one that it replaces."""

    child: ActionId
    yes: bool
    reason: str
    instead_of: str
    """The earlier answer with its reason; empty if there was none."""


def check_gate(run: Run) -> None:
    """Make sure that children of the run wait for a person.

    Raises:
        UserError: none does, because ``gates.approve`` is off or the run is simulated.
    """
    if run.config.get("settings", {}).get("gates", {}).get("approve"):
        return
    why = "is simulated" if SIMULATION in run.config else "asks nobody, as gates.approve is off"
    raise UserError(
        f"{run.name}: {why}; children wait in runs that begin with: dgm run --set gates.approve=true"
    )


def waiting_records(run: Run) -> Sequence[dict[str, Any]]:
    """Return a record for each child that waits, with an answer that the search has not read yet."""
    return [child_record(run, action, one) for action, one in run.tree.waiting.items()]


def answer_children(run: Run, wanted: Mapping[str, bool], reason: str) -> Sequence[GivenAnswer]:
    """Write answers for children that wait.

    Args:
        run: the run.
        wanted: a child's number → whether it may live.
        reason: why; for all of them.

    Raises:
        UserError: one of them does not wait, and nothing is answered; or the run's folder is read-only.
    """
    # Look up all names before answering the first: a typo in the third must change nothing.
    answers = {_find_waiting(run, name): ApprovalAnswer(yes, reason) for name, yes in wanted.items()}
    before = {action: _earlier_answer_text(run, action) for action in answers}
    for action, answer in answers.items():
        put_answer(run.folder, action, answer)
    return [
        GivenAnswer(action, answer.yes, answer.reason, before[action]) for action, answer in answers.items()
    ]


def describe_decided(run: Run, action: ActionId | None) -> str:
    """Return why a child does not wait: how it was decided, or that there is none."""
    recorded = run.outcome(action) if action else None
    match recorded.event if recorded else None:
        case AgentBorn(id=agent, decided=by):
            return f"was born as agent {agent} already{f' ({by})' if by else ''}"
        case AgentStillborn(_, dead):
            return f"was stillborn already ({dead.stage}: {dead.reason})"
        case ActionLost():
            return "is not there: the expansion was lost"
        case _:
            those = ", ".join(map(str, run.tree.waiting)) or "none"
            return f"no such child waits; waiting: {those}"


def _find_waiting(run: Run, name: str) -> ActionId:
    action = parse_action_id(name)
    if action in run.tree.waiting and action is not None:
        return action
    raise UserError(f"{run.name}: child {name}: {one_line(describe_decided(run, action), WIDTH)}")


def _earlier_answer_text(run: Run, action: ActionId) -> str:
    """Return the earlier answer that is replaced; empty if there is none."""
    try:
        earlier = read_answer(run.folder, action)
    except UnreadableApproval:
        return ""
    return f"{'yes' if earlier.yes else 'no'} {earlier.reason}".rstrip() if earlier else ""
