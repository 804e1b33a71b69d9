"""Evaluate first, expand when that is done: the schedule of programs that test every agent on all their tasks.

Several workers do not wait for each other: while the last evaluations run, a free worker makes the next child.
"""

from random import Random

from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.policies.rules import PolicyContext
from dgm.policies.tasks import agents_with_untried


class EvaluateFirst:
    """The gate that never opens; where the evaluation rule names nobody, ``Composed`` expands without asking it."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def expands(self, tree: Tree, rng: Random) -> bool:  # noqa: ARG002  (nothing is weighed)
        """Return False."""
        return False


class EveryTask:
    """The evaluation rule: every agent is evaluated on every task, the oldest first."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def target(self, tree: Tree, rng: Random) -> AgentId | None:  # noqa: ARG002  (nothing is left to chance)
        """Return the oldest agent with an untried task; ``None`` where there is none."""
        targets = agents_with_untried(tree)
        return AgentId(int(targets[0])) if len(targets) else None
