"""One policy in one world: the real loop on virtual time, and its result."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

from dgm.archive.events import ActionLost, ActionStarted, Recorded, RunStarted
from dgm.archive.tree import Tree
from dgm.config import LimitSettings, Settings
from dgm.domain import SEED, Action, ActionId, AgentId, Born, Budget
from dgm.protocols import Policy
from dgm.search.loop import LoopHooks, Search
from dgm.simulate import virtual
from dgm.simulate.families import OPERATORS
from dgm.simulate.policies import open_contender
from dgm.simulate.virtual import Latents, Memory, SimulatedWorker, key_as_commit
from dgm.simulate.world import World, mean_evaluation_s, open_world

SHARES = (1 / 64, 1 / 32, *(n / 16 for n in range(1, 17)))
"""Shares of the budget at which the curve is read."""
SEED_OPERATOR = "seed"


@dataclass(frozen=True, slots=True)
class Trial:
    """The parameters of a trial; equal trials have equal results."""

    policy: str
    """As in ``dgm.simulate.policies``."""
    family: str
    seed: int
    """Of the world, and of the policy's decisions."""
    budget: int = 800
    """In evaluations; in the family ``operators`` the time that as many take."""
    expansion_cost: float = 1.0
    """Evaluations of the budget that one expansion takes; in ``operators`` in the mean, by an operator of factor 1."""
    workers: int = 1
    failures: float = 0.0
    """Chance that the infrastructure fails an action."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a trial. Scores are true ones: mean chances to resolve a task of the full benchmark."""

    final: float
    """Of the agent that is recommended at the end."""
    curve: tuple[float, ...]
    """Of the agent that is recommended when each of ``SHARES`` of the budget is spent."""
    root: float
    """Of the agent that the search began with."""
    best: float
    """The highest true score in the tree, of whichever agent."""
    recommended: int
    depth: int
    """Steps from the root to the recommended agent."""
    agents: int
    expansions: int
    evaluations: int
    failed: int
    """Actions that the infrastructure failed."""
    ended: str
    """Why the search was over."""
    hours: float
    """Of virtual time."""
    decisions: int
    decision_ms: float
    """Processor time of the policy, per decision."""
    processor_s: float
    """Processor time of the whole trial."""

    @property
    def area(self) -> float:
        """The area under the anytime curve: the recommended agent's mean score over the budget, by trapezoids."""
        points = [(0.0, self.root), *zip(SHARES, self.curve, strict=True)]
        return sum((b - a) * (x + y) / 2 for (a, x), (b, y) in pairwise(points))

    @property
    def regret(self) -> float:
        """The highest true score in the trial's own tree, minus the recommended agent's score."""
        return self.best - self.final

    @property
    def stuck(self) -> bool:
        """Whether the trial ended at the root although the tree holds better agents."""
        return self.recommended == SEED and self.best > self.root


class Timed:
    """A policy whose decisions are counted and timed."""

    def __init__(self, policy: Policy) -> None:
        self.name = policy.name
        self.keeps_state = policy.keeps_state
        self.decisions = 0
        self.seconds = 0.0
        self._policy = policy

    def next(self, tree: Tree, rng: Random) -> Action | None:
        """Return the policy's action, counted and timed."""
        began = time.process_time()
        action = self._policy.next(tree, rng)
        self.seconds += time.process_time() - began
        self.decisions += 1
        return action

    def observe(self, event: Recorded) -> None:
        """Pass the event to the policy, and time that."""
        began = time.process_time()
        self._policy.observe(event)
        self.seconds += time.process_time() - began


class Watcher:
    """A listener to all events that reads the recommendation at each share of the budget."""

    def __init__(self, tree: Tree, score: Callable[[], float], trial: Trial) -> None:
        self.curve: list[float] = []
        self._tree = tree
        self._score = score
        self._cost = trial.expansion_cost
        self._by_time = trial.family == OPERATORS
        self._marks = [share * trial.budget for share in SHARES] + [float("inf")]
        self.failed = 0

    def __call__(self, recorded: Recorded) -> None:
        """Take note of one event."""
        if isinstance(recorded.event, ActionStarted):
            return
        # A final loss is not counted: it only says that the action is given up after its last failure.
        if isinstance(recorded.event, ActionLost) and not recorded.event.final:
            self.failed += 1
        spent = self._spent()
        if spent < self._marks[len(self.curve)]:
            return
        score = self._score()
        while spent >= self._marks[len(self.curve)]:
            self.curve.append(score)

    def _spent(self) -> float:
        """Return the spend so far, in evaluations."""
        tree = self._tree
        if self._by_time:
            return tree.wall_seconds / mean_evaluation_s()
        return tree.evaluations + self._cost * (tree.expansions_begun - tree.expansions_in_flight)


