"""Which agent to hand out: the one we have most reason to believe in, never the luckiest."""

from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.policies.rules import Kit
from dgm.stats import lower_bounds


def best_belief(tree: Tree) -> AgentId:
    """The agent whose own tally has the highest lower credible bound.

    The bound is the 1st percentile of Beta(1 + resolved, 1 + unresolved) (arXiv:2510.21614, section 3); among equals
    the one with more evaluations, then the oldest. An agent without an evaluation is only chosen where no
    agent has any.

    The bound rises with each resolved task and falls with each unresolved one, so it is computed only of tallies
    that no other has more resolved and no more unresolved than.
    """
    import numpy as np  # not with the module, which `dgm run --help` loads

    resolved, unresolved = np.array(tree.own_resolved), np.array(tree.own_unresolved)
    if not (resolved.any() or unresolved.any()):
        return tree.agents[0].id
    most = np.full(int(unresolved.max()) + 1, -1)
    np.maximum.at(most, unresolved, resolved)
    if most[0] == 0:
        most[0] = -1  # nobody resolved a task and missed none: those are not evaluated
    before = np.concatenate(([-1], np.maximum.accumulate(most)[:-1]))
    missed = np.flatnonzero(most > before)
    solved = most[missed]
    bounds = lower_bounds(solved, missed)
    best = max(range(len(missed)), key=lambda n: (bounds[n], solved[n] + missed[n]))
    return AgentId(int(np.argmax((resolved == solved[best]) & (unresolved == missed[best]))))


class BestBelief:
    """The recommendation of most policies."""

    def __init__(self, kit: Kit) -> None:
        """Needs nothing of the kit."""

    def recommend(self, tree: Tree) -> AgentId:
        """As ``best_belief``."""
        return best_belief(tree)
