"""The decisions of ``lineage``: the best parent, the best evaluation, and which of them pays more.

The state is folded from events (``Lineage``). An ``Outlook`` is what it says of a tree.
"""

import math
from collections.abc import Mapping
from functools import cached_property
from random import Random

import numpy as np
from numpy.typing import NDArray

from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    ChildProposed,
    Recorded,
    RunStarted,
    TaskGraded,
    VerdictWithdrawn,
)
from dgm.archive.measures import reward_of
from dgm.archive.tree import Tree
from dgm.domain import ActionId, AgentId, Evaluate, Expand, TaskId, Verdict
from dgm.policies.limits import evaluations_begun, fertile, share_left
from dgm.policies.lineage.learn import CALIBRATED_AGENTS, CALIBRATION, OFTEN, Posterior
from dgm.policies.lineage.posterior import Array
from dgm.policies.policy import Plan, View

ROOT_BONUS = 0.3  # added to a root's skill where the search compares: it is left only on evidence
HORIZON = 6  # generations that a parent is judged over
# Standard deviations: a line further behind the best agent is passed over as long as any is within reach. Far below,
# what promises most is the least known, and a search would follow one failing line from newest to newest.
REACH = 1.5
PENDING_EXPANSION = 0.1  # taken off a parent's lead for each of its expansions under way
# Factor on an expansion's worth: a good child has children in turn. With 1 the archive stays too small for a good end,
# with 5 there are too many agents to tell apart in the first half of a budget.
LATER_GENERATIONS = 2.0
# A lone seed has no rival that would say when its evaluations stop paying: it has a child after so many results, or
# after this share of the budget.
SEED_RESULTS = 60
SEED_SHARE = 0.3
EXTRA_EVALUATIONS = 0.25  # evaluations due per expansion for each evaluation that it costs beyond the first
LAST_SHARE = 0.1  # of the budget: no expansion in it
PROBES = np.array([1.0, 2.0, 4.0, 8.0, 16.0])  # numbers of evaluations that are weighed against one another
PROBE_INFORMATION = 0.18  # expected of one evaluation
MANY_WORKERS = 8  # from so many on, agents without a result may have children
FERTILITY_WEIGHT = 3.0  # births that the belief in an agent's fertility is worth
CALIBRATION_SHARE = 1 / 40  # of a budget of evaluations: maximum number of first children that are watched
# Share of all results that one task may have before its worth falls to a half, and how sharply. A yardstick that all
# agents meet makes them comparable, but its quirks (solved by all that work, say) would be taken for their skill.
TASK_SHARE = 0.2
TASK_SHARE_POWER = 4.0
TASK_JITTER = (0.75, 1.25)  # range of the random factor on a task's worth
# The seed's bonus where an agent is recommended: positive against one of the second generation or before, the luckiest
# of many; negative against one of the sixth or after, whose forebears speak for it, too. Linear between them.
RECOMMENDED_GENERATIONS = (2, 6)
RECOMMENDED_ROOT_BONUS = (0.1, -0.3)
# Replaces it, linearly from SELDOM on, where OFTEN first children have failed: which children are better is hard to
# tell there, and every third search would end at a seed that its tree has overtaken.
DOUBTED_ROOT_BONUS = -0.6
SELDOM = 5
CAUTION = 1.5  # standard deviations that a recommendation takes off a mean
LEAST_RESULTS = 2  # that an agent needs to be recommended; one of them must be a success
FIT_ROUNDS = 12  # maximum rounds of inference for a recommendation, which starts from nothing
LEARN_EVERY = 3  # each third round learns the shared parameters anew
FIT_MOVE = 1e-3  # rounds end when no skill has moved further from one learning to the next
# Relative difference below which two agents promise the same: far above rounding, far below what a verdict says.
TIE = 1e-9
FAR = (
    -6.0
)  # below so many standard deviations the formula of expected improvement loses its digits to cancellation


