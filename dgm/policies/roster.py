"""Every agent on every task, once, in order: an examination, not a search."""

from random import Random

from dgm.archive.events import Recorded
from dgm.archive.tree import Tree
from dgm.domain import Action, Evaluate


class Roster:
    """Evaluates in the order of tasks, the agents side by side; never expands."""

    name = "roster"
    keeps_state = False

    def __init__(self, leaving_out: str = "") -> None:
        """Begins an examination of all agents but those of the operator ``leaving_out``."""
        self._leaving_out = leaving_out

    def next(self, tree: Tree, rng: Random) -> Action | None:  # noqa: ARG002  (nothing is left to chance)
        """The first pair of task and agent that was not tried; None when all were."""
        for task in tree.tasks:
            for agent in tree.agents:
                if agent.operator != self._leaving_out and task not in tree.tried(agent.id):
                    return Evaluate(agent.id, task)
        return None

    def observe(self, event: Recorded) -> None:
        """Keeps nothing."""
