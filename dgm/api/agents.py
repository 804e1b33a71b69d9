"""An agent of a run as a value for programs: its origin, its tallies, its source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dgm.analysis.lineage import Lineage, LineageStep
from dgm.api.exporting import export
from dgm.archive.run import Run
from dgm.blocking import in_python
from dgm.domain import SEED, Agent, AgentId, Snapshot, Tally
from dgm.errors import UserError
from dgm.exports.targets import Exported
from dgm.show.agent_records import full_record
from dgm.show.attempts import find_attempt, transcript_record
from dgm.stats import lower_bound


@dataclass(frozen=True, slots=True)
class AgentView:
    """One member of the archive, as the run's log told when it was asked for."""

    run: Run = field(repr=False, compare=False)
    agent: Agent

    @property
    def id(self) -> int:
        """Its number; the seed is 0."""
        return self.agent.id

    @property
    def parents(self) -> Sequence[int]:
        """Numbers of its parents; none of the seed."""
        return self.agent.parents

    @property
    def children(self) -> Sequence[int]:
        """Numbers of its children."""
        return self.run.tree.children(self.agent.id)

    @property
    def depth(self) -> int:
        """Generations from the seed."""
        return self.run.tree.depth(self.agent.id)

    @property
    def operator(self) -> str:
        """The name of the operator that made it; ``seed`` for the seed."""
        return self.agent.operator

    @property
    def rationale(self) -> str:
        """Why it was made, in the words of the agent or model that made it."""
        return self.agent.rationale

    @property
    def own(self) -> Tally:
        """Its graded evaluations on the search tasks."""
        return self.run.tree.own(self.agent.id)

    @property
    def clade(self) -> Tally:
        """Graded evaluations of the agent and all its descendants, from which CMP is estimated."""
        return self.run.tree.clade(self.agent.id)

    @property
    def lower_bound(self) -> float:
        """The rate on the search tasks that it exceeds with a probability of 99 %, as ``dgm.stats.lower_bound``."""
        return lower_bound(self.own)

    @property
    def lineage(self) -> Sequence[LineageStep]:
        """Return each step from the seed to this agent, the seed first, with its patch against its parent."""
        return list(Lineage(self.run.tree, self.agent.id).steps(self.run))

    @property
    def source(self) -> Snapshot:
        """Path → file of its source."""
        return self.run.source(self.agent.id)

    def diff(self, against: int | None = SEED) -> str:
        """Return the unified diff of its source.

        Args:
            against: number of the other agent, the seed unless it is given; None: its first parent.
        """
        if against is None:
            against = self.agent.parents[0] if self.agent.parents else SEED
        other = self.run.tree.agents[number_of(self.run, against)]
        return self.run.repository.diff(other.commit, self.agent.commit).decode("utf-8", "replace")

    def record(self) -> Mapping[str, Any]:
        """Return the document that ``dgm show --json`` prints: origin, making, tallies, evaluations, cost.

        Raises:
            ArchiveCorrupt: a trace of its making is damaged.
        """
        return full_record(self.run, self.agent)

    def transcript(self, task: str, attempt: int | None = None) -> Mapping[str, Any]:
        """Return one of its evaluations with all turns of its model, as ``dgm show --transcript TASK --json`` does.

        Args:
            task: the task's id.
            attempt: from 1; None: the newest.

        Raises:
            UserError: it has no verdict on such a task, or no such attempt.
            ArchiveCorrupt: a model call cannot be read.
        """
        with in_python():
            found = find_attempt(self.run, self.agent, task, attempt)
        return transcript_record(self.run, *found)

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