def leader(values: Array) -> int:
    """Return the index of the first value that equals the largest except for rounding; shape (n,), n ≥ 1.

    Two agents with equal evidence promise the same except for the last bits, which depend on the processor: numpy's
    exponential and its sums use wider instructions where they exist. The same log must lead to the same decision.
    """
    largest = values.max()
    return int(np.argmax(values >= largest - TIE * abs(largest)))


def expected_improvement(d: Array, s: Array) -> Array:
    """Return what a draw from N(d, s²) adds on average above 0: s φ(d/s) + d Φ(d/s); s ≥ 0, same shapes.

    D. Jones, M. Schonlau and W. Welch, "Efficient Global Optimization of Expensive Black-Box Functions", Journal of
    Global Optimization 13 (1998), p. 455, eq. 15.
    """
    s = np.maximum(s, 1e-9)
    z = np.maximum(d / s, -37.0)
    density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    flat = (-z / math.sqrt(2.0)).ravel().tolist()
    below = 0.5 * np.fromiter(map(math.erfc, flat), np.float64, len(flat)).reshape(z.shape)
    result: Array = s * np.where(z < FAR, density / (z * z + 3.0), density + z * below)
    return result


def learned_spread(variance: Array, probes: Array) -> Array:
    """Return how far m evaluations should move a mean of variance v: v √(I / (1 + v I)), I = 0.18 m."""
    information = PROBE_INFORMATION * probes
    spread: Array = variance * np.sqrt(information / (1.0 + variance * information))
    return spread


