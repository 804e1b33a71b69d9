"""The one question of a report: is the best agent better than the seed on tasks that the search never saw?"""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Self

from dgm.analysis.accounts import Accounts
from dgm.archive.events import Control
from dgm.archive.run import Run
from dgm.domain import SEED, Agent, Evaluate, Tally, Usage, Verdict
from dgm.evaluation.control import FOLDER, Attempts, Unit, plan_control
from dgm.evaluation.schedule import (
    CONTROL,
    Comparison,
    EvaluationProgress,
    compare_agents,
    compare_verdicts,
    find_entered,
)
from dgm.stats import mcnemar_power, paired_bootstrap, tasks_needed
from dgm.views.values import SIGNIFICANT, RoleUsage, TallyView, UsageView, View, role_usages

WORTH_FINDING = 0.20
"""True gain for which a report gives the power of its tasks."""
POWERFUL = 0.80
"""Power for which a report gives the necessary number of tasks."""
NOTHING = Usage()


class Answer(StrEnum):
    """What the holdout tasks say about the best agent."""

    BETTER = "better"
    WORSE = "worse"
    NOT_SHOWN = "not shown to be better"
    NOT_EXAMINED = "not examined"
    """Not evaluated, or not on all tasks: the result may still change completely."""


class DifferenceView(View):
    """A mean difference of rates."""

    mean: float
    """Rate of the second agent minus rate of the first, from -1 to 1."""
    interval: tuple[float, float] | None
    """95 % bootstrap interval over tasks; None if all tasks went alike, which says nothing about other samples."""


class PairedView(View):
    """Two agents compared task by task; a task counts if both have a verdict."""

    gained: tuple[str, ...]
    """Tasks that only the second agent resolved."""
    lost: tuple[str, ...]
    """Tasks that only the first agent resolved."""
    difference: DifferenceView | None
    """None without a common task, or before the comparison is complete."""
    mcnemar_p: float | None
    """p-value of the exact two-sided McNemar test; None before the comparison is complete."""


class PowerView(View):
    """The probability that the holdout tasks show a true gain of 20 points."""

    gained: float
    """Assumed share of tasks that only the better agent resolves."""
    lost: float
    """Assumed share of tasks that only the seed resolves: as observed, if that leaves room for the gain."""
    power: float
    tasks_for_80_percent: int
    """Number of tasks that would show the gain with a probability of 80 %."""


