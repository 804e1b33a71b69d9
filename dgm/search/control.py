"""The control of equal spend: what the search's money buys without a search, as further attempts of the seed.

Let S be all that the search took (failed and stillborn work included) and c what a first attempt of the seed took in
the mean over the T holdout tasks on which it has a verdict. Then the seed may have k = ⌊S / (c T)⌋ attempts at each
task, at least the one that it had, at most a bound. The unit is USD; where either took none, tokens; else seconds of
work. A task counts as solved when any of the k attempts solves it, as if somebody picked the right one each time. Once
one has, no further attempt is made; what that leaves of S buys none at other tasks, of which all have equally many.

Further attempts are those of a candidate of its own, so that the seed's account and verdicts stay what they are. S and
the bound are in the examination's log, so that its decisions are a function of the log.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from dgm.archive.accounts import Accounts
from dgm.archive.events import ActionLost, ActionStarted, AgentBorn, Control, Recorded, RunStarted, TaskGraded
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import SEED, Action, ActionId, Agent, AgentId, Evaluate, Tally, TaskId, Usage, Verdict
from dgm.policies.roster import Roster
from dgm.search.exam import Comparison, candidate, enter_as, paired

OPERATOR = "control"
"""Of the candidate whose attempts these are."""
MOST = 20
"""Attempts at a task, unless somebody asks for more."""
_ROUNDING = 1e-9
"""What is below a whole number by less counts as that number."""

_SECONDS = """
SELECT coalesce(sum(json_extract(body, '$.seconds')), 0.0) FROM events
WHERE kind IN ('task_graded', 'agent_born', 'agent_stillborn') AND seq <= ?
"""


class Unit(StrEnum):
    """What spend is compared in."""

    USD = "usd"
    TOKENS = "tokens"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True)
class Price:
    """How often the seed is to be had for what the search took."""

    unit: Unit
    search: float
    """All that the search took."""
    attempt: float
    """The mean of the seed's first attempts."""
    tasks: int
    """Those on which the seed's first attempt has a verdict."""

    @property
    def affordable(self) -> int:
        """Attempts at each task, the first included; at least 1."""
        return max(1, int(self.search / (self.attempt * self.tasks) + _ROUNDING))


@dataclass(slots=True)
class _Tried:
    """How far one task is; the seed's first attempt is number 0."""

    started: int = 0
    ended: int = 0
    """With a verdict, or given up."""
    first: Verdict | None = None
    solved_by: int | None = None
    """Number of the attempt."""


class Attempts:
    """The seed's first attempts and those of the control: a fold of the examination's log."""

    def __init__(self) -> None:
        self.tasks: dict[TaskId, _Tried] = {}
        self.session: Control | None = None
        """What this session's control goes by; None where it has none."""
        self.plan: Control | None = None
        """That of the last session that had one."""
        self._controls: set[AgentId] = set()
        self._open: dict[ActionId, Evaluate] = {}
        """Under way, or to be performed again."""
        self._firsts: dict[ActionId, float] = {}
        """The seed's first attempts that have a verdict → seconds."""
        self.seconds = 0.0
        """Of the others that have one."""

    def observe(self, recorded: Recorded) -> None:
        """Folds in the next event."""
        match recorded.event:
            case RunStarted():
                self.session = recorded.event.control
                self.plan = self.session or self.plan
            case AgentBorn(id=agent, operator=operator) if operator == OPERATOR:
                self._controls.add(agent)
            case ActionStarted(action, Evaluate() as what, again) if self._is_one(what):
                self._open[action] = what
                self.tasks.setdefault(what.task, _Tried()).started += not again
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
        """Whether all of the seed's first attempts have ended, so that it can be known what an attempt takes."""
        tried = [self.tasks.get(task) for task in tree.tasks]
        return bool(tried) and all(one is not None and one.ended for one in tried)

    def price(self, tree: Tree, plan: Control | None) -> Price | None:
        """None without a plan, before all of the seed's first attempts have ended, or where nothing took anything."""
        if plan is None or not self._firsts or not self.begun(tree):
            return None
        spent = sum((tree.spend_of(action) for action in self._firsts), Usage())
        searches = (plan.usd, float(plan.tokens), plan.seconds)
        seeds = (spent.usd, float(spent.tokens), sum(self._firsts.values()))
        for unit, search, seed in zip(Unit, searches, seeds, strict=True):
            if search > 0 and seed > 0:
                return Price(unit, search, seed / len(self._firsts), len(self._firsts))
        return None

    def allowed(self, tree: Tree, plan: Control | None) -> int:
        """Attempts at each task, the first included; 1 while there is no price."""
        price = self.price(tree, plan)
        return 1 if price is None or plan is None else max(1, min(price.affordable, plan.attempts))

    def unsolved(self) -> dict[TaskId, _Tried]:
        """Tasks on which the seed has a first verdict, and no attempt a good one."""
        found = self.tasks.items()
        return {task: one for task, one in found if one.first is not None and one.solved_by is None}


