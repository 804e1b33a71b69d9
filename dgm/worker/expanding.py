"""The making of one child: the operator's proposal, vetting, and the commit; the brief is ``briefing``'s.

Faults of agents become data here: a fault that an operator or a stage of vetting finds is the reason of a
stillborn child.
"""

import asyncio
import time
from dataclasses import dataclass

from dgm.domain import Born, Cost, Digest, Stillborn
from dgm.errors import AgentFault
from dgm.plugins import check_answer
from dgm.protocols import Proposal
from dgm.search.orders import ExpandOrder
from dgm.worker.allowance import Allowance
from dgm.worker.briefing import BriefBuilder
from dgm.worker.context import WorkerContext
from dgm.worker.vetting import ChildVetting


@dataclass(frozen=True, slots=True)
class ExpansionRunner:
    """The part of a worker that performs expansions."""

    by: WorkerContext

    async def expand(self, order: ExpandOrder) -> Born | Stillborn:
        """Perform one expansion.

        Raises:
            Infrastructure: it could not be performed.
        """
        began = time.monotonic()
        traces: dict[str, Digest] = {}
        what = order.action
        try:
            proposal, syntax = await self._make_and_vet(order, traces)
            parents = [parent.commit for parent in order.parents]
            commit = await asyncio.to_thread(self.by.run.repository.commit, proposal.source, parents)
        except AgentFault as fault:
            if fault.output:
                traces["output"] = await asyncio.to_thread(self.by.keep, fault.output)
            cost = Cost(self.by.usage(order.id), time.monotonic() - began, traces)
            return Stillborn(what.parents, what.operator, fault.stage, str(fault), cost)
        cost = Cost(self.by.usage(order.id), time.monotonic() - began, traces)
        return Born(what.parents, what.operator, commit, proposal.rationale, cost, syntax)

    async def _make_and_vet(self, order: ExpandOrder, traces: dict[str, Digest]) -> tuple[Proposal, str]:
        briefing = BriefBuilder(self.by)
        brief = await asyncio.to_thread(briefing.brief, order)
        traces |= await asyncio.to_thread(briefing.shown, brief)
        operator = self.by.operators[order.action.operator]
        bench = self.by.bench(order.id, allowance=Allowance(self.by.settings.limits))
        proposal = await operator.make(brief, bench)
        check_answer(proposal, Proposal, f"operator '{order.action.operator}': make")
        traces["log"] = await asyncio.to_thread(self.by.keep, proposal.log)
        if proposal.stated:
            traces["statement"] = await asyncio.to_thread(self.by.keep, proposal.stated.encode())
        return proposal, await ChildVetting(self.by, order, bench).passed(proposal, brief, traces)
