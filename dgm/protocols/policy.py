"""The choice of the next action."""

from random import Random
from typing import Protocol

from dgm.archive.events import Recorded
from dgm.archive.tree import Tree
from dgm.domain import Action


class Policy(Protocol):
    """A chooser of actions; a decision is a function of the log and the random stream alone."""

    name: str
    keeps_state: bool
    """Whether ``observe`` does anything; if not, a resume need not read a long log again."""

    def next(self, tree: Tree, rng: Random) -> Action | None:
        """Return the next action, or ``None`` to wait until a pending action ends.

        ``None`` without a pending action means that nothing is left to do. Leave ``Expand.evidence`` empty: the search
        fills it in. ``rng`` is seeded per decision, so its state does not persist. An expansion that exceeds the budget
        is not started, as if the answer were ``None``; ask ``limits.may_expand`` first.
        """
        ...

    def observe(self, event: Recorded) -> None:
        """Fold one event into the policy's state; called for every event, once, in order."""
        ...
