"""One policy in one world: the real loop on virtual time, and its result."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from dgm.archive.events import ActionLost, ActionStarted, Recorded, RunStarted
from dgm.archive.tree import Tree
from dgm.config import LimitSettings, Settings
from dgm.domain import SEED, ActionId, AgentId, Born, Budget
from dgm.policies.curriculum import choose_tasks
from dgm.protocols import Policy
from dgm.search.loop import LoopHooks, Search
from dgm.simulation import virtual
from dgm.simulation.families import OPERATORS
from dgm.simulation.policies import curriculum_of, open_contender
from dgm.simulation.virtual import Memory, SimulatedWorker, key_as_commit
from dgm.simulation.world import World, mean_evaluation_s, open_world

SHARES = (1 / 64, 1 / 32, *(n / 16 for n in range(1, 17)))
"""Shares of the budget at which the curve is read."""
SEED_OPERATOR = "seed"


@dataclass(frozen=True, slots=True)
class Trial:
    """The parameters of a trial; equal trials have equal results."""

    policy: str
    """As in ``dgm.simulation.policies``."""
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


class Watcher:
    """A listener to all events that reads the recommended agent's true score at each share of the budget."""

    def __init__(self, trial: Trial, tree: Tree, score: Callable[[], float]) -> None:
        self.curve: list[float] = []
        self.failed = 0
        self._trial = trial
        self._tree = tree
        self._score = score
        self._marks = [share * trial.budget for share in SHARES] + [float("inf")]

    def __call__(self, recorded: Recorded) -> None:
        """Take note of one event."""
        if isinstance(recorded.event, ActionStarted):
            return
        # A final loss is not counted: it only says that the action is abandoned after its last failure.
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
        if self._trial.family == OPERATORS:
            return tree.wall_seconds / mean_evaluation_s()
        return tree.evaluations + self._trial.expansion_cost * (
            tree.expansions_begun - tree.expansions_in_flight
        )


def perform(trial: Trial, policy: Policy | None = None) -> Result:
    """Perform a trial to its end, in this process.

    Args:
        trial: the trial.
        policy: a fresh policy that decides instead of the one that the trial names; that one still recommends.

    Raises:
        UserError: there is no such policy or family, or a number is out of range.
    """
    world = world_of(trial)
    named, recommend = open_contender(trial.policy, world)
    policy = policy or named
    # In a simulated world children die by its odds alone, so stillbirths in a row predict nothing and end no search.
    settings = Settings(seed=trial.seed, workers=trial.workers, limits=LimitSettings(stillborn_in_a_row=0))
    # With one worker nothing else happens during an action, so no action needs to wait.
    wait = virtual.pass_time if trial.workers == 1 else asyncio.sleep

    async def session() -> Result:
        memory = Memory(keep=policy.keeps_state)
        tree = memory.tree
        worker = SimulatedWorker(world, tree, wait)

        def score(agent: AgentId) -> float:
            return world.true_score(worker.latents.of(tree.agents[agent]))

        memory.append(RunStarted(budget_of(trial), world.tasks))
        born = Born((), SEED_OPERATOR, key_as_commit(world.root(), ()), "")
        memory.append(memory.birth(ActionId(0), born))
        watcher = Watcher(trial, tree, lambda: score(recommend(tree)))
        changes = partial(choose_tasks, rule=curriculum_of(trial.policy), seed=trial.seed)
        hooks = LoopHooks(watcher, clock=virtual.clock, change_tasks=changes, open_watch=None)
        start = virtual.clock()
        over = await Search(memory, policy, worker, settings, hooks).go()
        recommended = recommend(tree)
        final = score(recommended)
        return Result(
            final=final,
            # A search that ended early keeps its final score for the rest of the curve.
            curve=(*watcher.curve, *[final] * (len(SHARES) - len(watcher.curve))),
            root=score(SEED),
            best=max(score(agent.id) for agent in tree.agents),
            recommended=recommended,
            depth=tree.depth(recommended),
            agents=len(tree.agents),
            expansions=tree.expansions_begun,
            evaluations=tree.evaluations,
            failed=watcher.failed,
            ended=over.reason.value,
            hours=(virtual.clock() - start) / 3600,
        )

    return virtual.run(session())


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
