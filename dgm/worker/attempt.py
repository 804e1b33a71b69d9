"""One agent at work on one task, graded: for evaluations, and for the probes of a child that is vetted."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from dgm.domain import Digest, Snapshot, TaskId, Verdict
from dgm.meta.evidence import conversation_text, program_end_of, prompts_text
from dgm.meta.trajectories import TRACE
from dgm.plugins import check_answer
from dgm.protocols import Grade, HasEnvironments, InImage, Job, JobKind, Work, Workbench
from dgm.worker.context import WorkerContext
from dgm.worker.leaving import fit_patch, format_left_out

EACH_TRY = ("patch", "log", "conversation", "prompts", TRACE, "circumstances", "tests", "failures")
"""Traces of a try; those of tries before the last one are kept under the try's number (``patch-1`` …)."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of an agent at a task; its traces are in ``traces``, whatever the result."""

    by: WorkerContext
    bench: Workbench
    task: TaskId
    labels: Mapping[str, str]
    """Labels of its sandboxes."""
    traces: dict[str, Digest] = field(default_factory=dict)

    async def graded(self, source: Snapshot) -> Grade:
        """Let an agent of that source work, as often as the benchmark lets it try, and return the grade.

        Raises:
            AgentFault: the agent's result cannot be used.
            Infrastructure: a sandbox or the model failed.
        """
        benchmark, traces = self.by.benchmark, self.traces
        task = benchmark.task(self.task)
        start = await asyncio.to_thread(benchmark.workspace, task.id)
        packages = (
            await benchmark.environment(task.id, self.labels)
            if isinstance(benchmark, HasEnvironments)
            else None
        )
        problem, workspace, tried = task.prompt, start, 0
        limit_s = self.by.settings.limits.solve_limit_s(task.timeout_s)
        while True:
            job = Job(JobKind.SOLVE, problem, source, workspace, task.image, task.workdir, limit_s)
            job = replace(job, environment=packages)
            work = await self.bench.work(job)
            tried += 1
            if tried > 1 and not isinstance(start, InImage):
                # The grade is for all changes, not only those of the last try.
                most = self.by.settings.limits.patch_bytes
                whole = await asyncio.to_thread(fit_patch, start, work.workspace, most)
                work = replace(work, patch=whole.patch, left_out={**work.left_out, **whole.left_out})
            await asyncio.to_thread(self._keep_work, work)
            grade = await benchmark.grade(task.id, work.patch, self.labels)
            check_answer(grade, Grade, f"benchmark '{benchmark.name}': grade")
            traces["tests"] = await asyncio.to_thread(self.by.keep, grade.log)
            traces["failures"] = await asyncio.to_thread(self.by.keep, grade.shown)
            # A workspace in the image cannot be restored as an agent left it.
            in_image = isinstance(start, InImage)
            problem = "" if in_image else benchmark.again(task.id, grade, tried)
            if not problem:
                break
            traces.update({f"{name}-{tried}": traces[name] for name in EACH_TRY if name in traces})
            workspace = work.workspace
        unsolved = grade.verdict is Verdict.UNRESOLVED
        ending = work.completed.bad_end if unsolved else ""
        caused = f"the agent lacked answers: {work.own_failure}" if unsolved and work.own_failure else ""
        notes = [f"the agent {ending}" if ending else "", caused, format_left_out(work.left_out)]
        said = "; ".join(filter(None, notes))
        return Grade(grade.verdict, f"{grade.reason} ({said})", grade.score) if said else grade

    def _keep_work(self, work: Work) -> None:
        done, keep = work.completed, self.by.keep
        signs = program_end_of(done.exit_code, done.timed_out, done.output, work.threads, work.refused)
        own = work.trajectory
        threads = own.threads if own else work.threads
        self.traces["patch"] = keep(work.patch)
        self.traces["log"] = keep(done.output)
        self.traces["conversation"] = keep(conversation_text(threads).encode("utf-8", "replace"))
        self.traces["prompts"] = keep(prompts_text(work.threads or threads).encode("utf-8", "replace"))
        # A try of its own may write none, and is not told of by the one before.
        self.traces.pop(TRACE, None)
        if own:
            self.traces[TRACE] = self.by.keep_whole(own.data)
        self.traces["circumstances"] = self.by.keep_whole(json.dumps(asdict(signs)).encode())
