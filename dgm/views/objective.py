"""Agents by more than their rate: the cheapest one that is not worse than the best."""

from typing import Self

from dgm.analysis.cheapest import CheaperAgent, cheapest_of
from dgm.archive.run import Run
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
