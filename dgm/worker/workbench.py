"""The workbench of an agent on one job: a sandbox, a lent model, and a diff of the result, taken by dgm.

Three rules decide what is an agent's fault:

* A start (a self-check or a dry run) is bounded by processor time, which a busy machine does not lengthen. The clock
  has a wider bound, for agents that wait for something; an agent that reaches it is started once more.
* An agent that lacked answers of its model is not to blame if the model answers no neutral question either. Else the
  job is done once more, and then graded: an agent must not gain from ending without a verdict.
* An agent that ran out of time, or could start no process, is not to blame if a program that does nothing fares no
  better.
"""

import asyncio
import errno
import logging
import math
import os
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Self, TypeVar

from dgm.conduct import Bait
from dgm.config import LimitSettings
from dgm.domain import ActionId, Finding, Snapshot, Usage
from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.gateway.agent_start import OFFLINE
from dgm.gateway.blame import FAILED, TRIES
from dgm.gateway.call import ModelCaller
from dgm.gateway.lease import DRY_RUN, SPENT, CallLimits, Lease
from dgm.gateway.server import MOST_LOST_S, Gateway
from dgm.messages import LEFT_OPEN, Reply, Request, RequestRefused
from dgm.meta.contract import Contract, read_contract
from dgm.meta.evidence import EVIDENCE_FOLDER
from dgm.protocols import (
    Completed,
    InImage,
    Job,
    JobKind,
    Mount,
    OpenSandbox,
    OwnTrajectory,
    Sandbox,
    SandboxSpec,
    SharedSocket,
    Work,
)
from dgm.sandboxes import recipes
from dgm.sandboxes.transfer import patch_of
from dgm.worker.conduct import inspect_work
from dgm.worker.leaving import (
    NEVER_COMMITTED,
    FolderChange,
    drop_ignored_files,
    fit_patch,
    keep_hidden_files,
    read_large,
)
from dgm.worker.supplies import (
    CHECK,
    LAUNCHER,
    Supplies,
    job_terms,
    launch_record,
    put_files,
    put_start,
    read_own_trajectory,
    start_command,
    write_evidence,
)