class Lineage:
    """The policy: a posterior folded from events. Only ``observe`` changes it; ``outlook`` keeps its last answer.

    The most actions ever under way at once stand for the number of workers, because the log does not say it. The number
    survives a resume: a later session with fewer workers counts as one with as many as the log has seen.
    """

    def __init__(self) -> None:
        self.posterior = Posterior()
        self.tasks: dict[TaskId, int] = {}
        """The posterior's number of each task."""
        self.deaths: dict[AgentId, int] = {}
        """Stillborn children by first parent."""
        self._weights: Mapping[str, float] = {}
        self._rewards: dict[tuple[AgentId, TaskId, int], float] = {}
        """Rewards that a withdrawal would take back; empty if verdicts count."""
        self._under_way: set[ActionId] = set()
        self._most_under_way = 0
        self._evaluations, self._evaluation_s = 0, 0.0
        """Graded evaluations, and their time."""
        self._expansions, self._expansion_s = 0, 0.0
        self._last: tuple[Tree, int, Outlook] | None = None

    def observe(self, event: Recorded) -> None:
        """Fold one event into the state."""
        match event.event:
            case RunStarted(_, tasks, objective=objective):
                self._weights = objective.reward if objective else {}
                for task in tasks:
                    self._number(task)
            case ActionStarted(action):
                self._under_way.add(action)
                self._most_under_way = max(self._most_under_way, len(self._under_way))
            case ActionLost(action) | ChildProposed(action):
                self._under_way.discard(action)
            case AgentBorn(action, agent, child):
                self._end_expansion(action, child.cost.seconds)
                self.posterior.born(child.parents[0] if child.parents else agent)
            case AgentStillborn(action, outcome):
                self._end_expansion(action, outcome.cost.seconds)
                self.deaths[outcome.parents[0]] = self.deaths.get(outcome.parents[0], 0) + 1
            case TaskGraded(action, outcome):
                self._under_way.discard(action)
                if outcome.verdict is not Verdict.INVALID:
                    self._evaluations += 1
                    self._evaluation_s += outcome.cost.seconds
                    solved = reward_of(outcome, self._weights)
                    if self._weights:
                        self._rewards[outcome.agent, outcome.task, outcome.attempt] = solved
                    self.posterior.graded(outcome.agent, self._number(outcome.task), solved, outcome.attempt)
            case VerdictWithdrawn(what=what, verdict=verdict):
                solved = self._rewards.pop(
                    (what.agent, what.task, what.attempt), float(verdict is Verdict.RESOLVED)
                )
                self.posterior.withdrawn(what.agent, self._number(what.task), solved, what.attempt)
            case _:
                pass

    def decide(self, view: View, rng: Random) -> Plan:
        """Return the plan: the parent whose line promises most, and the agent whose evaluation matters most.

        An agent matters if its evaluation may change which agent is best. Every new child is evaluated once, the first
        ones up to three times. Nobody is a parent before an agent has a result or all evaluations of a root were
        given up.
        """
        outlook = self.outlook(view.tree)
        return Plan(
            expand=outlook.expands,
            parent=lambda: outlook.parent,
            agent=lambda: outlook.target if outlook.urgent is None else outlook.urgent,
            task=lambda agent: outlook.choose_task(agent, rng),
        )

    def outlook(self, tree: Tree) -> "Outlook":
        """Return the posterior's view of the tree, which must be the fold of the observed events.

        Raises:
            ValueError: the tree has another number of agents than births were observed.
        """
        if self._last is not None and self._last[0] is tree and self._last[1] == tree.seq:
            return self._last[2]
        if len(self.posterior) != len(tree.agents):
            raise ValueError(
                f"{len(self.posterior)} births were observed, but the tree has {len(tree.agents)} agents"
            )
        outlook = Outlook(tree, self)
        self._last = tree, tree.seq, outlook
        return outlook

    def workers(self, tree: Tree) -> int:
        """Return how many actions were under way at once, as far as is known."""
        return max(self._most_under_way, len(tree.pending) + 1)

    def expansion_cost(self, tree: Tree) -> float:
        """Return the cost of one expansion in evaluations: the budget's, else the measured one, else 1.0.

        It is measured in tokens; in seconds where no tokens were used.
        """
        if tree.budget.expansion_cost > 0:
            return tree.budget.expansion_cost
        if not self._evaluations or not self._expansions:
            return 1.0
        evaluating = improving = 0.0
        for (role, _), usage in tree.spend_by.items():
            evaluating += usage.tokens * (role == "solve")
            improving += usage.tokens * (role in {"improve", "diagnose", "probe"})
        if not evaluating or not improving:
            evaluating, improving = self._evaluation_s, self._expansion_s
        if evaluating <= 0 or improving <= 0:
            return 1.0
        return (improving / self._expansions) / (evaluating / self._evaluations)

    def _number(self, task: TaskId) -> int:
        number = self.tasks.setdefault(task, len(self.tasks))
        self.posterior.evidence.add_tasks(len(self.tasks))
        return number

    def _end_expansion(self, action: ActionId, seconds: float) -> None:
        self._under_way.discard(action)
        if action:
            self._expansions += 1
            self._expansion_s += seconds


