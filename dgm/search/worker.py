"""Performs one action and answers with one outcome; here and in ``expanding`` agents' faults become data.

A worker reads the archive's sources and traces and writes traces and commits (data first); the event that names
them is the loop's.
"""

import asyncio
import json
import time
from dataclasses import asdict, dataclass, replace

from dgm.archive.repository import patch
from dgm.archive.run import Run
from dgm.domain import Born, Cost, Digest, Entry, Evaluation, Outcome, Snapshot, Verdict
from dgm.errors import AgentFault, Infrastructure
from dgm.meta.evidence import circumstances, conversation_text
from dgm.protocols import Completed, Grade, InImage, Job, JobKind, Work
from dgm.search.equipment import Equipment
from dgm.search.expanding import Expanding
from dgm.search.orders import EvaluateOrder, ExpandOrder, Order

EACH_TRY = ("patch", "log", "conversation", "circumstances", "tests", "failures")
"""Traces of a try; those of tries before the last one are kept under the try's number (``patch-1`` …)."""


@dataclass(frozen=True, slots=True)
class Worker(Equipment):
    """Performs whatever it is ordered to."""

    async def perform(self, order: Order) -> Outcome:
        """Performs one action.

        Raises:
            Infrastructure: an expansion could not be performed; an evaluation answers ``invalid`` instead.
        """
        match order:
            case EvaluateOrder():
                return await self._evaluate(order)
            case ExpandOrder():
                return await Expanding(self).expand(order)

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
        cost = Cost(self.usage(order.id), time.monotonic() - began, traces)
        return Evaluation(what.agent, what.task, what.attempt, grade.verdict, grade.reason, grade.score, cost)

    async def _graded(self, order: EvaluateOrder, traces: dict[str, Digest]) -> Grade:
        task = self.benchmark.task(order.action.task)
        source, start = await asyncio.gather(
            asyncio.to_thread(self.run.repository.source, order.agent.commit),
            asyncio.to_thread(self.benchmark.workspace, task.id),
        )
        problem, workspace, tried = task.prompt, start, 0
        bench = self.bench(order.id)
        while True:
            job = Job(JobKind.SOLVE, problem, source, workspace, task.image, task.workdir, task.timeout_s)
            work = await bench.work(job)
            tried += 1
            if tried > 1 and not isinstance(start, InImage):
                # What is graded is all that was changed, not only what the last try changed.
                work = replace(work, patch=await asyncio.to_thread(self._patch, start, work.workspace))
            await asyncio.to_thread(self._keep_work, work, traces)
            grade = await self.benchmark.grade(task.id, work.patch, self.spec.labels)
            traces["tests"] = await asyncio.to_thread(self.keep, grade.log)
            traces["failures"] = await asyncio.to_thread(self.keep, grade.shown)
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
        signs = circumstances(done.exit_code, done.timed_out, done.output, work.conversation, work.refused)
        traces["patch"] = self.keep(work.patch)
        traces["log"] = self.keep(done.output)
        traces["conversation"] = self.keep(conversation_text(work.conversation).encode("utf-8", "replace"))
        traces["circumstances"] = self.keep(json.dumps(asdict(signs)).encode())


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