def perform(trial: Trial, policy: Policy | None = None) -> Result:
    """Perform a trial to its end, in this process.

    Args:
        trial: the trial.
        policy: a fresh policy that decides instead of the one that the trial names; that one still recommends.

    Raises:
        UserError: there is no such policy or family, or a number is out of range.
    """
    began = time.process_time()
    world = world_of(trial)
    named = open_contender(trial.policy, world)
    # In a simulated world children die by its odds alone, so stillbirths in a row predict nothing and end no search.
    settings = Settings(seed=trial.seed, workers=trial.workers, limits=LimitSettings(stillborn_in_a_row=0))
    timed = Timed(policy or named.policy)
    # With one worker nothing else happens during an action, so no action needs to wait.
    wait = virtual.pass_time if trial.workers == 1 else asyncio.sleep

    async def session() -> Result:
        memory = Memory(keep=timed.keeps_state)
        tree = memory.tree
        worker = SimulatedWorker(world, tree, wait)
        memory.append(RunStarted(budget_of(trial), world.tasks))
        born = Born((), SEED_OPERATOR, key_as_commit(world.root(), ()), "")
        memory.append(memory.birth(ActionId(0), born))
        judge = _Judge(tree, worker.latents, world, lambda: named.recommend(tree))
        watcher = Watcher(tree, judge.recommended_score, trial)
        hooks = LoopHooks(watcher, clock=virtual.clock, open_watch=None)
        start = virtual.clock()
        over = await Search(memory, timed, worker, settings, hooks).go()
        hours = (virtual.clock() - start) / 3600
        return _result(judge, watcher, timed, over.reason.value, hours)

    result = virtual.run(session())
    return replace(result, processor_s=time.process_time() - began)


def world_of(trial: Trial) -> World:
    """Return the world in which the trial happens."""
    return open_world(trial.family, trial.seed, trial.expansion_cost, failures=trial.failures)


def budget_of(trial: Trial) -> Budget:
    """Return the trial's budget in the loop's terms: seconds in the family ``operators``, else evaluations."""
    if trial.family == OPERATORS:
        return Budget(seconds=trial.budget * mean_evaluation_s())
    return Budget(evaluations=trial.budget, expansion_cost=trial.expansion_cost)


def quiet() -> None:
    """Keep the loop from reporting simulated failures like real ones: log only errors of ``dgm.search``."""
    logging.getLogger("dgm.search").setLevel(logging.ERROR)


class _Judge:
    """The true scores of agents, which no policy may know."""

    def __init__(self, tree: Tree, latents: Latents, world: World, recommend: Callable[[], AgentId]) -> None:
        self.tree = tree
        self.recommend = recommend
        self._latents = latents
        self._world = world

    def score(self, agent: AgentId) -> float:
        return self._world.true_score(self._latents.of(self.tree.agents[agent]))

    def recommended_score(self) -> float:
        return self.score(self.recommend())


def _result(judge: _Judge, watcher: Watcher, timed: Timed, ended: str, hours: float) -> Result:
    tree = judge.tree
    recommended = judge.recommend()
    final = judge.score(recommended)
    return Result(
        final=final,
        # A search that ended early keeps its final score for the rest of the curve.
        curve=(*watcher.curve, *[final] * (len(SHARES) - len(watcher.curve))),
        root=judge.score(SEED),
        best=max(judge.score(agent.id) for agent in tree.agents),
        recommended=recommended,
        depth=tree.depth(recommended),
        agents=len(tree.agents),
        expansions=tree.expansions_begun,
        evaluations=tree.evaluations,
        failed=watcher.failed,
        ended=ended,
        hours=hours,
        decisions=timed.decisions,
        decision_ms=1000 * timed.seconds / max(timed.decisions, 1),
        processor_s=0.0,
    )
