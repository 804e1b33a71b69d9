"""A world: a fixed infinite random tree of agents, and the tasks that they are tried on.

Nothing is drawn in order. An agent's key is the hash of its parents' keys and its birth number. Its nature is a hash of
that key, and an outcome is a hash of agent, task and attempt. So two policies that ask for the same child, or try the
same agent on the same task, get the same answer, and their trials are paired. A world holds only caches: the order of
requests changes nothing. Floating-point results may differ in their last bits between platforms, so results are rounded
before they are handed out.

An agent of skill s resolves task t with probability 1 / (1 + exp(difficulty_t − s)). With several skills, s is their
mean weighted by the task's demands. A few tasks are never solved and a few always, as in SWE-bench.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dgm.domain import TaskId
from dgm.protocols import Needs
from dgm.simulation.chances import between, key_of, log_normal, normal, pair, uniform, uniforms
from dgm.simulation.families import OPERATORS, Dynamics, draw_dynamics

FULL = 500
"""Tasks of the full benchmark, on which the true score is defined: as many as SWE-bench Verified has."""
POOL = 60
"""Tasks of the search pool."""
EXTREME = 100.0
"""Difficulty, with its sign, of a task that nobody or everybody solves; far beyond any skill."""
LIMIT = 8.0
"""No skill goes further from the root's than this, so that heavy tails stay numbers."""
TINY = 0.02
"""Standard deviation of what a neutral edit does."""
HEAVIEST = 20.0
"""The largest factor by which a heavy tail stretches a step."""
DIGITS = 10
EFFORT, LINES, HORIZON = 24, 4, 6
"""Of a potential: expansions of a search, number of searches, and generations that a prospect looks ahead."""
REPAIR = 1.0
"""What being broken takes from an agent's prospect: most of its children are broken too."""
NEEDS: Mapping[str, Needs] = {
    "self-edit": Needs(),
    "diagnose": Needs(failures=1),
    "compare": Needs(failures=1),
    "crossover": Needs(parents=2),
    "invent": Needs(archive=4),
    "module": Needs(),
}
"""The simulated operators by name, and what of their needs means something in a world."""
_FUTURES = tuple(
    tuple(key_of(b"future", bytes([line, number])) for number in range(EFFORT)) for line in range(LINES)
)

Floats = NDArray[np.float64]
Step = Literal["expand", "evaluate"]


@dataclass(frozen=True, slots=True)
class Latent:
    """The true nature of one agent, which no policy sees."""

    key: bytes
    """16 bytes: hash of the parents' keys and the birth number."""
    skills: tuple[float, ...]
    """In logits; the root's are 0."""
    drift: float
    """What every generation below gains, whatever its edit."""
    reserve: float
    """Gain laid up, which only descendants show."""
    broken: bool


@dataclass(frozen=True, slots=True)
class OperatorLaw:
    """The law by which one operator makes children; drawn from ranges that are the same for all operators."""

    dynamics: Dynamics
    stillborn: float
    """Chance that there is no child."""
    factor: float
    """Duration of an expansion, relative to the world's."""


