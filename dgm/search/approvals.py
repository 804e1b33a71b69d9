"""The gate ``approve``: children wait for a person, and the search goes on.

A child waits from the event that proposes it to the birth or stillbirth that ends its expansion. Its commit is
durable before that event. The answer survives every crash: it is read again until the log has the result.
"""

import logging
from dataclasses import dataclass

from dgm.archive.approvals import (
    UnreadableApproval,
    WaitingChild,
    forget,
    is_diff_written,
    read_answer,
    write_diff,
)
from dgm.archive.events import AgentBorn, ChildProposed
from dgm.archive.run import Run
from dgm.config import GateSettings
from dgm.domain import ActionId, Born

PERSON = "a person"
TIME_OUT = "time-out"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """The decision about a child that waited."""

    action: ActionId
    child: Born
    yes: bool
    by: str
    """``PERSON`` or ``TIME_OUT``."""
    reason: str
    """One line; the reason if the decision is a no."""

    @property
    def stage(self) -> str:
        """Stage of a child that is stillborn by this decision."""
        return "rejected" if self.by == PERSON else "expired"


class Approvals:
    """The waiting children of one run that is open to write."""

    def __init__(self, run: Run, settings: GateSettings) -> None:
        self._run = run
        self._settings = settings
        self._told: dict[ActionId, str] = {}
        """The fault of each action's invalid answer; each is logged once."""
        self._tidied = False

    def propose(self, action: ActionId, child: Born) -> ChildProposed:
        """Return the event that a child waits, after writing its commit and diff for a person to see.

        If the process died in between, an answer may be there already. It is taken if it can only be for this
        child.
        """
        repository = self._run.repository
        if repository.waiting_refs().get(action) != child.commit:
            forget(self._run.folder, action)
            repository.name_waiting(action, child.commit)
        self._show(action, child)
        return ChildProposed(action, child)

    def due(self, now: float) -> ApprovalDecision | None:
        """Return the first child that has an answer, or whose time is over at ``now`` (Unix time)."""
        self._repair_files()
        for action, one in self._run.tree.waiting.items():
            decided = self._answered(action, one) or self._decide_by_timeout(action, one, now)
            if decided:
                return decided
        return None

    def done(self, action: ActionId) -> None:
        """Remove the files that exist only while the child waits; the log holds the result.

        The commit of a child that was not born stays, because an expansion ordered meanwhile may name it.
        """
        forget(self._run.folder, action)
        kinds = {type(recorded.event) for recorded in self._run.store.events_of_action(action)}
        if ChildProposed not in kinds or AgentBorn in kinds:
            self._run.repository.forget_waiting(action)

    def _show(self, action: ActionId, child: Born) -> None:
        parent = self._run.tree.agents[child.parents[0]]
        write_diff(self._run.folder, action, self._run.repository.diff(parent.commit, child.commit))

    def _answered(self, action: ActionId, one: WaitingChild) -> ApprovalDecision | None:
        try:
            answer = read_answer(self._run.folder, action)
        except UnreadableApproval as fault:
            if self._told.get(action) != str(fault):
                self._told[action] = str(fault)
                log.warning("no answer: %s", fault)
            return None
        if answer is None:
            return None
        reason = answer.reason or ("" if answer.yes else "the user answered no")
        return ApprovalDecision(action, one.child, answer.yes, PERSON, reason)

    def _decide_by_timeout(self, action: ActionId, one: WaitingChild, now: float) -> ApprovalDecision | None:
        most = self._settings.approve_s
        if most is None or now - one.since < most:
            return None
        why = f"nobody answered within {most:g} s"
        return ApprovalDecision(action, one.child, self._settings.on_timeout == "accept", TIME_OUT, why)

    def _repair_files(self) -> None:
        """Remove the remains of a process that died between an event and ``done``.

        Also show the missing diffs of waiting children in an unpacked run.
        """
        if self._tidied:
            return
        self._tidied = True
        tree = self._run.tree
        for action in self._run.repository.waiting_refs():
            # A child that is to be made again will be proposed again, and may have its answer already.
            if not any(action in those for those in (tree.waiting, tree.pending, tree.to_redo())):
                self.done(action)
        for action, one in tree.waiting.items():
            if not is_diff_written(self._run.folder, action):
                self._show(action, one.child)
