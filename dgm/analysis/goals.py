"""Goals besides budgets: a score is reached, or no better agent was recommended for long.

Both are functions of the log and the session's budget, so that a resumed run goes on counting where it stopped.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from dgm.analysis.best import best_in
from dgm.analysis.budgets import Ending, Reason
from dgm.archive.events import Recorded
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import SEED, AgentId, Budget, Tally
from dgm.errors import UserError
from dgm.stats import lower_bound

FindBest = Callable[[Tree], AgentId]
LOOKS = 10
"""Number of looks at the recommendation in ``patience`` evaluations; each look takes time."""


@dataclass(frozen=True, slots=True)
class RecommendationPoint:
    """The recommendation at one moment of the search."""

    evaluations: int
    """Graded evaluations by then."""
    agent: AgentId
    lower_bound: float


class Standstill:
    """The count of evaluations since a better agent was recommended.

    The recommendation is looked at after every ``step`` graded evaluations. ``step`` is a tenth of ``patience``
    rounded down, at least 1.

    A recommendation is better if it names another agent than the one with the highest lower bound so far, with
    a higher lower bound. "So far" reaches back ``patience`` evaluations before the last look, rounded up to the
    look before. The same agent with a higher bound is no better recommendation: it is only better known.
    """

    def __init__(self, patience: int, find_best: FindBest, since: int = 0) -> None:
        """Begin to count.

        Args:
            patience: evaluations.
            find_best: return the agent that a tree recommends.
            since: number of graded evaluations before which nothing needs to be known.
        """
        self._patience, self._find_best = patience, find_best
        self._step = max(1, patience // LOOKS)
        self._since = since - patience - 2 * self._step
        self._looks = [RecommendationPoint(0, SEED, 0.0)]
        self._passed = 0

    def passed(self, tree: Tree) -> None:
        """Look at the tree after an event; called after every event of the log, in order."""
        graded = tree.evaluations
        if graded == self._passed:
            return
        self._passed = graded
        # Withdrawn verdicts take the count back.
        while len(self._looks) > 1 and self._looks[-1].evaluations >= graded:
            self._looks.pop()
        if graded % self._step or graded < self._since:
            return
        best = self._find_best(tree)
        self._looks.append(RecommendationPoint(graded, best, lower_bound(tree.own(best))))
        while len(self._looks) > 1 and self._looks[1].evaluations <= graded - self._patience:
            self._looks.pop(0)

    @property
    def over(self) -> bool:
        """Whether no better agent was recommended in ``patience`` evaluations, at the last look."""
        return self._looks[-1].evaluations - self._improved_at >= self._patience

    @property
    def without_better(self) -> int:
        """Graded evaluations since a better agent was recommended, at most ``patience`` evaluations back."""
        return max(0, self._passed - self._improved_at)

    @property
    def _improved_at(self) -> int:
        record, at = self._looks[0], self._looks[0].evaluations
        for look in self._looks[1:]:
            if look.lower_bound > record.lower_bound:
                at = at if look.agent == record.agent else look.evaluations
                record = look
        return at


class Goals:
    """The goals of one session beside its budgets."""

    def __init__(self, find_best: FindBest, standstill: Standstill | None = None) -> None:
        self._find_best = find_best
        self._standstill = standstill
        self._looked_at = -1
        self._reached: AgentId | None = None

    def passed(self, tree: Tree) -> None:
        """Take note of an event, after it was folded into the tree."""
        if self._standstill is not None:
            self._standstill.passed(tree)

    def ending(self, tree: Tree) -> Ending | None:
        """Return the end that is reached now; None if there is none."""
        budget = tree.budget
        if budget.score is not None and (best := self._at_score(tree, budget.score)) is not None:
            return Ending(
                Reason.GOAL,
                f"the lower bound of the best agent, {lower_bound(tree.own(best)):.3f} of agent {best}, "
                f"reached {budget.score:g}, as asked for",
            )
        if self._standstill is not None and self._standstill.over:
            return Ending(
                Reason.STANDSTILL,
                f"no better agent was recommended in {self._standstill.without_better} evaluations; "
                f"asked for was an end after {budget.patience}",
            )
        return None

    def _at_score(self, tree: Tree, score: float) -> AgentId | None:
        if self._looked_at != tree.evaluations:
            self._looked_at, self._reached = tree.evaluations, None
            # Cheap, and mostly the answer: no agent's bound is so high.
            if highest_bound(tree) >= score:
                best = self._find_best(tree)
                self._reached = best if lower_bound(tree.own(best)) >= score else None
        return self._reached


def highest_bound(tree: Tree) -> float:
    """Return the highest lower bound of any agent's own verdicts; 0 if there are none."""
    tallies = {tree.own(agent.id) for agent in tree.agents}
    return max((lower_bound(tally) for tally in tallies if tally.n), default=0.0)


def open_goals(run: Run) -> Goals | None:
    """Return the goals of the run's session, with the log's counts so far; None if it has none."""
    budget = run.tree.budget
    if budget.score is None and budget.patience is None:
        return None
    count = StandstillCount(run) if budget.patience is not None else None
    return Goals(partial(best_in, run), count.standstill if count is not None else None)


class StandstillCount:
    """The standstill count of a run's log so far, for a session or for readers; it holds a second fold of the log."""

    def __init__(self, run: Run) -> None:
        """Count the events that the run's tree has read; its budget must have ``patience``."""
        self.patience = run.tree.budget.patience or 1
        self.standstill = Standstill(self.patience, partial(best_in, run), run.tree.evaluations)
        self._tree = Tree()
        self.follow(recorded for recorded in run.store.read() if recorded.seq <= run.tree.seq)

    def follow(self, events: Iterable[Recorded]) -> None:
        """Count further events, in order."""
        for recorded in events:
            self._tree.apply(recorded)
            self.standstill.passed(self._tree)


def refuse_unreachable(budget: Budget, tasks: int) -> None:
    """Make sure that an agent that resolves every task once can reach ``budget.score``.

    Raises:
        UserError: it cannot.
    """
    if budget.score is None or not tasks:
        return
    highest = lower_bound(Tally(tasks, 0))
    if budget.score > highest:
        raise UserError(
            f"{budget.score:g} can never be reached: an agent that resolves all {tasks} search tasks "
            f"has a lower bound of {highest:.2f}; choose less, or a benchmark with more tasks",
            argument="budget.until_score",
        )
