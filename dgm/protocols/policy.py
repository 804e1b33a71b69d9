"""What comes next."""

from random import Random
from typing import Protocol

from dgm.archive.events import Recorded
from dgm.archive.tree import Tree
from dgm.domain import Action


class Policy(Protocol):
    """Decides what happens next; a decision is a function of the log and the random stream alone."""

    name: str
    keeps_state: bool
    """Whether ``observe`` does anything: if not, a long log need not be read again at a resume."""

    def next(self, tree: Tree, rng: Random) -> Action | None:
        """The next step, or ``None`` to wait until something that is pending finishes.

        ``None`` with nothing pending means that nothing is left to do. ``Expand.evidence`` is left empty: the
        search fills it in. ``rng`` is seeded per decision, so no state of it survives. An expansion that the budget
        has no room for is not started, as if the answer were ``None``: ask ``limits.may_expand`` first.
        """
        ...

    def observe(self, event: Recorded) -> None:
        """Folds one event into whatever state the policy keeps; called for every event, in order, once."""
        ...
