"""A run that a test writes while the browser reads it."""

from pathlib import Path

from dgm.archive.events import ActionStarted, AgentBorn, RunStarted, TaskGraded
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import ActionId, AgentId, Budget, Evaluate, Evaluation, Expand, TaskId, Verdict

TASKS = tuple(TaskId(f"suite/task-{number}") for number in range(8))


class Growing:
    """Appends steps to a run; ``run`` is the caller's to close."""

    def __init__(self, folder: Path, *, seed: bool = True) -> None:
        config = {
            "id": "0" * 16,
            "name": folder.name,
            "created": 1_700_000_000.0,
            "settings": Settings.model_validate({"model": "offline"}).model_dump(mode="json"),
            "sandbox": "bubblewrap",
            "versions": {},
        }
        self.run = Run.create(folder, config)
        self.run.append(RunStarted(Budget(evaluations=100), TASKS))
        if seed:
            self.born()

    def born(self, *parents: int, rationale: str = "a change", operator: str = "self-edit") -> AgentId:
        """An agent, without source."""
        action = ActionId(0)
        agent = AgentId(len(self.run.tree.agents))
        whose = tuple(map(AgentId, parents))
        if whose:
            action = self.start(*parents)
        self.run.append(
            AgentBorn(action, agent, whose, f"{agent:040x}", operator if whose else "seed", rationale)
        )
        return agent

    def start(self, *parents: int) -> ActionId:
        """An expansion that is under way."""
        action = self.run.tree.next_action
        self.run.append(ActionStarted(action, Expand(tuple(map(AgentId, parents)), "self-edit")))
        return action

    def graded(self, agent: int, task: int, *, good: bool) -> None:
        """A verdict."""
        who, what = AgentId(agent), TASKS[task]
        action = self.run.tree.next_action
        self.run.append(ActionStarted(action, Evaluate(who, what)))
        verdict = Verdict.RESOLVED if good else Verdict.UNRESOLVED
        self.run.append(TaskGraded(action, Evaluation(who, what, 0, verdict, "as the test says")))
