"""One line of agents, each made in view of all before it (ADAS, Meta Agent Search, arXiv:2408.08435).

Meta Agent Search has no parents. A model sees all of the archive with its scores and writes the next agent. That agent
is evaluated on all validation tasks and appended, whatever its score. The parent rule for this takes the newest agent
as the parent, so that the archive is one line.

This rule gives the line and the schedule; the operator decides what the model is shown. Only an operator that shows the
archive to the model makes the search ADAS. With another operator the search is an ablation that edits the latest agent
again and again.

The rule draws nothing at random. ``standings.candidates`` says who has joined the line. Expansions in flight change
nothing: parallel workers give the newest agent several children, and the line continues from the last of them.
"""

from random import Random

from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.policies.composed import Composition
from dgm.policies.rules import PolicyContext
from dgm.policies.standings import candidates

ADAS = Composition(gate="evaluate-first", parent="adas", evaluation="every-task")


class Newest:
    """The parent rule."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:  # noqa: ARG002  (nothing is left to chance)
        """Return the newest agent that was evaluated."""
        return tuple(AgentId(int(agent)) for agent in candidates(tree)[-1:])
