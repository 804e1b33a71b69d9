"""The control of equal spend: further attempts of the seed for the search's money, without a search.

Let S be the whole spend of the search, failed and stillborn work included. Let c be the mean spend of the
seed's first attempt over the T holdout tasks on which it has a verdict. Then the seed may have k = ⌊S / (c T)⌋
attempts at each task. Here k is at least 1, for the attempt that it had, and at most a bound. The unit is USD.
If either spend is zero in USD, it is tokens; else seconds of work.

A task counts as solved when any of the k attempts solves it, as if somebody picked the right one each time. A
solved task gets no further attempt. The money saved buys none at other tasks: all tasks have equally many.

Further attempts belong to a candidate of its own, so that the seed's account and verdicts stay unchanged. S and
the bound are in the examination's log, so that its decisions are a function of the log.

Where equal requests have equal answers, further attempts repeat the first one, and a control shows nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from dgm.analysis.accounts import Accounts
from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    Control,
    Recorded,
    RunStarted,
    TaskGraded,
)
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import SEED, Action, ActionId, Agent, AgentId, Evaluate, Tally, TaskId, Usage, Verdict
from dgm.evaluation.exam import (
    Comparison,
    compare_verdicts,
    count_missing_firsts,
    enter_under_key,
    find_candidate,
)
from dgm.policies.roster import Roster

OPERATOR = "control"
"""Operator of the candidate that makes the further attempts."""
MOST = 20
"""Default maximum number of attempts at a task."""
_ROUNDING = 1e-9
"""A value below a whole number by less than this counts as that number."""

_STEPS = "kind IN ('run_started', 'agent_born', 'action_started', 'action_lost', 'task_graded')"


class Unit(StrEnum):
    """Unit in which spends are compared."""

    USD = "usd"
    TOKENS = "tokens"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True)
class AttemptPrice:
    """The spend of the search and of one attempt of the seed."""

    unit: Unit
    search: float
    """Whole spend of the search, in ``unit``."""
    attempt: float
    """Mean spend of the seed's first attempts, in ``unit``."""
    tasks: int
    """Number of tasks on which the seed's first attempt has a verdict."""

    @property
    def affordable(self) -> int:
        """Attempts at each task, the first included; at least 1."""
        return max(1, int(self.search / (self.attempt * self.tasks) + _ROUNDING))


@dataclass(slots=True)
class _TaskProgress:
    """Progress of one task; the seed's first attempt is number 0."""

    started: int = 0
    ended: int = 0
    """Attempts with a verdict, or given up."""
    first: Verdict | None = None
    solved_by: int | None = None
    """Number of the first attempt that solved it; None: unsolved."""