class Examination:
    """Every candidate on every task once, then the control's attempts; never expands."""

    name = "examination"
    keeps_state = True

    def __init__(self) -> None:
        self._pairs = Roster(leaving_out=OPERATOR)
        self._attempts = Attempts()

    def next(self, tree: Tree, rng: Random) -> Action | None:
        """The first pair that was not tried; else a further attempt at the unsolved task that had the fewest.

        None when all is done, and while what is to be done depends on what is under way.
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
        """Folds in the next event."""
        self._attempts.observe(event)


@dataclass(frozen=True, slots=True)
class ControlFindings:
    """What the control says so far."""

    price: Price
    bound: int
    """Attempts at each task at most, as it was asked for; not below those that every task has had."""
    attempts: int
    """Attempts that every task has had, or would have had but that one solved it; the first included."""
    further: int
    """Attempts beyond the first ones that have a verdict."""
    missing: int
    """Attempts still to be made, at most; 0: it is complete."""
    once: Tally
    """The seed's first attempts: the rate of a single one."""
    pairs: Comparison
    """``first``: the control, which has solved a task that any of ``attempts`` attempts solved; ``second``: the best
    agent with its one attempt."""
    spend: Usage
    """Of the further attempts."""
    took: float = 0.0
    """What these took, in the unit of the price."""

    @property
    def wanted(self) -> int:
        """Attempts at each task when it is complete."""
        return max(1, min(self.price.affordable, self.bound))


def control_of(run: Run, attempts: int = MOST) -> Control:
    """What a control of the run's search goes by, as it stands.

    Args:
        run: the search.
        attempts: at each task, at most.
    """
    ((seconds,),) = run.store.query(_SECONDS, (run.tree.seq,))
    spend = run.tree.spend
    return Control(spend.usd, spend.tokens, float(seconds), attempts)


def enter_control(exam: Run, search: Run) -> AgentId:
    """The control in the examination of a search; entered if it was not yet."""
    commit = search.tree.agents[SEED].commit
    return enter_as(exam, f"control {commit}", lambda: search.repository.source(commit), OPERATOR)


def attempts_missing(exam: Run, plan: Control) -> int | None:
    """How many attempts a control that goes by ``plan`` still has to make, at most; None where nobody knows yet."""
    attempts = _folded(exam)
    if not attempts.begun(exam.tree):
        return None
    return _missing(attempts, attempts.allowed(exam.tree, plan))


def control_findings(exam: Run, best: Agent, now: Control) -> ControlFindings | None:
    """What the control in an examination says of an agent of the search; None where it has none, or not yet.

    All tasks are judged by equally many attempts: those of a round that is not complete count for no task. One that
    nobody asked for is there all the same where no further attempt belongs to it.

    Args:
        exam: the examination.
        best: the agent.
        now: from ``control_of``: what the search has taken by now, which may be more than when attempts were made.
    """
    attempts, entered = _folded(exam), candidate(exam, best)
    plan = now if attempts.plan is None else replace(now, attempts=attempts.plan.attempts)
    price, wanted = attempts.price(exam.tree, plan), attempts.allowed(exam.tree, plan)
    if price is None or entered is None or (attempts.plan is None and wanted > 1):
        return None
    rounds = min((one.ended for one in attempts.unsolved().values()), default=wanted)
    graded = {task: one for task, one in attempts.tasks.items() if one.first is not None}
    said = {task: _within(one, rounds) for task, one in graded.items()}
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
        missing=_missing(attempts, wanted),
        once=Tally(first, len(graded) - first),
        pairs=paired((task, said.get(task), verdicts.get(task)) for task in tree.tasks),
        spend=spend,
        took=took[price.unit],
    )


def _within(task: _Tried, rounds: int) -> Verdict:
    solved = task.solved_by is not None and task.solved_by < rounds
    return Verdict.RESOLVED if solved else Verdict.UNRESOLVED


def _missing(attempts: Attempts, wanted: int) -> int:
    return sum(max(0, wanted - one.ended) for one in attempts.unsolved().values())


def _folded(exam: Run) -> Attempts:
    attempts = Attempts()
    for recorded in exam.store.read():
        if recorded.seq <= exam.tree.seq:
            attempts.observe(recorded)
    return attempts
