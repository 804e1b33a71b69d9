"""The stages that need a sandbox."""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from dgm.domain import Entry, Snapshot, TaskId, Verdict
from dgm.errors import AgentFault
from dgm.meta.contract import OWN_EDITOR, read_contract
from dgm.meta.vetting.record import StageRecord
from dgm.protocols import Completed, Grade, Job, JobKind, Work, Workbench

DRY_RUN = "This is a dry run: change nothing and say DONE."
DRY_WORKSPACE: Snapshot = {"README.md": Entry(b"An empty project.\n")}
"""The repository of a rehearsed solve job."""

log = logging.getLogger(__name__)

Tries = Callable[[Snapshot, TaskId], Awaitable[Grade]]
"""Function that has an agent of that source try a task, and grades it; raises as a workbench and a benchmark do."""


class Stages:
    """The stages that need a sandbox."""

    def __init__(
        self, dry_bench: Workbench, image: str, check_s: float, probes: Sequence[TaskId], tries: Tries
    ) -> None:
        """Create the stages with a workbench whose model only ever says DONE.

        Args:
            dry_bench: checks the child, and lends the scripted model of the dry run.
            image: recipe of the sandbox of the dry run.
            check_s: processor seconds that the self-check may take, and each dry run.
            probes: tasks that all parents have always resolved.
            tries: performs one try of a probe task.
        """
        self._dry_bench = dry_bench
        self._image = image
        self._check_s = check_s
        self._probes = probes
        self._tries = tries

    async def check(self, child: Snapshot) -> Completed:
        """Run the agent's self-check; it must exit 0 in time. Return how it ended."""
        done = await self._dry_bench.check(child)
        if done.timed_out:
            raise AgentFault("check", f"the self-check {self._late(done)}", done.output)
        if done.exit_code != 0:
            why = f"the self-check exits {done.exit_code}: {last_line(done.output)}"
            raise AgentFault("check", why, done.output)
        return done

    async def start_improve(self, child: Snapshot) -> None:
        """Start an improve job whose model says DONE at once; the agent must ask it and end by itself.

        An agent that another one edits never has such a job, and starts a solve job instead.
        """
        if read_contract(child).editor == OWN_EDITOR:
            name, job = "an improve job", self._job(JobKind.IMPROVE, child, child, "/work/agent")
        else:
            name, job = "a solve job", self._job(JobKind.SOLVE, child, DRY_WORKSPACE, "/work/repo")
        work = await self._dry_bench.work(job)
        done = work.completed
        if done.timed_out:
            why = f"{name}, to which the model only says DONE, {self._late(done)}"
        elif work.calls == 0:
            why = f"{name} never asks the model (exit {done.exit_code}: {last_line(done.output)})"
        elif done.exit_code != 0 and b"Traceback (most recent call last)" in done.output:
            why = f"{name} crashes: {last_line(done.output)}"
        else:
            return
        raise AgentFault("improve", why, done.output)

    def _late(self, done: Completed) -> str:
        if done.out_of_processor:
            return f"took more than {self._check_s:g} s of processor time (limits.check_s)"
        return f"did not end within {done.seconds:.0f} s, at a second try: it waits for something"

    async def start_solve(self, source: Snapshot) -> Work | None:
        """Start a solve job whose model says DONE at once; the agent must reach its first request.

        The agent's use of the answer is not judged: many agents expect another form than DONE. An agent that is still
        running at the time limit, and has asked nothing, is only reported in the log.

        Returns:
            What the agent left; None if that cannot be used.

        Raises:
            AgentFault: stage ``start``: the agent's program fails before it asks its model.
            Infrastructure: the sandbox failed.
        """
        try:
            work = await self._dry_bench.work(self._job(JobKind.SOLVE, source, DRY_WORKSPACE, "/work/repo"))
        except AgentFault as fault:
            log.info("the dry run left what cannot be used (%s): %s", fault.stage, fault)
            return None
        if work.calls or work.refused or work.completed.exit_code == 0:
            return work
        if work.completed.timed_out:
            log.warning("the agent did not ask its model within %.0f s of a dry run", work.completed.seconds)
            return work
        why = last_line(work.completed.output)
        raise AgentFault("start", f"a job exits {work.completed.exit_code} before it asks the model: {why}")

    def _job(self, kind: JobKind, source: Snapshot, workspace: Snapshot, workdir: str) -> Job:
        return Job(
            kind=kind,
            problem=DRY_RUN,
            source=source,
            workspace=workspace,
            image=self._image,
            workdir=workdir,
            time_limit_s=self._check_s,
            processor_s=self._check_s,
        )

    async def probe(self, child: Snapshot, ran: StageRecord) -> None:
        """Let the child work on the probe tasks until it resolves one; one that resolves none is broken, not bad."""
        if not self._probes:
            ran.skip("there is no task that its parents have always resolved")
        for task in self._probes:
            began = time.perf_counter()
            try:
                grade = await self._tries(child, task)
            except AgentFault as fault:
                grade = Grade(Verdict.UNRESOLVED, f"{fault.stage}: {fault}", 0.0)
            seconds = round(time.perf_counter() - began, 6)
            tried = {"task": task, "verdict": grade.verdict.value, "reason": grade.reason}
            ran.tries.append({**tried, "seconds": seconds})
            if grade.verdict is Verdict.RESOLVED:
                return
        if self._probes:
            told = "; ".join(f"{tried['task']}: {tried['reason']}" for tried in ran.tries)
            which = "the task" if len(self._probes) == 1 else f"any of the {len(self._probes)} tasks"
            raise AgentFault("probe", f"does not solve {which} that its parents always solve ({told})")


def last_line(output: bytes) -> str:
    """Return the last non-empty line, printable, at most 160 characters."""
    lines = [line for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    text = lines[-1].strip() if lines else "no output"
    return "".join(c if c.isprintable() else "�" for c in text)[:160]
