"""The parts with which an action is performed, and the place where its traces are kept."""

from collections.abc import Mapping
from dataclasses import dataclass

from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import ActionId, Digest, Usage
from dgm.protocols import Benchmark, Operator
from dgm.worker.allowance import Allowance
from dgm.worker.session import Session
from dgm.worker.workbench import SandboxWorkbench


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """Everything that performing needs; stateless, so any number of actions may be under way."""

    run: Run
    session: Session
    benchmark: Benchmark
    operators: Mapping[str, Operator]
    settings: Settings

    def bench(
        self, action: ActionId, role: str | None = None, allowance: Allowance | None = None
    ) -> SandboxWorkbench:
        """Return a fresh workbench for an action; void answers are not served again."""
        return self.session.open_bench(action, role, allowance, self.run.tree.withdrawals.void_calls(action))

    def keep(self, data: bytes) -> Digest:
        """Store a trace for an event to name; cut out the middle of a long one."""
        return self.run.traces.put(data, self.settings.limits.patch_bytes)

    def keep_whole(self, data: bytes) -> Digest:
        """Store a trace that is read back as JSON, uncut so that it stays readable."""
        return self.run.traces.put(data, limit=None)

    def usage(self, action: ActionId) -> Usage:
        """Return the usage of the action's model calls so far, over all its tries."""
        return self.run.tree.spend_of(action)
