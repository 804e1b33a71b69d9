"""Metrics of evaluations: what an evaluation measures, and the first attempts of each agent as a fold of the events."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dgm.archive.events import Recorded, TaskGraded, VerdictWithdrawn
from dgm.domain import AgentId, Evaluate, Evaluation, TaskId, Verdict

BUILT_IN: Mapping[str, int] = {"rate": 1, "score": 1, "usd": -1, "tokens": -1, "seconds": -1}
"""Metrics that every suite has; 1: more is better, -1: less is better."""
SWEEPS = 50
SHRINKAGE = 1.0
"""Evaluations by an average agent that each estimated effect of a task is shrunk by."""
FRONT_SHARE = 4
"""Agents with fewer tasks than the most of any agent over this number are not compared."""
TIE = 1e-9
"""Relative difference below which two means are equal."""


def measure(evaluation: Evaluation, name: str) -> float | None:
    """Return an evaluation's value of a metric; None if it has none, which is not 0."""
    match name:
        case "rate":
            return float(evaluation.verdict is Verdict.RESOLVED)
        case "score":
            return evaluation.score
        case "usd":
            return evaluation.cost.usage.usd
        case "tokens":
            return float(evaluation.cost.usage.tokens)
        case "seconds":
            return evaluation.cost.seconds
        case _:
            return dict(evaluation.metrics).get(name)


def weigh(evaluation: Evaluation, weights: Mapping[str, float]) -> float | None:
    """Return the weighted sum of an evaluation's metrics; None if one is missing."""
    values = [(weight, measure(evaluation, name)) for name, weight in weights.items()]
    known = [weight * value for weight, value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def reward_of(evaluation: Evaluation, weights: Mapping[str, float]) -> float:
    """Return an evaluation's reward: 1 or 0 by its verdict, or the weighted sum of its metrics, clipped to [0, 1].

    Where a metric is missing the reward is 0, the worst: else an agent would gain by not being measured.
    """
    if not weights:
        return float(evaluation.verdict is Verdict.RESOLVED)
    return min(1.0, max(0.0, weigh(evaluation, weights) or 0.0))


class FirstAttempts:
    """The first graded evaluation of each agent at each task; withdrawn verdicts are left out."""

    def __init__(self) -> None:
        self.of: dict[AgentId, dict[TaskId, Evaluation]] = {}
        """Agent → task → its evaluation."""

    def observe(self, event: Recorded) -> None:
        """Fold in one event."""
        match event.event:
            case TaskGraded(_, done) if done.attempt == 0 and done.verdict is not Verdict.INVALID:
                self.add(done)
            case VerdictWithdrawn(what=what) if what.attempt == 0:
                self.remove(what)

    def add(self, evaluation: Evaluation) -> None:
        """Add a graded first attempt."""
        self.of.setdefault(evaluation.agent, {})[evaluation.task] = evaluation

    def remove(self, what: Evaluate) -> None:
        """Remove the first attempt whose verdict was withdrawn, if it is here."""
        self.of.get(what.agent, {}).pop(what.task, None)

    def pair(self, first: AgentId, second: AgentId) -> list[tuple[Evaluation, Evaluation]]:
        """Return the evaluations of both agents at each task that both have, in the order of the second's."""
        one, other = self.of.get(first, {}), self.of.get(second, {})
        return [(one[task], done) for task, done in other.items() if task in one]

    def means(self, weights: Mapping[str, float]) -> dict[AgentId, "Mean"]:
        """Return each agent's mean weighted sum of metrics, as if all had tried the same tasks.

        A value is the sum of an agent's and a task's effect, by least squares: each is the mean of what the other
        leaves, in turn (backfitting: A. Buja, T. Hastie and R. Tibshirani, Annals of Statistics 17 (1989), p. 453). So
        an agent does not look better for its easier tasks. A task's effect is shrunk by ``SHRINKAGE`` evaluations: else
        the task of a single agent would explain all that this agent does on it. The mean is that of all tasks that
        anybody has tried, and not beyond any value that was measured. Agents without a value are left out.
        """
        import numpy as np

        rows = [
            (agent, task, value)
            for agent, done in self.of.items()
            for task, evaluation in done.items()
            if (value := weigh(evaluation, weights)) is not None
        ]
        if not rows:
            return {}
        agents = {key: n for n, key in enumerate(dict.fromkeys(row[0] for row in rows))}
        tasks = {key: n for n, key in enumerate(dict.fromkeys(row[1] for row in rows))}
        a, t = np.array([agents[row[0]] for row in rows]), np.array([tasks[row[1]] for row in rows])
        values, tried, tries = np.array([row[2] for row in rows]), np.bincount(a), np.bincount(t)
        agent, task = np.zeros(len(agents)), np.zeros(len(tasks))
        for _ in range(SWEEPS):
            agent = np.bincount(a, values - task[t]) / tried
            task = np.bincount(t, values - agent[a]) / (tries + SHRINKAGE)
        means = np.clip(agent + task.mean(), values.min(), values.max())
        return {key: Mean(float(means[n]), int(tried[n])) for key, n in agents.items()}

    def front(self, metrics: Mapping[str, int]) -> frozenset[AgentId]:
        """Return the agents that no other agent beats: better in one metric, and not worse in any, by ``means``.

        Agents with less than a quarter of the tasks of the agent that has most are left out: a lucky one would stay. So
        are agents that resolved nothing: doing nothing costs nothing.

        Args:
            metrics: name → 1 if more is better, -1 if less is.
        """
        means = {name: self.means({name: 1.0}) for name in metrics}
        known = [agent for agent in self.of if all(agent in of_metric for of_metric in means.values())]
        counts = {agent: min(of_metric[agent].tasks for of_metric in means.values()) for agent in known}
        largest = max(counts.values(), default=0)
        points = {
            agent: [sign * means[name][agent].value for name, sign in metrics.items()]
            for agent in known
            if counts[agent] * FRONT_SHARE >= largest
            and any(done.verdict is Verdict.RESOLVED for done in self.of[agent].values())
        }
        front: dict[AgentId, Sequence[float]] = {}
        for agent, point in sorted(points.items(), key=lambda item: item[1], reverse=True):
            if not any(_beats(other, point) for other in front.values()):
                front = {one: other for one, other in front.items() if not _beats(point, other)}
                front[agent] = point
        return frozenset(front)


class Mean(NamedTuple):
    """The mean of a metric."""

    value: float
    tasks: int
    """Number of tasks behind it."""


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    # Rounding depends on the processor; the same log must lead to the same decision.
    gains = [
        a - b if abs(a - b) > TIE * max(abs(a), abs(b)) else 0.0 for a, b in zip(one, other, strict=True)
    ]
    return min(gains) >= 0.0 < max(gains)
