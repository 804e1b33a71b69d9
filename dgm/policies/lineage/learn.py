"""The evidence of verdicts, and all that is learned from it: difficulties, and the parameters that steps share.

Rewards y in [0, 1] (``policy.reward``) enter by the quasi-likelihood of fractional responses, y ln p + (1 - y) ln(1 -
p), which asks only that p be their mean (L. Papke and J. Wooldridge, J. Applied Econometrics 11 (1996), p. 619).
The information of one is taken as p(1 - p), as for a verdict. A reward of mean p varies by at most p(1 - p), so states
are not believed more exact than they are.

A logistic likelihood, P(agent solves task) = σ(θ - b), is replaced by the parabola that touches its logarithm at the
current mean. Each replacement is one step of Newton's method.
"""

import math
from array import array
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dgm.policies.lineage.posterior import (
    DRIFT_KEPT,
    LEAST_SOUND,
    ROOT_DRIFT_SCALE,
    ROOT_VARIANCE,
    Array,
    Beliefs,
    Breakage,
    Filter,
    Information,
    State,
    Step,
    filter_information,
    message,
    shift,
)

MEAN_DRIFT = -0.02  # mean drift before data: an edit is expected to harm a little
MEAN_DRIFT_WEIGHT = 30.0  # number of agents that this belief is worth

TEMPER = 0.9  # power of the likelihood: verdicts on one suite are not quite independent
REPEAT_WEIGHT = 0.5  # weight of a further attempt at the same task
LEAST_INFORMATION = 1e-4  # floor of the information in an agent's verdicts
SKILL_LIMIT = 5.0  # verdicts are linearised at skills no further from 0 than this
DIFFICULTY_VARIANCE = 4.0  # of a task's difficulty before data; its mean is 0
DIFFICULTY_LIMIT = 6.0
NEWTON_DAMPING = 0.7
NEWTON_LIMIT = 1.0  # maximum move of a difficulty in one step
BROKEN_SOLVES = 0.01  # chance that a broken agent solves a task
SOUND_RANGE = (0.02, 0.97)  # clips a sound agent's chance of solving where it is weighed against being broken

CALIBRATED_AGENTS = 20  # number of first children that are watched for failing at what their parents solve
CALIBRATION = 3  # a child with so many results, and no success, has failed
OFTEN = 8  # if so many of these children have failed, edits break the agent often

RELINEARISE = 0.1  # an agent's verdicts are linearised again when its mean has moved by more than this
SOUND_MOVE = (
    0.02  # a message is weighed anew when its sender's chance of being sound has moved by more than this
)
ANCHOR_MOVE = 0.02  # the anchor follows its root's skill when that has moved by more than this
SWEEP_EVERY = 20  # results between two sweeps
PENDING_INFORMATION = 0.15  # that an evaluation under way is expected to bring

RETENTIONS = (0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 1.0)  # grid of ρ
NOISES = (0.02, 0.045, 0.09, 0.18, 0.35, 0.6)  # grid of q
DRIFT_VARIANCES = (0.0005, 0.003, 0.012)  # grid of d
DRIFT_CENTRE, DRIFT_SPREAD = 0.003, 3.0  # of the log-normal prior of d, nearly flat over the grid
NOISE_CENTRE, NOISE_SPREAD = 0.18, 0.8  # of the log-normal prior of q
RETENTION_SLOPE = 30.0  # of the log prior of ρ: values near 1 are expected
# Floor of that log prior: where much of a gain is lost, any share may be. Without it a search in which children keep a
# third would never learn that; with a gentler slope in its place, searches in which they keep all would doubt it.
RETENTION_LEAST = -6.0
RHO, Q, DRIFT = (grid.ravel() for grid in np.meshgrid(RETENTIONS, NOISES, DRIFT_VARIANCES))
PRIOR: Array = (
    np.maximum(-RETENTION_SLOPE * (1.0 - RHO), RETENTION_LEAST)
    - 0.5 * (np.log(Q / NOISE_CENTRE) / NOISE_SPREAD) ** 2
    - 0.5 * (np.log(DRIFT / DRIFT_CENTRE) / DRIFT_SPREAD) ** 2
)


class Laws(NamedTuple):
    """The parameters that all steps of a tree share."""

    rho: float
    """Share of a gain over its root that a child keeps."""
    q: float
    """Variance of a child's skill about what was expected of it."""
    drift: float
    """Variance of what is new in a child's drift."""

    def step(self, anchor: float, mean_drift: float) -> Step[float]:
        """Return the model's step; gains are measured from the skill ``anchor``."""
        return Step(self.rho, self.q, (1.0 - self.rho) * anchor, (1.0 - DRIFT_KEPT) * mean_drift, self.drift)


