"""What an action is performed with, and where what comes of it is kept."""

from collections.abc import Mapping
from dataclasses import dataclass

from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import ActionId, Digest, Usage
from dgm.gateway.server import Gateway
from dgm.protocols import Benchmark, Operator, SandboxEngine, SandboxSpec
from dgm.search.allowance import Allowance
from dgm.search.workbench import SandboxWorkbench


@dataclass(frozen=True, slots=True)
class Equipment:
    """Everything that performing needs; stateless, so any number of actions may be under way."""

    run: Run
    engine: SandboxEngine
    gateway: Gateway
    benchmark: Benchmark
    operators: Mapping[str, Operator]
    settings: Settings
    spec: SandboxSpec
    """Of the sandboxes in which agents are checked and improve themselves."""

    def bench(
        self, action: ActionId, role: str | None = None, allowance: Allowance | None = None
    ) -> SandboxWorkbench:
        """A fresh workbench for one performance of an action.

        Args:
            action: whose model calls they are.
            role: of the lent model; default: the kind of the job.
            allowance: what all jobs and questions together may take.
        """
        return SandboxWorkbench(
            self.engine.open,
            self.gateway,
            action,
            self.spec,
            self.settings.limits,
            role,
            allowance,
            evidence_shown=self.settings.evidence.layout == 2,
            heard=set(self.run.tree.withdrawals.void_calls(action)),
        )

    def keep(self, data: bytes) -> Digest:
        """Keeps a trace, which an event is to name; the middle of a long one is cut out."""
        return self.run.traces.put(data, self.settings.limits.patch_bytes)

    def keep_whole(self, data: bytes) -> Digest:
        """Keeps a trace that is read back as JSON: cut, it could not be read."""
        return self.run.traces.put(data, limit=None)

    def usage(self, action: ActionId) -> Usage:
        """What the action's model calls took so far, over all its tries."""
        return self.run.tree.spend_of(action)
