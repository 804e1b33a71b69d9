"""A world: a fixed infinite random tree of agents, and the tasks that they are tried on.

Nothing is drawn in order. An agent's key is the hash of its parents' keys and its birth number. Its nature is a hash of
that key, and an outcome is a hash of agent, task and attempt. So two policies that ask for the same child, or try the
same agent on the same task, get the same answer, and their trials are paired. A world holds only caches: the order of
requests changes nothing. Floating-point results may differ in their last bits between platforms, so results are rounded
before they are handed out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Literal, Protocol

import numpy as np

from dgm.domain import TaskId
from dgm.simulate.chances import key_of, normal, pair, uniform, uniforms
from dgm.simulate.durations import infrastructure_fails, log_normal
from dgm.simulate.dynamics import Dynamics
from dgm.simulate.families import draw_dynamics
from dgm.simulate.items import FULL, ItemPlan, Items, draw_items
from dgm.simulate.latent import Latent
from dgm.simulate.potential import EFFORT, potential, prospect

__all__ = ["Grown", "Latent", "Step", "World", "open_world"]

LIMIT = 8.0
"""No skill goes further from the root's than this, so that heavy tails stay numbers."""
TINY = 0.02
"""Standard deviation of what a neutral edit does."""
HEAVIEST = 20.0
"""The largest factor by which a heavy tail stretches a step."""
DIGITS = 10

Step = Literal["expand", "evaluate"]


class World(Protocol):
    """The questions that trials and oracles ask a world."""

    @property
    def family(self) -> str:
        """Name of its family."""
        ...

    @property
    def seed(self) -> int:
        """Number of the world in its family."""
        ...

    @property
    def parameters(self) -> Mapping[str, float]:
        """All parameters of the world, drawn or overridden."""
        ...

    @property
    def tasks(self) -> tuple[TaskId, ...]:
        """The tasks of the search pool."""
        ...

    def root(self) -> Latent:
        """Return the agent that a search starts from."""
        ...

    def child(self, parents: Sequence[Latent], birth: int) -> Latent:
        """Return the child number ``birth`` (from 0) of the first parent, made with the second one if there are two."""
        ...

    def resolves(self, agent: Latent, task: TaskId, attempt: int) -> bool:
        """Return whether this attempt resolves the task."""
        ...

    def true_score(self, agent: Latent) -> float:
        """Return the mean chance to resolve a task over the full benchmark."""
        ...

    def potential(self, agent: Latent, births: int = 0, effort: int = EFFORT) -> float:
        """Return the true clade metaproductivity of an agent that had ``births`` children so far.

        ``effort`` is the number of expansions still to come, at most ``EFFORT``.
        """
        ...

    def prospect(self, agent: Latent, births: int, ahead: int) -> float:
        """Return a cheap stand-in for ``potential``, to exclude agents that cannot have the highest."""
        ...

    def seconds(self, key: bytes, what: Step) -> float:
        """Return how many seconds the step with this key takes."""
        ...

    def fails(self, key: bytes, try_number: int) -> bool:
        """Return whether the infrastructure fails this try of the step."""
        ...