GATEWAY_FOLDER = "/run/dgm"
TIMED_OUT = 124
IN_ENGINE = "docker:"
REPOSITORY_LIMITS: Mapping[str, Any] = {"cpus": 2.0, "memory_mb": 4096, "pids": 512, "disk_mb": 1024}
"""For images without a recipe: they hold real repositories."""
CHECK_ENVIRONMENT: Mapping[str, str] = {**OFFLINE, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
"""Unbuffered, so that the output of a self-check that is ended is not lost."""
CHECK_BYTES = 20_000
"""Bytes kept of a self-check's output."""
LOG_BYTES = 200_000
"""Bytes kept of an agent's output."""
WORKSPACE_BYTES = 200_000_000
"""A larger workdir is not read back."""
AROUND_S = 300.0
"""Seconds of a sandbox's life beside its program, for putting files in and reading them back."""
GRACE_S = 15.0
"""Seconds beyond an agent's time limit, for the launcher to end it in good order."""
START_FACTOR, START_S = 3.0, 30.0
"""Bound on a start by the clock: ``START_FACTOR`` times its processor time, at least ``START_S`` seconds.

The second try has twice that.
"""
RESPONDS_S = 5.0
"""Seconds for a program that does nothing; a slower machine proves nothing about an agent."""
LEAST_S = 1.0
"""Nothing is begun with less time than this, in seconds."""

_NO_PROCESS = (os.strerror(errno.EAGAIN).encode(), b"can't start new thread")
_Done = TypeVar("_Done")

log = logging.getLogger(__name__)


class Allowance:
    """The rest of the limits on making or vetting one child; its time begins at construction.

    All leases together have the limits that the gateway lends to one action, and the settings' further limits
    on a child. A reply that is served from the journal counts like a paid one, so that a repeated expansion is cut off
    at the same call.

    Attributes:
        turn: held while a lease draws on the allowance, so that two at once cannot both take the rest.
    """

    def __init__(self, limits: LimitSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._began = clock()
        self._leases: list[Lease] = []
        self.turn = asyncio.Lock()

    @classmethod
    def of_vetting(cls, limits: LimitSettings) -> Self:
        """Create an allowance without the settings' limits on a child's making."""
        making = ("child_calls", "child_tokens", "child_usd", "child_s")
        return cls(limits.model_copy(update=dict.fromkeys(making)))

    def rest(self, own: CallLimits) -> CallLimits:
        """Return the limits of the next lease: the rest of the limits of one action and of a child."""
        used = sum((lease.usage for lease in self._leases), Usage())
        answered = sum(lease.calls for lease in self._leases)
        limits = self._limits
        usd = [limit for limit in (own.usd, limits.child_usd) if limit is not None]
        return replace(
            own,
            calls=min(own.calls, limits.child_calls or own.calls) - answered,
            tokens=min(own.tokens, limits.child_tokens or own.tokens) - used.tokens,
            usd=min(usd) - used.usd if usd else None,
        )

    def count(self, lease: Lease) -> None:
        """Count the lease's answered calls from here on."""
        self._leases.append(lease)

    def forget_last(self) -> None:
        """Stop counting the last lease: its job is done once more, and gets the same answers."""
        self._leases.pop()

    def seconds(self, own: float) -> float:
        """Return the wall seconds of the next job: its own, at most the rest of the allowance.

        Raises:
            AgentFault: stage ``time``: too little is left to begin.
        """
        if self.late:
            raise AgentFault("time", self.late)
        return min(own, self._left_s)

    @property
    def late(self) -> str:
        """A line saying that the time is over; empty while it is not."""
        limit = self._limits.child_s
        return f"the {limit:g} s that a child may take are over" if self._left_s < LEAST_S else ""

    @property
    def _left_s(self) -> float:
        limit = self._limits.child_s
        return math.inf if limit is None else limit - (self._clock() - self._began)


@dataclass(frozen=True, slots=True)
class SandboxWorkbench:
    """The workbench of one action."""

    open_sandbox: OpenSandbox
    gateway: Gateway
    action: ActionId
    spec: SandboxSpec
    """Spec of agents' own sandboxes; the job sets image and life, and the limits if its image is another one."""
    limits: LimitSettings
    role: str | None = None
    """Role of the lent model; default: the kind of the job."""
    allowance: Allowance | None = None
    """Limits on all jobs and questions together; None: each has only its own limits."""
    heard: set[int] = field(default_factory=set)
    """Numbers of the action's model calls that are not served to a job again.

    Either a job of this performance has had the answer, or the answers are void.
    """
    supplies: Supplies = field(default_factory=Supplies)
    """Packages of the agents."""
    findings: dict[Finding, None] = field(default_factory=dict)
    """Findings of its jobs, in order, each once."""

    async def work(self, job: Job) -> Work:
        """Run the agent's program on the job, by the rules above.

        Raises:
            AgentFault: stages ``contract``, ``size`` and ``patch``: the agent's result cannot be used; stage
                ``time``: the allowance has no time left; stage ``evidence``: the evidence cannot be laid out.
            Infrastructure: the sandbox or the model failed, or the machine does not respond.
        """
        if job.processor_s is not None:
            return await self._start(
                lambda clock_s: self._work_twice(replace(job, time_limit_s=clock_s)),
                lambda work: work.completed,
                job.processor_s,
            )
        work = await self._work_twice(job)
        if _proves_little(work.completed):
            await self._check_machine()
        return work

    async def _work_twice(self, job: Job) -> Work:
        """Do a job once more if its agent lacked answers by its own fault."""
        heard = set(self.heard)
        try:
            return await self._work(job, last=False)
        except _LackedAnswers:
            # The same answers are served again, and counted once.
            self.heard.intersection_update(heard)
            if self.allowance:
                self.allowance.forget_last()
        return await self._work(job, last=True)

    async def _work(self, job: Job, *, last: bool) -> Work:
        contract = read_contract(job.source)
        async with self._lend_model(self.role or job.kind.value, job.kind.value) as lease:
            lease.memory.begin_job(contract.volatile, job.problem)
            if self.allowance:
                job = replace(job, time_limit_s=self.allowance.seconds(job.time_limit_s))
            try:
                completed, left, told = await self._run_in_sandbox(job, contract, lease)
            except AgentFault as fault:
                # An agent whose model fails is not to blame for its result.
                if lease.failure is not None:
                    raise lease.failure from fault
                raise
            caller = self.gateway.caller
            own_failure = await _find_own_failure(caller, lease, completed, job.time_limit_s, last=last)
        calls = (lease.threads, lease.calls, tuple(lease.refused))
        dry = lease.rehearsed.summarise(lease.refused, lease.left_out) if self.role == DRY_RUN else None
        conduct = (tuple(lease.findings), tuple(lease.asked_models))
        work = Work(
            left.files, left.patch, completed, *calls, left.left_out, told, own_failure, dry, *conduct
        )
        if self.role != DRY_RUN:
            self.findings.update(dict.fromkeys(inspect_work(work, Bait())))
        return work

    async def ask(self, request: Request, role: str = "diagnose") -> Reply:
        """Ask the role's model once, without an agent.

        Raises:
            RequestRefused: the request can never be answered, or a limit is reached
                (``action_limit_exceeded``).
            Infrastructure: the model failed.
        """
        async with self._lend_model(role) as lease:
            if self.allowance and self.allowance.late:
                raise RequestRefused(SPENT, self.allowance.late)
            return await self.gateway.ask(lease, request)

    @asynccontextmanager
    async def _lend_model(self, role: str, kind: str = "") -> AsyncIterator[Lease]:
        if self.allowance is None:
            with self.gateway.lend(self.action, role, heard=self.heard, kind=kind) as lease:
                yield lease
            return
        async with self.allowance.turn:
            limits = self.allowance.rest(self.gateway.limits)
            with self.gateway.lend(self.action, role, limits, self.heard, kind) as lease:
                self.allowance.count(lease)
                yield lease

    async def check(self, source: Snapshot) -> Completed:
        """Run an agent's own check in a fresh sandbox, without a model.

        A check that is ``timed_out`` is at fault.

        Raises:
            AgentFault: stage ``contract``: it has no check.
            Infrastructure: the sandbox failed, or the machine does not respond.
        """
        contract, check_s = read_contract(source), self.limits.check_s

        async def attempt(clock_s: float) -> Completed:
            supply = await self.supplies.supply(self.spec)
            spec = replace(
                self.spec, mounts=supply.mounts, runtime=supply.runtime, lifetime_s=clock_s + AROUND_S
            )
            async with self.open_sandbox(spec) as sandbox:
                await sandbox.put(source, "/agent")
                command: Sequence[str] = contract.check
                if supply.runtime or supply.packages:
                    await put_start(sandbox)
                    command = start_command(CHECK, command, contract, supply)
                return await sandbox.exec(
                    command,
                    timeout_s=clock_s,
                    cwd="/agent",
                    env={**CHECK_ENVIRONMENT, **contract.env, "PYTHONPATH": supply.packages},
                    output_limit=CHECK_BYTES,
                    processor_s=check_s,
                )

        done = await self._start(attempt, lambda done: done, check_s)
        if done.exit_code and not done.timed_out and _proves_little(done):
            await self._check_machine()
        return done

    async def _start(
        self,
        attempt: Callable[[float], Awaitable[_Done]],
        ended: Callable[[_Done], Completed],
        processor_s: float,
    ) -> _Done:
        """Let an agent start, twice if the clock ends it.

        Args:
            attempt: starts it with the given seconds by the clock, in a sandbox of its own each time.
            ended: how an attempt ended.
            processor_s: limit on its processor time.

        Returns:
            The last attempt; if that is ``timed_out``, the agent is at fault.

        Raises:
            Infrastructure: a sandbox failed, or the machine does not respond.
        """
        clock_s = max(START_S, START_FACTOR * processor_s)
        done = await attempt(clock_s)
        for seconds in (2.0 * clock_s, 0.0):
            if not ended(done).timed_out or ended(done).out_of_processor:
                break
            await self._check_machine()
            if seconds:
                done = await attempt(seconds)
        return done

    async def _check_machine(self) -> None:
        """Start two programs that do nothing, in a sandbox in which no agent ever was.

        Raises:
            Infrastructure: they took longer than ``RESPONDS_S``, or one did not start, so the end of a program on this
                machine (``_proves_little``) is not the agent's fault.
        """
        async with self.open_sandbox(self.spec) as sandbox:
            done = await sandbox.exec(["sh", "-c", "true & wait $!"], timeout_s=RESPONDS_S, cwd="/")
        if done.timed_out:
            raise Infrastructure(
                f"the machine does not respond: a program that does nothing took more than {RESPONDS_S:g} s, so an "
                "agent that ran out of time is not to blame; give it less to do at once (workers)"
            )
        if done.exit_code:
            raise Infrastructure(
                "the machine starts no more processes, so an agent that could start none is not to blame; raise its "
                "limit (ulimit -u, or pids of the container), or give it less to do at once (workers)"
            )

    @property
    def _socket(self) -> SharedSocket:
        name = self.gateway.socket_name
        return SharedSocket(self.gateway.folder / name, f"{GATEWAY_FOLDER}/{name}")

    async def _run_in_sandbox(
        self, job: Job, contract: Contract, lease: Lease
    ) -> tuple[Completed, FolderChange, OwnTrajectory | None]:
        """Return how the agent ended, what it left, and what it wrote of its work.

        Of a workspace in the image there is only the patch.
        """
        spec = self._spec(job)
        supply = await self.supplies.supply(spec)
        environment = [job.environment.mount] if job.environment else []
        async with (
            self._evidence(job) as shown,
            self.open_sandbox(
                replace(spec, mounts=(*supply.mounts_for(job), *shown, *environment), runtime=supply.runtime)
            ) as sandbox,
        ):
            await lease.recall()  # A replay's job is told the form of actions that the recorded requests had.
            await put_files(sandbox, job, job_terms(contract, lease))
            running = sandbox.exec(
                ["python3", "-I", "/" + LAUNCHER],
                timeout_s=job.time_limit_s + MOST_LOST_S + GRACE_S,
                cwd="/job",
                stdin=launch_record(
                    job, contract, supply, self._socket.target, lease.token, lease.names.native
                ),
                output_limit=LOG_BYTES,
                processor_s=job.processor_s,
            )
            completed = await _run_within_limit(sandbox, running, job.time_limit_s, lease)
            _check_reached(lease, completed)
            try:
                left = await self._left(sandbox, job, contract)
            except AgentFault as fault:
                fault.output = completed.output
                raise
            told = await read_own_trajectory(sandbox, contract) if job.kind is JobKind.SOLVE else None
        return _mark_timeout(completed, job.time_limit_s), left, told

    @asynccontextmanager
    async def _evidence(self, job: Job) -> AsyncIterator[Sequence[Mount]]:
        """Show the job's evidence read-only from a folder of the host, so that it takes none of the sandbox's disk."""
        if not job.evidence:
            yield ()
            return
        # The name begins with the gateway's, so that the cleanup after a dead process removes this folder, too.
        beside = self.gateway.folder
        folder = Path(await asyncio.to_thread(mkdtemp, prefix=f"{beside.name}-evidence-", dir=beside.parent))
        try:
            try:
                await asyncio.to_thread(write_evidence, job.evidence, folder)
            except UserError as error:
                raise AgentFault("evidence", str(error)) from error
            yield (Mount(folder, EVIDENCE_FOLDER),)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, True)

    async def _left(self, sandbox: Sandbox, job: Job, contract: Contract) -> FolderChange:
        most, litter = self.limits.patch_bytes, contract.ignored
        if isinstance(job.workspace, InImage):
            patterns = (*NEVER_COMMITTED, *litter)
            diff, left_out = await patch_of(sandbox, job.workdir, job.workspace.baseline, most, patterns)
            return FolderChange({}, diff, left_out)
        before = job.workspace
        large: Mapping[str, int] = {}
        try:
            after = await sandbox.get(
                job.workdir, limit_bytes=self._size_limit(job), exclude=(".git", "__pycache__")
            )
        except AgentFault as fault:
            if fault.stage != "size":
                raise
            limit = self._size_limit(job)
            after, large = await read_large(sandbox, job.workdir, before, litter, limit)
            if large and job.kind is JobKind.IMPROVE:
                # A child without a part of its parent's output would be another child.
                raise
        after = await asyncio.to_thread(drop_ignored_files, before, after, litter)
        if job.kind is JobKind.SOLVE:
            after = keep_hidden_files(before, after, contract.hidden)
        left = await asyncio.to_thread(fit_patch, before, after, most, cut=job.kind is JobKind.SOLVE)
        return replace(left, left_out={**large, **left.left_out})

    def _size_limit(self, job: Job) -> int:
        return self.limits.agent_bytes if job.kind is JobKind.IMPROVE else WORKSPACE_BYTES

    def _spec(self, job: Job) -> SandboxSpec:
        image = self.spec.image if job.kind is JobKind.IMPROVE else job.image
        if image == self.spec.image:
            base = self.spec
        elif image.startswith(IN_ENGINE):
            base = replace(self.spec, **REPOSITORY_LIMITS)
        else:
            base = recipes.load(image).spec(self.spec.labels)
        return replace(
            base,
            image=image,
            socket=self._socket,
            filled={job.workdir: job.workspace.source} if isinstance(job.workspace, InImage) else {},
            lifetime_s=job.time_limit_s + MOST_LOST_S + AROUND_S,
        )


async def _run_within_limit(
    sandbox: Sandbox, running: Coroutine[Any, Any, Completed], limit_s: float, lease: Lease
) -> Completed:
    """Wait for an agent's program, and end it when its time and the time it lost by waiting are over.

    The launcher does so by itself; this is for a launcher that an agent has meddled with.
    """
    began = time.monotonic()
    task = asyncio.create_task(running, name=f"job of action {lease.action}")
    try:
        while True:
            end = began + limit_s + min(lease.lost_s, MOST_LOST_S) + GRACE_S
            done, _ = await asyncio.wait({task}, timeout=max(0.05, end - time.monotonic()))
            if done:
                return task.result()
            if time.monotonic() >= began + limit_s + min(lease.lost_s, MOST_LOST_S) + GRACE_S:
                await sandbox.halt()
                return replace(await task, timed_out=True)
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _check_reached(lease: Lease, completed: Completed) -> None:
    """Raise ``Infrastructure`` if the launcher did not reach the gateway: then it started no agent."""
    if lease.reached:
        return
    said = completed.output.decode("utf-8", "replace").strip().splitlines()
    cause = said[-1][:300] if said else f"exit {completed.exit_code}, no output"
    raise Infrastructure(f"the agent was not started, for its sandbox does not reach the gateway: {cause}")


def _mark_timeout(completed: Completed, limit_s: float) -> Completed:
    """Set ``timed_out`` if the launcher's exit status says so and the time limit has passed."""
    late = completed.exit_code == TIMED_OUT and completed.seconds >= limit_s
    return replace(completed, timed_out=completed.timed_out or late)


class _LackedAnswers(Infrastructure):
    """The end of a job whose agent lacked answers by its own fault, for the first time: the job is done once more."""


async def _find_own_failure(
    caller: ModelCaller, lease: Lease, completed: Completed, limit_s: float, *, last: bool
) -> str:
    """Return what an agent lacked of its model by its own fault; empty if it lacked nothing.

    Args:
        caller: asks the neutral question.
        lease: of the agent, which has ended; still open.
        completed: how the agent ended.
        limit_s: the agent's time, in seconds.
        last: whether the job is not done again.

    Raises:
        _LackedAnswers: the job is to be done once more.
        Infrastructure: the model or the journal failed.
    """
    lacking = "" if lease.failure is not None else await _find_lack(lease, completed, limit_s)
    if lease.failure is not None:
        raise lease.failure
    if not lacking:
        return "; ".join(lease.refused[code] for code in (FAILED, LEFT_OPEN) if code in lease.refused)
    if not await caller.answers(lease):
        raise Infrastructure(lacking)
    if not last:
        log.warning("action %d: done once more: %s; the model answers others", lease.action, lacking)
        raise _LackedAnswers(lacking)
    lacking = f"{lacking}; {TRIES} times, while the model answered others"
    await caller.refuse_open_calls(lease, lacking)
    return lacking


async def _find_lack(lease: Lease, completed: Completed, limit_s: float) -> str:
    # An agent that ends well says that it is done, even if calls are still open.
    ended_badly = completed.timed_out or completed.exit_code
    if ended_badly and (lacking := await lease.wait_for_calls(limit_s)):
        return lacking
    if lease.blameless:
        return lease.blameless
    if completed.timed_out and lease.lost_s > MOST_LOST_S:
        return f"the agent's calls waited {lease.lost_s:,.0f} s for their provider"
    return ""


def _proves_little(completed: Completed) -> bool:
    """Return whether a program ended as on a machine that does not respond, or that can start no more processes."""
    return completed.timed_out or any(message in completed.output for message in _NO_PROCESS)
