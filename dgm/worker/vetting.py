"""Vetting of one child: the material for comparison, and the sandboxes and the model that it needs."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from dgm.archive.repository import tree_id
from dgm.domain import CommitId, Digest, Snapshot, TaskId
from dgm.gateway.lease import DRY_RUN
from dgm.meta.prompts import load_frozen
from dgm.meta.vetting import AgentEdit, Judge, Stages, VettingReference, VettingTrace, vet
from dgm.protocols import Brief, Grade, Proposal
from dgm.search.orders import ExpandOrder
from dgm.worker.allowance import Allowance
from dgm.worker.attempt import Attempt
from dgm.worker.context import WorkerContext
from dgm.worker.workbench import SandboxWorkbench

PROBE = "probe"
"""Role of model calls that a child makes before it is born."""


@dataclass(frozen=True, slots=True)
class ChildVetting:
    """The vetting of one child.

    Its judge and each of its probes have the limits of one action, whatever the cost of making the child.
    """

    by: WorkerContext
    order: ExpandOrder
    bench: SandboxWorkbench
    """The operator's workbench: no reply that the operator had is served again."""

    async def passed(self, proposal: Proposal, brief: Brief, traces: dict[str, Digest]) -> str:
        """Vet the child and return its ``syntax_key``; ``traces`` gets ``vetting`` and its probes' traces in any case.

        Raises:
            AgentFault: it failed at ``stage``.
            Infrastructure: a sandbox or the model failed.
        """
        settings, limits = self.by.settings, self.by.settings.limits
        dry = self.by.bench(self.order.id, DRY_RUN)
        bench = replace(self.bench, allowance=Allowance.of_vetting(limits))
        probes = _Probes(self.by, replace(bench, role=PROBE), traces)
        rooms = Stages(dry, self.by.session.spec.image, limits.check_s, self.order.action.probes, probes)
        subject = VettingReference(
            parent=brief.parents[0].source,
            known=self._twin,
            syntax=lambda: dict(self.order.known_syntax),
            edits=lambda: edits_before(self.order, brief, self.by.run.repository.diff),
            limits=limits,
            vetting=settings.vetting,
            gates=settings.gates,
            judge=self._judge(bench) if settings.gates.novelty == "model" else None,
        )
        record = VettingTrace()
        try:
            return await vet(proposal, subject, rooms, record)
        finally:
            traces["vetting"] = await asyncio.to_thread(self.by.keep_whole, record.data())

    def _twin(self, child: Snapshot) -> str | None:
        return self.order.known.get(tree_id(child))

    def _judge(self, bench: SandboxWorkbench) -> Judge:
        settings = self.by.settings
        prompts = load_frozen(self.by.run.config, str(self.by.run.folder / "run.json"))
        return Judge(bench, prompts, settings.operators.retries, settings.evidence.prompt_chars)


def edits_before(
    order: ExpandOrder, brief: Brief, diff: Callable[[CommitId, CommitId], bytes]
) -> list[AgentEdit]:
    """Return the edits with which the child's edit of its first parent is compared: see the gate ``novelty``.

    For a child of several parents, return the siblings' edits only. Its changes from the other parents and from
    their ancestors are meant to be the same.

    Args:
        order: to make the child.
        brief: of the operator.
        diff: the patch from one commit to another.
    """
    parents = {parent.commit for parent in order.parents}
    made = [
        AgentEdit(name, diff(order.parents[0].commit, commit))
        for name, commit in order.siblings.items()
        if commit not in parents
    ]
    shown = [] if len(parents) > 1 else [*brief.parents, *brief.members]
    return made + [AgentEdit(f"agent {member.agent.id}", member.change) for member in shown if member.change]


class _Probes:
    """Tries of one child, numbered in their traces (``probe-1-patch`` …)."""

    def __init__(self, by: WorkerContext, bench: SandboxWorkbench, traces: dict[str, Digest]) -> None:
        self._by = by
        self._bench = bench
        self._traces = traces
        self._tried = 0

    async def __call__(self, child: Snapshot, task: TaskId) -> Grade:
        self._tried += 1
        left: dict[str, Digest] = {}
        try:
            limits = self._by.settings.limits
            bench = replace(self._bench, allowance=Allowance.of_vetting(limits))
            return await Attempt(self._by, bench, task, bench.spec.labels, left).graded(child)
        finally:
            self._traces.update({f"probe-{self._tried}-{name}": digest for name, digest in left.items()})
