"""The one policy of evaluations outside of a search: chosen pairs of agent and task, once each.

Such an evaluation is a small run of its own, made by the loop, worker and journal of a search. So it resumes, pays for
nothing twice and replays in the same way; and as its log is a separate one, no result reaches a policy or an operator.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Self

from dgm.analysis.accounts import Accounts
from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    Control,
    Recorded,
    RunStarted,
    TaskGraded,
    VerdictWithdrawn,
)
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import (
    Action,
    ActionId,
    Agent,
    AgentId,
    Born,
    Evaluate,
    Evaluation,
    Snapshot,
    Tally,
    Task,
    TaskId,
    Usage,
    Verdict,
)
from dgm.stats import mcnemar

CONTROL = "control"
"""Key, and operator, of the agent that makes a control's further attempts."""
_STEPS = "kind IN ('run_started', 'action_started', 'action_lost', 'task_graded', 'verdict_withdrawn')"


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """Evaluations in the order of their starts; the agents are entered in the run that holds them."""

    wanted: Sequence[Evaluate]

    @classmethod
    def all_pairs(cls, agents: Sequence[AgentId], tasks: Sequence[TaskId], attempts: int = 1) -> Self:
        """Return every agent on every task: first attempts of all tasks first, agents side by side."""
        return cls(
            [
                Evaluate(agent, task, attempt)
                for attempt in range(attempts)
                for task in tasks
                for agent in agents
            ]
        )

    @property
    def agents(self) -> tuple[AgentId, ...]:
        """Agents, each once."""
        return tuple(dict.fromkeys(what.agent for what in self.wanted))

    @property
    def tasks(self) -> tuple[TaskId, ...]:
        """Tasks, each once."""
        return tuple(dict.fromkeys(what.task for what in self.wanted))

    @property
    def attempts(self) -> int:
        """Maximum number of attempts at a task."""
        return 1 + max((what.attempt for what in self.wanted), default=0)


class EvaluationProgress:
    """Evaluations that were started, graded and abandoned: a fold of the log."""

    def __init__(self) -> None:
        self.started: dict[Evaluate, ActionId] = {}
        self.graded: dict[Evaluate, Evaluation] = {}
        self.abandoned: dict[Evaluate, str] = {}
        """Evaluations that the infrastructure failed too often → why."""
        self.control: Control | None = None
        """The control of equal spend of this session; None if it has none."""
        self.last_control: Control | None = None
        """The control of the last session that had one."""
        self._actions: dict[ActionId, Evaluate] = {}

    @classmethod
    def read(cls, run: Run) -> Self:
        """Return the progress of a run as far as its tree has read the log."""
        progress = cls()
        for recorded in run.store.select(_STEPS):
            if recorded.seq <= run.tree.seq:
                progress.observe(recorded)
        return progress

    def observe(self, recorded: Recorded) -> None:
        """Fold in the next event."""
        match recorded.event:
            case RunStarted(control=control):
                self.control = control
                self.last_control = control or self.last_control
            case ActionStarted(action, Evaluate() as what):
                self._actions[action] = what
                self.started.setdefault(what, action)
            case TaskGraded(action, outcome) if outcome.verdict is not Verdict.INVALID:
                self.graded[self._actions[action]] = outcome
            case VerdictWithdrawn(what=what):
                self.graded.pop(what, None)
            case ActionLost(action, reason, True) if action in self._actions:
                self.abandoned[self._actions[action]] = reason
            case _:
                pass

    def has_ended(self, what: Evaluate) -> bool:
        """Return whether an evaluation has a verdict or was abandoned."""
        return what in self.graded or what in self.abandoned

    def missing(self, wanted: Iterable[Evaluate]) -> list[Evaluate]:
        """Return the evaluations that have not ended."""
        return [what for what in wanted if not self.has_ended(what)]


class Schedule:
    """A policy that starts each wanted evaluation once, in order; it never expands."""

    name = "schedule"
    keeps_state = True

    def __init__(self, wanted: Callable[[Tree], Iterable[Evaluate]]) -> None:
        """Take a function that returns the wanted evaluations, which may grow with the tree."""
        self._wanted = wanted
        self.progress = EvaluationProgress()

    def next(self, tree: Tree, rng: Random) -> Action | None:  # noqa: ARG002  (nothing is left to chance)
        """Return the first evaluation that was not started; None when all were."""
        return next((what for what in self._wanted(tree) if what not in self.progress.started), None)

    def observe(self, event: Recorded) -> None:
        """Fold in the next event."""
        self.progress.observe(event)


def first_attempts(tree: Tree) -> Iterator[Evaluate]:
    """Yield the first attempt at each task of each agent except the control's, task by task."""
    for task in tree.tasks:
        for agent in tree.agents:
            if agent.key != CONTROL:
                yield Evaluate(agent.id, task)


def enter(run: Run, key: str, source: Callable[[], Snapshot], operator: str = "candidate") -> AgentId:
    """Return the agent that was entered under ``key``; enter it with ``source`` if it is missing."""
    entered = find_entered(run, key)
    if entered is not None:
        return entered
    child = Born((), operator, run.repository.commit(source(), ()), "")
    event = run.birth(child, ActionId(0), key=key)
    run.append(event)
    return event.id