class Attempts:
    """The seed's first attempts and those of the control: a fold of the examination's log."""

    def __init__(self) -> None:
        self.tasks: dict[TaskId, _TaskProgress] = {}
        self.session: Control | None = None
        """The control of this session; None if it has none."""
        self.plan: Control | None = None
        """The control of the last session that had one."""
        self._controls: set[AgentId] = set()
        self._open: dict[ActionId, Evaluate] = {}
        """Attempts under way, or to be performed again."""
        self._firsts: dict[ActionId, float] = {}
        """The seed's first attempts that have a verdict → seconds."""
        self.seconds = 0.0
        """Seconds of the further attempts that have a verdict."""

    def observe(self, recorded: Recorded) -> None:
        """Fold in the next event."""
        match recorded.event:
            case RunStarted():
                self.session = recorded.event.control
                self.plan = self.session or self.plan
            case AgentBorn(id=agent, outcome=child) if child.operator == OPERATOR:
                self._controls.add(agent)
            case ActionStarted(action, Evaluate() as what, again) if self._is_one(what):
                self._open[action] = what
                self.tasks.setdefault(what.task, _TaskProgress()).started += not again
            case TaskGraded(action, outcome) if action in self._open:
                if outcome.verdict is not Verdict.INVALID:
                    self._graded(action, outcome.verdict, outcome.cost.seconds)
            case ActionLost(action, _, True) if action in self._open:
                self.tasks[self._open.pop(action).task].ended += 1
            case _:
                pass

    def _is_one(self, what: Evaluate) -> bool:
        return what.agent in self._controls or (what.agent == SEED and what.attempt == 0)

    def _graded(self, action: ActionId, verdict: Verdict, seconds: float) -> None:
        what = self._open.pop(action)
        task = self.tasks[what.task]
        task.ended += 1
        if what.attempt == 0:
            task.first = verdict
            self._firsts[action] = seconds
        else:
            self.seconds += seconds
        if verdict is Verdict.RESOLVED and task.solved_by is None:
            task.solved_by = what.attempt

    def begun(self, tree: Tree) -> bool:
        """Return whether all of the seed's first attempts have ended, so that the spend of an attempt is known."""
        tried = [self.tasks.get(task) for task in tree.tasks]
        return bool(tried) and all(one is not None and one.ended for one in tried)

    def price(self, tree: Tree, plan: Control | None) -> AttemptPrice | None:
        """Return the price of an attempt.

        None without a plan, before all of the seed's first attempts have ended, or if nothing was spent.
        """
        mean = self.mean_attempt(tree)
        if plan is None or mean is None or not self.begun(tree):
            return None
        for unit, search, attempt in zip(Unit, _spends(plan), mean, strict=True):
            if search > 0 and attempt > 0:
                return AttemptPrice(unit, search, attempt, len(self._firsts))
        return None

    def mean_attempt(self, tree: Tree) -> tuple[float, float, float] | None:
        """Return the mean spend of the seed's first attempts in USD, tokens and seconds; None before the first one."""
        count = len(self._firsts)
        if not count:
            return None
        spent = sum((tree.spend_of(action) for action in self._firsts), Usage())
        return spent.usd / count, spent.tokens / count, sum(self._firsts.values()) / count

    def allowed(self, tree: Tree, plan: Control | None) -> int:
        """Return the attempts at each task, the first included; 1 while there is no price."""
        price = self.price(tree, plan)
        return 1 if price is None or plan is None else max(1, min(price.affordable, plan.attempts))

    def unsolved(self) -> dict[TaskId, _TaskProgress]:
        """Return the tasks on which the seed has a first verdict and that no attempt resolved."""
        found = self.tasks.items()
        return {task: one for task, one in found if one.first is not None and one.solved_by is None}


class Examination:
    """A policy that tries every candidate on every task once, then the control's attempts; it never expands."""

    name = "examination"
    keeps_state = True

    def __init__(self) -> None:
        self._pairs = Roster(leaving_out=OPERATOR)
        self._attempts = Attempts()

    def next(self, tree: Tree, rng: Random) -> Action | None:
        """Return the first untried pair; else a further attempt at the unsolved task with the fewest attempts.

        None when all is done, and while the next attempt depends on attempts under way.
        """
        pair = self._pairs.next(tree, rng)
        who = next((agent.id for agent in tree.agents if agent.operator == OPERATOR), None)
        if pair is not None or who is None:
            return pair
        allowed = self._attempts.allowed(tree, self._attempts.session)
        free = [
            (one.started, task)
            for task, one in self._attempts.unsolved().items()
            if one.started == one.ended and one.started < allowed
        ]
        if not free:
            return None
        number, task = min(free, key=lambda each: each[0])
        return Evaluate(who, task, number)

    def observe(self, event: Recorded) -> None:
        """Fold in the next event."""
        self._attempts.observe(event)