class World:
    """The world of a family, a number and overridden parameters."""

    def __init__(
        self, family: str, seed: int, dynamics: Dynamics, laws: Mapping[str, OperatorLaw] | None = None
    ) -> None:
        self.family = family
        self.seed = seed
        self.dynamics = dynamics
        self.laws = laws or {}
        """Law of each operator in the family ``operators``; empty in all others."""
        self._key = world_key(family, seed)
        self._dimensions = int(dynamics.skills)
        self.names = tuple(TaskId(f"task-{number:03d}") for number in range(FULL))
        """The tasks of the full benchmark."""
        self.pool: tuple[int, ...]
        """Numbers of the tasks that the search sees, ascending."""
        self._difficulties, self._demands, self.pool = _draw_tasks(self._key, self.names, dynamics)
        self._pool_index = np.array(self.pool, dtype=np.intp)
        self.tasks = tuple(self.names[number] for number in self.pool)
        """The tasks of the search pool."""
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._places = {name: place for place, name in enumerate(self.tasks)}
        self._chances: dict[bytes, list[float]] = {}
        self._scores: dict[bytes, float] = {}
        self._potentials: dict[tuple[bytes, int, int], float] = {}

    @property
    def parameters(self) -> Mapping[str, float]:
        """All parameters of the world, drawn or overridden."""
        return asdict(self.dynamics)

    def root(self) -> Latent:
        """Return the agent that a search starts from: never broken, all skills 0."""
        return Latent(
            key_of(self._key, b"root"), (0.0,) * self._dimensions, self.dynamics.drift_root, 0.0, False
        )

    def child(self, parents: Sequence[Latent], birth: int, operator: str = "") -> Latent:
        """Return the child number ``birth`` (from 0) of the first parent, made with the second one if there are two."""
        parts = [*[parent.key for parent in parents], birth.to_bytes(4, "little")]
        if operator not in self.laws:
            return self._make(key_of(*parts), parents, birth, self.dynamics)
        key = key_of(*parts, operator.encode())
        return self._make(key, parents, birth, self.laws[operator].dynamics)

    def stillborn(self, child: Latent, operator: str) -> bool:
        """Return whether the operator's child dies at birth."""
        return operator in self.laws and uniform(child.key, b"stillborn") < self.laws[operator].stillborn

    def probabilities(self, agent: Latent) -> Floats:
        """Return for every task the chance that one attempt of a working agent resolves it; shape (``FULL``,)."""
        reach = agent.skills[0] if self._demands is None else self._demands @ np.array(agent.skills)
        curve: Floats = np.exp(self._difficulties - reach)
        curve += 1.0
        return np.reciprocal(curve, out=curve)

    def resolves(self, agent: Latent, task: TaskId, attempt: int) -> bool:
        """Return whether this attempt resolves the task.

        For a share ``repeats`` of (agent, task) all attempts have one outcome; for the others each has its own. So one
        attempt resolves with exactly the task's probability p, and two attempts correlate by ``repeats``, given p.
        """
        label = task.encode()
        kind, share = pair(agent.key, label)
        if attempt and kind >= self.dynamics.repeats:
            share = uniform(key_of(agent.key, label, attempt.to_bytes(4, "little")))
        return share < self._chance(agent, task)

    def true_score(self, agent: Latent, *, keep: bool = True) -> float:
        """Return the mean chance to resolve a task over the full benchmark; ``keep`` remembers it."""
        score = self._scores.get(agent.key)
        if score is None:
            if agent.broken:
                return self.dynamics.broken_score
            score = round(float(np.add.reduce(self.probabilities(agent))) / FULL, DIGITS)
            if keep:
                self._scores[agent.key] = score
        return score

    def seconds(self, key: bytes, what: Step, operator: str = "") -> float:
        """Return the duration of the action with this key, in seconds; durations are log-normal."""
        dynamics = self.dynamics
        median = dynamics.expand_seconds if what == "expand" else dynamics.evaluate_seconds
        if operator in self.laws:
            median *= self.laws[operator].factor
        return log_normal(key, what.encode(), median, dynamics.sigma_seconds)

    def fails(self, key: bytes, try_number: int) -> bool:
        """Return whether the infrastructure fails this try; tries fail independently of each other."""
        rate = self.dynamics.failures
        return rate > 0.0 and uniform(key_of(key, try_number.to_bytes(4, "little")), b"fails") < rate

    def potential(self, agent: Latent, births: int = 0, effort: int = EFFORT) -> float:
        """Return the true clade metaproductivity of an agent: the score that its descendants can reach.

        It is the expected true score of the best agent that ``effort`` expansions find in its clade, the agent itself
        included, by a searcher that knows the truth and always expands the member with the highest prospect. The mean
        is over ``LINES`` such searches, in futures that the trial itself will not meet, so that it is an expectation
        and no foresight. The futures are the same for all agents, so two potentials differ by the agents' natures.

        Args:
            agent: the agent.
            births: the number of children that it had so far.
            effort: the number of expansions still to come, at most ``EFFORT``.
        """
        if not self.dynamics.crowding:
            births = 0  # without crowding the next children are as good as the first ones
        known = self._potentials.get((agent.key, births, effort))
        if known is None:
            score = self.true_score(agent, keep=False)
            ends = [max(score, self._best_below(agent, births, future[:effort])) for future in _FUTURES]
            known = self._potentials[agent.key, births, effort] = round(sum(ends) / LINES, DIGITS)
        return known

    def prospect(self, agent: Latent, births: int, ahead: int = HORIZON) -> float:
        """Return a cheap stand-in for ``potential``.

        It is the highest mean skill over the generations ahead if edits did nothing, plus a next edit's spread.
        """
        laws = self.dynamics
        skill = best = sum(agent.skills) / len(agent.skills)
        drift, reserve = agent.drift, agent.reserve
        for _ in range(ahead):
            skill = laws.retention * skill + drift + laws.release * reserve
            drift *= laws.drift_keep
            reserve *= 1.0 - laws.release
            best = max(best, skill)
        best += laws.step_sd / (1.0 + laws.crowding * births)
        return best - REPAIR if agent.broken else best

    def _make(self, key: bytes, parents: Sequence[Latent], birth: int, laws: Dynamics) -> Latent:
        shares = uniforms(key)
        base = self._merged(key, parents) if len(parents) > 1 else parents[0]
        gain = _gain(laws, shares, birth)
        laid_up = laws.deferred_mean + laws.deferred_sd * normal(shares[6]) if laws.deferred_sd else 0.0
        shown = base.drift + laws.release * base.reserve
        skills = [laws.retention * skill + shown for skill in base.skills]
        touched = int(shares[2] * self._dimensions)
        skills[touched] += gain
        if laws.trade:
            other = (touched + 1 + int(shares[7] * (self._dimensions - 1))) % self._dimensions
            skills[other] -= laws.trade * gain
        drift = laws.drift_keep * base.drift + laws.drift_sd * normal(shares[5]) - laws.mismatch * gain
        breaks = laws.broken + ((1.0 - laws.broken) * laws.broken_stays if base.broken else 0.0)
        return Latent(
            key,
            tuple([round(max(-LIMIT, min(LIMIT, value)), DIGITS) for value in skills]),
            round(drift, DIGITS),
            round((1.0 - laws.release) * base.reserve + laid_up, DIGITS),
            shares[0] < breaks,
        )

    def _merged(self, key: bytes, parents: Sequence[Latent]) -> Latent:
        """Return the base of a crossover: the first parent, with the better of both skills where the child takes it.

        Drift and reserve are the means of the two parents.
        """
        first, second = parents[0], parents[1]
        shares = uniforms(key, b"crossover")
        takes = self.dynamics.takes_better
        skills = tuple(
            [
                max(mine, other) if shares[number % len(shares)] < takes else mine
                for number, (mine, other) in enumerate(zip(first.skills, second.skills, strict=True))
            ]
        )
        return replace(
            first,
            skills=skills,
            drift=(first.drift + second.drift) / 2,
            reserve=(first.reserve + second.reserve) / 2,
        )

    def _chance(self, agent: Latent, task: TaskId) -> float:
        if agent.broken:
            return self.dynamics.broken_score
        place = self._places.get(task)
        if place is None:
            return float(self.probabilities(agent)[self._numbers[task]])
        row = self._chances.get(agent.key)
        if row is None:
            row = self._chances[agent.key] = self.probabilities(agent)[self._pool_index].tolist()
        return row[place]

    def _best_below(self, top: Latent, births: int, future: Sequence[bytes]) -> float:
        best = 0.0
        members, children = [top], [births]
        prospects = [self.prospect(top, births)]
        for number, key in enumerate(future):
            left = len(future) - number
            if left <= HORIZON:
                prospects = [self.prospect(*member, left) for member in zip(members, children, strict=True)]
            chosen = max(range(len(members)), key=prospects.__getitem__)
            child = self._make(key, (members[chosen],), children[chosen], self.dynamics)
            children[chosen] += 1
            prospects[chosen] = self.prospect(members[chosen], children[chosen], min(left, HORIZON))
            if not child.broken:
                best = max(best, self.true_score(child, keep=False))
                members.append(child)
                children.append(0)
                prospects.append(self.prospect(child, 0, min(left, HORIZON)))
        return best