def average_laws(log_weights: Array) -> Laws:
    """Return the weighted median of ρ (interpolated), geometric mean of q and mean of d over the grid.

    The mean of ρ is not used: a remaining belief that most of a gain is lost can halve the worth of every line. The
    geometric mean of d is not used either. Verdicts seldom determine d, and a search that believes it small stays where
    the score is high, although descendants can gain less there.
    """
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    by_share = weights.reshape(len(NOISES), len(RETENTIONS), len(DRIFT_VARIANCES)).sum(axis=(0, 2))
    rho = np.interp(0.5, np.cumsum(by_share) - by_share / 2, RETENTIONS)
    return Laws(float(rho), float(np.exp(weights @ np.log(Q))), float(weights @ DRIFT))


def learn_laws(beliefs: Beliefs, anchor: float) -> Laws:
    """Return the parameters, averaged over the grid by prior times marginal likelihood."""
    step = Step(RHO, Q, (1.0 - RHO) * anchor, (1.0 - DRIFT_KEPT) * beliefs.mean_drift, DRIFT)
    return average_laws(PRIOR + log_likelihood(beliefs, step))


def log_likelihood(beliefs: Beliefs, step: Step[Array]) -> Array:
    """Return the log likelihood of the linearised verdicts, states integrated out, up to a constant.

    There is one value for each of the step's parameters. It is Σ r {½ HᵀQMH - ½ ln det(I + JQ) - ½ cᵀNc + (MH)ᵀc} over
    children, plus each root's ½ hᵀSh - ½ ln det S⁻¹ - ½ ln v - ½ μ̄²/v. Here v is the variance of its drift before
    data. The function makes one upward pass, one generation of the tree at a time.
    """
    depths, parents = np.array(beliefs.depths), np.array(beliefs.parents)
    order = np.lexsort((parents, depths))  # siblings stand side by side
    row = np.empty_like(order)
    row[order] = np.arange(len(order))
    parents = row[parents[order]]
    starts = np.searchsorted(depths[order], np.arange(depths.max() + 2)).tolist()
    info = np.zeros((5, len(order), len(step.rho)))
    info[0], info[3] = np.array(beliefs.evidence)[order].T[:, :, None]
    sound = np.array(beliefs.sound)
    sound = np.where(sound >= LEAST_SOUND, sound, 0.0)[order, None]
    offsets = np.array([beliefs.offsets[root] for root in beliefs.roots])[order, None]
    total = np.zeros(len(step.rho))
    for first, last in zip(starts[-2:0:-1], starts[:1:-1], strict=True):
        rows = slice(first, last)
        generation: Information[Array] = tuple(info[:, rows])
        here = shift(step, offsets[rows])
        of = filter_information(generation, here)
        total += (sound[rows] * _likelihood_terms(generation, of, here)).sum(axis=0)
        above = parents[rows]
        heads = np.flatnonzero(np.diff(above, prepend=-1))
        for column, sent in zip(info, message(of, here, sound[rows]), strict=True):
            column[above[heads]] += sent if len(heads) == len(above) else np.add.reduceat(sent, heads)
    for root in range(starts[1]):
        total = total + _root_term(info[:, root], step, beliefs.mean_drift)
    return total


def _likelihood_terms(info: Information[Array], of: Filter[Array], step: Step[Array]) -> Array:
    _, q, c1, c2, drift, _ = step
    shift1 = c1 * (of.h1 - 0.5 * c1 * of.n11 - c2 * of.n12)
    shift2 = c2 * (of.h2 - 0.5 * c2 * of.n22)
    terms: Array = 0.5 * (info[3] * q * of.h1 + info[4] * drift * of.h2 - np.log(of.det)) + shift1 + shift2
    return terms


def _root_term(info: Array, step: Step[Array], mean_drift: float) -> Array:
    j11, j12, j22, h1, h2 = info
    variance = ROOT_DRIFT_SCALE * step.drift
    k11, k22 = j11 + 1.0 / ROOT_VARIANCE, j22 + 1.0 / variance
    h2 = h2 + mean_drift / variance
    det = k11 * k22 - j12 * j12
    term: Array = 0.5 * (k22 * h1 * h1 - 2.0 * j12 * h1 * h2 + k11 * h2 * h2) / det - 0.5 * np.log(det)
    term -= 0.5 * (np.log(variance) + mean_drift**2 / variance)
    return term


