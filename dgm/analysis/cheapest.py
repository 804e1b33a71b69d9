"""The cheapest agent that is not worse than the best one, on the search tasks that both have tried."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from dgm.analysis.agents import best_of
from dgm.archive.events import TaskGraded, VerdictWithdrawn
from dgm.archive.measures import FirstAttempts, measure
from dgm.archive.run import Run
from dgm.config import ObjectiveSettings, read_frozen
from dgm.domain import AgentId
from dgm.stats import mean_lower_bound, rules_out_mean

LEVEL = 0.05
"""Probability that some agent is called not worse although it loses more than the margin."""
FEWEST = 5
"""Minimum number of common tasks of a ``candidate``; on fewer, a difference is mostly luck."""


@dataclass(frozen=True, slots=True)
class CheaperAgent:
    """An agent that costs less than the best one on the tasks that both have tried."""

    agent: AgentId
    cost: float
    """Mean cost on these tasks."""
    best_cost: float
    """Mean cost of the best agent on them."""
    differences: Sequence[int]
    """Task by task, 1 if only the agent resolved it, -1 if only the best agent did, else 0."""

    @property
    def tasks(self) -> int:
        """Number of these tasks."""
        return len(self.differences)

    @property
    def share(self) -> float:
        """Cost as a share of the best agent's."""
        return self.cost / self.best_cost

    @property
    def difference(self) -> float:
        """Rate minus the best agent's, from -1 to 1."""
        return fmean(self.differences)


@dataclass(frozen=True, slots=True)
class CheapestAgent:
    """The answer, and what it rests on."""

    best: AgentId
    unit: str
    """``usd``, ``tokens`` or ``seconds``."""
    margin: float
    level: float
    """Level of each comparison."""
    cheaper: Sequence[CheaperAgent]
    """All that cost less than the best agent, the cheapest first."""

    @property
    def shown(self) -> CheaperAgent | None:
        """The cheapest agent that is shown to be not worse."""
        return next(
            (a for a in self.cheaper if rules_out_mean(a.differences, -self.margin, self.level)), None
        )

    @property
    def candidate(self) -> CheaperAgent | None:
        """The cheapest agent that may be not worse: on five tasks or more it loses less than the margin."""
        hopeful = (a for a in self.cheaper if a.difference > -self.margin and a.tasks >= FEWEST)
        return next(hopeful, None)

    def lower_bound(self, agent: CheaperAgent) -> float:
        """Return the lower confidence bound of the agent's true difference of rates."""
        return mean_lower_bound(agent.differences, self.level)


def read_first_attempts(run: Run) -> FirstAttempts:
    """Return the first attempts in the log, as far as the run's tree has read it."""
    first = FirstAttempts()
    for item in run.store.read(0, run.tree.seq):
        if isinstance(item.event, TaskGraded | VerdictWithdrawn):
            first.observe(item)
    return first


def find_cheapest(
    first: FirstAttempts, best: AgentId, settings: ObjectiveSettings, level: float = LEVEL
) -> CheapestAgent:
    """Compare each agent with the best one, on the tasks that both have tried.

    An agent is not worse if its rate is below the best agent's by less than the margin. That is shown by a lower bound
    of the mean difference above -margin; no visible difference is no proof. The bound is ``mean_lower_bound``, which
    holds however often one looks. Its level is ``level`` / k for k agents that are cheaper and have enough tasks to
    show it if they win them all (Bonferroni); so the answer is wrong with a probability of at most ``level``. Agents
    that a policy dropped after bad results count too: else those it went on with would be chosen for their luck. That
    the best agent was chosen for its luck on these tasks makes the comparison harder, not easier. Tasks count as
    independent draws; a policy that chooses them by the agents' results makes this an approximation.
    """
    unit = settings.cheapest or ("usd" if _costs_money(first) else "tokens")
    cheaper: list[CheaperAgent] = []
    for agent in first.of:
        pairs = first.pair(best, agent) if agent != best else []
        costs = [(measure(one, unit) or 0.0, measure(other, unit) or 0.0) for one, other in pairs]
        best_cost, cost = (fmean(side) for side in zip(*costs, strict=True)) if costs else (0.0, 0.0)
        if cost < best_cost:
            differences = [other.tally.resolved - one.tally.resolved for one, other in pairs]
            cheaper.append(CheaperAgent(agent, cost, best_cost, differences))
    longest = max((each.tasks for each in cheaper), default=0)
    fewest = next(
        n for n in range(1, longest + 2) if n > longest or rules_out_mean([1] * n, -settings.margin, level)
    )
    compared = sum(each.tasks >= fewest for each in cheaper)
    cheaper.sort(key=lambda each: (each.share, each.agent))
    return CheapestAgent(best, unit, settings.margin, level / max(1, compared), cheaper)


def cheapest_of(run: Run, best: AgentId | None = None) -> CheapestAgent:
    """Return the answer for a run, which must have an agent; ``best`` replaces the recommended one.

    Raises:
        UserError: a frozen setting is invalid.
    """
    settings = read_frozen(run.settings(), str(run.folder / "run.json")).objective
    return find_cheapest(read_first_attempts(run), best_of(run) if best is None else best, settings)


def _costs_money(first: FirstAttempts) -> bool:
    return any(done.cost.usage.usd for tasks in first.of.values() for done in tasks.values())