class ControlView(PairedView):
    """The control of equal spend: the seed with as many attempts as the spend of the search buys."""

    unit: Unit
    search: float
    """Spend of the search, in ``unit``."""
    attempt: float
    """Mean spend of one attempt of the seed, in ``unit``."""
    affordable: int
    """Attempts at each task that the spend of the search buys."""
    bound: int
    """Maximum number of attempts at each task that was asked for; not below the number that every task has had."""
    wanted: int
    """Attempts at each task in the complete control."""
    attempts: int
    """Attempts that every task has had, or that were saved because an earlier one resolved it."""
    missing: int
    """Maximum number of attempts still to be made; 0: the control is complete."""
    seed_once: TallyView
    """The seed with one attempt at each task."""
    seed_any: TallyView
    """The seed with ``attempts`` attempts: a task counts if any of them resolves it."""
    best: TallyView
    """The best agent with one attempt."""
    took: float
    """Spend of the further attempts, in ``unit``."""
    spend: UsageView
    """Usage of the further attempts."""

    @classmethod
    def load(cls, holdout: Run, best: Agent, now: Control) -> Self | None:
        """Return the control's result for an agent of the search; None without a control, or while it is not known.

        All tasks are judged by equally many attempts: attempts of an incomplete round count for no task. If no
        further attempt is allowed, there is a result even if nobody asked for a control.

        Args:
            holdout: the holdout evaluation.
            best: the agent.
            now: from ``plan_control``: the search's spend by now, which may be more than when attempts were made.
        """
        tree, progress = holdout.tree, EvaluationProgress.read(holdout)
        planned, entered = progress.last_control, find_entered(holdout, best.commit)
        plan = replace(now, attempts=planned.attempts) if planned else now
        attempts = Attempts(tree, progress, plan)
        price, further = attempts.price, attempts.control
        if price is None or entered is None or (planned is None and attempts.allowed > 1):
            return None
        rounds = min((done.ended for done in attempts.unsolved.values()), default=attempts.allowed)
        bound = max(plan.attempts, rounds)
        graded = {task: done for task, done in attempts.tasks.items() if done.first is not None}
        solved = {
            task for task, done in graded.items() if done.solved_by is not None and done.solved_by < rounds
        }
        any_verdict = {task: Verdict.RESOLVED if task in solved else Verdict.UNRESOLVED for task in graded}
        pairs = compare_verdicts(
            (task, any_verdict.get(task), tree.verdict(entered, task)) for task in tree.tasks
        )
        once = sum(done.first is Verdict.RESOLVED for done in graded.values())
        spend = Usage() if further is None else Accounts(holdout).of(further).total
        took = {Unit.USD: spend.usd, Unit.TOKENS: float(spend.tokens), Unit.SECONDS: attempts.seconds}
        return cls(
            **paired_fields(pairs),
            unit=price.unit,
            search=price.search,
            attempt=price.attempt,
            affordable=price.affordable,
            bound=bound,
            wanted=max(1, min(price.affordable, bound)),
            attempts=rounds,
            missing=attempts.missing,
            seed_once=TallyView.of(Tally(once, len(graded) - once)),
            seed_any=TallyView.of(pairs.first),
            best=TallyView.of(pairs.second),
            took=took[price.unit],
            spend=UsageView.of(spend),
        )


class ResolvedUsage(UsageView):
    """Usage of one agent."""

    usd_per_resolved: float | None
    """USD for each resolved task; None if none was resolved."""
    tokens_per_resolved: float | None
    """Tokens for each resolved task; None if none was resolved."""


class HoldoutSpend(UsageView):
    """Usage of the holdout evaluations."""

    by: tuple[RoleUsage, ...]
    seed_agent: ResolvedUsage
    best: ResolvedUsage


class HoldoutView(PairedView):
    """The evaluation of the seed and the best agent on the holdout tasks."""

    tasks: int
    """Number of holdout tasks."""
    missing: int
    """Evaluations of the two agents still to be done."""
    ungraded: int
    """Tasks without a pair of verdicts although nothing is missing: an evaluation was abandoned."""
    itself: bool
    """Whether the best agent is the seed, so that there is nothing to compare."""
    seed_agent: TallyView
    best: TallyView
    power: PowerView | None
    """None without a common task, or before the comparison is complete."""
    shown_better: bool
    examined: int
    """Agents beside the seed that were evaluated on these tasks; p is not corrected for more than one."""
    control: ControlView | None
    """None before the comparison is complete, or if the control was not performed."""
    spend: HoldoutSpend

    @property
    def answer(self) -> Answer:
        """The answer by the one rule for terminal, page and programs."""
        if not self.tasks or self.missing:
            return Answer.NOT_EXAMINED
        if self.mcnemar_p is None or self.mcnemar_p >= SIGNIFICANT:
            return Answer.NOT_SHOWN
        return Answer.BETTER if self.shown_better else Answer.WORSE

    @classmethod
    def of(  # noqa: PLR0913  (most have defaults)
        cls,
        pairs: Comparison,
        *,
        tasks: int,
        missing: int = 0,
        itself: bool = False,
        examined: int = 0,
        control: ControlView | None = None,
        by: Mapping[tuple[str, str], Usage] | None = None,
        seed: Usage = NOTHING,
        best: Usage = NOTHING,
    ) -> Self:
        """Return the view of a comparison of the seed with the best agent; ``by`` is the usage of everything."""
        complete = not missing and not itself
        used = by or {}
        return cls(
            **(
                paired_fields(pairs)
                if complete
                else {**paired_fields(pairs), "difference": None, "mcnemar_p": None}
            ),
            tasks=tasks,
            missing=missing,
            ungraded=0 if missing else tasks - pairs.first.n,
            itself=itself,
            seed_agent=TallyView.of(pairs.first),
            best=TallyView.of(pairs.second),
            power=_power(pairs) if complete else None,
            shown_better=bool(tasks) and complete and is_better(pairs),
            examined=examined,
            control=None if missing else control,
            spend=HoldoutSpend.of(
                sum(used.values(), NOTHING),
                by=role_usages(used),
                seed_agent=_resolved_usage(seed, pairs.first.resolved),
                best=_resolved_usage(best, pairs.second.resolved),
            ),
        )


