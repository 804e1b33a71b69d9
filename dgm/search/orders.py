"""Orders from the loop to a worker: each holds all that an action needs, taken from the tree at its start."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from dgm.archive.events import AgentBorn, AgentStillborn, ChildProposed, Event, Recorded
from dgm.archive.tree import Tree
from dgm.domain import (
    Action,
    ActionId,
    Agent,
    Born,
    CommitId,
    Evaluate,
    Evaluation,
    Expand,
    Outcome,
    Tally,
)


@dataclass(frozen=True, slots=True)
class EvaluateOrder:
    """An order to let ``agent`` work on ``action.task``."""

    id: ActionId
    action: Evaluate
    agent: Agent


@dataclass(frozen=True, slots=True)
class ParentState:
    """An agent's state when an expansion was first started."""

    agent: Agent
    before: CommitId | None
    """Commit of its first parent; None for the seed."""
    evaluations: tuple[Evaluation, ...]
    """Its resolved and unresolved evaluations, in the order of their verdicts."""


@dataclass(frozen=True, slots=True)
class ExpandOrder:
    """An order to make a child of ``parents``."""

    id: ActionId
    action: Expand
    parents: tuple[Agent, ...]
    child_number: int
    tally: Tally
    """Tally of the first parent, when the action was first started."""
    evidence: tuple[Evaluation, ...]
    known: Mapping[str, str]
    """Git tree id of every existing agent → its name."""
    standings: tuple[ParentState, ...] = ()
    """States of the parents, then of ``action.shown``; simulated orders have none."""
    ancestor: CommitId | None = None
    """Commit of the youngest common ancestor of two parents, which may be one of them; else None."""
    known_syntax: Mapping[str, str] = field(default_factory=dict)
    """``syntax_key`` of every existing agent → its name; empty if the settings do not need it."""
    siblings: Mapping[str, CommitId] = field(default_factory=dict)
    """Name of each child of the first parent → its commit; empty if the settings do not need it."""


Order = EvaluateOrder | ExpandOrder


class RunLog(Protocol):
    """The loop's view of a run: its log, the tree folded from it, and the evidence of a decision."""

    @property
    def tree(self) -> Tree:
        """The run's tree, up to date with ``append``."""
        ...

    def append(self, event: Event) -> Recorded:
        """Make an event durable, then fold it into the tree."""
        ...

    def since(self, seq: int) -> Iterable[Recorded]:
        """Return the events after number ``seq``, in order."""
        ...

    def with_evidence(self, action: ActionId, what: Action, tree: Tree) -> Action:
        """Return the action with all that its operator may see; ``tree`` is the fold of the log up to the decision."""
        ...

    def order(self, action: ActionId, what: Action) -> Order:
        """Return all that a worker needs to perform an action that was started."""
        ...

    def birth(self, action: ActionId, outcome: Born) -> AgentBorn | AgentStillborn | ChildProposed:
        """Return the event of a birth, or of the child's wait for a person."""
        ...

    def answered(self, now: float) -> AgentBorn | AgentStillborn | None:
        """Return the event of the first child that waits no longer at ``now`` (Unix time); None if all still wait."""
        ...


class ActionExecutor(Protocol):
    """The executor of the loop's orders."""

    async def perform(self, order: Order) -> Outcome:
        """Perform one action.

        Raises:
            Infrastructure: it could not be performed.
        """
        ...
