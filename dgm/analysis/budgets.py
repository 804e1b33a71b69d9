"""The end of a search: its goal is reached, or a limit is spent before that.

``evaluations`` is a goal. ``tokens``, ``usd`` and ``seconds`` are limits, which end a run with another exit
code. Failed and stillborn work counts in all of them. ``agents`` only prevents more births. Two more goals, a score and
no better agent for long, are functions of the log and the session's budget, so that a resumed run goes on counting.

A limit that the run's steps do not use ends the run as well, once that is plain (a model that reports no
tokens). ``endless`` refuses the cases that are known before.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from dgm.analysis.agents import best_in
from dgm.archive.events import Recorded
from dgm.archive.run import Run
from dgm.archive.tree import CANNOT_GO_ON, Tree
from dgm.domain import SEED, Action, AgentId, Budget, Expand, Tally
from dgm.errors import UserError
from dgm.policies.limits import births_in_flight, evaluations_left
from dgm.stats import lower_bound

NO_ROOM = (
    "the budget of {budget.evaluations} evaluations is as good as spent: it has no room for an expansion, which takes "
    "{budget.expansion_cost:g}, and the policy wants nothing else"
)

UNSPENT_EVALUATIONS, UNSPENT_EXPANSIONS = 50, 10
"""A budget of money or tokens counts as endless after this many of both without any spend."""


class Reason(StrEnum):
    """Why a session of a run ended."""

    GOAL = "goal reached"
    STANDSTILL = "no better agent"
    LIMIT = "budget spent"
    NOTHING_LEFT = "nothing left to do"
    STOPPED = "stopped"
    OUTAGE = "infrastructure failed"
    REFUSED = "provider refuses"
    CANNOT_GO_ON = CANNOT_GO_ON
    ENDLESS = "budget never runs out"
    PROMOTION = "promotion is due"
    """Ends a segment of a search, and no session: a round of promotion is performed, then the search goes on."""


@dataclass(frozen=True, slots=True)
class Ending:
    """End of a session; ``message`` is one line for people."""

    reason: Reason
    message: str


def find_ending(tree: Tree, unaffordable: str = "") -> Ending | None:
    """Return the end that the budget demands now, or None while there is room.

    Args:
        tree: the run so far.
        unaffordable: why a further model call would cross a limit that is not reached yet; empty if none would.
    """
    budget = tree.budget
    if budget.evaluations is not None and sum_evaluations_spent(tree) + 1 > budget.evaluations:
        return Ending(
            Reason.GOAL,
            describe_budget_use(tree) or f"{tree.evaluations} evaluations are graded, as asked for",
        )
    spent = [
        f"{used:,.{digits}f} of {limit:,.{digits}f} {unit} are spent"
        for used, limit, unit, digits in (
            (tree.spend.tokens, budget.tokens, "tokens", 0),
            (tree.spend.usd, budget.usd, "USD", 2),
            (tree.wall_seconds, budget.seconds, "seconds", 0),
        )
        if limit is not None and used >= limit
    ]
    reasons = ", ".join(spent) or unaffordable
    if reasons:
        return Ending(Reason.LIMIT, f"the budget is spent: {reasons}")
    return Ending(Reason.ENDLESS, _endless_message(tree)) if _is_endless(tree) else None


def has_evaluation_room(tree: Tree) -> bool:
    """Return whether one more evaluation may start; those in flight count as done."""
    left = evaluations_left(tree)
    return left is None or left >= 1


def has_room_for(tree: Tree, action: Action) -> bool:
    """Return whether the action may start, by the budget of evaluations; those in flight count as done."""
    left = evaluations_left(tree)
    return left is None or left >= (tree.budget.expansion_cost if isinstance(action, Expand) else 1)


def sum_evaluations_spent(tree: Tree) -> float:
    """Return the graded evaluations plus the cost of ended expansions, in evaluations of the same budget."""
    return tree.evaluations + tree.budget.expansion_cost * count_ended_expansions(tree)


def count_ended_expansions(tree: Tree) -> int:
    """Return the number of expansions that do not run any more, whatever their results."""
    return tree.expansions_begun - births_in_flight(tree)


def describe_budget_use(tree: Tree) -> str:
    """Return a text on the use of the budget of evaluations; empty if only evaluations use it."""
    budget = tree.budget
    if budget.evaluations is None or not budget.expansion_cost:
        return ""
    expansions, each = count_ended_expansions(tree), budget.expansion_cost
    took = f"{sum_evaluations_spent(tree):g} of" if sum_evaluations_spent(tree) != budget.evaluations else ""
    priced = f" (each as {each:g})" if each != 1 else ""
    return (
        f"{tree.evaluations} evaluations and {expansions} expansions{priced} took "
        f"{took or 'the budget of'} {budget.evaluations} evaluations"
    )


def _is_endless(tree: Tree) -> bool:
    """Return whether only money or tokens limit the run, and many steps have spent none."""
    budget = tree.budget
    if budget.evaluations is not None or budget.seconds is not None or budget.patience is not None:
        return False
    taken = [
        used
        for used, limit in ((tree.spend.usd, budget.usd), (tree.spend.tokens, budget.tokens))
        if limit is not None
    ]
    enough = tree.evaluations >= UNSPENT_EVALUATIONS and count_ended_expansions(tree) >= UNSPENT_EXPANSIONS
    return enough and bool(taken) and not any(taken)


def _endless_message(tree: Tree) -> str:
    unit = (
        "money" if tree.budget.tokens is None else "tokens" if tree.budget.usd is None else "money or tokens"
    )
    return (
        f"{tree.evaluations} evaluations and {count_ended_expansions(tree)} expansions took no {unit}, so the budget"
        " never runs out; set a limit on evaluations or hours as well"
    )


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
        """True if, at the last look, ``patience`` evaluations had not led to a better recommendation."""
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

    def __init__(
        self, find_best: FindBest, standstill: Standstill | None = None, promotion_at: int | None = None
    ) -> None:
        """Begin a session, or its segment up to a round of promotion after ``promotion_at`` graded evaluations."""
        self._find_best = find_best
        self._standstill = standstill
        self._promotion_at = promotion_at
        self._looked_at = -1
        self._reached: AgentId | None = None

    def passed(self, tree: Tree) -> None:
        """Take note of an event, after it was folded into the tree."""
        if self._standstill is not None:
            self._standstill.passed(tree)

    def ending(self, tree: Tree) -> Ending | None:
        """Return the end that is reached now; None if there is none."""
        budget = tree.budget
        if self._promotion_at is not None and tree.evaluations >= self._promotion_at:
            return Ending(Reason.PROMOTION, f"{tree.evaluations} evaluations are graded")
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


def open_goals(run: Run, promotion_every: int = 0) -> Goals | None:
    """Return the goals of the run's session, with the log's counts so far; None if it has none.

    Args:
        run: the run.
        promotion_every: graded evaluations between rounds of promotion; 0: none is performed.
    """
    budget = run.tree.budget
    if budget.score is None and budget.patience is None and not promotion_every:
        return None
    count = StandstillCount(run) if budget.patience is not None else None
    due = (run.tree.evaluations // promotion_every + 1) * promotion_every if promotion_every else None
    return Goals(partial(best_in, run), count.standstill if count is not None else None, due)


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
