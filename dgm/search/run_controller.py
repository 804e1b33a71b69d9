"""The step from a decision to an order: its evidence, its agents, and what the archive already knows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from dgm.archive.approvals import WaitingChild
from dgm.archive.events import ActionLost, AgentBorn, AgentStillborn, ChildProposed, Event, Recorded
from dgm.archive.history import evaluations_of
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.config import Settings
from dgm.domain import (
    NO_ACTION,
    Action,
    ActionId,
    AgentId,
    Born,
    CommitId,
    Evaluate,
    Evaluation,
    Expand,
    Stillborn,
    Tally,
)
from dgm.errors import UserError
from dgm.protocols import Needs
from dgm.search.approvals import Approvals
from dgm.search.duplicate_index import DuplicateIndex, map_siblings
from dgm.search.evidence_choice import choose_evidence
from dgm.search.orders import EvaluateOrder, ExpandOrder, Order, ParentState


class RunController:
    """A run on disk, on behalf of the loop; beside events it writes only the ref of a new agent."""

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
        self.known = DuplicateIndex(run)
        self._approvals = Approvals(run, settings.gates)

    @property
    def tree(self) -> Tree:
        """The run's tree, up to date with ``append``."""
        return self._run.tree

    def append(self, event: Event) -> Recorded:
        """Append an event to the run, and close the proposal of a child that has ended; raise as ``Run.append``."""
        recorded = self._run.append(event)
        ended = _ended_expansion(event)
        # Also for a child that did not wait: the process may have died between the diff and the ChildProposed
        # event.
        if ended and self._settings.gates.approve:
            self._approvals.done(ended)
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
        if self._needs is None:
            return choose_evidence(self._run, tree, action, what, Needs(), self._settings)
        if what.operator not in self._needs:
            raise UserError(
                f"the policy asks for the operator '{what.operator}', and the run has "
                f"{', '.join(self._needs)}; a policy takes its kit's operator"
            )
        return choose_evidence(self._run, tree, action, what, self._needs[what.operator], self._settings)

    def order(self, action: ActionId, what: Action) -> Order:
        """Return all that a worker needs to perform the action, which must have been started in the tree."""
        tree = self._run.tree
        if isinstance(what, Evaluate):
            return EvaluateOrder(action, what, tree.agents[what.agent])
        who = (*what.parents, *what.shown)
        past = {agent: evaluations_of(self._run, agent, before=action) for agent in who}
        known_then = {number: each for own in past.values() for number, each in own.items()}
        return ExpandOrder(
            id=action,
            action=what,
            parents=tuple(tree.agents[agent] for agent in what.parents),
            child_number=tree.child_number(action),
            tally=sum((each.tally for each in past[what.parents[0]].values()), Tally()),
            evidence=tuple(known_then[number] for number in what.evidence),
            known=self.known.contents(),
            standings=tuple(_state_of_parent(tree, agent, past[agent]) for agent in who),
            ancestor=_find_ancestor(tree, what.parents),
            known_syntax=self.known.syntax() if self._settings.vetting.syntax else {},
            siblings=self.siblings(what, len(tree.agents), tree.waiting),
        )

    def siblings(
        self, what: Expand, there: int, waiting: Mapping[ActionId, WaitingChild]
    ) -> Mapping[str, CommitId]:
        """Return the first parent's children among the first ``there`` agents and among those that wait.

        Only the novelty gate needs them.
        """
        if self._settings.gates.novelty == "off":
            return {}
        return map_siblings(self._run.tree, what.parents[0], there, waiting)

    def birth(self, action: ActionId, outcome: Born) -> AgentBorn | AgentStillborn | ChildProposed:
        """Return the event of a birth, or of the child's wait for a person if the gate ``approve`` is on.

        A twin that another worker made at the same time is stillborn.
        """
        content = self._run.repository.tree_of(outcome.commit)
        dead = self._twin(outcome, content)
        if dead:
            return AgentStillborn(action, dead)
        if self._settings.gates.approve:
            return self._approvals.propose(action, outcome)
        return self._born(action, outcome, content)

    def answered(self, now: float) -> AgentBorn | AgentStillborn | None:
        """Return the event of the first child that waits no longer at ``now`` (Unix time); None if all still wait."""
        decided = self._approvals.due(now)
        if decided is None:
            return None
        action, child = decided.action, decided.child
        if not decided.yes:
            reason = decided.reason
            dead = Stillborn(child.parents, child.operator, decided.stage, reason, child.cost, decided.by)
            return AgentStillborn(action, dead)
        content = self._run.repository.tree_of(child.commit)
        twin = self._twin(child, content, action)
        if twin:
            return AgentStillborn(action, replace(twin, decided=decided.by))
        return self._born(action, child, content, decided.by)

    def _twin(self, child: Born, content: str, itself: ActionId = NO_ACTION) -> Stillborn | None:
        asked = child.syntax if self._settings.vetting.syntax else ""
        stage, reason = self.known.twin(content, asked, itself)
        return Stillborn(child.parents, child.operator, stage, reason, child.cost) if stage else None

    def _born(self, action: ActionId, child: Born, content: str, decided: str = "") -> AgentBorn:
        event = self._run.birth(child, action, decided)
        self.known.add(event, content)
        return event


def _ended_expansion(event: Event) -> ActionId:
    """Return the expansion that has ended with the event; ``NO_ACTION`` if none has."""
    match event:
        case AgentBorn(action=action) | AgentStillborn(action=action) | ActionLost(action=action, final=True):
            return action
        case _:
            return NO_ACTION


def _state_of_parent(tree: Tree, agent: AgentId, past: Mapping[ActionId, Evaluation]) -> ParentState:
    member = tree.agents[agent]
    before = tree.agents[member.parents[0]].commit if member.parents else None
    return ParentState(member, before, tuple(past.values()))


def _find_ancestor(tree: Tree, parents: Sequence[AgentId]) -> CommitId | None:
    return tree.agents[tree.common_ancestor(*parents)].commit if len(parents) == 2 else None
