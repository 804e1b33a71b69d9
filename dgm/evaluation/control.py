"""Holdout evaluations, with the control of equal spend: further attempts of the seed for the search's money.

Let S be the total spend of the search, failed and stillborn work included. Let c be the mean spend of the seed's first
attempt over the T holdout tasks on which it has a verdict. Then the seed may have k = ⌊S / (c T)⌋ attempts at each
task. Here k is at least 1, for the attempt that it had, and at most a bound. The unit is USD. If either spend is zero
in USD, it is tokens; else seconds of work.

A task counts as solved when any of the k attempts solves it, as if somebody picked the right one each time. A solved
task gets no further attempt. The money saved buys none at other tasks: all tasks have equally many.

Further attempts belong to an agent of their own, so that the seed's account and verdicts stay unchanged. S and the
bound are in the log of the holdout evaluation, so that its decisions are a function of the log.

Where equal requests have equal answers, further attempts repeat the first one, and a control shows nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from dgm.archive.events import AgentBorn, AgentStillborn, Control, TaskGraded
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import SEED, Action, Agent, AgentId, Evaluate, TaskId, Usage, Verdict
from dgm.evaluation.schedule import CONTROL, EvaluationProgress, Schedule, enter, find_entered, first_attempts

FOLDER = "holdout"
"""Folder of a search's holdout evaluation in the search's own."""
MAX_ATTEMPTS = 20
"""Default maximum number of attempts at a task."""
_ROUNDING = 1e-9
"""A value below a whole number by less than this counts as that number."""


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
    """Total spend of the search, in ``unit``."""
    attempt: float
    """Mean spend of the seed's first attempts, in ``unit``."""
    tasks: int
    """Number of tasks on which the seed's first attempt has a verdict."""

    @property
    def affordable(self) -> int:
        """Attempts at each task, the first included; at least 1."""
        return max(1, int(self.search / (self.attempt * self.tasks) + _ROUNDING))


@dataclass(frozen=True, slots=True)
class TaskAttempts:
    """The seed's first attempt at a task, number 0, and those of the control."""

    started: int
    ended: int
    """Attempts with a verdict, or abandoned."""
    first: Verdict | None
    solved_by: int | None
    """Number of the first attempt that solved it; None: unsolved."""


class Attempts:
    """The seed's first attempts and those of the control, as a holdout evaluation's log has them at one moment."""

    def __init__(self, tree: Tree, progress: EvaluationProgress, plan: Control | None = None) -> None:
        """Count the attempts; ``plan`` gives the limits of further ones."""
        self._tree, self._plan, self._graded = tree, plan, progress.graded
        self.control = next((agent.id for agent in tree.agents if agent.key == CONTROL), None)
        self.tasks = {what.task: self._count(what, progress) for what in filter(_is_first, progress.started)}
        done = list(filter(_is_first, self._graded))
        self.mean: tuple[float, float, float] | None = None
        """Mean spend of the seed's first attempts in USD, tokens and seconds; None before the first one."""
        if done:
            spent = sum((tree.spend_of(progress.started[what]) for what in done), Usage())
            seconds = sum(self._graded[what].cost.seconds for what in done)
            self.mean = spent.usd / len(done), spent.tokens / len(done), seconds / len(done)
        self.price = self._find_price(len(done))
        """Price of an attempt; None without a plan, before all first attempts have ended, or if nothing was spent."""
        self.allowed = (
            1 if self.price is None or plan is None else max(1, min(self.price.affordable, plan.attempts))
        )
        """Attempts at each task, the first included."""

    def _count(self, first: Evaluate, progress: EvaluationProgress) -> TaskAttempts:
        attempts = [first]
        while (
            self.control is not None
            and (following := Evaluate(self.control, first.task, len(attempts))) in progress.started
        ):
            attempts.append(following)
        verdicts = [self._graded[what].verdict if what in self._graded else None for what in attempts]
        return TaskAttempts(
            started=len(attempts),
            ended=sum(map(progress.has_ended, attempts)),
            first=verdicts[0],
            solved_by=verdicts.index(Verdict.RESOLVED) if Verdict.RESOLVED in verdicts else None,
        )

    def _find_price(self, graded: int) -> AttemptPrice | None:
        if self._plan is None or self.mean is None or not self.firsts_ended:
            return None
        for unit, search, attempt in zip(Unit, _spends(self._plan), self.mean, strict=True):
            if search > 0 and attempt > 0:
                return AttemptPrice(unit, search, attempt, graded)
        return None

    @property
    def firsts_ended(self) -> bool:
        """Whether all of the seed's first attempts have ended, so that the spend of an attempt is known."""
        tasks = self._tree.tasks
        return bool(tasks) and all(task in self.tasks and self.tasks[task].ended for task in tasks)

    @property
    def unsolved(self) -> Mapping[TaskId, TaskAttempts]:
        """Tasks on which the seed has a first verdict and that no attempt resolved."""
        return {
            task: done
            for task, done in self.tasks.items()
            if done.first is not None and done.solved_by is None
        }

    @property
    def missing(self) -> int:
        """Maximum number of attempts still to be made."""
        return sum(max(0, self.allowed - done.ended) for done in self.unsolved.values())

    @property
    def seconds(self) -> float:
        """Seconds of the further attempts that have a verdict."""
        return sum(done.cost.seconds for what, done in self._graded.items() if what.agent == self.control)