@dataclass(frozen=True, slots=True)
class ControlFindings:
    """The findings of the control so far."""

    price: AttemptPrice
    bound: int
    """Maximum number of attempts at each task, as asked for; not below the number that every task has had."""
    attempts: int
    """Attempts that every task has had, the first included; a solved task counts as having had them."""
    further: int
    """Number of attempts beyond the first ones that have a verdict."""
    missing: int
    """Maximum number of attempts still to be made; 0: the control is complete."""
    once: Tally
    """The seed's first attempts: the rate of a single attempt."""
    pairs: Comparison
    """Comparison of the control (``first``) with the best agent and its one attempt (``second``).

    The control has solved a task if any of ``attempts`` attempts solved it.
    """
    spend: Usage
    """Usage of the further attempts."""
    took: float = 0.0
    """Spend of the further attempts, in the unit of the price."""

    @property
    def wanted(self) -> int:
        """Attempts at each task when the control is complete."""
        return max(1, min(self.price.affordable, self.bound))


def control_of(run: Run, attempts: int = MOST) -> Control:
    """Return a control of the run's search, with the spend of the search so far.

    Args:
        run: the search.
        attempts: at each task, at most.
    """
    ends = run.store.events(TaskGraded, AgentBorn, AgentStillborn, until=run.tree.seq)
    spend, seconds = run.tree.spend, sum(event.outcome.cost.seconds for event in ends)
    return Control(spend.usd, spend.tokens, seconds, attempts)


@dataclass(frozen=True, slots=True)
class ControlCost:
    """The maximum remaining work of a control, if every attempt costs as much as the seed's mean first attempt."""

    attempts: int
    usd: float
    tokens: float
    seconds: float
    """Seconds of work, by all workers together."""


def estimate_cost(search: Run, exam: Run | None, plan: Control, tasks: int) -> ControlCost:
    """Return the cost of what a control by ``plan`` still has to do.

    Until the seed has tried all holdout tasks, its attempts at search tasks tell the price of one; without any, the
    control costs as much as the search.

    Args:
        search: the search.
        exam: its examination, if that was begun.
        plan: from ``control_of``.
        tasks: number of holdout tasks.
    """
    firsts = None if exam is None else _fold_attempts(exam)
    if exam is not None and firsts is not None and firsts.begun(exam.tree):
        left, mean = _count_missing(firsts, firsts.allowed(exam.tree, plan)), firsts.mean_attempt(exam.tree)
    else:
        left, mean = tasks * (plan.attempts - 1), _fold_attempts(search).mean_attempt(search.tree)
        paid = [
            spend / each for spend, each in zip(_spends(plan), mean or (), strict=False) if spend and each
        ]
        left = min(left, max(1, int(paid[0]))) if paid else left
    usd, tokens, seconds = [left * each for each in mean] if mean else _spends(plan)
    return ControlCost(left, usd, tokens, seconds)


def name_candidates(exam: Run, search: Run, best: Agent) -> Mapping[AgentId, str]:
    """Return the candidates' names for people: ``seed``, ``best (37)``, ``agent 30``, ``control``."""
    numbers = {str(agent.commit): f"agent {agent.id}" for agent in search.tree.agents}
    names = {agent.id: numbers.get(agent.rationale, "control") for agent in exam.tree.agents}
    entered = find_candidate(exam, best)
    return {**names, **({entered: f"best ({best.id})"} if entered is not None else {}), SEED: "seed"}


class ExamProgress:
    """The evaluations of an examination by candidate, done and in all: a fold of its log."""

    def __init__(self, exam: Run, names: Mapping[AgentId, str], expected: int) -> None:
        """Begin with the log so far.

        Args:
            exam: in its session.
            names: from ``name_candidates``.
            expected: the control's attempts, until the seed's first attempts are over and give their number.
        """
        self._exam, self._names, self._expected = exam, names, expected
        self._attempts = _fold_attempts(exam)

    def observe(self, recorded: Recorded) -> None:
        """Fold in the next event."""
        self._attempts.observe(recorded)

    def counts(self) -> Mapping[str, tuple[int, int]]:
        """Return the name of each candidate with work → its evaluations done, and all of them."""
        tree = self._exam.tree
        counts: dict[str, tuple[int, int]] = {}
        for agent in tree.agents:
            if agent.operator == OPERATOR:
                done, left = self._count_control()
            else:
                left = count_missing_firsts(self._exam, agent.id)
                done = len(tree.tasks) - left
            if done + left:
                counts[self._names[agent.id]] = (done, done + left)
        return counts

    def _count_control(self) -> tuple[int, int]:
        done = sum(max(0, task.ended - 1) for task in self._attempts.tasks.values())
        if self._attempts.session is None:
            return done, 0
        if not self._attempts.begun(self._exam.tree):
            return done, self._expected
        allowed = self._attempts.allowed(self._exam.tree, self._attempts.session)
        return done, _count_missing(self._attempts, allowed)


