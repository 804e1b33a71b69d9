"""The making of one child: the brief, the operator's proposal, vetting, and the commit.

Faults of agents become data here: a fault that an operator or a stage of vetting finds is the reason of a
stillborn child.
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dgm.archive.snapshots import tree_id
from dgm.domain import ActionId, Born, CommitId, Cost, Digest, Expand, Snapshot, Stillborn, TaskId
from dgm.errors import AgentFault
from dgm.gateway.lease import DRY_RUN
from dgm.meta.evidence import manifest
from dgm.meta.prompts import load_frozen
from dgm.meta.similarity import AgentEdit, Judge
from dgm.meta.vetting import DryRuns, Vetting
from dgm.plugins import check_answer
from dgm.protocols import Brief, Grade, Proposal
from dgm.search.prepare import read_brief
from dgm.worker.evaluate import attempt_task
from dgm.worker.workbench import Allowance, SandboxWorkbench

if TYPE_CHECKING:
    from dgm.worker.worker import Worker

PROBE = "probe"
"""Role of model calls that a child makes before it is born."""

PassStages = Callable[[Proposal, Brief, SandboxWorkbench, dict[str, Digest]], Awaitable[str]]
"""Passes a proposal through all stages and returns its ``syntax_key``; the traces are added to the last argument."""


async def expand(worker: "Worker", action: ActionId, what: Expand) -> Born | Stillborn:
    """Make and vet one child, and commit it.

    Raises:
        Infrastructure: the expansion could not be performed.
    """
    began = time.monotonic()
    traces: dict[str, Digest] = {}
    try:
        proposal, syntax = await _make_and_vet(worker, action, what, traces)
        parents = [worker.run.tree.agents[parent].commit for parent in what.parents]
        commit = await asyncio.to_thread(worker.run.repository.commit, proposal.source, parents)
    except AgentFault as fault:
        if fault.output:
            traces["output"] = await asyncio.to_thread(worker.keep, fault.output)
        cost = Cost(worker.usage(action), time.monotonic() - began, traces)
        return Stillborn(what.parents, what.operator, fault.stage, str(fault), cost, cause=fault.cause)
    cost = Cost(worker.usage(action), time.monotonic() - began, traces)
    return Born(what.parents, what.operator, commit, proposal.rationale, cost, syntax)


async def _make_and_vet(
    worker: "Worker", action: ActionId, what: Expand, traces: dict[str, Digest]
) -> tuple[Proposal, str]:
    run, settings = worker.run, worker.settings
    vetting = _prepare_vetting(worker, action, what)
    brief = await asyncio.to_thread(read_brief, run, worker.benchmark, action, what, settings.evidence)
    if brief.evidence:
        traces["evidence"] = await asyncio.to_thread(worker.keep_uncut, manifest(brief.evidence))
    bench = worker.open_bench(action, allowance=Allowance(settings.limits))
    proposal = await worker.operators[what.operator].make(brief, bench)
    check_answer(proposal, Proposal, f"operator '{what.operator}': make")
    traces["log"] = await asyncio.to_thread(worker.keep, proposal.log)
    if proposal.stated:
        traces["statement"] = await asyncio.to_thread(worker.keep, proposal.stated.encode())
    return proposal, await vetting(proposal, brief, bench, traces)


def _prepare_vetting(worker: "Worker", action: ActionId, what: Expand) -> PassStages:
    """Return the vetting of a child, which is compared with the agents that there are when its expansion starts."""
    run, settings, limits = worker.run, worker.settings, worker.settings.limits
    start = run.store.starts_of_action(action)[-1][0]
    contents = worker.index.contents(start)
    syntax = worker.index.syntax(start) if settings.vetting.syntax else {}
    novelty = settings.gates.novelty
    siblings = worker.index.siblings(what.parents[0], start) if novelty != "off" else {}

    async def pass_stages(
        proposal: Proposal, brief: Brief, bench: SandboxWorkbench, traces: dict[str, Digest]
    ) -> str:
        # The judge and each probe have the limits of one action, whatever the cost of making the child. No reply that
        # the operator had is served again.
        judging = replace(bench, allowance=Allowance.of_vetting(limits))
        tries = itertools.count(1)

        async def probe(child: Snapshot, task: TaskId) -> Grade:
            number, probe_traces = next(tries), dict[str, Digest]()
            probing = replace(bench, role=PROBE, allowance=Allowance.of_vetting(limits))
            try:
                return await attempt_task(worker, probing, child, task, probe_traces)
            finally:
                traces.update({f"probe-{number}-{name}": digest for name, digest in probe_traces.items()})

        dry_bench = worker.open_bench(action, DRY_RUN)
        vetting = Vetting(
            child=proposal.source,
            parent=brief.parents[0].source,
            dry=DryRuns(dry_bench, worker.session.spec.image, limits.check_s),
            try_task=probe,
            probes=what.probes,
            known=lambda child: contents.get(tree_id(child)),
            syntax=lambda: syntax,
            edits=lambda: edits_before(brief, siblings, run.repository.diff),
            limits=limits,
            vetting=settings.vetting,
            gates=settings.gates,
            judge=_open_judge(worker, judging) if novelty == "model" else None,
        )
        try:
            return await vetting.run()
        finally:
            traces["vetting"] = await asyncio.to_thread(worker.keep_uncut, vetting.trace())

    return pass_stages


def _open_judge(worker: "Worker", bench: SandboxWorkbench) -> Judge:
    settings = worker.settings
    prompts = load_frozen(worker.run.config, str(worker.run.folder / "run.json"))
    return Judge(bench, prompts, settings.operators.retries, settings.evidence.prompt_chars)


def edits_before(
    brief: Brief, siblings: Mapping[str, CommitId], diff: Callable[[CommitId, CommitId], bytes]
) -> list[AgentEdit]:
    """Return the edits with which the child's edit of its first parent is compared: see the gate ``novelty``.

    For a child of several parents, return the siblings' edits only. Its changes from the other parents and from
    their ancestors are meant to be the same.

    Args:
        brief: of the operator.
        siblings: name → commit of each child of the first parent.
        diff: the patch from one commit to another.
    """
    parents = {parent.agent.commit for parent in brief.parents}
    first = brief.parents[0].agent.commit
    edits = [
        AgentEdit(name, diff(first, commit)) for name, commit in siblings.items() if commit not in parents
    ]
    shown = [] if len(parents) > 1 else [*brief.parents, *brief.members]
    return edits + [AgentEdit(f"agent {member.agent.id}", member.change) for member in shown if member.change]