class HoldoutSchedule(Schedule):
    """A policy that tries every candidate on every task once, then the control's attempts; it never expands."""

    name = "holdout"

    def __init__(self) -> None:
        super().__init__(first_attempts)

    def next(self, tree: Tree, rng: Random) -> Action | None:
        """Return the first untried pair; else a further attempt at the unsolved task with the fewest attempts.

        None when all is done, and while the next attempt depends on attempts under way.
        """
        pair = super().next(tree, rng)
        if pair is not None:
            return pair
        attempts = Attempts(tree, self.progress, self.progress.control)
        free = [
            (done.started, task)
            for task, done in attempts.unsolved.items()
            if done.started == done.ended and done.started < attempts.allowed
        ]
        if not free or attempts.control is None:
            return None
        number, task = min(free, key=lambda pair: pair[0])
        return Evaluate(attempts.control, task, number)


def plan_control(search: Run, attempts: int = MAX_ATTEMPTS) -> Control:
    """Return a control of a search, with its spend so far, and at most so many attempts at each task."""
    ends = search.store.events(TaskGraded, AgentBorn, AgentStillborn, until=search.tree.seq)
    spend, seconds = search.tree.spend, sum(event.outcome.cost.seconds for event in ends)
    return Control(spend.usd, spend.tokens, seconds, attempts)


def enter_control(holdout: Run, search: Run) -> AgentId:
    """Return the control's agent in the holdout evaluation of a search; enter it if it is missing."""
    commit = search.tree.agents[SEED].commit
    return enter(holdout, CONTROL, lambda: search.repository.source(commit), CONTROL)


@dataclass(frozen=True, slots=True)
class ControlCost:
    """The maximum remaining work of a control, if every attempt costs as much as the seed's mean first attempt."""

    attempts: int
    usd: float
    tokens: float
    seconds: float
    """Seconds of work, by all workers together."""


def estimate_cost(search: Run, holdout: Run | None, plan: Control, tasks: int) -> ControlCost:
    """Return the cost of what a control by ``plan`` still has to do.

    Until the seed has tried all holdout tasks, its attempts at search tasks tell the price of one; without any, the
    control costs as much as the search.

    Args:
        search: the search.
        holdout: its holdout evaluation, if that was begun.
        plan: from ``plan_control``.
        tasks: number of holdout tasks.
    """
    attempts = holdout and read_attempts(holdout, plan)
    if attempts and attempts.firsts_ended:
        missing, mean = attempts.missing, attempts.mean
    else:
        missing, mean = tasks * (plan.attempts - 1), read_attempts(search).mean
        bought = [
            int(spend / each)
            for spend, each in zip(_spends(plan), mean or (), strict=False)
            if spend and each
        ]
        missing = min([missing, *(max(1, number) for number in bought[:1])])
    usd, tokens, seconds = [missing * each for each in mean] if mean else _spends(plan)
    return ControlCost(missing, usd, tokens, seconds)


def read_attempts(run: Run, plan: Control | None = None) -> Attempts:
    """Return the attempts in a run's log."""
    return Attempts(run.tree, EvaluationProgress.read(run), plan)


def name_candidates(holdout: Run, search: Run, best: Agent) -> Mapping[AgentId, str]:
    """Return the agents' names for people: ``seed``, ``best (37)``, ``agent 30``, ``control``."""
    numbers = {find_entered(holdout, agent.commit): f"agent {agent.id}" for agent in search.tree.agents}
    names = {agent.id: numbers.get(agent.id, "control") for agent in holdout.tree.agents}
    entered = find_entered(holdout, best.commit)
    return {**names, **({entered: f"best ({best.id})"} if entered is not None else {}), SEED: "seed"}


def count_evaluations(
    holdout: Run, progress: EvaluationProgress, names: Mapping[AgentId, str], expected: int
) -> Mapping[str, tuple[int, int]]:
    """Return the name of each agent with work → its evaluations done, and all of them.

    Args:
        holdout: in its session.
        progress: of its log.
        names: from ``name_candidates``.
        expected: the control's attempts, until the seed's first attempts are over and give their number.
    """
    tree, plan = holdout.tree, progress.control
    counts: dict[str, tuple[int, int]] = {}
    for agent in tree.agents:
        if agent.key == CONTROL:
            attempts = Attempts(tree, progress, plan)
            done = sum(max(0, task.ended - 1) for task in attempts.tasks.values())
            missing = 0 if plan is None else attempts.missing if attempts.firsts_ended else expected
        else:
            missing = len(progress.missing(Evaluate(agent.id, task) for task in tree.tasks))
            done = len(tree.tasks) - missing
        if done + missing:
            counts[names[agent.id]] = (done, done + missing)
    return counts


def _is_first(what: Evaluate) -> bool:
    return what.agent == SEED and what.attempt == 0


def _spends(plan: Control) -> tuple[float, float, float]:
    """Return the spend of the search in USD, tokens and seconds."""
    return plan.usd, float(plan.tokens), plan.seconds
