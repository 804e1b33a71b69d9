"""Every agent on every task, once, in order: an examination, not a search."""

from random import Random

from dgm.archive.events import Recorded
from dgm.archive.tree import Tree
from dgm.domain import Action, Evaluate


class Roster:
    """A policy that evaluates task by task, every agent on each; it never expands."""

    name = "roster"
    keeps_state = False

    def __init__(self, leaving_out: str = "") -> None:
        """Begin an examination of all agents except those of the operator ``leaving_out``."""
        self._leaving_out = leaving_out

    def next(self, tree: Tree, rng: Random) -> Action | None:  # noqa: ARG002  (nothing is left to chance)
        """Return the evaluation of the first untried pair of task and agent; None when all were tried."""
        for task in tree.tasks:
            for agent in tree.agents:
                if agent.operator != self._leaving_out and task not in tree.tried(agent.id):
                    return Evaluate(agent.id, task)
        return None

    def observe(self, event: Recorded) -> None:
        """Ignore the event."""
