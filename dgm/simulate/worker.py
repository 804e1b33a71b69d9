"""The worker that answers the loop's orders from a world: the simulated counterpart of ``dgm.worker.worker``."""

from collections.abc import Awaitable, Callable, Sequence

from dgm.archive.tree import Tree
from dgm.domain import SEED, Agent, Born, CommitId, Cost, Evaluate, Evaluation, Outcome, Verdict
from dgm.errors import Infrastructure
from dgm.search.orders import EvaluateOrder, ExpandOrder, Order
from dgm.simulate.chances import key_of
from dgm.simulate.world import Latent, Step, World

FAILURE = "the simulated infrastructure failed, as the trial asks for"

Store = Callable[[Latent, Sequence[Agent]], CommitId]
"""Keeps a child's source, given its parents, and names it."""


def key_as_commit(latent: Latent, parents: Sequence[Agent]) -> CommitId:  # noqa: ARG001  (the key holds them)
    """Return the key in hex, which stands for the source of an agent that is kept in memory only."""
    return CommitId(latent.key.hex())


class LatentTable:
    """The true nature of each agent of a tree; it follows from the tree and the world, so nothing need be stored."""

    def __init__(self, world: World, tree: Tree) -> None:
        self._world = world
        self._tree = tree
        self._known: dict[CommitId, Latent] = {}

    def of(self, agent: Agent) -> Latent:
        """Return the nature of an agent."""
        known = self._known.get(agent.commit)
        if known is None:
            known = self._known[agent.commit] = self._made(agent)
        return known

    def know(self, commit: CommitId, latent: Latent) -> None:
        """Remember the nature behind a commit, so that the child is not made again."""
        self._known[commit] = latent

    def _made(self, agent: Agent) -> Latent:
        if agent.id == SEED:
            return self._world.root()
        parents = [self.of(self._tree.agents[parent]) for parent in agent.parents]
        return self._world.child(parents, self._tree.child_number(agent.action))


class SimulatedWorker:
    """A worker that takes the world's time for each step, and fails where the world's infrastructure does.

    The step and the number of its try decide a failure; the step alone decides an outcome. So failures change no
    verdict.
    """

    def __init__(
        self,
        world: World,
        tree: Tree,
        wait: Callable[[float], Awaitable[None]],
        store: Store = key_as_commit,
    ) -> None:
        self.natures = LatentTable(world, tree)
        self._world = world
        self._tree = tree
        self._wait = wait
        self._store = store

    async def perform(self, order: Order) -> Outcome:
        """Perform an order, like ``ActionExecutor``.

        Raises:
            Infrastructure: the world's infrastructure fails this try.
        """
        if isinstance(order, EvaluateOrder):
            return await self._evaluate(order)
        return await self._expand(order)

    async def _evaluate(self, order: EvaluateOrder) -> Evaluation:
        what = order.action
        latent = self.natures.of(order.agent)
        key = key_of(latent.key, what.task.encode(), what.attempt.to_bytes(4, "little"))
        seconds = await self._take(order, key, "evaluate")
        resolved = self._world.resolves(latent, what.task, what.attempt)
        return graded(what, resolved, seconds)

    async def _expand(self, order: ExpandOrder) -> Born:
        parents = [self.natures.of(parent) for parent in order.parents]
        child = self._world.child(parents, order.child_number)
        seconds = await self._take(order, child.key, "expand")
        commit = self._store(child, order.parents)
        self.natures.know(commit, child)
        what = order.action
        return Born(what.parents, what.operator, commit, "", Cost(seconds=seconds))

    async def _take(self, order: Order, key: bytes, what: Step) -> float:
        """Wait as long as the step takes, and return its seconds.

        Raises:
            Infrastructure: the world's infrastructure fails this try.
        """
        seconds = self._world.seconds(key, what)
        await self._wait(seconds)
        if self._world.fails(key, self._tree.tries(order.id)):
            raise Infrastructure(FAILURE)
        return seconds


def graded(what: Evaluate, resolved: bool, seconds: float) -> Evaluation:
    """Return the outcome of an evaluation."""
    verdict = Verdict.RESOLVED if resolved else Verdict.UNRESOLVED
    return Evaluation(
        what.agent, what.task, what.attempt, verdict, "", float(resolved), Cost(seconds=seconds)
    )