class Grown:
    """The world of a family, a seed and overridden parameters."""

    def __init__(self, family: str, seed: int, dynamics: Dynamics) -> None:
        self.family = family
        self.seed = seed
        self.dynamics = dynamics
        self.parameters: Mapping[str, float] = asdict(dynamics)
        self._key = key_of(b"world", family.encode(), str(seed).encode())
        self._dimensions = int(dynamics.skills)
        plan = ItemPlan(
            dynamics.root_score,
            dynamics.spread,
            dynamics.never,
            dynamics.always,
            self._dimensions,
            dynamics.focus,
        )
        self.items: Items = draw_items(self._key, plan)
        self.tasks = tuple(self.items.names[number] for number in self.items.pool)
        self._chances: dict[bytes, list[float]] = {}
        self._scores: dict[bytes, float] = {}
        self._potentials: dict[tuple[bytes, int, int], float] = {}

    def root(self) -> Latent:
        """Return the root: never broken, all skills 0."""
        return Latent(
            key_of(self._key, b"root"), (0.0,) * self._dimensions, self.dynamics.drift_root, 0.0, False
        )

    def child(self, parents: Sequence[Latent], birth: int) -> Latent:
        """Return the child that ``World`` describes."""
        return self.made(
            key_of(*[parent.key for parent in parents], birth.to_bytes(4, "little")), parents, birth
        )

    def made(self, key: bytes, parents: Sequence[Latent], birth: int) -> Latent:
        """Return the child that has this key; ``birth`` only decides how crowding divides its gain."""
        shares = uniforms(key)
        base = self._merged(key, parents) if len(parents) > 1 else parents[0]
        laws = self.dynamics
        gain = self._gain(shares, birth)
        laid_up = laws.deferred_mean + laws.deferred_sd * normal(shares[6]) if laws.deferred_sd else 0.0
        shown = base.drift + laws.release * base.reserve
        skills = [laws.retention * skill + shown for skill in base.skills]
        touched = int(shares[2] * self._dimensions)
        skills[touched] += gain
        if laws.trade:
            other = (touched + 1 + int(shares[7] * (self._dimensions - 1))) % self._dimensions
            skills[other] -= laws.trade * gain
        drift = laws.drift_keep * base.drift + laws.drift_sd * normal(shares[5]) - laws.mismatch * gain
        return Latent(
            key,
            tuple([round(max(-LIMIT, min(LIMIT, value)), DIGITS) for value in skills]),
            round(drift, DIGITS),
            round((1.0 - laws.release) * base.reserve + laid_up, DIGITS),
            self._breaks(shares[0], base.broken),
        )

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

    def true_score(self, agent: Latent) -> float:
        """Return the agent's true score, and keep it."""
        known = self._scores.get(agent.key)
        if known is None:
            known = self._scores[agent.key] = self.fresh_score(agent)
        return known

    def potential(self, agent: Latent, births: int = 0, effort: int = EFFORT) -> float:
        """Return the agent's potential by the definition of ``dgm.simulate.potential``, and keep it."""
        if not self.dynamics.crowding:
            births = 0  # without crowding the next children are as good as the first ones
        known = self._potentials.get((agent.key, births, effort))
        if known is None:
            value = potential(self, self.dynamics, (agent, births), effort)
            known = self._potentials[agent.key, births, effort] = round(value, DIGITS)
        return known

    def prospect(self, agent: Latent, births: int, ahead: int) -> float:
        """Return the agent's prospect by the definition of ``dgm.simulate.potential``."""
        return prospect(self.dynamics, agent, births, ahead)

    def seconds(self, key: bytes, what: Step) -> float:
        """Return the duration of the step with this key, in seconds; durations are log-normal."""
        laws = self.dynamics
        median = laws.expand_seconds if what == "expand" else laws.evaluate_seconds
        return log_normal(key, what.encode(), median, laws.sigma_seconds)

    def fails(self, key: bytes, try_number: int) -> bool:
        """Return whether the infrastructure fails this try; tries fail independently of each other."""
        return infrastructure_fails(key, try_number, self.dynamics.failures)

    def _gain(self, shares: tuple[float, ...], birth: int) -> float:
        """Return the gain that the edit itself adds to the skill that it touches, in logits."""
        laws = self.dynamics
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

    def _breaks(self, share: float, parent_broken: bool) -> bool:
        laws = self.dynamics
        rate = laws.broken
        if parent_broken:
            rate += (1.0 - rate) * laws.broken_stays
        return share < rate

    def _merged(self, key: bytes, parents: Sequence[Latent]) -> Latent:
        """Return the base of a crossover: the first parent, with the better of both skills where the child takes it.

        Drift and reserve are the means of the two parents.
        """
        first, second = parents[0], parents[1]
        shares = uniforms(key, b"crossover")
        takes = self.dynamics.takes_better
        skills = tuple(
            [
                max(one, other) if shares[number % len(shares)] < takes else one
                for number, (one, other) in enumerate(zip(first.skills, second.skills, strict=True))
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
        place = self.items.places.get(task)
        if place is None:
            return float(self.items.probabilities(agent.skills)[self.items.numbers[task]])
        row = self._chances.get(agent.key)
        if row is None:
            chances = self.items.probabilities(agent.skills)
            row = self._chances[agent.key] = chances[self.items.pool_index].tolist()
        return row[place]

    def fresh_score(self, agent: Latent) -> float:
        """Return the true score without keeping it, for agents that are not asked about again."""
        if agent.broken:
            return self.dynamics.broken_score
        return round(float(np.add.reduce(self.items.probabilities(agent.skills))) / FULL, DIGITS)


def open_world(family: str, seed: int, **overrides: float) -> Grown:
    """Return the world with this seed in a family of ``dgm.simulate.families``.

    Args:
        family: the name of the family.
        seed: the number of the world in the family.
        overrides: parameters (fields of ``Dynamics``) to set; the seed draws the others.

    Raises:
        UserError: there is no such family or parameter.
    """
    return Grown(family, seed, draw_dynamics(family, seed, overrides))
