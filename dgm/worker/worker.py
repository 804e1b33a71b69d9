"""The worker: performs one action and returns one outcome.

A worker reads the archive's sources and traces and writes traces and commits (data first). The loop writes the
event that names them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import Action, ActionId, Born, Digest, Entry, Evaluate, Outcome, Snapshot, Usage
from dgm.protocols import Benchmark, Operator
from dgm.search.prepare import AgentIndex
from dgm.worker.evaluate import evaluate
from dgm.worker.expand import expand
from dgm.worker.session import Session
from dgm.worker.workbench import Allowance, SandboxWorkbench


@dataclass(frozen=True, slots=True)
class Worker:
    """All that performing an action needs; any number of actions may be under way."""

    run: Run
    session: Session
    benchmark: Benchmark
    operators: Mapping[str, Operator]
    settings: Settings
    index: AgentIndex
    """The agents with which a child is compared."""

    async def perform(self, action: ActionId, what: Action) -> Outcome:
        """Perform one action, which was started in the run's log.

        Raises:
            Infrastructure: an expansion could not be performed; an evaluation returns ``invalid`` instead.
        """
        return await (
            evaluate(self, action, what) if isinstance(what, Evaluate) else expand(self, action, what)
        )

    def open_bench(
        self, action: ActionId, role: str | None = None, allowance: Allowance | None = None
    ) -> SandboxWorkbench:
        """Return a fresh workbench for an action; void answers are not served again."""
        return self.session.open_bench(action, role, allowance, self.run.tree.void_calls(action))

    def keep(self, data: bytes) -> Digest:
        """Store a trace for an event to name; cut out the middle of a long one."""
        return self.run.traces.put(data, self.settings.limits.patch_bytes)

    def keep_uncut(self, data: bytes) -> Digest:
        """Store a trace that is read back as JSON, uncut so that it stays readable."""
        return self.run.traces.put(data, limit=None)

    def usage(self, action: ActionId) -> Usage:
        """Return the usage of the action's model calls so far, over all its tries."""
        return self.run.tree.spend_of(action)


def commit_seed(run: Run, source: Snapshot) -> Born:
    """Commit agent 0, and return its birth."""
    clean: dict[str, Entry] = {path: entry for path, entry in source.items() if "__pycache__" not in path}
    return Born((), "seed", run.repository.commit(clean, ()), "the agent that the search starts from")
