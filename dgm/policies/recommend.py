"""Which agent a policy hands out: the one that there is most reason to believe in, never the luckiest."""

from dgm.archive.tree import Tree
from dgm.domain import AgentId, Tally
from dgm.stats import lower_bound


def best_belief(tree: Tree) -> AgentId:
    """Return the agent whose own tally has the highest lower credible bound.

    The bound is the 1st percentile of Beta(1 + resolved, 1 + unresolved) (arXiv:2510.21614, section 3). Among equals
    the agent with more evaluations wins, then the oldest. An agent without an evaluation is only chosen where no
    agent has any.

    The bound rises with each resolved task and falls with each unresolved one. So it is computed only for tallies
    that have more resolved than every other tally with as few unresolved or fewer.
    """
    tallies = [Tally(*counts) for counts in zip(tree.own_resolved, tree.own_unresolved, strict=True)]
    most_resolved: dict[int, int] = {}
    for tally in tallies:
        if tally.n and tally.resolved > most_resolved.get(tally.unresolved, -1):
            most_resolved[tally.unresolved] = tally.resolved
    candidates: list[Tally] = []
    for unresolved, resolved in sorted(most_resolved.items()):
        if not candidates or resolved > candidates[-1].resolved:
            candidates.append(Tally(resolved, unresolved))
    if not candidates:
        return tree.agents[0].id
    best = max(candidates, key=lambda tally: (lower_bound(tally), tally.n))
    return AgentId(tallies.index(best))
