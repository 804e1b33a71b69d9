"""A policy that knows the truth: what is lost by having to estimate is measured against it.

The oracle expands the agent of the highest true clade metaproductivity (``World.potential``), the quantity that ``hgm``
and ``lineage`` estimate. It recommends the agent of the highest true score in its tree. Its evaluations teach it
nothing; they only cost the same as those of a policy of the same width. It is for simulated trials only.
"""

from random import Random

from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.policies.composed import Composed
from dgm.policies.limits import evaluations_begun, evaluations_left
from dgm.policies.random import AnyTarget
from dgm.policies.rules import Gate, PolicyContext
from dgm.policies.tasks import RandomTask
from dgm.simulate.potential import EFFORT, HORIZON
from dgm.simulate.worker import LatentTable
from dgm.simulate.world import World

STAGES = (1, 2, 4, 8, 16)
"""How far potentials look ahead near the end; before that, ``EFFORT`` expansions."""
SHORTLIST = 8
"""Agents of the highest prospect whose potentials are compared; a potential takes milliseconds."""


class OneEach:
    """A gate with one evaluation for every expansion: the greatest width at which each child is evaluated once."""

    def expands(self, tree: Tree, rng: Random) -> bool:  # noqa: ARG002  (nothing is left to chance)
        """Return whether fewer expansions than evaluations were begun."""
        return tree.expansions_begun < evaluations_begun(tree)


class MostPotential:
    """The parent rule: the agent of the highest true potential, the oldest of equals.

    Potentials look as far ahead as there are expansions left, in a few stages. So a search does not end with gains that
    only later descendants would show.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._natures: tuple[Tree, LatentTable] | None = None
        self._prospects: list[tuple[int, int, float]] = []
        """Per agent: its expansions and the effort when its prospect was asked for last, and that prospect."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:  # noqa: ARG002
        """Return one parent: the agent of the highest potential on the shortlist of prospects."""
        natures = self._natures_of(tree)
        effort = _effort(tree)
        self._look(tree, natures, effort)
        hopeful = sorted(range(len(tree.agents)), key=lambda agent: (-self._prospects[agent][2], agent))
        chosen = max(
            hopeful[:SHORTLIST],
            key=lambda agent: (
                self._world.potential(natures.of(tree.agents[agent]), tree.expansions[agent], effort),
                -agent,
            ),
        )
        return (AgentId(chosen),)

    def _look(self, tree: Tree, natures: LatentTable, effort: int) -> None:
        for agent in tree.agents:
            births = tree.expansions[agent.id]
            if agent.id == len(self._prospects):
                self._prospects.append((-1, 0, 0.0))
            if self._prospects[agent.id][:2] != (births, effort):
                value = self._world.prospect(natures.of(agent), births, min(effort, HORIZON))
                self._prospects[agent.id] = births, effort, value

    def _natures_of(self, tree: Tree) -> LatentTable:
        if self._natures is None or self._natures[0] is not tree:
            self._natures = tree, LatentTable(self._world, tree)
            self._prospects = []
        return self._natures[1]


def _effort(tree: Tree) -> int:
    """Return the smallest stage that reaches the end of the budget; ``EFFORT`` where no stage does."""
    left = evaluations_left(tree)
    if left is None:
        return EFFORT
    expansions = left / (tree.budget.expansion_cost + 1.0)
    return next((stage for stage in STAGES if stage >= expansions), EFFORT)


def oracle(world: World, gate: Gate | None = None) -> Composed:
    """Return the policy; ``gate`` decides how often it expands (by default as often as it evaluates)."""
    kit = PolicyContext()
    return Composed("oracle", kit, gate or OneEach(), MostPotential(world), AnyTarget(kit), RandomTask(kit))


def truly_best(world: World, tree: Tree) -> AgentId:
    """Return the oracle's recommendation: the agent of the highest true score, the oldest of equals."""
    natures = LatentTable(world, tree)
    return max(tree.agents, key=lambda agent: (world.true_score(natures.of(agent)), -agent.id)).id
