"""Which agent to hand out: the one we have most reason to believe in, never the luckiest."""

from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.policies.rules import PolicyContext
from dgm.stats import lower_bounds


def best_belief(tree: Tree) -> AgentId:
    """Return the agent whose own tally has the highest lower credible bound.

    The bound is the 1st percentile of Beta(1 + resolved, 1 + unresolved) (arXiv:2510.21614, section 3). Among equals
    the agent with more evaluations wins, then the oldest. An agent without an evaluation is only chosen where no
    agent has any.

    The bound rises with each resolved task and falls with each unresolved one. So it is computed only for tallies
    that have more resolved than every other tally with as few unresolved or fewer.
    """
    import numpy as np  # not at module level, because `dgm run --help` loads this module

    resolved, unresolved = np.array(tree.own_resolved), np.array(tree.own_unresolved)
    if not (resolved.any() or unresolved.any()):
        return tree.agents[0].id
    evaluated = resolved + unresolved > 0
    base = int(resolved.max()) + 1
    tallies = np.sort((unresolved * base + resolved)[evaluated])
    missed, solved = np.divmod(tallies[np.append(np.diff(tallies // base) > 0, True)], base)
    before = np.concatenate(([-1], np.maximum.accumulate(solved)[:-1]))
    missed, solved = missed[solved > before], solved[solved > before]
    bounds = lower_bounds(solved, missed)
    best = max(range(len(missed)), key=lambda n: (bounds[n], solved[n] + missed[n]))
    return AgentId(int(np.argmax((resolved == solved[best]) & (unresolved == missed[best]))))


class BestBelief:
    """The recommendation of most policies."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def recommend(self, tree: Tree) -> AgentId:
        """Return ``best_belief`` of the tree."""
        return best_belief(tree)
