"""The tasks of a world: a full benchmark of which the search sees a pool, answered by item-response curves.

An agent of skill s resolves task t with probability 1 / (1 + exp(difficulty_t − s)). With several skills, s is their
mean weighted by the task's demands. SWE-bench's difficulties are spread widely. Over all published submissions a few
per cent of its tasks were never resolved, and nearly everyone resolves a few others. The rest lie over several logits
in between. The shares are parameters, so that the families can vary them.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dgm.domain import TaskId
from dgm.simulate.chances import normal, uniforms

FULL = 500
"""Tasks of the full benchmark, on which the true score is defined: as many as SWE-bench Verified has."""
POOL = 60
"""Tasks of the search pool."""
EXTREME = 100.0
"""Difficulty, with its sign, of a task that nobody or everybody solves; far beyond any skill."""
_BISECTIONS = 52

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Items:
    """Difficulties and demands of all tasks; an item's number is its place in ``names``."""

    names: tuple[TaskId, ...]
    difficulties: Floats
    demands: Floats | None
    """Per task and skill, each row's sum 1; ``None`` where there is one skill."""
    pool: tuple[int, ...]
    """Numbers of the tasks that the search sees, ascending."""

    @cached_property
    def numbers(self) -> dict[TaskId, int]:
        """Number of each task."""
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def places(self) -> dict[TaskId, int]:
        """Place in the pool of each task that is in it."""
        return {self.names[number]: place for place, number in enumerate(self.pool)}

    @cached_property
    def pool_index(self) -> NDArray[np.intp]:
        """``pool`` as a numpy index."""
        return np.array(self.pool, dtype=np.intp)

    def probabilities(self, skills: tuple[float, ...]) -> Floats:
        """Return for every task the chance that one attempt resolves it; shape (``FULL``,)."""
        reach = skills[0] if self.demands is None else self.demands @ np.array(skills)
        curve: Floats = np.exp(self.difficulties - reach)
        curve += 1.0
        return np.reciprocal(curve, out=curve)


@dataclass(frozen=True, slots=True)
class ItemPlan:
    """The parameters from which the tasks of a world are drawn."""

    root_score: float
    """True score of an agent of skill 0, which the difficulties are moved to give exactly."""
    spread: float
    """Standard deviation of the difficulties, in logits."""
    never: float
    """Share of tasks that nobody solves."""
    always: float
    """Share of tasks that every working agent solves."""
    skills: int
    focus: float
    """Where there are several skills: the share of a task's demand that is on one of them; the rest is even."""


def draw_items(key: bytes, plan: ItemPlan) -> Items:
    """Draw the tasks of the world with this key."""
    names = tuple(TaskId(f"task-{number:03d}") for number in range(FULL))
    rows = [uniforms(key, name.encode()) for name in names]
    difficulties = np.array([plan.spread * normal(row[0]) for row in rows])
    kinds = np.array([row[1] for row in rows])
    never = kinds < plan.never
    always = kinds > 1.0 - plan.always
    difficulties = difficulties + _offset(difficulties, never, always, plan.root_score)
    difficulties[never] = EXTREME
    difficulties[always] = -EXTREME
    lots = sorted(range(FULL), key=lambda number: rows[number][3])
    return Items(names, difficulties, _demands([row[2] for row in rows], plan), tuple(sorted(lots[:POOL])))


def _offset(
    difficulties: Floats, never: NDArray[np.bool_], always: NDArray[np.bool_], wanted: float
) -> float:
    """Return how far to move the difficulties so that skill 0 scores ``wanted``, by bisection."""
    others = difficulties[~(never | always)]
    sure = float(always.sum())
    low, high = -30.0, 30.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        score = (sure + float((1.0 / (1.0 + np.exp(others + middle))).sum())) / FULL
        low, high = (middle, high) if score > wanted else (low, middle)
    return (low + high) / 2


def _demands(shares: list[float], plan: ItemPlan) -> Floats | None:
    if plan.skills == 1:
        return None
    demands = np.full((FULL, plan.skills), (1.0 - plan.focus) / plan.skills)
    for number, share in enumerate(shares):
        demands[number, int(share * plan.skills)] += plan.focus
    return demands
