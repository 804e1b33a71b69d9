"""A run that a test writes while the browser reads it."""

from pathlib import Path

from dgm.archive.events import AgentBorn
from dgm.config import Settings
from dgm.domain import ActionId, AgentId, Born, Budget, CommitId, Evaluate, Expand, TaskId, Verdict
from tests.support.runs.builder import RunBuilder, create_run, make_config

TASKS = tuple(TaskId(f"suite/task-{number}") for number in range(8))


class Growing(RunBuilder):
    """Appends steps to a run; ``run`` is the caller's to close."""

    def __init__(self, folder: Path, *, seed: bool = True) -> None:
        settings = Settings.model_validate({"model": "offline"})
        config = make_config(settings, id="0" * 16, name=folder.name, created=1_700_000_000.0, versions={})
        super().__init__(create_run(folder, config, Budget(evaluations=100), TASKS))
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
            AgentBorn(
                action,
                agent,
                Born(whose, operator if whose else "seed", CommitId(f"{agent:040x}"), rationale),
            )
        )
        return agent

    def start(self, *parents: int) -> ActionId:
        """An expansion that is under way."""
        return self.begin(Expand(tuple(map(AgentId, parents)), "self-edit"))

    def graded(self, agent: int, task: int, *, good: bool) -> None:
        """A verdict."""
        action = self.begin(Evaluate(AgentId(agent), TASKS[task]))
        verdict = Verdict.RESOLVED if good else Verdict.UNRESOLVED
        self.record_verdict(action, agent, TASKS[task], verdict, "as the test says")
