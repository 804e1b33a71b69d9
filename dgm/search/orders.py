"""What the loop hands to a worker: one value with all that an action needs, taken from the tree at its start."""

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
    """Let ``agent`` work on ``action.task``."""

    id: ActionId
    action: Evaluate
    agent: Agent


@dataclass(frozen=True, slots=True)
class Standing:
    """An agent as it stood when an expansion was first started."""

    agent: Agent
    before: CommitId | None
    """Of its first parent; None for the seed."""
    evaluations: tuple[Evaluation, ...]
    """Its resolved and unresolved ones, in the order of their verdicts."""


@dataclass(frozen=True, slots=True)
class ExpandOrder:
    """Make a child of ``parents``."""

    id: ActionId
    action: Expand
    parents: tuple[Agent, ...]
    child_number: int
    tally: Tally
    """Of the first parent, when the action was first started."""
    evidence: tuple[Evaluation, ...]
    known: Mapping[str, str]
    """Git tree id of every agent that exists → what to call it."""
    standings: tuple[Standing, ...] = ()
    """Of the parents, then of ``action.shown``; simulated orders have none."""
    ancestor: CommitId | None = None
    """Of two parents: the youngest agent that both descend from, or that one of them is."""
    known_syntax: Mapping[str, str] = field(default_factory=dict)
    """``syntax_key`` of every agent that exists → what to call it; empty where the settings do not ask."""
    siblings: Mapping[str, CommitId] = field(default_factory=dict)
    """What to call each child of the first parent → its commit; empty where the settings do not ask."""


Order = EvaluateOrder | ExpandOrder


class Overseer(Protocol):
    """What the loop knows of a run: its log, the tree that the log folds into, and what goes with a decision."""

    @property
    def tree(self) -> Tree:
        """Up to date with ``append``."""
        ...

    def append(self, event: Event) -> Recorded:
        """Makes an event durable, then folds it into the tree."""
        ...

    def since(self, seq: int) -> Iterable[Recorded]:
        """The events after number ``seq``, in order."""
        ...

    def with_evidence(self, action: ActionId, what: Action, tree: Tree) -> Action:
        """The action with all that its operator may see; ``tree`` is the fold of the log up to the decision."""
        ...

    def order(self, action: ActionId, what: Action) -> Order:
        """What a worker needs to perform an action that was started."""
        ...

    def birth(self, action: ActionId, outcome: Born) -> AgentBorn | AgentStillborn | ChildProposed:
        """The event of a birth, or that the child waits for a person."""
        ...

    def answered(self, now: float) -> AgentBorn | AgentStillborn | None:
        """The event of the first child that waits no longer at ``now`` (Unix time); None where all wait on."""
        ...


class Performer(Protocol):
    """Who the loop hands its orders to."""

    async def perform(self, order: Order) -> Outcome:
        """Performs one action.

        Raises:
            Infrastructure: it could not be performed.
        """
        ...
