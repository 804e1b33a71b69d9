"""An agent of a run as a value for programs: its origin, its tallies, its source."""

from dataclasses import dataclass, field
from pathlib import Path

from dgm.api.exporting import Exported, export
from dgm.archive.run import Run
from dgm.domain import Agent, AgentId, Snapshot
from dgm.errors import UserError
from dgm.stats import lower_bound
from dgm.views.agents import AgentView, DiffView, LineageView
from dgm.views.tasks import AgentTaskView
from dgm.views.values import TallyView


@dataclass(frozen=True, slots=True)
class RunAgent:
    """One agent of an open run, as the run's log described it when it was asked for."""

    run: Run = field(repr=False, compare=False)
    agent: Agent

    @property
    def id(self) -> int:
        """Its number; the seed is 0."""
        return self.agent.id

    @property
    def own(self) -> TallyView:
        """Its graded evaluations on the search tasks."""
        return TallyView.of(self.run.tree.own(self.agent.id))

    @property
    def lower_bound(self) -> float:
        """The rate on the search tasks that it exceeds with a probability of 99 %, as ``dgm.stats.lower_bound``."""
        return lower_bound(self.run.tree.own(self.agent.id))

    @property
    def view(self) -> AgentView:
        """All about it, as ``dgm show RUN AGENT --json`` prints it: origin, making, tallies, evaluations, cost.

        Raises:
            ArchiveCorrupt: a trace of its making is damaged.
        """
        return AgentView.load(self.run, self.agent)

    def _repr_html_(self) -> str:
        from dgm.render.html.notebook import agent_html

        return agent_html(self.view)

    @property
    def lineage(self) -> LineageView:
        """The steps from the seed to this agent, the seed first, each with its patch against its parent."""
        return LineageView.load(self.run, self.agent.id)

    @property
    def source(self) -> Snapshot:
        """Path → file of its source."""
        return self.run.source(self.agent.id)

    def compare(self, other: int | None = None) -> DiffView:
        """Return the difference of its source to another agent's; to its parent's by default.

        Raises:
            UserError: there is no such agent.
        """
        base = None if other is None else self.run.tree.agents[number_of(self.run, other)]
        return DiffView.load(self.run, self.agent, base)

    def diff(self, other: int | None = None) -> str:
        """Return that difference as a unified diff.

        Raises:
            UserError: there is no such agent.
        """
        return self.compare(other).patch

    def attempts(self, task: str) -> AgentTaskView:
        """Return its attempts at a task, each with its patch, tests and transcript.

        Raises:
            UserError: it has no verdict on such a task.
            ArchiveCorrupt: a trace is missing or damaged.
        """
        return AgentTaskView.load(self.run, self.agent, task)

    def export(
        self, target: str | Path, *, what: str | None = None, evaluation: str | None = None
    ) -> Exported:
        """Write the agent to a new file or folder; the arguments are those of ``dgm.export``."""
        return export(self.run.folder, self.id, target, what=what, evaluation=evaluation)


def number_of(run: Run, agent: int) -> AgentId:
    """Return the agent's number.

    Raises:
        UserError: the run has no such agent.
    """
    agents = run.tree.agents
    if not 0 <= agent < len(agents):
        known = f"they are 0 to {len(agents) - 1}" if agents else "the run has none yet"
        raise UserError(f"no agent {agent}; {known}")
    return AgentId(agent)
