"""One agent at work on one task, graded: for evaluations, and for the probes of a child that is vetted."""

import asyncio
import json
from dataclasses import asdict, dataclass, field, replace

from dgm.archive.repository import patch
from dgm.domain import Digest, Snapshot, TaskId, Verdict
from dgm.errors import AgentFault
from dgm.meta.evidence import circumstances, conversation_text
from dgm.protocols import Completed, Grade, InImage, Job, JobKind, Work, Workbench
from dgm.search.equipment import Equipment

EACH_TRY = ("patch", "log", "conversation", "circumstances", "tests", "failures")
"""Traces of a try; those of tries before the last one are kept under the try's number (``patch-1`` …)."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is kept of it is in ``traces``, whatever comes of it."""

    by: Equipment
    bench: Workbench
    task: TaskId
    traces: dict[str, Digest] = field(default_factory=dict)

    async def graded(self, source: Snapshot) -> Grade:
        """Lets an agent of that source work, as often as the benchmark lets it try.

        Raises:
            AgentFault: what it left cannot be used.
            Infrastructure: a sandbox or the model failed.
        """
        benchmark, traces = self.by.benchmark, self.traces
        task = benchmark.task(self.task)
        start = await asyncio.to_thread(benchmark.workspace, task.id)
        problem, workspace, tried = task.prompt, start, 0
        while True:
            job = Job(JobKind.SOLVE, problem, source, workspace, task.image, task.workdir, task.timeout_s)
            work = await self.bench.work(job)
            tried += 1
            if tried > 1 and not isinstance(start, InImage):
                # What is graded is all that was changed, not only what the last try changed.
                work = replace(work, patch=await asyncio.to_thread(self._patch, start, work.workspace))
            await asyncio.to_thread(self._keep_work, work)
            grade = await benchmark.grade(task.id, work.patch, self.by.spec.labels)
            traces["tests"] = await asyncio.to_thread(self.by.keep, grade.log)
            traces["failures"] = await asyncio.to_thread(self.by.keep, grade.shown)
            # A workspace that stands in the image cannot be put back as an agent left it.
            in_image = isinstance(start, InImage)
            problem = "" if in_image else benchmark.again(task.id, grade, tried)
            if not problem:
                break
            traces.update({f"{name}-{tried}": traces[name] for name in EACH_TRY})
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
        if len(whole) > self.by.settings.limits.patch_bytes:
            allowed = self.by.settings.limits.patch_bytes
            raise AgentFault("patch", f"the patch has {len(whole)} bytes; {allowed} are allowed")
        return whole

    def _keep_work(self, work: Work) -> None:
        done, keep = work.completed, self.by.keep
        signs = circumstances(done.exit_code, done.timed_out, done.output, work.conversation, work.refused)
        said = conversation_text(work.conversation).encode("utf-8", "replace")
        self.traces["patch"] = keep(work.patch)
        self.traces["log"] = keep(done.output)
        self.traces["conversation"] = keep(said)
        self.traces["circumstances"] = self.by.keep_whole(json.dumps(asdict(signs)).encode())


def _bad_end(completed: Completed) -> str:
    """How an agent's program ended, where that explains why nothing came of it."""
    if completed.timed_out:
        return "ran out of time"
    if completed.out_of_memory:
        return "ran out of memory"
    return f"exits {completed.exit_code}" if completed.exit_code else ""