class Evidence:
    """All verdicts that count, and the difficulties learned from them."""

    def __init__(self) -> None:
        self.difficulties: Array = np.zeros(0)
        self.difficulty_variances: Array = np.zeros(0)
        self.counts = array("q")
        """Results per agent."""
        self.solved = array("q")
        """Successes per agent: rewards above 0."""
        self.uses: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        """Results per task."""
        self._verdicts: list[list[tuple[int, float, float]]] = []
        """Task, outcome (0 to 1) and weight, per agent."""

    def __len__(self) -> int:
        return sum(self.counts)

    def add_agent(self) -> None:
        """Add an agent without results."""
        self._verdicts.append([])
        self.counts.append(0)
        self.solved.append(0)

    def add_tasks(self, number: int) -> None:
        """Add tasks of average difficulty until there are so many."""
        more = number - len(self.difficulties)
        if more > 0:
            self.difficulties = np.append(self.difficulties, [0.0] * more)
            self.difficulty_variances = np.append(self.difficulty_variances, [DIFFICULTY_VARIANCE] * more)
            self.uses = np.append(self.uses, [0] * more)

    def add(self, agent: int, task: int, solved: float, attempt: int) -> None:
        """Add a verdict (1 or 0) or reward; ``attempt`` counts from 0, a further one weighs ``REPEAT_WEIGHT``."""
        self.add_tasks(task + 1)
        self._verdicts[agent].append((task, float(solved), REPEAT_WEIGHT if attempt else 1.0))
        self._count(agent, task, solved, 1)

    def remove(self, agent: int, task: int, solved: float, attempt: int) -> None:
        """Remove one verdict that was added with the same arguments.

        Raises:
            ValueError: there is no such verdict.
        """
        self._verdicts[agent].remove((task, float(solved), REPEAT_WEIGHT if attempt else 1.0))
        self._count(agent, task, solved, -1)

    def _count(self, agent: int, task: int, solved: float, times: int) -> None:
        self.counts[agent] += times
        self.solved[agent] += times * (solved > 0)
        self.uses[task] += times

    def undecided(self, agent: int) -> bool:
        """Return whether the agent has solved nothing and has fewer than ``CALIBRATION`` results."""
        return self.counts[agent] < CALIBRATION and not self.solved[agent]

    def tasks_of(self, agent: int, solved: bool = False) -> set[int]:
        """Return the numbers of the tasks that the agent has results on, or that it solved."""
        return {task for task, outcome, _ in self._verdicts[agent] if outcome or not solved}

    def linearise(
        self, agents: Iterable[int], skills: Iterable[float], predicted: Iterable[float]
    ) -> tuple[list[float], list[float], list[float]]:
        """Return per agent Λ = 0.9 Σ p(1 - p), η = Λ x + 0.9 Σ (y - p), and the log odds that its verdicts are broken.

        Λ and η are taken at x, the agent's entry of ``skills`` kept in range. The odds are log P(verdicts | broken) /
        P(verdicts | sound) at the skill ``predicted``. All are 0 without results.
        """
        rows, tasks, outcomes, weights = self._columns(agents)
        x = np.clip(np.fromiter(skills, np.float64), -SKILL_LIMIT, SKILL_LIMIT)
        n = len(x)
        p = _chance(x[rows], self.difficulties[tasks])
        information = np.bincount(rows, weights * p * (1.0 - p), n)
        surprise = np.bincount(rows, weights * (outcomes - p), n)
        some = np.bincount(rows, minlength=n) > 0
        precision = np.where(some, TEMPER * np.maximum(information, LEAST_INFORMATION), 0.0)
        p = np.clip(_chance(np.fromiter(predicted, np.float64)[rows], self.difficulties[tasks]), *SOUND_RANGE)
        ratios = outcomes * (math.log(BROKEN_SOLVES) - np.log(p))
        ratios += (1.0 - outcomes) * (math.log(1.0 - BROKEN_SOLVES) - np.log(1.0 - p))
        odds = np.bincount(rows, weights * ratios, n)
        return precision.tolist(), (precision * x + TEMPER * surprise).tolist(), odds.tolist()

    def learn_difficulties(self, skills: Iterable[float], sound: Iterable[float]) -> None:
        """Take one damped Newton step towards each task's most probable difficulty; weigh verdicts by ``sound``."""
        agents, tasks, outcomes, weights = self._columns(range(len(self._verdicts)))
        weights = weights * np.fromiter(sound, np.float64)[agents]
        b = self.difficulties
        p = _chance(np.clip(np.fromiter(skills, np.float64), -SKILL_LIMIT, SKILL_LIMIT)[agents], b[tasks])
        slope = np.bincount(tasks, weights * (p - outcomes), len(b)) - b / DIFFICULTY_VARIANCE
        curvature = np.bincount(tasks, weights * p * (1.0 - p), len(b)) + 1.0 / DIFFICULTY_VARIANCE
        move = np.clip(NEWTON_DAMPING * slope / curvature, -NEWTON_LIMIT, NEWTON_LIMIT)
        self.difficulties = np.clip(b + move, -DIFFICULTY_LIMIT, DIFFICULTY_LIMIT)
        self.difficulty_variances = np.asarray(1.0 / curvature)

    def _columns(self, agents: Iterable[int]) -> tuple[NDArray[np.int64], NDArray[np.int64], Array, Array]:
        """Return the index into ``agents``, the task, outcome and weight of each of their verdicts."""
        verdicts = [self._verdicts[agent] for agent in agents]
        rows = np.repeat(np.arange(len(verdicts)), [len(those) for those in verdicts])
        flat = chain.from_iterable(chain.from_iterable(verdicts))
        tasks, outcomes, weights = np.fromiter(flat, np.float64, 3 * len(rows)).reshape(-1, 3).T
        return rows, tasks.astype(np.int64), outcomes, weights


