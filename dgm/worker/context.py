"""The parts with which an action is performed, and the place where its traces are kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import ActionId, Digest, Usage
from dgm.gateway.server import Gateway
from dgm.protocols import Benchmark, Operator, SandboxEngine, SandboxSpec
from dgm.worker.allowance import Allowance
from dgm.worker.supplies import Supplies
from dgm.worker.workbench import SandboxWorkbench

ACTION = "dgm.action"
"""Label of a sandbox with the id of its action."""


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """Everything that performing needs; stateless, so any number of actions may be under way."""

    run: Run
    engine: SandboxEngine
    gateway: Gateway
    benchmark: Benchmark
    operators: Mapping[str, Operator]
    settings: Settings
    spec: SandboxSpec
    """Spec of the sandboxes in which agents are checked and improve themselves."""
    supplies: Supplies = field(default_factory=Supplies)
    """Packages of the run's agents."""

    def labels(self, action: ActionId) -> Mapping[str, str]:
        """Return the labels of the sandboxes of an action."""
        return {**self.spec.labels, ACTION: str(action)}

    def bench(
        self,
        action: ActionId,
        role: str | None = None,
        allowance: Allowance | None = None,
    ) -> SandboxWorkbench:
        """Return a fresh workbench for an action.

        Args:
            action: the action to which the model calls belong.
            role: of the lent model; default: the kind of the job.
            allowance: limits on all jobs and questions together.
        """
        return SandboxWorkbench(
            self.engine.open,
            self.gateway,
            action,
            replace(self.spec, labels=self.labels(action)),
            self.settings.limits,
            role,
            allowance,
            heard=set(self.run.tree.withdrawals.void_calls(action)),
            supplies=self.supplies,
        )

    def keep(self, data: bytes) -> Digest:
        """Store a trace for an event to name; cut out the middle of a long one."""
        return self.run.traces.put(data, self.settings.limits.patch_bytes)

    def keep_whole(self, data: bytes) -> Digest:
        """Store a trace that is read back as JSON, uncut so that it stays readable."""
        return self.run.traces.put(data, limit=None)

    def usage(self, action: ActionId) -> Usage:
        """Return the usage of the action's model calls so far, over all its tries."""
        return self.run.tree.spend_of(action)
