"""Trees and runs made by hand, for tests of policies and of the loop."""

from collections.abc import Iterable
from random import Random

from dgm.archive.events import (
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    Event,
    Recorded,
    RunStarted,
    TaskGraded,
    VerdictWithdrawn,
)
from dgm.archive.tree import Tree
from dgm.config import Settings
from dgm.domain import (
    Action,
    ActionId,
    AgentId,
    Born,
    Budget,
    CommitId,
    Cost,
    Evaluate,
    Evaluation,
    Expand,
    Prediction,
    Stillborn,
    TaskId,
    Usage,
    Verdict,
)
from dgm.policies.registry import open_policy


def named(name, **policy):
    """The policy of that name with these settings of its own."""
    return open_policy(Settings(policy={"name": name, **policy}))


TASKS = tuple(TaskId(f"task-{n}") for n in range(10))


class Evenly(Random):
    """A stream whose next number is known; over evenly spread ones, shares of draws are exact."""

    def __init__(self, number: float) -> None:
        super().__init__(0)
        self.number = number

    def random(self) -> float:
        return self.number


class Log:
    """Builds a tree event by event."""

    def __init__(self, budget: Budget | None = None, tasks: tuple[TaskId, ...] = TASKS) -> None:
        self.tree = Tree()
        self.events: list[Recorded] = []
        self.add(RunStarted(budget or Budget(evaluations=100), tasks))

    def add(self, event: Event) -> None:
        recorded = Recorded(len(self.events) + 1, float(len(self.events)), event)
        self.events.append(recorded)
        self.tree.apply(recorded)

    def start(self, action: Action) -> ActionId:
        number = self.tree.next_action
        self.add(ActionStarted(number, action))
        return number

    def born(self, *parents: int) -> AgentId:
        agent = AgentId(len(self.tree.agents))
        self.add(
            AgentBorn(
                ActionId(0),
                agent,
                Born(tuple(map(AgentId, parents)), "self-edit", CommitId("0" * 40), f"edit {agent}"),
            )
        )
        return agent

    def made(
        self,
        parents: tuple[int, ...],
        operator: str,
        dies: str = "",
        aim: str = "",
        usd: float = 0.0,
        promises: Iterable[TaskId] = (),
    ) -> AgentId | None:
        """An expansion from its start to its end; the child, where it does not die at that stage."""
        return self.performed(Expand(tuple(map(AgentId, parents)), operator, aim=aim), dies, usd, promises)

    def performed(
        self, expansion: Expand, dies: str = "", usd: float = 0.0, promises: Iterable[TaskId] = ()
    ) -> AgentId | None:
        """The same for an expansion that a rule chose."""
        who, operator, action = expansion.parents, expansion.operator, self.tree.next_action
        cost = Cost(Usage(usd=usd), seconds=1.0)
        self.add(ActionStarted(action, expansion))
        if dies:
            self.add(AgentStillborn(action, Stillborn(who, operator, dies, "", cost)))
            return None
        child = AgentId(len(self.tree.agents))
        predictions = tuple(map(Prediction, promises))
        commit, why = CommitId("0" * 40), f"edit {child}"
        self.add(AgentBorn(action, child, Born(who, operator, commit, why, cost, predictions=predictions)))
        return child

    def tried(self, agent: int, **verdicts: bool) -> None:
        """Verdicts on tasks by name."""
        for task, resolved in verdicts.items():
            action, who = self.tree.next_action, AgentId(agent)
            self.add(ActionStarted(action, Evaluate(who, TaskId(task))))
            verdict = Verdict.RESOLVED if resolved else Verdict.UNRESOLVED
            self.add(TaskGraded(action, Evaluation(who, TaskId(task), 0, verdict, "")))

    def withdrawn(self) -> None:
        """The last verdict of the log is withdrawn."""
        last = next(each for each in reversed(self.events) if isinstance(each.event, TaskGraded))
        assert isinstance(last.event, TaskGraded)
        done = last.event.outcome
        what = Evaluate(done.agent, done.task, done.attempt)
        self.add(VerdictWithdrawn(last.event.action, last.seq, what, done.verdict, "refused"))

    def graded(self, agent: int, verdicts: Iterable[bool]) -> None:
        """Verdicts on the agent's next untried tasks, in the order of the tasks."""
        who = AgentId(agent)
        for resolved in verdicts:
            task = next(task for task in self.tree.tasks if task not in self.tree.tried(who))
            action = self.tree.next_action
            self.add(ActionStarted(action, Evaluate(who, task)))
            verdict = Verdict.RESOLVED if resolved else Verdict.UNRESOLVED
            self.add(TaskGraded(action, Evaluation(who, task, 0, verdict, "")))