def _chance(skills: Array, difficulties: Array) -> Array:
    chance: Array = 1.0 / (1.0 + np.exp(np.clip(difficulties - skills, -50.0, 50.0)))
    return chance


class Posterior:
    """The belief about every agent, changed by births (``born``) and verdicts (``graded``, ``withdrawn``).

    It depends on their order: the points at which verdicts are linearised depend on the verdicts known by then.
    """

    def __init__(self) -> None:
        self.laws = average_laws(PRIOR)
        self.breakage = Breakage()
        self.often_broken = False
        """True if edits are assumed to break the agent often: by ``failed_children`` when a sweep last learned."""
        self.anchor = 0.0
        """The seed's skill, that gains are measured from; ``Beliefs.offsets`` has the difference of other roots."""
        self.evidence = Evidence()
        self.mean_drift = MEAN_DRIFT
        self.beliefs = Beliefs(self.laws.step(self.anchor, self.mean_drift), self.mean_drift)
        self._linearised_at: list[float] = []
        self._stale: set[int] = set()
        """Agents with results whose mean has moved too far from where they were linearised."""
        self._since_sweep = 0

    def __len__(self) -> int:
        return len(self._linearised_at)

    @property
    def skills(self) -> list[float]:
        """The posterior mean of each agent's skill."""
        return [state.t for state in self.beliefs.states]

    @property
    def anchors(self) -> Array:
        """The skill that each agent's gain is measured from: its root's."""
        return self.anchor + np.array([self.beliefs.offsets[root] for root in self.beliefs.roots])

    def born(self, parent: int) -> None:
        """Add a new agent; a root is its own parent."""
        self.evidence.add_agent()
        self.beliefs.add(parent)
        self.breakage.add(parent)
        self._linearised_at.append(0.0)

    def record(self, agent: int, task: int, solved: float, attempt: int = 0) -> None:
        """Add a verdict without inferring from it; call ``sweep`` when all verdicts are added."""
        self.evidence.add(agent, task, solved, attempt)

    def graded(self, agent: int, task: int, solved: float, attempt: int = 0) -> None:
        """Add a verdict and infer; every 20th verdict causes a full sweep."""
        self.record(agent, task, solved, attempt)
        self._linearise(sorted(self._stale | {agent}))
        for moved in self.breakage.update():
            sound = self.breakage.sound[moved]
            if abs(sound - self.beliefs.sound[moved]) > SOUND_MOVE:
                self.beliefs.set_evidence(moved, *self.beliefs.evidence[moved], sound)
        self._note_moves(self.beliefs.update())
        self._since_sweep += 1
        if self._since_sweep >= SWEEP_EVERY:
            self.sweep()
        elif any(
            abs(self.beliefs.states[root].t - (self.anchor + offset)) > ANCHOR_MOVE
            for root, offset in self.beliefs.offsets.items()
        ):
            self._restart()

    def withdrawn(self, agent: int, task: int, solved: float, attempt: int = 0) -> None:
        """Take a verdict back and infer everything from the start without it."""
        self.evidence.remove(agent, task, solved, attempt)
        self.sweep()

    def sweep(self, learn: bool = True) -> None:
        """Linearise everything anew, learn the shared parameters unless told not to, and infer from the start."""
        self._since_sweep = 0
        self._linearise_all()
        if learn:
            self.laws = learn_laws(self.beliefs, self.anchor)
            self.often_broken = self.failed_children() >= OFTEN
            self.breakage.learn(np.flatnonzero(self.evidence.counts).tolist(), self.often_broken)
            drift = sum(state.m for state in self.beliefs.states)
            self.mean_drift = (MEAN_DRIFT_WEIGHT * MEAN_DRIFT + drift) / (MEAN_DRIFT_WEIGHT + len(self))
        self.evidence.learn_difficulties(self.skills, self.beliefs.sound)
        self._linearise_all()
        self._restart()

    def within_reach(self, child: int) -> set[int]:
        """Return the tasks that a sound child should solve: those of its parent, or of its root if it solves none."""
        parent = self.beliefs.parents[child]
        root = self.beliefs.roots[child]
        return self.evidence.tasks_of(parent, solved=True) or self.evidence.tasks_of(root, solved=True)

    def failed_children(self) -> int:
        """Return how many of the first children have failed.

        A child has failed if it solved nothing in three results or more, at least one of them on a task within reach.
        Children of parents that solve nothing do not count: they may have been born broken.
        """
        evidence, parents = self.evidence, self.beliefs.parents
        return sum(
            evidence.counts[child] >= CALIBRATION
            and not evidence.solved[child]
            and evidence.solved[parents[child]] > 0
            and not self.within_reach(child).isdisjoint(evidence.tasks_of(child))
            for child in range(1, min(len(self), CALIBRATED_AGENTS + 1))
        )

    def broken(self) -> Array:
        """Return P(broken) of every agent; 0 for roots."""
        broken: Array = 1.0 / (1.0 + np.exp(-np.array(self.breakage.odds)))
        broken[[*self.beliefs.offsets]] = 0.0
        return broken

    def states(self, pending: Mapping[int, int]) -> Array:
        """Return every agent's state; shape (agents, 5), columns in the order of ``State``.

        Evaluations under way (agent → how many) reduce the variances and leave the means alone.
        """
        states = _rows(self.beliefs.states)
        if pending:
            beliefs = self.beliefs.copy()
            for agent, count in pending.items():
                precision, eta = beliefs.evidence[agent]
                more = PENDING_INFORMATION * count
                mean = beliefs.states[agent].t
                beliefs.set_evidence(agent, precision + more, eta + more * mean, beliefs.sound[agent])
            beliefs.update()
            states[:, 2:] = _rows(beliefs.states)[:, 2:]
        return states

    def _linearise(self, agents: list[int]) -> None:
        skills = [self.beliefs.states[agent].t for agent in agents]
        predicted = map(self.beliefs.predict, agents)
        rows = zip(agents, skills, *self.evidence.linearise(agents, skills, predicted), strict=True)
        for agent, skill, precision, eta, odds in rows:
            self._linearised_at[agent] = skill
            if agent not in self.beliefs.offsets:
                self.breakage.set_evidence(agent, odds)
            self.beliefs.set_evidence(agent, precision, eta, self.beliefs.sound[agent])
        self._stale.clear()

    def _linearise_all(self) -> None:
        """Linearise all agents' verdicts, and weigh all messages by the current chances of being sound."""
        self._linearised_at = self.skills
        predicted = map(self.beliefs.predict, range(len(self)))
        precisions, etas, odds = self.evidence.linearise(range(len(self)), self._linearised_at, predicted)
        self.breakage.restart(odds)
        self.beliefs.evidence = list(zip(precisions, etas, strict=True))
        self.beliefs.sound = self.breakage.sound[:]
        self._stale.clear()

    def _restart(self) -> None:
        skills = {root: self.beliefs.states[root].t for root in self.beliefs.offsets}
        self.anchor = skills[0]
        self.beliefs.offsets = {root: skill - self.anchor for root, skill in skills.items()}
        self._note_moves(self.beliefs.restart(self.laws.step(self.anchor, self.mean_drift), self.mean_drift))

    def _note_moves(self, agents: list[int]) -> None:
        for agent in agents:
            far = abs(self.beliefs.states[agent].t - self._linearised_at[agent]) > RELINEARISE
            (self._stale.add if far and self.evidence.counts[agent] else self._stale.discard)(agent)


def _rows(states: list[State]) -> Array:
    return np.fromiter(chain.from_iterable(states), np.float64, 5 * len(states)).reshape(-1, 5)