def open_world(family: str, seed: int, expansion_cost: float = 1.0, **overrides: float) -> World:
    """Return a world of a family.

    Args:
        family: the name of the family.
        seed: the number of the world in the family.
        expansion_cost: mean duration of an expansion in evaluations; only the family ``operators`` counts time.
        overrides: parameters (fields of ``Dynamics``) to set; the number draws the others.

    Raises:
        UserError: there is no such family or parameter.
    """
    dynamics = draw_dynamics(family, seed, overrides)
    if family != OPERATORS:
        return World(family, seed, dynamics)
    dynamics = replace(dynamics, expand_seconds=expansion_cost * dynamics.evaluate_seconds)
    laws = {name: _draw_law(world_key(family, seed), name, dynamics) for name in NEEDS}
    return World(family, seed, dynamics, laws)


def mean_evaluation_s() -> float:
    """Return the mean duration of an evaluation, in seconds: e^(σ²/2) times the median of the log-normal number."""
    dynamics = Dynamics()
    return dynamics.evaluate_seconds * math.exp(dynamics.sigma_seconds**2 / 2)


def world_key(family: str, seed: int) -> bytes:
    """Return the key of a world; it includes the family's name, so no two families share a world."""
    return key_of(b"world", family.encode(), str(seed).encode())


