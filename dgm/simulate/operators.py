"""A world in which several operators make children, each by its own law: a test for the choice among operators.

Which operator is good, and which one is cheap, differs from world to world. Every law is drawn anew from ranges that
are the same for all operators, so that nothing can be known beforehand. No law is fitted to an operator's real figures.
The budget counts time: a budget of n is the time of n mean evaluations. An expansion takes the trial's expansion cost,
in mean evaluations, times its operator's factor. So trials of one budget spend the same, however they choose.
"""

import copy
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from dgm.archive.tree import Tree
from dgm.domain import SEED, Agent, Born, Budget, Cost, Outcome, Stillborn
from dgm.errors import Infrastructure
from dgm.protocols import Needs
from dgm.search.orders import ExpandOrder, Order
from dgm.simulate.chances import key_of, uniform
from dgm.simulate.durations import log_normal
from dgm.simulate.dynamics import Dynamics
from dgm.simulate.families import OPERATORS as FAMILY
from dgm.simulate.families import draw_dynamics
from dgm.simulate.worker import FAILURE, LatentTable, SimulatedWorker, key_as_commit
from dgm.simulate.world import Grown, Latent

NEEDS: Mapping[str, Needs] = {
    "self-edit": Needs(),
    "diagnose": Needs(failures=1),
    "compare": Needs(failures=1),
    "crossover": Needs(parents=2),
    "invent": Needs(archive=4),
    "module": Needs(),
}
"""The operators by name, and what of their needs means something in a world."""
STAGE = "check"
"""Where simulated children are stillborn."""

STEP_MEAN = (-0.6, 0.1)
STEP_SD = (0.5, 1.4)
"""Both around those of the family ``skills``, whose edits touch one of several skills, too."""
BROKEN = (0.02, 0.15)
STILLBORN = (0.02, 0.40)
FACTOR = (0.5, 4.0)
"""Drawn by its logarithm."""


@dataclass(frozen=True, slots=True)
class OperatorLaw:
    """The law by which one operator makes children."""

    step_mean: float
    """Mean effect of its edits on a skill, in logits."""
    step_sd: float
    broken: float
    """Chance that a child is born that hardly works."""
    stillborn: float
    """Chance that there is no child."""
    factor: float
    """What an expansion takes, relative to the trial's expansion cost."""


class OperatorWorld(Grown):
    """A world with several operators; a child's key includes the name of the operator that made it."""

    def __init__(self, seed: int, dynamics: Dynamics) -> None:
        super().__init__(FAMILY, seed, dynamics)
        self.laws = {name: _drawn(self._key, name) for name in NEEDS}
        self._by = {name: self._under(law) for name, law in self.laws.items()}

    def bred(self, operator: str, parents: Sequence[Latent], birth: int) -> Latent:
        """Return the child number ``birth`` (from 0) of the first parent, by this operator."""
        keys = [parent.key for parent in parents]
        key = key_of(*keys, birth.to_bytes(4, "little"), operator.encode())
        return self._by[operator].made(key, parents, birth)

    def dies(self, operator: str, child: Latent) -> bool:
        """Return whether the child is stillborn."""
        return uniform(child.key, b"stillborn") < self.laws[operator].stillborn

    def making_seconds(self, operator: str, child: Latent) -> float:
        """Return how long it takes to make the child, in seconds."""
        median = self.dynamics.expand_seconds * self.laws[operator].factor
        return log_normal(child.key, b"expand", median, self.dynamics.sigma_seconds)

    def _under(self, law: OperatorLaw) -> Grown:
        world = copy.copy(self)
        world.dynamics = replace(
            self.dynamics, step_mean=law.step_mean, step_sd=law.step_sd, broken=law.broken
        )
        return world


class OperatorLatentTable(LatentTable):
    """The ``LatentTable`` of a world with several operators."""

    def __init__(self, world: OperatorWorld, tree: Tree) -> None:
        super().__init__(world, tree)
        self._equipped = world

    def _made(self, agent: Agent) -> Latent:
        if agent.id == SEED:
            return self._equipped.root()
        parents = [self.of(self._tree.agents[parent]) for parent in agent.parents]
        return self._equipped.bred(agent.operator, parents, self._tree.child_number(agent.action))


class OperatorWorker(SimulatedWorker):
    """The ``SimulatedWorker`` of a world with several operators."""

    def __init__(self, world: OperatorWorld, tree: Tree, wait: Callable[[float], Awaitable[None]]) -> None:
        super().__init__(world, tree, wait)
        self.natures = OperatorLatentTable(world, tree)
        self._equipped = world

    async def perform(self, order: Order) -> Outcome:
        """Perform an order, like ``ActionExecutor``.

        Raises:
            Infrastructure: the world's infrastructure fails this try.
        """
        return await (self._make(order) if isinstance(order, ExpandOrder) else super().perform(order))

    async def _make(self, order: ExpandOrder) -> Born | Stillborn:
        what, world = order.action, self._equipped
        parents = [self.natures.of(parent) for parent in order.parents]
        child = world.bred(what.operator, parents, order.child_number)
        seconds = world.making_seconds(what.operator, child)
        await self._wait(seconds)
        if world.fails(child.key, self._tree.tries(order.id)):
            raise Infrastructure(FAILURE)
        cost = Cost(seconds=seconds)
        if world.dies(what.operator, child):
            return Stillborn(what.parents, what.operator, STAGE, "simulated", cost)
        commit = key_as_commit(child, order.parents)
        self.natures.know(commit, child)
        return Born(what.parents, what.operator, commit, "", cost)


def operator_world(seed: int, expansion_cost: float, failures: float) -> OperatorWorld:
    """Return the world with this seed.

    Args:
        seed: the number of the world.
        expansion_cost: the cost of an expansion by an operator of factor 1, in evaluations.
        failures: the chance that the infrastructure fails a step.
    """
    laws = draw_dynamics(FAMILY, seed, {"failures": failures})
    return OperatorWorld(seed, replace(laws, expand_seconds=expansion_cost * laws.evaluate_seconds))


def spend_budget(evaluations: int) -> Budget:
    """Return a budget of the time that ``evaluations`` mean evaluations take."""
    return Budget(seconds=evaluations * mean_evaluation_s())


def mean_evaluation_s() -> float:
    """Return the mean duration of an evaluation, in seconds: e^(σ²/2) times the median of the log-normal number."""
    laws = Dynamics()
    return laws.evaluate_seconds * math.exp(laws.sigma_seconds**2 / 2)


def _drawn(key: bytes, operator: str) -> OperatorLaw:
    def between(name: str, ends: tuple[float, float]) -> float:
        low, high = ends
        return low + (high - low) * uniform(key_of(key, operator.encode(), name.encode()))

    low, high = FACTOR
    return OperatorLaw(
        step_mean=between("step_mean", STEP_MEAN),
        step_sd=between("step_sd", STEP_SD),
        broken=between("broken", BROKEN),
        stillborn=between("stillborn", STILLBORN),
        factor=math.exp(between("factor", (math.log(low), math.log(high)))),
    )
