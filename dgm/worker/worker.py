"""The worker: performs one action and returns one outcome; here and in ``expanding`` agents' faults become data.

A worker reads the archive's sources and traces and writes traces and commits (data first). The loop writes the
event that names them.
"""

import asyncio
import time
from dataclasses import dataclass

from dgm.archive.run import Run
from dgm.domain import Born, Cost, Digest, Entry, Evaluation, Outcome, Snapshot, Verdict
from dgm.errors import AgentFault, Infrastructure
from dgm.protocols import Grade
from dgm.search.orders import EvaluateOrder, ExpandOrder, Order
from dgm.worker.attempt import Attempt
from dgm.worker.context import WorkerContext
from dgm.worker.expanding import ExpansionRunner


@dataclass(frozen=True, slots=True)
class Worker(WorkerContext):
    """A worker that performs any order."""

    async def perform(self, order: Order) -> Outcome:
        """Perform one action.

        Raises:
            Infrastructure: an expansion could not be performed; an evaluation returns ``invalid`` instead.
        """
        match order:
            case EvaluateOrder():
                return await self._evaluate(order)
            case ExpandOrder():
                return await ExpansionRunner(self).expand(order)

    async def _evaluate(self, order: EvaluateOrder) -> Evaluation:
        began = time.monotonic()
        traces: dict[str, Digest] = {}
        try:
            source = await asyncio.to_thread(self.run.repository.source, order.agent.commit)
            bench = self.bench(order.id)
            attempt = Attempt(self, bench, order.action.task, bench.spec.labels, traces)
            grade = await attempt.graded(source)
        except AgentFault as fault:
            grade = Grade(Verdict.UNRESOLVED, f"{fault.stage}: {fault}", 0.0)
        except Infrastructure as error:
            grade = Grade(Verdict.INVALID, str(error), 0.0)
        what = order.action
        cost = Cost(self.usage(order.id), time.monotonic() - began, traces)
        return Evaluation(what.agent, what.task, what.attempt, grade.verdict, grade.reason, grade.score, cost)


def commit_seed(run: Run, source: Snapshot) -> Born:
    """Commit agent 0, and return its birth."""
    clean: dict[str, Entry] = {path: entry for path, entry in source.items() if "__pycache__" not in path}
    return Born((), "seed", run.repository.commit(clean, ()), "the agent that the search starts from")
