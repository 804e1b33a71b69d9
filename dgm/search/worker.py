"""Performs one action and answers with one outcome; the only place where agents' faults become data.

A worker reads the archive's sources and traces and writes traces and commits (data first); the event that names
them is the loop's.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from dgm.archive.repository import patch, tree_id
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import (
    ActionId,
    Born,
    Cost,
    Digest,
    Entry,
    Evaluation,
    Outcome,
    Snapshot,
    Stillborn,
    Usage,
    Verdict,
)
from dgm.errors import AgentFault, Infrastructure
from dgm.gateway.server import Gateway
from dgm.meta.evidence import Case, Circumstances, circumstances, conversation_text, facts, folder
from dgm.meta.vetting import Stages, vet
from dgm.protocols import (
    Benchmark,
    Brief,
    Completed,
    Grade,
    InImage,
    Job,
    JobKind,
    Operator,
    Parent,
    Proposal,
    SandboxEngine,
    SandboxSpec,
    Work,
)
from dgm.search.orders import EvaluateOrder, ExpandOrder, Order
from dgm.search.workbench import SandboxWorkbench

SHOWN = ("patch", "failures", "log", "conversation")
"""Traces of an evaluation that become evidence."""
EACH_TRY = ("patch", "log", "conversation", "circumstances", "tests", "failures")
"""Traces of a try; those of tries before the last one are kept under the try's number (``patch-1`` …)."""


