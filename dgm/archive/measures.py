"""Metrics of evaluations: what an evaluation measures, and the first attempts of each agent as a fold of the events."""

from collections.abc import Mapping
from statistics import fmean

from dgm.archive.events import Recorded, TaskGraded, VerdictWithdrawn
from dgm.domain import AgentId, Evaluation, TaskId, Verdict

BUILT_IN: Mapping[str, int] = {"rate": 1, "score": 1, "usd": -1, "tokens": -1, "seconds": -1}
"""Metrics that every suite has; 1: more is better, -1: less is better."""


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
            return None


class FirstAttempts:
    """The first graded evaluation of each agent at each task; withdrawn verdicts are left out."""

    def __init__(self) -> None:
        self.of: dict[AgentId, dict[TaskId, Evaluation]] = {}
        """Agent → task → its evaluation."""

    def observe(self, event: Recorded) -> None:
        """Fold in one event."""
        match event.event:
            case TaskGraded(_, done) if done.attempt == 0 and done.verdict is not Verdict.INVALID:
                self.of.setdefault(done.agent, {})[done.task] = done
            case VerdictWithdrawn(what=what) if what.attempt == 0:
                self.of[what.agent].pop(what.task, None)

    def pair(self, first: AgentId, second: AgentId) -> list[tuple[Evaluation, Evaluation]]:
        """Return the evaluations of both agents at each task that both have, in the order of the second's."""
        one, other = self.of.get(first, {}), self.of.get(second, {})
        return [(one[task], done) for task, done in other.items() if task in one]

    def mean(self, agent: AgentId, name: str) -> tuple[float, int] | None:
        """Return the mean of a metric over the agent's tasks and their number; None if no evaluation has it."""
        values = [
            value for done in self.of.get(agent, {}).values() if (value := measure(done, name)) is not None
        ]
        return (fmean(values), len(values)) if values else None