def holdout_exists(run: Run) -> bool:
    """Return whether holdout evaluations of a run were begun."""
    return (run.folder / FOLDER / "run.json").exists()


def read_holdout(run: Run, agent: Agent) -> HoldoutView | None:
    """Return the results of the seed and ``agent`` on the holdout tasks; None if one of them was not entered."""
    if not holdout_exists(run):
        return None
    with Run.open(run.folder / FOLDER) as holdout:
        seed, best = (find_entered(holdout, member.commit) for member in (run.tree.agents[SEED], agent))
        if seed is None or best is None:
            return None
        tree, accounts, progress = holdout.tree, Accounts(holdout), EvaluationProgress.read(holdout)
        others = [entry.id for entry in tree.agents if entry.key != CONTROL and entry.id != seed]
        return HoldoutView.of(
            compare_agents(holdout, seed, best),
            tasks=len(tree.tasks),
            missing=len(progress.missing(Evaluate(who, task) for who in {seed, best} for task in tree.tasks)),
            itself=seed == best,
            examined=sum(tree.own(entered).n > 0 for entered in others),
            control=ControlView.load(holdout, agent, plan_control(run)),
            by=dict(tree.spend_by),
            seed=accounts.of(seed).total,
            best=accounts.of(best).total,
        )


def is_better(pairs: Comparison) -> bool:
    """Return whether the second agent is shown to be better: exact two-sided McNemar p below 0.05."""
    return pairs.p < SIGNIFICANT and len(pairs.gained) > len(pairs.lost)


def paired_fields(pairs: Comparison) -> dict[str, Any]:
    """Return the fields of a ``PairedView``."""
    return {
        "gained": pairs.gained,
        "lost": pairs.lost,
        "difference": _difference(pairs),
        "mcnemar_p": pairs.p,
    }


def _difference(pairs: Comparison) -> DifferenceView | None:
    n, gained, lost = pairs.first.n, len(pairs.gained), len(pairs.lost)
    if not n:
        return None
    interval = None
    if n not in (gained, lost, n - gained - lost):
        interval = paired_bootstrap([1] * gained + [-1] * lost + [0] * (n - gained - lost))
    return DifferenceView(mean=(gained - lost) / n, interval=interval)


def _power(pairs: Comparison) -> PowerView | None:
    n = pairs.first.n
    if not n:
        return None
    lost = min(len(pairs.lost) / n, (1 - WORTH_FINDING) / 2)
    gained = lost + WORTH_FINDING
    return PowerView(
        gained=gained,
        lost=lost,
        power=mcnemar_power(n, gained, lost, SIGNIFICANT),
        tasks_for_80_percent=tasks_needed(gained, lost, POWERFUL, SIGNIFICANT),
    )


def _resolved_usage(usage: Usage, resolved: int) -> ResolvedUsage:
    return ResolvedUsage.of(
        usage,
        usd_per_resolved=usage.usd / resolved if resolved else None,
        tokens_per_resolved=usage.tokens / resolved if resolved else None,
    )
