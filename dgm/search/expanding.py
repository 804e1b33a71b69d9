"""Makes one child: what the operator is told, what it proposes, vetting, and the commit.

Faults of agents become data here: whatever an operator or a stage of vetting finds wrong is the reason of a stillborn
child.
"""

import asyncio
import json
import time
from dataclasses import dataclass

from dgm.archive.repository import tree_id
from dgm.domain import ActionId, Agent, Born, Cost, Digest, Evaluation, Snapshot, Stillborn, Tally
from dgm.errors import AgentFault
from dgm.gateway.server import DRY_RUN
from dgm.meta.evidence import facts, folder
from dgm.meta.vetting import Stages, vet
from dgm.protocols import Brief, Case, Circumstances, Member, Proposal
from dgm.search.allowance import Allowance
from dgm.search.equipment import Equipment
from dgm.search.orders import ExpandOrder, Standing

SHOWN = ("patch", "failures", "log", "conversation")
"""Traces of an evaluation that become evidence."""


@dataclass(frozen=True, slots=True)
class Expanding:
    """The part of a worker that expands."""

    by: Equipment

    async def expand(self, order: ExpandOrder) -> Born | Stillborn:
        """Performs one expansion.

        Raises:
            Infrastructure: it could not be performed.
        """
        began = time.monotonic()
        traces: dict[str, Digest] = {}
        what = order.action
        try:
            proposal = await self._vetted(order, traces)
            parents = [parent.commit for parent in order.parents]
            commit = await asyncio.to_thread(self.by.run.repository.commit, proposal.source, parents)
        except AgentFault as fault:
            cost = Cost(self.by.usage(order.id), time.monotonic() - began, traces)
            return Stillborn(what.parents, what.operator, fault.stage, str(fault), cost)
        cost = Cost(self.by.usage(order.id), time.monotonic() - began, traces)
        return Born(what.parents, what.operator, commit, proposal.rationale, cost)

    async def _vetted(self, order: ExpandOrder, traces: dict[str, Digest]) -> Proposal:
        brief = await asyncio.to_thread(self._brief, order)
        operator = self.by.operators[order.action.operator]
        allowance = Allowance.of(self.by.settings.limits)
        proposal = await operator.make(brief, self.by.bench(order.id, allowance=allowance))
        traces["log"] = await asyncio.to_thread(self.by.keep, proposal.log)
        if proposal.stated:
            traces["statement"] = await asyncio.to_thread(self.by.keep, proposal.stated.encode())
        limits = self.by.settings.limits
        stages = Stages(self.by.bench(order.id, DRY_RUN), self.by.spec.image, limits.check_s)

        def known(child: Snapshot) -> str | None:
            return order.known.get(tree_id(child))

        await vet(proposal, brief.parents[0].source, known, limits, stages)
        return proposal

    def _brief(self, order: ExpandOrder) -> Brief:
        among = len(order.parents)
        pairs = zip(order.parents, order.standings[:among], strict=True)
        parents = [self._member(agent, standing) for agent, standing in pairs]
        shown = [self._member(standing.agent, standing) for standing in order.standings[among:]]
        numbered = zip(order.action.evidence, order.evidence, strict=True)
        cases = [self._case(action, evaluation) for action, evaluation in numbered]
        first = order.standings[0].agent.id
        own = [case for case in cases if case.evaluation.agent == first]
        return Brief(
            parents=parents,
            evidence=folder(own, self.by.settings.evidence.transcript_bytes) if own else {},
            facts=facts(order.tally, own),
            child_number=order.child_number,
            members=shown,
            cases=cases,
            aim=order.action.aim,
            case=order.action.case,
            ancestor=self.by.run.repository.source(order.ancestor) if order.ancestor else None,
        )

    def _member(self, agent: Agent, standing: Standing) -> Member:
        repository = self.by.run.repository
        first = {each.task: each.verdict for each in standing.evaluations if each.attempt == 0}
        return Member(
            agent=agent,
            source=repository.source(agent.commit),
            own=sum((each.tally for each in standing.evaluations), Tally()),
            verdicts=first,
            change=repository.diff(standing.before, agent.commit) if standing.before else b"",
        )

    def _case(self, action: ActionId, evaluation: Evaluation) -> Case:
        kept = evaluation.cost.traces
        traces = {name: self.by.run.traces.get(kept[name]) if name in kept else b"" for name in SHOWN}
        signs = Circumstances()
        if "circumstances" in kept:
            signs = Circumstances(**json.loads(self.by.run.traces.get(kept["circumstances"])))
        problem = self.by.benchmark.task(evaluation.task).prompt
        return Case(evaluation, problem, traces, signs, action)
