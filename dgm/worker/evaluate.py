"""One agent at work on one task, graded: for evaluations, and for the probes of a child that is vetted."""

import asyncio
import json
import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from dgm.domain import ActionId, Cost, Digest, Evaluate, Evaluation, Snapshot, TaskId, Verdict
from dgm.errors import AgentFault, Infrastructure
from dgm.meta.evidence import conversation_text, program_end_of, prompts_text
from dgm.meta.trajectories import TRACE
from dgm.plugins import check_answer
from dgm.protocols import Grade, HasEnvironments, InImage, Job, JobKind, Work
from dgm.worker.leaving import fit_patch, format_left_out
from dgm.worker.workbench import SandboxWorkbench

if TYPE_CHECKING:
    from dgm.worker.worker import Worker

TRACES_OF_A_TRY = ("patch", "log", "conversation", "prompts", TRACE, "circumstances", "tests", "failures")
"""Traces of a try; those of tries before the last one are kept under the try's number (``patch-1`` …)."""


async def evaluate(worker: "Worker", action: ActionId, what: Evaluate) -> Evaluation:
    """Let an agent work on a task and grade its patch; ``invalid`` if the infrastructure failed."""
    began = time.monotonic()
    traces: dict[str, Digest] = {}
    commit = worker.run.tree.agents[what.agent].commit
    try:
        source = await asyncio.to_thread(worker.run.repository.source, commit)
        grade = await attempt_task(worker, worker.open_bench(action), source, what.task, traces)
    except AgentFault as fault:
        grade = Grade(Verdict.UNRESOLVED, f"{fault.stage}: {fault}", 0.0)
    except Infrastructure as error:
        grade = Grade(Verdict.INVALID, str(error), 0.0)
    cost = Cost(worker.usage(action), time.monotonic() - began, traces)
    return Evaluation(what.agent, what.task, what.attempt, grade.verdict, grade.reason, grade.score, cost)


async def attempt_task(
    worker: "Worker", bench: SandboxWorkbench, source: Snapshot, task_id: TaskId, traces: dict[str, Digest]
) -> Grade:
    """Let an agent work on a task, as often as the benchmark lets it try, and return the grade.

    Args:
        worker: of the run.
        bench: on which the agent works.
        source: of the agent.
        task_id: the task.
        traces: receives the traces, whatever the result.

    Raises:
        AgentFault: the agent's result cannot be used.
        Infrastructure: a sandbox or the model failed.
    """
    benchmark, limits, labels = worker.benchmark, worker.settings.limits, bench.spec.labels
    task = benchmark.task(task_id)
    start = await asyncio.to_thread(benchmark.workspace, task.id)
    packages = (
        await benchmark.environment(task.id, labels) if isinstance(benchmark, HasEnvironments) else None
    )
    job = Job(
        JobKind.SOLVE,
        task.prompt,
        source,
        start,
        task.image,
        task.workdir,
        limits.solve_limit_s(task.timeout_s),
        environment=packages,
    )
    tries = 0
    while True:
        work = await bench.work(job)
        tries += 1
        if tries > 1 and not isinstance(start, InImage):
            # The grade is for all changes, not only those of the last try.
            total = await asyncio.to_thread(fit_patch, start, work.workspace, limits.patch_bytes)
            work = replace(work, patch=total.patch, left_out={**work.left_out, **total.left_out})
        await asyncio.to_thread(_keep_work, worker, work, traces)
        grade = await benchmark.grade(task.id, work.patch, labels)
        check_answer(grade, Grade, f"benchmark '{benchmark.name}': grade")
        traces["tests"] = await asyncio.to_thread(worker.keep, grade.log)
        traces["failures"] = await asyncio.to_thread(worker.keep, grade.shown)
        # A workspace in the image cannot be restored as an agent left it.
        problem = "" if isinstance(start, InImage) else benchmark.again(task.id, grade, tries)
        if not problem:
            return _note_circumstances(grade, work)
        traces.update({f"{name}-{tries}": traces[name] for name in TRACES_OF_A_TRY if name in traces})
        job = replace(job, problem=problem, workspace=work.workspace)


def _note_circumstances(grade: Grade, work: Work) -> Grade:
    """Return the grade with a note on what kept the agent from a better one."""
    unsolved = grade.verdict is Verdict.UNRESOLVED
    notes = [
        f"the agent {work.completed.bad_end}" if unsolved and work.completed.bad_end else "",
        f"the agent lacked answers: {work.own_failure}" if unsolved and work.own_failure else "",
        format_left_out(work.left_out),
    ]
    note = "; ".join(filter(None, notes))
    return Grade(grade.verdict, f"{grade.reason} ({note})", grade.score) if note else grade


def _keep_work(worker: "Worker", work: Work, traces: dict[str, Digest]) -> None:
    completed, trajectory = work.completed, work.trajectory
    end = program_end_of(
        completed.exit_code, completed.timed_out, completed.output, work.threads, work.refused
    )
    threads = trajectory.threads if trajectory else work.threads
    traces["patch"] = worker.keep(work.patch)
    traces["log"] = worker.keep(completed.output)
    traces["conversation"] = worker.keep(conversation_text(threads).encode("utf-8", "replace"))
    traces["prompts"] = worker.keep(prompts_text(work.threads or threads).encode("utf-8", "replace"))
    # A try may write no trajectory; the one of the try before does not count for it.
    traces.pop(TRACE, None)
    if trajectory:
        traces[TRACE] = worker.keep_uncut(trajectory.data)
    traces["circumstances"] = worker.keep_uncut(json.dumps(asdict(end)).encode())