def _draw_law(key: bytes, operator: str, dynamics: Dynamics) -> OperatorLaw:
    def draw(parameter: str, low: float, high: float) -> float:
        return between(key_of(key, operator.encode(), parameter.encode()), low, high)

    # The steps lie around those of the family "skills", whose edits touch one of several skills, too.
    steps = {"step_mean": draw("step_mean", -0.6, 0.1), "step_sd": draw("step_sd", 0.5, 1.4)}
    return OperatorLaw(
        replace(dynamics, **steps, broken=draw("broken", 0.02, 0.15)),
        stillborn=draw("stillborn", 0.02, 0.40),
        factor=math.exp(draw("factor", math.log(0.5), math.log(4.0))),
    )


def _gain(laws: Dynamics, shares: tuple[float, ...], birth: int) -> float:
    """Return the gain that the edit itself adds to the skill that it touches, in logits."""
    kind = shares[1]
    if kind < laws.jackpots:
        gain = laws.jackpot_size * (0.5 + shares[7])
    elif kind < laws.jackpots + laws.neutral:
        gain = TINY * normal(shares[3])
    else:
        stretch = min(shares[4] ** -laws.tail, HEAVIEST) if laws.tail else 1.0
        gain = laws.step_mean + laws.step_sd * normal(shares[3]) * stretch
    if laws.harmful_only:
        return -abs(gain)
    return gain / (1.0 + laws.crowding * birth) if gain > 0.0 else gain


def _draw_tasks(
    key: bytes, names: Sequence[TaskId], dynamics: Dynamics
) -> tuple[Floats, Floats | None, tuple[int, ...]]:
    """Return the difficulty of each task, its demand for each of several skills, and the numbers of the pool."""
    rows = [uniforms(key, name.encode()) for name in names]
    difficulties = np.array([dynamics.spread * normal(row[0]) for row in rows])
    kinds = np.array([row[1] for row in rows])
    never = kinds < dynamics.never
    always = kinds > 1.0 - dynamics.always
    ordinary = difficulties[~(never | always)]
    difficulties = difficulties + _offset(ordinary, float(always.sum()), dynamics.root_score)
    difficulties[never] = EXTREME
    difficulties[always] = -EXTREME
    pool = sorted(sorted(range(FULL), key=lambda number: rows[number][3])[:POOL])
    skills = int(dynamics.skills)
    if skills == 1:
        return difficulties, None, tuple(pool)
    demands = np.full((FULL, skills), (1.0 - dynamics.focus) / skills)
    for number, row in enumerate(rows):
        demands[number, int(row[2] * skills)] += dynamics.focus
    return difficulties, demands, tuple(pool)


def _offset(difficulties: Floats, always: float, root_score: float) -> float:
    """Return how far to move the difficulties so that skill 0 has the root's score, by bisection."""
    low, high = -30.0, 30.0
    for _ in range(52):
        middle = (low + high) / 2
        score = (always + float((1.0 / (1.0 + np.exp(difficulties + middle))).sum())) / FULL
        low, high = (middle, high) if score > root_score else (low, middle)
    return (low + high) / 2
