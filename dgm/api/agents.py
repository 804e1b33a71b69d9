"""An agent of a run as a value for programs: its origin, its tallies, its source."""

from dataclasses import dataclass, field
from pathlib import Path

from dgm.archive.run import Run
from dgm.blocking import in_python
from dgm.domain import Agent, AgentId, Snapshot
from dgm.errors import UserError
from dgm.export.predictions import write_predictions
from dgm.export.pull_request import write_pr_text
from dgm.export.repositories import write_home, write_patch
from dgm.export.standalone import write_standalone
from dgm.export.trajectories import write_trajectories
from dgm.publish.scrubbing import LocalIdentity
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

    def export_standalone(self, folder: str | Path) -> Path:
        """Write it as a new folder that runs by itself (``docs/export.md``), and return that.

        Raises:
            UserError: something is there already, or it cannot be written.
        """
        write_standalone(self.run, self.agent, Path(folder))
        return Path(folder)

    def export_trajectories(self, folder: str | Path) -> int:
        """Write what it said and did in each of its evaluations to a new folder, and return their number.

        Raises:
            UserError: something is there already, it cannot be written, or the agent has no verdict.
            ArchiveCorrupt: a trace is missing or damaged.
        """
        done = write_trajectories(self.run, self.agent, Path(folder), LocalIdentity.here())
        return done.own + done.recorded

    def export_predictions(self, file: str | Path, evaluation: str | Path | None = None) -> int:
        """Write the patches of its graded first attempts in SWE-bench's format, and return their number.

        Args:
            file: a new ``.jsonl`` or ``.json`` file.
            evaluation: folder of an evaluation, by its name in the run's or its path; None: those of the search.

        Raises:
            UserError: there is no such evaluation or nothing to write, or it cannot be written there.
            ArchiveCorrupt: a patch is missing or damaged.
        """
        with in_python():
            named = None if evaluation is None else str(evaluation)
            return write_predictions(self.run, self.agent, Path(file), named).counts.written

    def checkout(self, folder: str | Path) -> Path:
        """Write its source into a new or empty folder, a git repository of its lineage, and return that.

        Raises:
            UserError: something is in the folder already, or git is not installed.
        """
        write_home(self.run, self.agent, Path(folder))
        return Path(folder)

    def export_patch(self, file: str | Path) -> Path:
        """Write what its lineage changed, a commit for each step, to a new file for ``git am``, and return that.

        Raises:
            UserError: nothing changed, something is there already, or it cannot be written.
        """
        write_patch(self.run, self.agent, Path(file))
        return Path(file)

    def export_pr_text(self, file: str | Path) -> Path:
        """Write the text of a pull request for that patch to a new file, and return that.

        Raises as ``export_patch``.
        """
        write_pr_text(self.run, self.agent, Path(file))
        return Path(file)


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
