"""The one policy of evaluations outside of a search: chosen pairs of agent and task, once each.

Such an evaluation is a small run of its own, made by the loop, worker and journal of a search. So it resumes, pays for
nothing twice and replays in the same way; and as its log is a separate one, no result reaches a policy or an operator.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Self

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
from dgm.domain import Action, ActionId, Agent, AgentId, Born, Evaluate, Evaluation, Snapshot, TaskId, Verdict

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