class Outlook:
    """One posterior's view of one tree; nothing in it changes."""

    def __init__(self, tree: Tree, policy: Lineage) -> None:
        self._tree = tree
        self._posterior = policy.posterior
        self._task_numbers, self._deaths = policy.tasks, policy.deaths
        self._workers = policy.workers(tree)
        self.expansion_cost = policy.expansion_cost(tree)
        """The cost of an expansion, in evaluations."""
        self._under_way, self._growing = _count_under_way(tree)
        self.skill, self._drift, self._tt, self._tm, self._mm = self._posterior.states(self._under_way).T
        self.broken = self._posterior.broken()
        self._anchors = self._posterior.anchors
        self._probed = np.array(self._posterior.evidence.counts) > 0
        self._standing = self.skill.copy()
        self._standing[tree.roots] += ROOT_BONUS
        self._top, self._rivals = self._rank()

    @cached_property
    def urgent(self) -> AgentId | None:
        """The agent whose evaluation cannot wait; ``None`` where there is none.

        It is the oldest agent without a result and without one on its way. Else it is a first child that has solved
        nothing so far, until three tries of it have a result or are under way.
        """
        if not self._tree.active:
            return None
        tried = np.array(self._tree.tried_count)
        free = ~self._probed & (tried == 0)
        if free.any():
            return AgentId(int(np.argmax(free)))
        limit = min(CALIBRATION, len(self._tree.active))
        return next((agent for agent in self._undecided if tried[agent] < limit), None)

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
        agent = leader(self._evaluation_worth)
        return AgentId(agent) if self._evaluation_worth[agent] >= 0 else None

    @property
    def expands(self) -> bool:
        """Whether the archive should grow now.

        It should not in the last tenth of the budget, nor before an urgent evaluation.
        """
        if self.urgent is not None or share_left(self._tree) <= LAST_SHARE:
            return False
        per_expansion = 1.0 + EXTRA_EVALUATIONS * max(self.expansion_cost - 1.0, 0.0)
        due = per_expansion * (self._tree.expansions_begun + 1)
        return evaluations_begun(self._tree) >= due and self.expansion_pays

    @cached_property
    def expansion_pays(self) -> bool:
        """Whether a child of ``parent`` promises more per unit of cost than an evaluation of ``target``."""
        if self.parent is None:
            return False
        if self.target is None or self._seed_is_known():
            return True
        return LATER_GENERATIONS * self._expansion_worth(self.parent) > float(
            self._evaluation_worth[self.target]
        )

    def choose_task(self, agent: AgentId, rng: Random) -> TaskId:
        """Return an untried task that teaches much; a random factor keeps agents from all meeting the same tasks."""
        tried = self._tree.tried(agent)
        tasks = [task for task in self._tree.active if task not in tried]
        jitter = np.array([rng.uniform(*TASK_JITTER) for _ in tasks])
        return tasks[int(np.argmax(self.task_worth(agent, tasks) * jitter))]

    def task_worth(self, agent: AgentId, tasks: list[TaskId]) -> Array:
        """Return how much the agent's verdict on each task would teach about its skill: w / (1 + w v), w = p(1 - p).

        The worth is divided by 1 + (s / 0.2)⁴, where s is the task's share of all results: the verdicts of relatives
        on one task repeat one another. A first child that has failed gets tasks that its parent solves (its root, if
        its parent solves nothing), as long as there are any. Then the worth is p alone: an agent that fails where it
        should succeed may be broken.
        """
        evidence = self._posterior.evidence
        numbers = np.array([self._task_numbers[task] for task in tasks])
        p = 1.0 / (1.0 + np.exp(evidence.difficulties[numbers] - self.skill[agent]))
        if agent in self._undecided and evidence.counts[agent]:
            asked = np.isin(numbers, list(self._posterior.within_reach(agent)))
            if asked.any():
                return np.where(asked, p, 0.0)
        w = p * (1.0 - p)
        share = evidence.uses[numbers] / (len(evidence) + len(self._tree.active))
        informative = w / (1.0 + w * evidence.difficulty_variances[numbers])
        worth: Array = informative / (1.0 + (share / TASK_SHARE) ** TASK_SHARE_POWER)
        return worth

    @cached_property
    def _evaluation_worth(self) -> Array:
        """Per agent: (1 - P(broken)) EI(-|θ̂ - rival|, s(V, m)) / m for the best m; -1 where no task is left.

        The rival is the best agent, or the second best for the best itself. An evaluation is worth something if the two
        may change places.
        """
        left = np.array(self._tree.untried_count) > 0
        apart = -np.abs(self._standing - self._rivals)[left, None]
        gain = expected_improvement(apart, learned_spread(self._tt[left, None], PROBES)) / PROBES
        worth = np.full(len(left), -1.0)
        worth[left] = (1.0 - self.broken[left]) * gain.max(axis=1)
        return worth

    @cached_property
    def _undecided(self) -> tuple[AgentId, ...]:
        """The first children that have solved nothing in less than three results; fewer in a small budget."""
        limit = self._tree.budget.evaluations
        number = (
            CALIBRATED_AGENTS if limit is None else min(CALIBRATED_AGENTS, int(CALIBRATION_SHARE * limit))
        )
        first = range(1, min(len(self._tree.agents), number + 1))
        return tuple(
            AgentId(agent)
            for agent in first
            if agent not in self._tree.roots and self._posterior.evidence.undecided(agent)
        )

    def _able(self) -> NDArray[np.bool_]:
        """Return per agent whether it may have a child.

        With many workers an agent needs no result for that. Where nobody has a result a root may, once it has tried
        tasks and none of its evaluations is under way. Then all of them were given up, and an archive must be able to
        grow.
        """
        able: NDArray[np.bool_] = (self.broken <= 0.5) & fertile(self._tree) & self._proved()
        if self._workers >= MANY_WORKERS:
            return able
        probed = self._probed.copy()
        if not probed.any():
            for root in self._tree.roots:
                probed[root] = self._tree.tried_count[root] > 0 and root not in self._under_way
        return able & probed

    def _proved(self) -> NDArray[np.bool_]:
        """Return per agent whether it has proved itself; all have, unless edits often break the agent.

        Then the agents that have solved something count, and their children. A single failed try says next to nothing
        where success is rare, so P(broken) stays low: without this rule, lines of broken agents grow that have one
        failure each. Roots count as proved, whatever their results. An agent without a result counts like its parent.
        """
        if not self._posterior.often_broken:
            return np.ones(len(self.skill), dtype=np.bool_)
        parents = self._posterior.beliefs.parents
        proved = np.array(self._posterior.evidence.solved) > 0
        proved[self._tree.roots] = True
        for agent in np.flatnonzero(~self._probed):
            proved[agent] = proved[parents[agent]]
        hopeful: NDArray[np.bool_] = proved | proved[parents]
        return hopeful

    def _seed_is_known(self) -> bool:
        """Return whether the roots are alone, without a child on its way, and were tried as often as they should."""
        limit = self._tree.budget.evaluations
        enough = SEED_RESULTS if limit is None else min(SEED_RESULTS, SEED_SHARE * limit)
        alone = len(self._tree.agents) == len(self._tree.roots) and not self._growing.any()
        return alone and self._tree.tried_count.sum() >= enough

    def _expansion_worth(self, parent: AgentId) -> float:
        """Return (1 - broken rate) EI(m_c - best, s(v_c, m)) / (c + m) of the parent's child, for the best m."""
        rho, q, _ = self._posterior.laws
        anchor = self._anchors[parent]
        mean = anchor + rho * (self.skill[parent] - anchor) + self._drift[parent]
        variance = self._tt[parent] * rho**2 + 2.0 * rho * self._tm[parent] + self._mm[parent] + q
        lead = np.full(len(PROBES), mean - self._top)
        gain = expected_improvement(lead, learned_spread(variance, PROBES)) / (self.expansion_cost + PROBES)
        return float((1.0 - self._posterior.breakage.rate) * gain.max())

    def _prospects(self) -> tuple[Array, Array]:
        """Return each line's expected lead over the best agent within the horizon, and its standard deviation.

        The deviation comes from the agent's skill and drift, both kept in full for the whole horizon, and from one
        step.
        """
        rho, q, _ = self._posterior.laws
        gain = self.skill - self._anchors
        drift = np.zeros_like(gain)
        index = np.full_like(gain, -np.inf)
        for _ in range(HORIZON):
            gain = rho * gain
            drift = rho * drift + self._drift
            index = np.maximum(index, self._anchors + gain + drift)
        variance = self._tt + 2 * HORIZON * self._tm + HORIZON**2 * self._mm + q
        ahead: Array = index - PENDING_EXPANSION * self._growing - self._top
        return ahead, np.sqrt(np.maximum(variance, 0.0))

    def _fertility(self) -> Array:
        """Return each agent's chance of a birth; it falls with stillborn children, so that no parent is tried for ever.

        A stillborn child counts for its first parent.
        """
        fertility = np.ones(len(self.skill))
        for parent, dead in self._deaths.items():
            born = sum(self._tree.first_parent(child) == parent for child in self._tree.children(parent))
            fertility[parent] = (FERTILITY_WEIGHT + born) / (FERTILITY_WEIGHT + born + dead)
        return fertility

    def _rank(self) -> tuple[float, Array]:
        """Return the standing of the best agent, and of each agent's rival."""
        counted = self._probed & (self.broken < 0.5)
        if not counted.any():
            counted[self._tree.roots] = True
        standing = np.where(counted, self._standing, -np.inf)
        best = leader(standing)
        top = float(standing[best])
        rivals = np.full(len(standing), top)
        if np.count_nonzero(counted) > 1:
            standing[best] = -np.inf
            rivals[best] = standing.max()
        return top, rivals


