"""Fronts per task (GEPA, arXiv:2507.19457, algorithms 1 and 2, and its program).

*Parent*: each task has a front, the candidates with the best result on it: those that solved it or, where nobody did,
those that tried it. A candidate is dominated when others are on each front that it is on. Dominated candidates are
dropped one by one, from the worst up. One of the rest is drawn, in proportion to the number of fronts it is on.

*Schedule*: the seed is evaluated on all tasks. A child tries a batch of 3 tasks that its parent has tried. If it solves
more of them than the parent did, it is a candidate and is evaluated on the rest. The published program skips a batch
that the parent solves completely. So the last task of a batch is one that the parent failed, if it solved the others.

Departures:

* Batches come from the tasks of the fronts; GEPA keeps two sets.
* The worst candidate is the one that solved the fewest tasks; in GEPA, the one with the lowest mean. The two are the
  same where all are evaluated fully. Among equals the newer is dropped.
* An agent must also have been judged (``standings.candidates``).
* Expansions in flight change nothing: a draw spreads parallel workers by itself.
* A child of two parents is compared with the first.
* A task that was given up in a batch makes room for another, which the parent may not have tried.
* Once the archive cannot grow, agents that failed their batch are evaluated on the rest like the others (the program
  ends with its budget).
"""

from itertools import islice
from random import Random

import numpy as np
from numpy.typing import NDArray

from dgm.archive.tree import Tree
from dgm.domain import SEED, AgentId, TaskId, Verdict
from dgm.policies.composed import Composition
from dgm.policies.outcomes import graded, outcomes
from dgm.policies.rules import PolicyContext
from dgm.policies.staged import evaluations_in_flight, leftover
from dgm.policies.standings import candidates, draw
from dgm.policies.tasks import agents_with_untried, untried

PARETO = Composition(gate="evaluate-first", parent="pareto", evaluation="pareto", task="pareto")

BATCH = 3
"""Tasks on which a child must beat its parent."""


class FrontFrequency:
    """The parent rule."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:
        """Return one parent; none while there is no candidate."""
        return draw(parent_probabilities(tree), rng)


class BatchFirst:
    """The evaluation rule."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def target(self, tree: Tree, rng: Random) -> AgentId | None:  # noqa: ARG002  (nothing is left to chance)
        """Return the oldest agent whose batch is incomplete or passed; else ``leftover``."""
        begun = graded(tree) + evaluations_in_flight(tree)
        for agent in map(AgentId, agents_with_untried(tree).tolist()):
            if begun[agent] < BATCH or is_candidate(tree, agent):
                return agent
        return leftover(tree)


class BatchTask:
    """The task rule."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def task(self, tree: Tree, agent: AgentId, rng: Random) -> TaskId:
        """Return an untried task, drawn at random.

        In a batch it is one that the parent has tried. The last of a batch is one that the parent failed, if the parent
        solved the others and there is such a task.
        """
        left = untried(tree, agent)
        choice = _comparable(tree, agent, left) or left
        return choice[int(rng.random() * len(choice))]


def is_candidate(tree: Tree, agent: AgentId) -> bool:
    """Return whether an agent may be a parent.

    The seed may, and an agent that solved more of its batch than its parent. Only tasks of the batch that both have a
    verdict on are compared.
    """
    parents = tree.agents[agent].parents
    if not parents:
        return True
    own, other = tree.verdicts(agent), tree.verdicts(parents[0])
    batch = list(islice((task for task in own if own[task] is not None), BATCH))
    whole = len(batch) == min(BATCH, len(tree.tasks))
    both = [task for task in batch if other.get(task) is not None]
    gain = sum(own[task] is Verdict.RESOLVED for task in both)
    return whole and gain > sum(other[task] is Verdict.RESOLVED for task in both)


def parent_probabilities(tree: Tree) -> NDArray[np.float64]:
    """Return each agent's chance of being the next parent; shape (agents,); all 0 while there is no candidate."""
    shares = np.zeros(len(tree.agents))
    judged = [AgentId(int(agent)) for agent in candidates(tree)]
    agents = [agent for agent in judged if is_candidate(tree, agent)]
    if not agents:
        return shares
    solved, known = outcomes(tree, agents)
    fronts = np.where(solved.any(axis=0), solved, known)
    kept = undominated(fronts, np.argsort(-solved.sum(axis=1), kind="stable")[::-1])
    if not len(kept):  # a seed without a verdict
        shares[SEED] = 1.0
        return shares
    frequency = fronts[kept].sum(axis=1)
    shares[np.array(agents)[kept]] = frequency / frequency.sum()
    return shares


def undominated(fronts: NDArray[np.float64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows that remain when rows that share every front are dropped, ascending.

    One pass in the given order is enough: a row that is alone on a front stays alone when others go. Shapes: ``fronts``
    (candidates, tasks), ``order`` (candidates,).
    """
    members = fronts.sum(axis=0)
    alone = members == 1
    kept = []
    for row, on in zip(order.tolist(), fronts[order] > 0, strict=True):
        if (on & alone).any():
            kept.append(row)
        else:
            members -= on
            alone = members == 1
    return np.array(sorted(kept), dtype=np.int64)


def _comparable(tree: Tree, agent: AgentId, left: list[TaskId]) -> list[TaskId]:
    """Return the tasks left that suit a batch; none where there is no batch, or nothing to compare with."""
    parents = tree.agents[agent].parents
    if not parents or tree.tried_count[agent] >= BATCH:
        return []
    other = tree.verdicts(parents[0])
    if tree.tried_count[agent] == BATCH - 1 and Verdict.UNRESOLVED not in map(other.get, tree.tried(agent)):
        failed = [task for task in left if other.get(task) is Verdict.UNRESOLVED]
        if failed:
            return failed
    return [task for task in left if other.get(task) is not None]
