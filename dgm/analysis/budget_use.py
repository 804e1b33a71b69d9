"""Use of each limit of a run, and the nearest limit."""

from collections.abc import Sequence
from dataclasses import dataclass

from dgm.analysis.budgets import sum_evaluations_spent
from dgm.archive.tree import Tree
from dgm.domain import Budget


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """One limit of a run and its use."""

    name: str
    """``evaluations``, ``agents``, ``usd``, ``tokens`` or ``seconds``."""
    used: float
    limit: float

    @property
    def left(self) -> float:
        """The rest of the limit, at least 0."""
        return max(self.limit - self.used, 0.0)

    @property
    def share(self) -> float:
        """The used part of the limit; above 1 if more was used."""
        return self.used / self.limit if self.limit > 0 else 1.0


@dataclass(frozen=True, slots=True)
class BudgetTotals:
    """The use of a run so far, in the units of its limits."""

    evaluations: float
    """Graded evaluations, and the cost of expansions in evaluations."""
    agents: int
    usd: float
    tokens: int
    seconds: float


def compute_budget_uses(budget: Budget, used: BudgetTotals) -> Sequence[BudgetUse]:
    """Return the use of each limit that the budget sets."""
    pairs = (
        ("evaluations", used.evaluations, budget.evaluations),
        ("agents", used.agents, budget.agents),
        ("usd", used.usd, budget.usd),
        ("tokens", used.tokens, budget.tokens),
        ("seconds", used.seconds, budget.seconds),
    )
    return [BudgetUse(name, amount, limit) for name, amount, limit in pairs if limit is not None]


def budget_uses_of(tree: Tree, since_last_s: float = 0.0) -> Sequence[BudgetUse]:
    """Return the use of each limit of a run that is read into a tree.

    Args:
        tree: the run.
        since_last_s: seconds since its last event that count as well.
    """
    spend, seconds = tree.spend, tree.wall_seconds + since_last_s
    used = BudgetTotals(sum_evaluations_spent(tree), len(tree.agents), spend.usd, spend.tokens, seconds)
    return compute_budget_uses(tree.budget, used)


def nearest_limit(uses: Sequence[BudgetUse]) -> BudgetUse | None:
    """Return the limit with the largest used share, among those that end a run (a limit of agents only ends births)."""
    ending = [use for use in uses if use.name != "agents"]
    return max(ending, key=lambda use: use.share, default=None)
