"""Agents by more than their rate: the cheapest one that is not worse than the best, means of metrics, the front."""

from typing import Self

from dgm.analysis.cheapest import CheaperAgent, cheapest_of, read_first_attempts
from dgm.analysis.objective import read_metrics
from dgm.archive.measures import BUILT_IN, FRONT_SHARE
from dgm.archive.run import Run
from dgm.config import read_frozen
from dgm.domain import AgentId
from dgm.views.values import View


class CheaperView(View):
    """An agent that costs less than the best one, on the search tasks that both have tried."""

    agent: int
    tasks: int
    """Number of these tasks."""
    cost: float
    """Mean cost of a task."""
    best_cost: float
    """The best agent's, on the same tasks."""
    share: float
    """Cost as a share of the best agent's."""
    difference: float
    """Rate minus the best agent's, from -1 to 1."""
    lower_bound: float
    """Confidence bound of the difference, which allows for the number of agents compared."""


class CheapestView(View):
    """The cheapest agent that is not worse than the best one: its lower bound is above -margin."""

    best: int
    unit: str
    """The cost: ``usd``, ``tokens`` or ``seconds``."""
    margin: float
    cheaper: int
    """Number of agents that cost less than the best one."""
    shown: CheaperView | None
    """The answer; None if no agent is shown to be not worse."""
    candidate: CheaperView | None
    """Without an answer, the cheapest agent that more verdicts may show to be not worse."""

    @classmethod
    def load(cls, run: Run, best: AgentId | None = None) -> Self:
        """Compare the agents of a run, which must have one, with ``best``; None: the recommended one."""
        answer = cheapest_of(run, best)
        shown = answer.shown
        candidate = answer.candidate if shown is None else None

        def view(agent: CheaperAgent) -> CheaperView:
            facts = ("agent", "tasks", "cost", "best_cost", "share", "difference")
            values = {name: getattr(agent, name) for name in facts}
            return CheaperView(**values, lower_bound=answer.lower_bound(agent))

        return cls(
            best=answer.best,
            unit=answer.unit,
            margin=answer.margin,
            cheaper=len(answer.cheaper),
            shown=None if shown is None else view(shown),
            candidate=None if candidate is None else view(candidate),
        )


class MetricView(View):
    """A metric."""

    higher: bool
    """True if larger values are better."""
    unit: str
    meaning: str


class MeasuredAgent(View):
    """The means of an agent on the search tasks, as if all agents had tried the same tasks."""

    agent: int
    tasks: int
    """Number of tasks that it tried."""
    means: dict[str, float]
    """Metric → its mean; a metric that no evaluation has is missing. ``objective`` is the weighted sum."""
    front: bool


class ObjectiveView(View):
    """The metrics of a run's agents."""

    front: tuple[str, ...]
    """Metrics of the Pareto front; empty without one."""
    weights: dict[str, float]
    """Metric → its weight in ``objective``; empty without one."""
    metrics: dict[str, MetricView]
    agents: tuple[MeasuredAgent, ...]
    leading: int | None
    """The agent with the highest mean of ``objective``; None without weights."""

    @classmethod
    def load(cls, run: Run) -> Self | None:
        """Return the metrics of a run; None if it has no objective, and its suite no metrics of its own.

        Raises:
            ArchiveCorrupt: ``run.json`` is damaged.
        """
        tree, metrics = run.tree, read_metrics(run)
        settings = read_frozen(run.settings(), str(run.folder / "run.json")).objective
        if not tree.objective.front and not settings.weights and len(metrics) == len(BUILT_IN):
            return None
        first = read_first_attempts(run)
        sums = {name: {name: 1.0} for name in metrics} | (
            {"objective": dict(settings.weights)} if settings.weights else {}
        )
        means = {name: first.means(weights) for name, weights in sums.items()}
        if not any(mean.value for mean in means["usd"].values()):
            del means["usd"]
        measured = [
            MeasuredAgent(
                agent=agent,
                tasks=means["rate"][agent].tasks,
                means={
                    name: of_metric[agent].value for name, of_metric in means.items() if agent in of_metric
                },
                front=agent in tree.front,
            )
            for agent in sorted(means["rate"])
        ]
        largest = max((each.tasks for each in measured), default=0)
        weighed = [
            each for each in measured if "objective" in each.means and each.tasks * FRONT_SHARE >= largest
        ]
        leading = max(weighed, key=lambda each: (each.means["objective"], -each.agent), default=None)
        return cls(
            front=tuple(tree.objective.front),
            weights=dict(settings.weights),
            metrics={
                name: MetricView(higher=m.higher, unit=m.unit, meaning=m.meaning)
                for name, m in metrics.items()
            },
            agents=tuple(measured),
            leading=None if leading is None else leading.agent,
        )
