"""The decisions that a posterior suggests for a tree: the best parent, the best evaluation, and which pays more."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dgm.archive.tree import Tree
from dgm.domain import SEED, AgentId, Evaluate, Expand, TaskId
from dgm.policies.limits import fertile
from dgm.policies.lineage.constants import (
    CALIBRATED_AGENTS,
    CALIBRATION,
    CALIBRATION_SHARE,
    DIFFICULTY_VARIANCE,
    FERTILITY_WEIGHT,
    HORIZON,
    LATER_GENERATIONS,
    MANY_WORKERS,
    PENDING_EXPANSION,
    PROBES,
    REACH,
    ROOT_BONUS,
    SEED_RESULTS,
    SEED_SHARE,
    TASK_SHARE,
    TASK_SHARE_POWER,
)
from dgm.policies.lineage.improvement import expected_improvement, learned_spread
from dgm.policies.lineage.posterior import Posterior
from dgm.policies.lineage.ties import leader

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class OutlookInputs:
    """The facts that the posterior does not hold."""

    tasks: Mapping[TaskId, int]
    """The posterior's number of each task."""
    deaths: Mapping[AgentId, int]
    """Stillborn children by first parent."""
    expansion_cost: float
    """In evaluations."""
    workers: int
    """How many actions were under way at once, as far as is known."""