@dataclass(frozen=True, slots=True)
class Worker:
    """Everything that performing needs; stateless, so any number of actions may be under way."""

    run: Run
    engine: SandboxEngine
    gateway: Gateway
    benchmark: Benchmark
    operators: Mapping[str, Operator]
    settings: Settings
    spec: SandboxSpec

    async def perform(self, order: Order) -> Outcome:
        """Performs one action.

        Raises:
            Infrastructure: an expansion could not be performed; an evaluation answers ``invalid`` instead.
        """
        match order:
            case EvaluateOrder():
                return await self._evaluate(order)
            case ExpandOrder():
                return await self._expand(order)

    # Evaluate

    async def _evaluate(self, order: EvaluateOrder) -> Evaluation:
        began = time.monotonic()
        traces: dict[str, Digest] = {}
        try:
            grade = await self._graded(order, traces)
        except AgentFault as fault:
            grade = Grade(Verdict.UNRESOLVED, f"{fault.stage}: {fault}", 0.0)
        except Infrastructure as error:
            grade = Grade(Verdict.INVALID, str(error), 0.0)
        what = order.action
        cost = Cost(self._usage(order.id), time.monotonic() - began, traces)
        return Evaluation(what.agent, what.task, what.attempt, grade.verdict, grade.reason, grade.score, cost)

    async def _graded(self, order: EvaluateOrder, traces: dict[str, Digest]) -> Grade:
        task = self.benchmark.task(order.action.task)
        source, start = await asyncio.gather(
            asyncio.to_thread(self.run.repository.source, order.agent.commit),
            asyncio.to_thread(self.benchmark.workspace, task.id),
        )
        problem, workspace, tried = task.prompt, start, 0
        bench = self._bench(order.id)
        while True:
            job = Job(JobKind.SOLVE, problem, source, workspace, task.image, task.workdir, task.timeout_s)
            work = await bench.work(job)
            tried += 1
            if tried > 1 and not isinstance(start, InImage):
                # What is graded is all that was changed, not only what the last try changed.
                work = replace(work, patch=await asyncio.to_thread(self._patch, start, work.workspace))
            await asyncio.to_thread(self._keep_work, work, traces)
            grade = await self.benchmark.grade(task.id, work.patch, self.spec.labels)
            traces["tests"] = await asyncio.to_thread(self._keep, grade.log)
            traces["failures"] = await asyncio.to_thread(self._keep, grade.shown)
            # A workspace that stands in the image cannot be put back as an agent left it.
            in_image = isinstance(start, InImage)
            problem = "" if in_image else self.benchmark.again(task.id, grade, tried)
            if not problem:
                break
            traces |= {f"{name}-{tried}": traces[name] for name in EACH_TRY}
            workspace = work.workspace
        ending = _bad_end(work.completed)
        if ending and grade.verdict is Verdict.UNRESOLVED:
            return Grade(grade.verdict, f"{grade.reason} (the agent {ending})", grade.score)
        return grade

    def _patch(self, before: Snapshot, after: Snapshot) -> bytes:
        """All that an agent changed in several tries.

        Raises:
            AgentFault: stage ``patch``: it is larger than a patch may be.
        """
        whole = patch(before, after)
        if len(whole) > self.settings.limits.patch_bytes:
            allowed = self.settings.limits.patch_bytes
            raise AgentFault("patch", f"the patch has {len(whole)} bytes; {allowed} are allowed")
        return whole

    def _keep_work(self, work: Work, traces: dict[str, Digest]) -> None:
        done = work.completed
        signs = circumstances(done.exit_code, done.timed_out, done.output, work.conversation)
        traces["patch"] = self._keep(work.patch)
        traces["log"] = self._keep(done.output)
        traces["conversation"] = self._keep(conversation_text(work.conversation).encode("utf-8", "replace"))
        traces["circumstances"] = self._keep(json.dumps(asdict(signs)).encode())

    # Expand

    async def _expand(self, order: ExpandOrder) -> Outcome:
        began = time.monotonic()
        traces: dict[str, Digest] = {}
        what = order.action
        try:
            proposal = await self._vetted(order, traces)
            parents = [parent.commit for parent in order.parents]
            commit = await asyncio.to_thread(self.run.repository.commit, proposal.source, parents)
        except AgentFault as fault:
            cost = Cost(self._usage(order.id), time.monotonic() - began, traces)
            return Stillborn(what.parents, what.operator, fault.stage, str(fault), cost)
        cost = Cost(self._usage(order.id), time.monotonic() - began, traces)
        return Born(what.parents, what.operator, commit, proposal.rationale, cost)

    async def _vetted(self, order: ExpandOrder, traces: dict[str, Digest]) -> Proposal:
        brief = await asyncio.to_thread(self._brief, order)
        operator = self.operators[order.action.operator]
        proposal = await operator.make(brief, self._bench(order.id))
        traces["log"] = await asyncio.to_thread(self._keep, proposal.log)
        dry_bench = SandboxWorkbench(
            self.engine.open, self.gateway, order.id, self.spec, self.settings.limits, role="dry-run"
        )
        stages = Stages(self.engine.open, self.spec, dry_bench, self.settings.limits.check_s)

        def known(child: Snapshot) -> str | None:
            return order.known.get(tree_id(child))

        await vet(proposal, brief.parents[0].source, known, self.settings.limits, stages)
        return proposal

    def _brief(self, order: ExpandOrder) -> Brief:
        parents = [Parent(agent, self.run.repository.source(agent.commit)) for agent in order.parents]
        cases = [self._case(evaluation) for evaluation in order.evidence]
        evidence = folder(cases, self.settings.evidence.transcript_bytes) if cases else {}
        return Brief(parents, evidence, facts(order.tally, cases), order.child_number)

    def _case(self, evaluation: Evaluation) -> Case:
        kept = evaluation.cost.traces
        traces = {name: self.run.traces.get(kept[name]) if name in kept else b"" for name in SHOWN}
        signs = Circumstances()
        if "circumstances" in kept:
            signs = Circumstances(**json.loads(self.run.traces.get(kept["circumstances"])))
        return Case(evaluation, self.benchmark.task(evaluation.task).prompt, traces, signs)

    # Both

    def _bench(self, action: ActionId) -> SandboxWorkbench:
        return SandboxWorkbench(self.engine.open, self.gateway, action, self.spec, self.settings.limits)

    def _keep(self, data: bytes) -> Digest:
        return self.run.traces.put(data, self.settings.limits.patch_bytes)

    def _usage(self, action: ActionId) -> Usage:
        return self.run.tree.spend_of(action)


def _bad_end(completed: Completed) -> str:
    """How an agent's program ended, where that explains why nothing came of it."""
    if completed.timed_out:
        return "ran out of time"
    if completed.out_of_memory:
        return "ran out of memory"
    return f"exits {completed.exit_code}" if completed.exit_code else ""


def seed_birth(run: Run, source: Snapshot) -> Born:
    """Commits agent 0."""
    clean: dict[str, Entry] = {path: entry for path, entry in source.items() if "__pycache__" not in path}
    return Born((), "seed", run.repository.commit(clean, ()), "the agent that the search starts from")