def enter_agent(run: Run, search: Run, agent: Agent) -> AgentId:
    """Return the candidate that stands for an agent of a search; enter it if it is missing."""
    return enter(run, agent.commit, lambda: search.repository.source(agent.commit))


def find_entered(run: Run, key: str) -> AgentId | None:
    """Return the agent that was entered under ``key``, for an agent of a search its commit; None if there is none."""
    return next((agent.id for agent in run.tree.agents if agent.key == key), None)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two agents on the same tasks; a pair counts if both have a verdict."""

    first: Tally
    second: Tally
    gained: tuple[str, ...]
    """Tasks that only the second resolved."""
    lost: tuple[str, ...]
    """Tasks that only the first resolved."""
    p: float
    """p-value of the exact two-sided McNemar test over the pairs, from 0 to 1."""


def compare_verdicts(verdicts: Iterable[tuple[str, Verdict | None, Verdict | None]]) -> Comparison:
    """Compare two verdicts on each named thing; a pair counts only if both are graded."""
    graded = {Verdict.RESOLVED, Verdict.UNRESOLVED}
    pairs = [
        (name, first is Verdict.RESOLVED, second is Verdict.RESOLVED)
        for name, first, second in verdicts
        if first in graded and second in graded
    ]
    gained = tuple(name for name, first, second in pairs if second and not first)
    lost = tuple(name for name, first, second in pairs if first and not second)
    resolved = sum(first for _, first, _ in pairs), sum(second for *_, second in pairs)
    first, second = (Tally(number, len(pairs) - number) for number in resolved)
    return Comparison(first, second, gained, lost, mcnemar(len(lost), len(gained)))


def compare_agents(run: Run, first: AgentId, second: AgentId) -> Comparison:
    """Compare two agents' first attempts at the tasks of the run's last session."""
    tree = run.tree
    return compare_verdicts(
        (task, tree.verdict(first, task), tree.verdict(second, task)) for task in tree.tasks
    )


@dataclass(frozen=True, slots=True)
class AgentResult:
    """One agent's wanted evaluations."""

    agent: AgentId
    graded: Sequence[Evaluation]
    abandoned: Mapping[TaskId, str]
    """Tasks without a first verdict because the infrastructure failed too often → why."""
    missing: int
    """Number of evaluations that are not done (yet)."""
    spend: Usage
    """Usage, lost and invalid tries included."""

    @property
    def first(self) -> Mapping[TaskId, Evaluation]:
        """First attempts, by task."""
        return {done.task: done for done in self.graded if done.attempt == 0}

    @property
    def tally(self) -> Tally:
        """Tally of first attempts, so that every task counts once."""
        return sum_tallies(self.first.values())

    @property
    def any(self) -> Tally:
        """Tally of tasks; a task is resolved if some attempt resolved it."""
        resolved = {done.task for done in self.graded if done.verdict is Verdict.RESOLVED}
        return Tally(len(resolved), len({done.task for done in self.graded} - resolved))

    @property
    def attempts(self) -> Tally:
        """Tally of all attempts together; those on one task are not independent."""
        return sum_tallies(self.graded)

    @property
    def unresolved(self) -> Mapping[TaskId, str]:
        """Tasks that the first attempt did not resolve → why."""
        return {task: done.reason for task, done in self.first.items() if done.verdict is Verdict.UNRESOLVED}

    def by_tag(self, tasks: Iterable[Task]) -> Mapping[str, Tally]:
        """Return the tally of first attempts by tag, sorted by name; a task counts under each of its tags.

        If several benchmarks are mixed, their names are tags too.
        """
        first, tasks = self.first, list(tasks)
        is_mixed = len({task.benchmark for task in tasks}) > 1
        tallies: dict[str, Tally] = {}
        for task in tasks:
            if task.id in first:
                for tag in {task.benchmark, *task.tags} if is_mixed else set(task.tags):
                    tallies[tag] = tallies.get(tag, Tally()) + first[task.id].tally
        return dict(sorted(tallies.items()))


def sum_tallies(evaluations: Iterable[Evaluation]) -> Tally:
    """Return the tally of the evaluations."""
    return sum((evaluation.tally for evaluation in evaluations), Tally())


def collect_results(run: Run, plan: EvaluationPlan) -> Sequence[AgentResult]:
    """Return the results of the wanted evaluations so far, agent by agent."""
    progress, accounts = EvaluationProgress.read(run), Accounts(run)
    results = []
    for agent in plan.agents:
        wanted = [what for what in plan.wanted if what.agent == agent]
        actions = {progress.started.get(what) for what in wanted}
        lines = [line.usage for line in accounts.of(agent).lines if line.action in actions]
        results.append(
            AgentResult(
                agent=agent,
                graded=[progress.graded[what] for what in wanted if what in progress.graded],
                abandoned={
                    what.task: progress.abandoned[what]
                    for what in wanted
                    if what in progress.abandoned and what.attempt == 0
                },
                missing=len(progress.missing(wanted)),
                spend=sum(lines, Usage()),
            )
        )
    return results


def compare_first_attempts(first: AgentResult, second: AgentResult) -> Comparison:
    """Compare two agents' first attempts, task by task."""
    one, other = first.first, second.first
    return compare_verdicts((task, one[task].verdict, other[task].verdict) for task in one if task in other)