class Outlook:
    """One posterior's view of one tree; nothing in it changes."""

    def __init__(self, tree: Tree, posterior: Posterior, around: OutlookInputs) -> None:
        self._tree = tree
        self._posterior = posterior
        self._around = around
        self._under_way, self._growing = _under_way(tree)
        self.skill, self._drift, self._tt, self._tm, self._mm = posterior.states(self._under_way).T
        self.broken = posterior.broken()
        self._probed = np.array(posterior.evidence.counts) > 0
        self._standing = self.skill.copy()
        self._standing[SEED] += ROOT_BONUS
        self.best, self._top, self._rivals = self._rank()

    @property
    def expansion_cost(self) -> float:
        """The cost of an expansion, in evaluations."""
        return self._around.expansion_cost

    @cached_property
    def urgent(self) -> AgentId | None:
        """The agent whose evaluation cannot wait; ``None`` where there is none.

        It is the oldest agent without a result and without one on its way. Else it is a first child that has solved
        nothing so far, until three tries of it have a result or are under way.
        """
        if not self._tree.tasks:
            return None
        tried = np.array(self._tree.tried_count)
        free = ~self._probed & (tried == 0)
        if free.any():
            return AgentId(int(np.argmax(free)))
        most = min(CALIBRATION, len(self._tree.tasks))
        return next((agent for agent in self._first if tried[agent] < most), None)

    @cached_property
    def parent(self) -> AgentId | None:
        """The agent whose descendants promise most; ``None`` where nobody may have a child."""
        able = self._able()
        if not able.any():
            return None
        ahead, spread = self._prospects()
        near = able & (ahead >= -REACH * spread)
        promise = expected_improvement(ahead, spread) * self._fertility()
        return AgentId(leader(np.where(near if near.any() else able, promise, -1.0)))

    @cached_property
    def target(self) -> AgentId | None:
        """The agent whose evaluation is worth most; ``None`` where nobody has a task left."""
        worth = self._evaluation_worth
        agent = leader(worth)
        return AgentId(agent) if worth[agent] >= 0 else None

    @cached_property
    def expansion_pays(self) -> bool:
        """Whether a child of ``parent`` promises more per unit of cost than an evaluation of ``target``."""
        parent, target = self.parent, self.target
        if parent is None:
            return False
        if target is None or self._seed_is_known():
            return True
        return LATER_GENERATIONS * self._expansion_worth(parent) > float(self._evaluation_worth[target])

    def task_worth(self, agent: AgentId, tasks: list[TaskId]) -> Array:
        """Return how much the agent's verdict on each task would teach about its skill: w / (1 + w v), w = p(1 - p).

        The worth is divided by 1 + (s / 0.2)⁴, where s is the task's share of all results: the verdicts of relatives
        on one task repeat one another. A first child that has failed gets tasks that its parent solves (the seed, if
        its parent solves nothing), as long as there are any. Then the worth is p alone: an agent that fails where it
        should succeed may be broken.
        """
        numbers = [self._around.tasks[task] for task in tasks]
        evidence = self._posterior.evidence
        tasks_met = len(evidence.difficulties)
        b = np.array([evidence.difficulties[n] if n < tasks_met else 0.0 for n in numbers])
        v = np.array(
            [evidence.difficulty_variances[n] if n < tasks_met else DIFFICULTY_VARIANCE for n in numbers]
        )
        p = 1.0 / (1.0 + np.exp(b - self.skill[agent]))
        if agent in self._first and evidence.counts[agent]:
            within_reach = self._posterior.within_reach(agent)
            asked = np.array([number in within_reach for number in numbers])
            if asked.any():
                return np.where(asked, p, 0.0)
        w = p * (1.0 - p)
        uses = np.array([evidence.uses[n] if n < tasks_met else 0 for n in numbers])
        share = uses / (len(evidence) + len(self._tree.tasks))
        worth: Array = w / (1.0 + w * v) / (1.0 + (share / TASK_SHARE) ** TASK_SHARE_POWER)
        return worth

    @cached_property
    def _evaluation_worth(self) -> Array:
        """Per agent: (1 - P(broken)) EI(-|θ̂ - rival|, s(V, m)) / m for the best m; -1 where no task is left.

        The rival is the best agent, or the second best for the best itself. An evaluation is worth something if the two
        may change places.
        """
        left = np.array(self._tree.tried_count) < len(self._tree.tasks)
        apart = -np.abs(self._standing - self._rivals)[left, None]
        probes = np.array(PROBES, dtype=np.float64)
        gain = expected_improvement(apart, learned_spread(self._tt[left, None], probes)) / probes
        worth = np.full(len(left), -1.0)
        worth[left] = (1.0 - self.broken[left]) * gain.max(axis=1)
        return worth

    @cached_property
    def _first(self) -> tuple[AgentId, ...]:
        """The first children that have solved nothing in less than three results.

        A small budget has fewer first children.
        """
        limit = self._tree.budget.evaluations
        most = CALIBRATED_AGENTS if limit is None else min(CALIBRATED_AGENTS, int(CALIBRATION_SHARE * limit))
        first = range(1, min(len(self._tree.agents), most + 1))
        return tuple(AgentId(agent) for agent in first if self._posterior.evidence.open(agent))

    def _able(self) -> NDArray[np.bool_]:
        """Return per agent whether it may have a child.

        With many workers an agent needs no result for that. Where nobody has a result the seed may, once it has tried
        tasks and none of its evaluations is under way. Then all of them were given up, and an archive must be able to
        grow.
        """
        able: NDArray[np.bool_] = (self.broken <= 0.5) & fertile(self._tree) & self._proved()
        if self._around.workers >= MANY_WORKERS:
            return able
        probed = self._probed.copy()
        if not probed.any():
            probed[SEED] = self._tree.tried_count[SEED] > 0 and SEED not in self._under_way
        return able & probed

    def _proved(self) -> NDArray[np.bool_]:
        """Return per agent whether it has proved itself; all have, unless edits often break the agent.

        Then the agents that have solved something count, and their children. A single failed try says next to nothing
        where success is rare, so P(broken) stays low: without this rule, lines of broken agents grow that have one
        failure each. The seed counts as proved, whatever its results. An agent without a result counts like its parent.
        """
        if not self._posterior.often_broken:
            return np.ones(len(self.skill), dtype=np.bool_)
        parents = self._posterior.beliefs.parents
        proved = np.array(self._posterior.evidence.solved) > 0
        proved[SEED] = True
        for agent in np.flatnonzero(~self._probed):
            proved[agent] = agent == SEED or proved[parents[agent]]
        hopeful: NDArray[np.bool_] = proved | proved[parents]
        return hopeful

    def _seed_is_known(self) -> bool:
        """Return whether the seed is alone, has no child on its way, and has been tried as often as it should be."""
        limit = self._tree.budget.evaluations
        enough = SEED_RESULTS if limit is None else min(SEED_RESULTS, SEED_SHARE * limit)
        alone = len(self._tree.agents) == 1 and not self._growing.any()
        return alone and self._tree.tried_count[SEED] >= enough

    def _expansion_worth(self, parent: AgentId) -> float:
        """Return (1 - broken rate) EI(m_c - best, s(v_c, m)) / (c + m) of the parent's child, for the best m."""
        model = self._posterior
        mean = model.anchor + model.laws.rho * (self.skill[parent] - model.anchor) + self._drift[parent]
        variance = (
            self._tt[parent] * model.laws.rho**2
            + 2.0 * model.laws.rho * self._tm[parent]
            + self._mm[parent]
            + model.laws.q
        )
        probes = np.array(PROBES, dtype=np.float64)
        gain = expected_improvement(
            np.full(len(probes), mean - self._top), learned_spread(np.full(len(probes), variance), probes)
        )
        gain /= self._around.expansion_cost + probes
        return float((1.0 - model.breakage.rate) * gain.max())

    def _prospects(self) -> tuple[Array, Array]:
        """Return each line's expected lead over the best agent within the horizon, and its spread.

        The spread is a standard deviation. It comes from the agent's own skill and drift, both kept in full for the
        whole horizon, and from one step.
        """
        rho = self._posterior.laws.rho
        gain = self.skill - self._posterior.anchor
        drift = np.zeros_like(gain)
        index = np.full_like(gain, -np.inf)
        for _ in range(HORIZON):
            gain = rho * gain
            drift = rho * drift + self._drift
            index = np.maximum(index, self._posterior.anchor + gain + drift)
        variance = self._tt + 2 * HORIZON * self._tm + HORIZON**2 * self._mm + self._posterior.laws.q
        ahead: Array = index - PENDING_EXPANSION * self._growing - self._top
        return ahead, np.sqrt(np.maximum(variance, 0.0))

    def _fertility(self) -> Array:
        """Return each agent's chance of a birth; it falls with stillborn children, so that no parent is tried for ever.

        A stillborn child counts for its first parent.
        """
        fertility = np.ones(len(self.skill))
        for parent, dead in self._around.deaths.items():
            agents = self._tree.agents
            born = sum(agents[child].parents[0] == parent for child in self._tree.children(parent))
            fertility[parent] = (FERTILITY_WEIGHT + born) / (FERTILITY_WEIGHT + born + dead)
        return fertility

    def _rank(self) -> tuple[AgentId, float, Array]:
        """Return the best agent, its standing, and the standing of each agent's rival."""
        counted = self._probed & (self.broken < 0.5)
        if not counted.any():
            counted[SEED] = True
        standing = np.where(counted, self._standing, -np.inf)
        best = leader(standing)
        top = float(standing[best])
        rivals = np.full(len(standing), top)
        standing[best] = top if np.count_nonzero(counted) == 1 else -np.inf
        rivals[best] = standing.max()
        return AgentId(best), top, rivals


def _under_way(tree: Tree) -> tuple[dict[int, int], Array]:
    """Return per agent its evaluations and its expansions that run or wait to be performed again.

    Expansions include children that wait for a person.
    """
    evaluations: dict[int, int] = {}
    expansions = np.zeros(len(tree.agents))
    for what in (*tree.pending.values(), *tree.to_redo().values()):
        match what:
            case Evaluate(agent):
                evaluations[agent] = evaluations.get(agent, 0) + 1
            case Expand(parents):
                expansions[parents[0]] += 1.0
    for waiting in tree.waiting.values():
        expansions[waiting.child.parents[0]] += 1.0
    return evaluations, expansions
