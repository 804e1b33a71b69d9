"""The loop's surroundings in a simulation: virtual time, a log in memory, and a worker that answers from a world."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from dgm.archive.events import AgentBorn, Event, Recorded
from dgm.archive.tree import Tree
from dgm.domain import (
    SEED,
    Action,
    ActionId,
    Agent,
    AgentId,
    Born,
    CommitId,
    Cost,
    Evaluate,
    Evaluation,
    Expand,
    Outcome,
    Stillborn,
    Verdict,
)
from dgm.errors import Infrastructure
from dgm.simulation.chances import key_of
from dgm.simulation.world import Latent, Step, World

T = TypeVar("T")

_START_S = 1000.0
"""Not 0: a clock of the real kind is never there."""
_LONGEST_S = 10
"""How long a thread may take in real time before a scenario counts as stuck."""
FAILURE = "the simulated infrastructure failed, as the trial asks for"

Store = Callable[[Latent, Sequence[Agent]], CommitId]
"""Saves a child's source, given its parents, and names it."""


class _Selector(selectors.DefaultSelector):
    """A selector that never waits for a timer, but moves the clock to it."""

    now = _START_S

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # Without a timer only a thread can make progress, and that takes real time.
        ready = super().select(0 if timeout is not None else _LONGEST_S)
        if not ready and timeout is None:
            raise RuntimeError("everything waits, and for nothing that will come")
        if not ready and timeout is not None:
            self.now += max(timeout, 0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only while everything waits, so that an hour of waiting takes no time."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return the virtual time, in seconds; it starts at 1000."""
        return self._virtual.now

    def pass_time(self, seconds: float) -> None:
        """Advance the clock without waiting; only for callers that know that nothing else happens meanwhile."""
        self._virtual.now += seconds


def run(scenario: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end; ``asyncio.sleep``, timeouts and ``loop.time()`` are virtual in it."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(scenario)


def clock() -> float:
    """Return the running loop's time, in seconds."""
    return asyncio.get_running_loop().time()


async def pass_time(seconds: float) -> None:
    """Advance a virtual loop's clock as if nothing else could happen meanwhile; far cheaper than ``asyncio.sleep``."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualLoop):
        loop.pass_time(seconds)


class Memory:
    """The counterpart of ``RunController`` without a run on disk; it holds no evidence."""

    def __init__(self, *, keep: bool) -> None:
        """Begin an empty log.

        Args:
            keep: whether events are kept once they are folded into the tree; only a policy with state of its own
                needs them.
        """
        self.tree = Tree()
        self._keep = keep
        self._events: list[Recorded] = []

    def append(self, event: Event) -> Recorded:
        """Fold the event into the tree, and return it with its number and time."""
        recorded = Recorded(self.tree.seq + 1, clock(), event)
        self.tree.apply(recorded)
        if self._keep:
            self._events.append(recorded)
        return recorded

    def since(self, seq: int) -> Iterable[Recorded]:
        """Return the events after number ``seq``; none where they are not kept."""
        return self._events[seq:]

    def with_evidence(self, action: ActionId, what: Action, tree: Tree) -> Action:  # noqa: ARG002  (none to add)
        """Return the action unchanged."""
        return what

    def answered(self, now: float) -> None:
        """Do nothing: no child waits for an approval."""

    def birth(self, action: ActionId, outcome: Born) -> AgentBorn:
        """Return the event of a birth; no two children of a world are the same, so duplicates are not checked."""
        return AgentBorn(action, AgentId(len(self.tree.agents)), outcome)


def key_as_commit(latent: Latent, parents: Sequence[Agent]) -> CommitId:  # noqa: ARG001  (the key holds them)
    """Return the key in hex, which stands for the source of an agent that is kept in memory only."""
    return CommitId(latent.key.hex())


class Latents:
    """The true nature of each agent of a tree; it follows from the tree and the world, so nothing need be stored."""

    def __init__(self, world: World, tree: Tree) -> None:
        self._world = world
        self._tree = tree
        self._known: dict[CommitId, Latent] = {}

    def of(self, agent: Agent) -> Latent:
        """Return the nature of an agent."""
        known = self._known.get(agent.commit)
        if known is None:
            known = self._known[agent.commit] = self._derive(agent)
        return known

    def remember(self, commit: CommitId, latent: Latent) -> None:
        """Remember the nature behind a commit, so that the child is not derived again."""
        self._known[commit] = latent

    def _derive(self, agent: Agent) -> Latent:
        if agent.id == SEED:
            return self._world.root()
        parents = [self.of(self._tree.agents[parent]) for parent in agent.parents]
        return self._world.child(parents, self._tree.child_number(agent.action), agent.operator)


class SimulatedWorker:
    """A worker that takes the world's time for each action, and fails where the world's infrastructure does.

    The action and the number of its try decide a failure; the action alone decides an outcome. So failures change no
    verdict.
    """

    def __init__(
        self,
        world: World,
        tree: Tree,
        wait: Callable[[float], Awaitable[None]],
        store: Store = key_as_commit,
    ) -> None:
        self.latents = Latents(world, tree)
        self._world = world
        self._tree = tree
        self._wait = wait
        self._store = store

    async def perform(self, action: ActionId, what: Action) -> Outcome:
        """Perform an action, like ``ActionExecutor``.

        Raises:
            Infrastructure: the world's infrastructure fails this try.
        """
        return await (
            self._evaluate(action, what) if isinstance(what, Evaluate) else self._expand(action, what)
        )

    async def _evaluate(self, action: ActionId, what: Evaluate) -> Evaluation:
        latent = self.latents.of(self._tree.agents[what.agent])
        key = key_of(latent.key, what.task.encode(), what.attempt.to_bytes(4, "little"))
        cost = await self._spend_time(action, key, "evaluate")
        resolved = self._world.resolves(latent, what.task, what.attempt)
        verdict = Verdict.RESOLVED if resolved else Verdict.UNRESOLVED
        return Evaluation(what.agent, what.task, what.attempt, verdict, "", float(resolved), cost)

    async def _expand(self, action: ActionId, what: Expand) -> Born | Stillborn:
        parents = [self._tree.agents[parent] for parent in what.parents]
        latents = [self.latents.of(parent) for parent in parents]
        child = self._world.child(latents, self._tree.child_number(action), what.operator)
        cost = await self._spend_time(action, child.key, "expand", what.operator)
        if self._world.stillborn(child, what.operator):
            return Stillborn(what.parents, what.operator, "check", "simulated", cost)
        commit = self._store(child, parents)
        self.latents.remember(commit, child)
        return Born(what.parents, what.operator, commit, "", cost)

    async def _spend_time(self, action: ActionId, key: bytes, step: Step, operator: str = "") -> Cost:
        """Wait as long as the action takes, and return its cost.

        Raises:
            Infrastructure: the world's infrastructure fails this try.
        """
        seconds = self._world.seconds(key, step, operator)
        await self._wait(seconds)
        if self._world.fails(key, self._tree.tries(action)):
            raise Infrastructure(FAILURE)
        return Cost(seconds=seconds)
