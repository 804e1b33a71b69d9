"""The evidence of verdicts on skills, difficulties and broken agents: P(agent solves task) = σ(θ - b), made Gaussian.

A logistic likelihood is replaced by the parabola that touches its logarithm at the current mean. Each replacement is
one step of Newton's method.
"""

import math
from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dgm.policies.lineage.constants import (
    BROKEN_SOLVES,
    CALIBRATION,
    DIFFICULTY_LIMIT,
    DIFFICULTY_VARIANCE,
    LEAST_INFORMATION,
    NEWTON_DAMPING,
    NEWTON_LIMIT,
    REPEAT_WEIGHT,
    SKILL_LIMIT,
    SOUND_RANGE,
    TEMPER,
)

Array = NDArray[np.float64]

SOLVED_SAYS = math.log(BROKEN_SOLVES)
FAILED_SAYS = math.log(1.0 - BROKEN_SOLVES)


class Evidence:
    """All verdicts that count, and the difficulties learned from them."""

    def __init__(self, tasks: int = 0) -> None:
        self.difficulties = [0.0] * tasks
        self.difficulty_variances = [DIFFICULTY_VARIANCE] * tasks
        self._of: list[list[tuple[int, float, float]]] = []
        """Per agent: task, outcome, weight."""
        self.counts = array("q")
        """Results per agent."""
        self.solved = array("q")
        """Of these, successes."""
        self.uses = array("q", [0]) * tasks
        """Results per task."""
        self._agents = array("q")
        self._tasks = array("q")
        self._outcomes = array("d")
        self._weights = array("d")

    def open(self, agent: int) -> bool:
        """Return whether the agent has solved nothing and has fewer than ``CALIBRATION`` results."""
        return self.counts[agent] < CALIBRATION and not self.solved[agent]

    def solved_by(self, agent: int) -> set[int]:
        """Return the numbers of the tasks that the agent solved."""
        return {task for task, outcome, _ in self._of[agent] if outcome}

    def tried_by(self, agent: int) -> set[int]:
        """Return the numbers of the tasks that the agent has results on."""
        return {task for task, _, _ in self._of[agent]}

    def __len__(self) -> int:
        return len(self._agents)

    def add_agent(self) -> None:
        """Add an agent without results."""
        self._of.append([])
        self.counts.append(0)
        self.solved.append(0)

    def add_task(self) -> None:
        """Add a task of average difficulty."""
        self.difficulties.append(0.0)
        self.difficulty_variances.append(DIFFICULTY_VARIANCE)
        self.uses.append(0)

    def add(self, agent: int, task: int, solved: bool, attempt: int) -> None:
        """Add one verdict; ``attempt`` counts from 0, and a further attempt weighs ``REPEAT_WEIGHT``."""
        weight = REPEAT_WEIGHT if attempt else 1.0
        self._of[agent].append((task, float(solved), weight))
        self.counts[agent] += 1
        self.solved[agent] += solved
        self.uses[task] += 1
        self._agents.append(agent)
        self._tasks.append(task)
        self._outcomes.append(float(solved))
        self._weights.append(weight)

    def remove(self, agent: int, task: int, solved: bool, attempt: int) -> None:
        """Remove one verdict that was added with the same arguments.

        Raises:
            ValueError: there is no such verdict.
        """
        outcome, weight = float(solved), REPEAT_WEIGHT if attempt else 1.0
        self._of[agent].remove((task, outcome, weight))
        rows = zip(self._agents, self._tasks, self._outcomes, self._weights, strict=True)
        at = list(rows).index((agent, task, outcome, weight))
        for column in (self._agents, self._tasks, self._outcomes, self._weights):
            column.pop(at)
        self.counts[agent] -= 1
        self.solved[agent] -= solved
        self.uses[task] -= 1

    def linearised(self, agent: int, skill: float) -> tuple[float, float]:
        """Return Λ = 0.9 Σ p(1 - p) and η = Λ x + 0.9 Σ (y - p) at x = ``skill``, kept in range."""
        x = min(max(skill, -SKILL_LIMIT), SKILL_LIMIT)
        information = surprise = 0.0
        for task, outcome, weight in self._of[agent]:
            p = 1.0 / (1.0 + math.exp(self.difficulties[task] - x))
            information += weight * p * (1.0 - p)
            surprise += weight * (outcome - p)
        precision = TEMPER * max(information, LEAST_INFORMATION)
        return precision, precision * x + TEMPER * surprise

    def broken_odds(self, agent: int, predicted: float) -> float:
        """Return log P(verdicts | broken) / P(verdicts | sound) for an agent of the expected skill ``predicted``."""
        low, high = SOUND_RANGE
        odds = 0.0
        for task, outcome, weight in self._of[agent]:
            p = 1.0 / (1.0 + math.exp(min(max(self.difficulties[task] - predicted, -50.0), 50.0)))
            p = min(max(p, low), high)
            says = SOLVED_SAYS - math.log(p) if outcome else FAILED_SAYS - math.log(1.0 - p)
            odds += weight * says
        return odds

    def broken_odds_of_all(self, predicted: Sequence[float]) -> list[float]:
        """Return ``broken_odds`` of every agent at once; 0 without results."""
        agents, tasks = np.array(self._agents), np.array(self._tasks)
        p = 1.0 / (
            1.0 + np.exp(np.clip(np.array(self.difficulties)[tasks] - np.array(predicted)[agents], -50, 50))
        )
        p = np.clip(p, *SOUND_RANGE)
        solved = np.array(self._outcomes) > 0
        says = np.where(solved, SOLVED_SAYS - np.log(p), FAILED_SAYS - np.log(1.0 - p))
        odds: list[float] = np.bincount(agents, np.array(self._weights) * says, len(predicted)).tolist()
        return odds

    def linearise_all(self, skills: Sequence[float]) -> tuple[list[float], list[float]]:
        """Return ``linearised`` of every agent at once; agents without results get 0 and 0."""
        agents, outcomes, weights, p = self._expected(skills)
        n = len(skills)
        information = np.bincount(agents, weights * p * (1.0 - p), n)
        surprise = np.bincount(agents, weights * (outcomes - p), n)
        some = np.array(self.counts) > 0
        x = np.clip(np.array(skills), -SKILL_LIMIT, SKILL_LIMIT)
        precision = np.where(some, TEMPER * np.maximum(information, LEAST_INFORMATION), 0.0)
        return precision.tolist(), (precision * x + TEMPER * surprise).tolist()

    def learn_difficulties(self, skills: Sequence[float], sound: Sequence[float]) -> None:
        """Take one damped Newton step towards each task's most probable difficulty; weigh verdicts by ``sound``."""
        agents, outcomes, weights, p = self._expected(skills)
        weights = weights * np.array(sound)[agents]
        tasks = np.array(self._tasks)
        b = np.array(self.difficulties)
        slope = np.bincount(tasks, weights * (p - outcomes), len(b)) - b / DIFFICULTY_VARIANCE
        curvature = np.bincount(tasks, weights * p * (1.0 - p), len(b)) + 1.0 / DIFFICULTY_VARIANCE
        move = np.clip(NEWTON_DAMPING * slope / curvature, -NEWTON_LIMIT, NEWTON_LIMIT)
        self.difficulties = np.clip(b + move, -DIFFICULTY_LIMIT, DIFFICULTY_LIMIT).tolist()
        self.difficulty_variances = (1.0 / curvature).tolist()

    def _expected(self, skills: Sequence[float]) -> tuple[NDArray[np.int64], Array, Array, Array]:
        agents = np.array(self._agents)
        b = np.array(self.difficulties)[np.array(self._tasks)]
        x = np.clip(np.array(skills), -SKILL_LIMIT, SKILL_LIMIT)[agents]
        return agents, np.array(self._outcomes), np.array(self._weights), 1.0 / (1.0 + np.exp(b - x))
