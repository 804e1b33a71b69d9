"""Rounds of promotion: which candidates are compared with the incumbent, and who is accepted.

A round is an evaluation in a folder of its own inside the search's, so no policy, operator or prompt sees its verdicts.
The search's log has the candidates and the answer only. ``dgm.stats.promotion_level`` proves what that guarantees.
"""

from collections.abc import Iterable, Mapping, Sequence

from dgm.archive.events import PromotionStarted
from dgm.archive.run import Run
from dgm.archive.tree import Promotions, Tree
from dgm.domain import AgentId, Verdict
from dgm.evaluation.schedule import find_entered
from dgm.stats import lower_bound, promotion_level, sign_test

Pair = tuple[str, bool | None, bool | None]
"""A task, and whether incumbent and candidate resolved it; None without a verdict."""
FOLDER = "promotion"
"""Folder of a search's promotion evaluations in the search's own."""


def choose_candidates(
    tree: Tree, promotions: Promotions, recommended: AgentId, limit: int
) -> Sequence[AgentId]:
    """Return the candidates of the next round, at most ``limit``; none if the recommended agent is nothing new.

    The recommended agent comes first, then agents whose lower bound on the search tasks is above the incumbent's, the
    highest first. The incumbent and candidates that it was compared with before are left out.
    """
    known = {promotions.incumbent, *promotions.rejected}
    if recommended in known or not tree.own(recommended).n:
        return ()
    least = lower_bound(tree.own(promotions.incumbent))
    bounds = {agent.id: lower_bound(tree.own(agent.id)) for agent in tree.agents if agent.id not in known}
    others = [agent for agent, bound in bounds.items() if bound > least and agent != recommended]
    return (recommended, *sorted(others, key=lambda agent: (-bounds[agent], agent))[: limit - 1])


def choose_accepted(p_values: Mapping[AgentId, float], level: float) -> AgentId | None:
    """Return the candidate with the smallest p-value, the first of equals, if it is at most ``level``; else None."""
    best = min(p_values, key=p_values.__getitem__)
    return best if p_values[best] <= level else None


def level_of(promotions: Promotions, started: PromotionStarted) -> float:
    """Return the level of the tests in a round that was begun."""
    before = sum(agent is not None for agent in promotions.accepted[: started.number - 1])
    return promotion_level(started.alpha, started.number, before, started.limit)


def compute_p_values(promotion: Run, search: Run, started: PromotionStarted) -> Mapping[AgentId, float]:
    """Return the p-value of each candidate of a round."""
    p_values = {}
    for candidate in started.candidates:
        differences = list_differences(read_pairs(promotion, search, started.incumbent, candidate))
        p_values[candidate] = sign_test(differences.count(1), differences.count(-1))
    return p_values


def read_pairs(promotion: Run, search: Run, incumbent: AgentId, candidate: AgentId) -> Sequence[Pair]:
    """Return the pairs of all promotion tasks, in the suite's order."""
    entered = [find_entered(promotion, search.tree.agents[agent].commit) for agent in (incumbent, candidate)]
    first, second = (
        {}
        if agent is None
        else {task: verdict is Verdict.RESOLVED for task, verdict in promotion.tree.verdicts(agent).items()}
        for agent in entered
    )
    return [(task, first.get(task), second.get(task)) for task in promotion.tree.tasks]


def list_differences(pairs: Iterable[Pair]) -> Sequence[int]:
    """Return 1 for each task that only the candidate resolved, -1 for each that only the incumbent did, else 0.

    An agent may be the cause that its evaluations fail. So a missing verdict is the one that favours the incumbent; a
    task without both does not count.
    """
    counted = ((old, new) for _, old, new in pairs if old is not None or new is not None)
    return [bool(new) - (old is not False) for old, new in counted]
