"""The lower bound of the leading agent and of the recommended one, over evaluations, spend and time.

The leader of a moment is the agent with the highest lower credible bound, whatever policy the run has. The recommended
agent is the one that the policy would have handed out then; it takes longer to compute, and makes runs comparable.
A bound falls as well as rises, and so does a curve.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dgm.analysis.agents import best_in
from dgm.archive.events import CallBooked, ModelCalled, ModelLearned, PromotionSpent, RunStarted, TaskGraded
from dgm.archive.run import Run
from dgm.archive.tree import Tree, Watch
from dgm.domain import AgentId, Tally, Verdict
from dgm.stats import lower_bound, wilson

MOMENTS = 300
"""Maximum number of recommendations; one takes some milliseconds in a run of many agents."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The leading or the recommended agent at a moment."""

    evaluations: int
    """Resolved and unresolved evaluations until then."""
    usd: float
    tokens: int
    seconds: float
    """Wall time of the sessions; time between two sessions is left out."""
    agent: AgentId
    rate: float
    """The agent's rate on the search tasks until then."""
    lower_bound: float
    """The rate that the agent exceeds with a probability of 99 %, as in ``dgm.stats.lower_bound``."""
    interval: tuple[float, float]
    """95 % Wilson interval of the rate."""


def compute_curve(run: Run, most: int = 400) -> Sequence[CurvePoint]:
    """Return the points at which the leader or its bound changed, and the end of the run, at most ``most`` in all.

    Empty without a verdict. Verdicts that were withdrawn later count at no time. Among agents of one bound the one
    with more verdicts leads, then the older one, as in ``dgm.policies.hgm``.
    """
    watch, withdrawn, points = Watch(), run.store.withdrawn(run.tree.seq), list[CurvePoint]()
    tallies: dict[int, Tally] = {}
    ranking: list[tuple[float, int, int]] = []
    usd, tokens, evaluations, shown = 0.0, 0, 0, None
    for item in run.store.read(0, run.tree.seq):
        event = item.event
        if isinstance(event, RunStarted):
            watch.begin(item.at)
        watch.passed(item)
        if isinstance(event, ModelCalled | CallBooked | ModelLearned | PromotionSpent):
            tokens, usd = tokens + event.usage.tokens, usd + event.usage.usd
        elif isinstance(event, TaskGraded) and event.outcome.tally.n and item.seq not in withdrawn:
            evaluations += 1
            agent = event.outcome.agent
            tallies[agent] = tally = tallies.get(agent, Tally()) + event.outcome.tally
            heapq.heappush(ranking, (-lower_bound(tally), -tally.n, agent))
            while tallies[ranking[0][2]].n != -ranking[0][1]:
                heapq.heappop(ranking)  # outdated
            bound, _, leader = ranking[0]
            if (leader, tallies[leader].rate, bound) != shown:
                shown = leader, tallies[leader].rate, bound
                moment = evaluations, usd, tokens, watch.seconds
                interval = wilson(tallies[leader])
                points.append(CurvePoint(*moment, AgentId(leader), shown[1], -bound, interval))
    if points:
        end = replace(points[-1], evaluations=evaluations, usd=usd, tokens=tokens, seconds=watch.seconds)
        points += [end] if end != points[-1] else []
    if len(points) <= most:
        return points
    step = (len(points) - 1) / (most - 1)
    return [points[round(number * step)] for number in range(most)]


def list_recommendations(run: Run, most: int = MOMENTS) -> Sequence[CurvePoint]:
    """Return the agent that the run's policy recommended after each evaluation, or after every n-th of very many.

    The last point is the run as far as its tree has read the log; empty without a verdict. A verdict that was
    withdrawn later counts until then, as it did for the search.
    """
    every = -(-run.tree.evaluations // most) or 1
    tree, points, graded = Tree(), list[CurvePoint](), 0
    for recorded in run.store.read(0, run.tree.seq):
        tree.apply(recorded)
        event = recorded.event
        if isinstance(event, TaskGraded) and event.outcome.verdict is not Verdict.INVALID:
            graded += 1
            if graded % every == 0:
                points.append(_recommendation(run, tree, points))
    return [*points, _recommendation(run, tree, points)] if graded else []


def _recommendation(run: Run, tree: Tree, before: Sequence[CurvePoint]) -> CurvePoint:
    best = best_in(run, tree)
    own = tree.own(best)
    # A withdrawn verdict takes an evaluation away; a curve goes on from left to right.
    evaluations = max(tree.evaluations, before[-1].evaluations if before else 0)
    spend = tree.spend.usd, tree.spend.tokens, tree.wall_seconds
    return CurvePoint(evaluations, *spend, best, own.rate, lower_bound(own), wilson(own))