def enter_control(exam: Run, search: Run) -> AgentId:
    """Return the control's candidate in the examination of a search; enter it if it is missing."""
    commit = search.tree.agents[SEED].commit
    return enter_under_key(exam, f"control {commit}", lambda: search.repository.source(commit), OPERATOR)


def count_missing_attempts(exam: Run, plan: Control) -> int | None:
    """Return the maximum number of attempts that a control by ``plan`` still has to make; None if not yet known."""
    attempts = _fold_attempts(exam)
    if not attempts.begun(exam.tree):
        return None
    return _count_missing(attempts, attempts.allowed(exam.tree, plan))


def compute_findings(exam: Run, best: Agent, now: Control) -> ControlFindings | None:
    """Return the control's findings on an agent of the search; None without a control, or while they are not known.

    All tasks are judged by equally many attempts: attempts of an incomplete round count for no task. If no
    further attempt is allowed, the findings exist even if nobody asked for a control.

    Args:
        exam: the examination.
        best: the agent.
        now: from ``control_of``: the search's spend by now, which may be more than when attempts were made.
    """
    attempts, entered = _fold_attempts(exam), find_candidate(exam, best)
    plan = now if attempts.plan is None else replace(now, attempts=attempts.plan.attempts)
    price, wanted = attempts.price(exam.tree, plan), attempts.allowed(exam.tree, plan)
    if price is None or entered is None or (attempts.plan is None and wanted > 1):
        return None
    rounds = min((one.ended for one in attempts.unsolved().values()), default=wanted)
    graded = {task: one for task, one in attempts.tasks.items() if one.first is not None}
    said = {task: _verdict_within(one, rounds) for task, one in graded.items()}
    verdicts = exam.tree.verdicts(entered)
    first = sum(one.first is Verdict.RESOLVED for one in graded.values())
    tree = exam.tree
    who = next((agent.id for agent in tree.agents if agent.operator == OPERATOR), None)
    spend = Usage() if who is None else Accounts(exam).of(who).total
    took = {Unit.USD: spend.usd, Unit.TOKENS: float(spend.tokens), Unit.SECONDS: attempts.seconds}
    return ControlFindings(
        price=price,
        bound=max(plan.attempts, rounds),
        attempts=rounds,
        further=0 if who is None else tree.own(who).n,
        missing=_count_missing(attempts, wanted),
        once=Tally(first, len(graded) - first),
        pairs=compare_verdicts((task, said.get(task), verdicts.get(task)) for task in tree.tasks),
        spend=spend,
        took=took[price.unit],
    )


def _spends(plan: Control) -> tuple[float, float, float]:
    """Return the spend of the search in USD, tokens and seconds."""
    return plan.usd, float(plan.tokens), plan.seconds


def _verdict_within(task: _TaskProgress, rounds: int) -> Verdict:
    solved = task.solved_by is not None and task.solved_by < rounds
    return Verdict.RESOLVED if solved else Verdict.UNRESOLVED


def _count_missing(attempts: Attempts, wanted: int) -> int:
    return sum(max(0, wanted - one.ended) for one in attempts.unsolved().values())


def _fold_attempts(exam: Run) -> Attempts:
    attempts = Attempts()
    for recorded in exam.store.select(_STEPS):
        if recorded.seq <= exam.tree.seq:
            attempts.observe(recorded)
    return attempts