def _count_under_way(tree: Tree) -> tuple[dict[int, int], Array]:
    """Return per agent its evaluations and its expansions that run, wait to be repeated, or wait for approval."""
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


def recommend(tree: Tree) -> AgentId:
    """Return the sound agent with the highest lower bound, or the best root where no other agent has proved better.

    The bound is the posterior mean less one and a half standard deviations: between two agents that seem equal the
    better known one is taken. An agent needs two results or more, one of them a success. Only the agent that is taken
    is compared with the seed (of several roots, the one with the highest bound). The seed has a small bonus if the
    agent is of the first generations and a malus if it is of later ones. Where many of the first children failed, the
    malus is larger and holds for any generation.
    """
    posterior = fit(tree)
    broken, evidence = posterior.broken(), posterior.evidence
    bounds = np.array([state.t - CAUTION * math.sqrt(state.tt) for state in posterior.beliefs.states])
    root = tree.roots[leader(bounds[tree.roots])]
    candidates = [
        AgentId(agent)
        for agent, count in enumerate(evidence.counts)
        if agent not in tree.roots
        and count >= LEAST_RESULTS
        and evidence.solved[agent]
        and broken[agent] < 0.5
    ]
    best = candidates[leader(bounds[candidates])] if candidates else root
    bonus = np.interp(posterior.beliefs.depths[best], RECOMMENDED_GENERATIONS, RECOMMENDED_ROOT_BONUS)
    bonus = np.interp(posterior.failed_children(), (SELDOM, OFTEN), (bonus, DOUBTED_ROOT_BONUS))
    return best if bounds[best] > bounds[root] + bonus else root


def fit(tree: Tree, rest: float = FIT_MOVE) -> Posterior:
    """Return the posterior of the first attempts that the tree holds, whatever their order.

    It is swept until no skill moves by ``rest`` from one learning to the next, at most ``FIT_ROUNDS`` times.
    """
    posterior = Posterior()
    numbers = {task: number for number, task in enumerate(tree.tasks)}
    for agent in tree.agents:
        posterior.born(agent.parents[0] if agent.parents else agent.id)
        for task, verdict in tree.verdicts(agent.id).items():
            if verdict is not None and task in numbers:
                done = tree.attempts.of.get(agent.id, {}).get(task) if tree.objective.reward else None
                solved = (
                    reward_of(done, tree.objective.reward) if done else float(verdict is Verdict.RESOLVED)
                )
                posterior.record(agent.id, numbers[task], solved)
    skills: list[float] = []
    for turn in range(FIT_ROUNDS if len(posterior.evidence) else 0):
        learns = turn % LEARN_EVERY == LEARN_EVERY - 1
        posterior.sweep(learn=learns)
        if learns:
            before, skills = skills, posterior.skills
            if before and max(abs(new - old) for new, old in zip(skills, before, strict=True)) < rest:
                break
    return posterior
