"""What the loop hands to a worker: one value with all that an action needs, taken from the tree at its start."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from dgm.domain import ActionId, Agent, Evaluate, Evaluation, Expand, Outcome, Tally


@dataclass(frozen=True, slots=True)
class EvaluateOrder:
    """Let ``agent`` work on ``action.task``."""

    id: ActionId
    action: Evaluate
    agent: Agent


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


Order = EvaluateOrder | ExpandOrder


class Performer(Protocol):
    """Who the loop hands its orders to."""

    async def perform(self, order: Order) -> Outcome:
        """Performs one action.

        Raises:
            Infrastructure: it could not be performed.
        """
        ...
