"""A run on disk on behalf of the loop: events, evidence, twins, and children that wait for a person.

A child waits from the event that proposes it to the birth or stillbirth that ends its expansion. Its commit is
durable before that event. The answer survives every crash: it is read again until the log has the result.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from dgm.archive.approvals import (
    ApprovalAnswer,
    UnreadableApproval,
    WaitingChild,
    forget,
    is_diff_written,
    read_answer,
    write_diff,
)
from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    ChildProposed,
    Event,
    Recorded,
)
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.config import Settings
from dgm.domain import NO_ACTION, Action, ActionId, Born, Evaluate, Stillborn
from dgm.errors import UserError
from dgm.protocols import Needs
from dgm.search.prepare import AgentIndex, choose_evidence

PERSON = "a person"
TIME_OUT = "time-out"

log = logging.getLogger(__name__)


class RunController:
    """A run on disk, on behalf of the loop; beside events it writes refs of agents and files of waiting children."""

    def __init__(self, run: Run, settings: Settings, needs: Mapping[str, Needs] | None = None) -> None:
        """Write nothing yet.

        Args:
            run: open to write, or to be replayed.
            settings: of the run.
            needs: operator → its needs, for every operator there is; None: allow any operator, without needs.
        """
        self._run = run
        self._settings = settings
        self._needs = needs
        self._index = AgentIndex(run)
        self._warned: dict[ActionId, str] = {}
        """The fault of each action's invalid answer; each is logged once."""
        self._repaired = False
        self._starts: dict[ActionId, int] = {}
        """Actions under way → numbers of the events that started them."""

    @property
    def tree(self) -> Tree:
        """The run's tree, up to date with ``append``."""
        return self._run.tree

    def append(self, event: Event) -> Recorded:
        """Append an event to the run, and remove what an ended action leaves behind; raise as ``Run.append``."""
        recorded = self._run.append(event)
        if isinstance(event, ActionStarted):
            self._starts[event.id] = recorded.seq
        else:
            self._starts = {
                action: seq for action, seq in self._starts.items() if action in self.tree.pending
            }
            self._run.traces.drop_unnamed(before=min(self._starts.values(), default=recorded.seq))
        match event:
            # Also for a child that did not wait: the process may have died between the diff and the ChildProposed
            # event.
            case (
                AgentBorn(action=action)
                | AgentStillborn(action=action)
                | ActionLost(action=action, final=True)
            ):
                if action and self._settings.gates.approve:
                    self._forget_waiting(action)
            case _:
                pass
        return recorded

    def since(self, seq: int) -> Iterable[Recorded]:
        """Return the events after number ``seq``, model calls included, in order."""
        return self._run.store.read(seq)

    def with_evidence(self, action: ActionId, what: Action, tree: Tree) -> Action:
        """Return the action with all that its operator may see, drawn once so that it can be repeated.

        For an action that was started already, draw only from what was known then. A replay draws the same
        again from the ``tree`` of that moment.

        Raises:
            UserError: the run has no such operator.
        """
        if isinstance(what, Evaluate):
            return what
        needs = Needs() if self._needs is None else self._needs.get(what.operator)
        if needs is None:
            raise UserError(
                f"the policy asks for the operator '{what.operator}', and the run has "
                f"{', '.join(self._needs or ())}; a policy takes its kit's operator"
            )
        return choose_evidence(self._run, tree, action, what, needs, self._settings)

    def birth(self, action: ActionId, outcome: Born) -> AgentBorn | AgentStillborn | ChildProposed:
        """Return the event of a birth, or of the child's wait for a person if the gate ``approve`` is on.

        A twin that another worker made at the same time is stillborn.
        """
        dead = self._find_twin(outcome)
        if dead:
            return AgentStillborn(action, dead)
        if not self._settings.gates.approve:
            return self._run.birth(outcome, action)
        # If the process died in between, an answer may be there already. It is taken if it can only be for this child.
        repository = self._run.repository
        if repository.waiting_refs().get(action) != outcome.commit:
            forget(self._run.folder, action)
            repository.name_waiting(action, outcome.commit)
        self._write_diff(action, outcome)
        return ChildProposed(action, outcome)

    def answered(self, now: float) -> AgentBorn | AgentStillborn | None:
        """Return the event of the first child that waits no longer at ``now`` (Unix time); None if all still wait."""
        self._repair_files()
        for action, waiting in self._run.tree.waiting.items():
            answer, by = self._read_answer(action), PERSON
            limit_s = self._settings.gates.approve_s
            if answer is None and limit_s is not None and now - waiting.since >= limit_s:
                accepts = self._settings.gates.on_timeout == "accept"
                answer, by = ApprovalAnswer(accepts, f"nobody answered within {limit_s:g} s"), TIME_OUT
            if answer is not None:
                return self._end_wait(action, waiting, answer, by)
        return None

    def _end_wait(
        self, action: ActionId, waiting: WaitingChild, answer: ApprovalAnswer, by: str
    ) -> AgentBorn | AgentStillborn:
        child = waiting.child
        if not answer.yes:
            stage = "rejected" if by == PERSON else "expired"
            reason = answer.reason or "the user answered no"
            return AgentStillborn(
                action, Stillborn(child.parents, child.operator, stage, reason, child.cost, by)
            )
        twin = self._find_twin(child, action)
        if twin:
            return AgentStillborn(action, replace(twin, decided=by))
        return self._run.birth(child, action, by)

    def _find_twin(self, child: Born, itself: ActionId = NO_ACTION) -> Stillborn | None:
        syntax = child.syntax if self._settings.vetting.syntax else ""
        content = self._run.repository.tree_of(child.commit)
        stage, reason = self._index.find_twin(content, syntax, itself)
        return Stillborn(child.parents, child.operator, stage, reason, child.cost) if stage else None

    def _read_answer(self, action: ActionId) -> ApprovalAnswer | None:
        try:
            return read_answer(self._run.folder, action)
        except UnreadableApproval as fault:
            if self._warned.get(action) != str(fault):
                self._warned[action] = str(fault)
                log.warning("no answer: %s", fault)
            return None

    def _write_diff(self, action: ActionId, child: Born) -> None:
        parent = self._run.tree.agents[child.parents[0]]
        write_diff(self._run.folder, action, self._run.repository.diff(parent.commit, child.commit))

    def _forget_waiting(self, action: ActionId) -> None:
        """Remove the files that exist only while the child waits; the log holds the result.

        The commit of a child that was not born stays, because an expansion started meanwhile may name it.
        """
        forget(self._run.folder, action)
        kinds = {type(recorded.event) for recorded in self._run.store.events_of_action(action)}
        if ChildProposed not in kinds or AgentBorn in kinds:
            self._run.repository.forget_waiting(action)

    def _repair_files(self) -> None:
        """Remove, once, what a process left that died between an event and the removal of its files.

        Also write the missing diffs of waiting children in an unpacked run.
        """
        if self._repaired:
            return
        self._repaired = True
        tree = self._run.tree
        for action in self._run.repository.waiting_refs():
            # A child that is to be made again will be proposed again, and may have its answer already.
            if not any(action in actions for actions in (tree.waiting, tree.pending, tree.to_redo())):
                self._forget_waiting(action)
        for action, waiting in tree.waiting.items():
            if not is_diff_written(self._run.folder, action):
                self._write_diff(action, waiting.child)
