"""The workbench of an agent on one job: a sandbox, a lent model, and a diff of the result, taken by dgm."""

import asyncio
import json
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from dgm.archive.ignoring import NEVER_COMMITTED
from dgm.archive.snapshots import write_folder
from dgm.config import LimitSettings
from dgm.domain import ActionId, Entry, Snapshot
from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.gateway.agent_start import FOLDER as START_FOLDER
from dgm.gateway.agent_start import OFFLINE, TASK_PATHS
from dgm.gateway.lease import SPENT, Lease
from dgm.gateway.server import MOST_LOST_S, Gateway
from dgm.messages import Reply, Request, RequestRefused
from dgm.meta.contract import AUTO_ACTIONS, Contract, read_contract
from dgm.meta.evidence.listing import EVIDENCE_FOLDER, EVIDENCE_PUT
from dgm.protocols import (
    Completed,
    InImage,
    Job,
    JobKind,
    Mount,
    OpenSandbox,
    Sandbox,
    SandboxSpec,
    SharedSocket,
    Work,
)
from dgm.sandboxes import recipes
from dgm.sandboxes.comparison import patch_of
from dgm.worker.allowance import Allowance
from dgm.worker.blame import OwnFailure, find_own_failure
from dgm.worker.leaving import FolderChange, drop_ignored_files, fit_patch, read_large
from dgm.worker.own_start import check_responds, start_with_second_try

GATEWAY_FOLDER = "/run/dgm"
LAUNCHER = "job/launcher.py"
START = "job/start.py"
TIMED_OUT = 124
IN_ENGINE = "docker:"
REPOSITORY_LIMITS: Mapping[str, Any] = {"cpus": 2.0, "memory_mb": 4096, "pids": 512, "disk_mb": 1024}
"""For images without a recipe: they hold real repositories."""
CHECK_ENVIRONMENT: Mapping[str, str] = {**OFFLINE, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
"""Unbuffered, so that the output of a self-check that is ended is not lost."""
CHECK_BYTES = 20_000
"""Bytes kept of a self-check's output."""
AROUND_S = 300.0
"""Seconds of a sandbox's life beside its program, for putting files in and reading them back."""
GRACE_S = 15.0
"""Seconds beyond an agent's time limit, for the launcher to end it in good order."""


@dataclass(frozen=True, slots=True)
class SandboxWorkbench:
    """The workbench of one action."""

    open_sandbox: OpenSandbox
    gateway: Gateway
    action: ActionId
    spec: SandboxSpec
    """Spec of agents' own sandboxes.

    The job sets image and life, and the limits if its image is another one. ``mounts`` hold Python packages that
    the agent requires.
    """
    limits: LimitSettings
    role: str | None = None
    """Role of the lent model; default: the kind of the job."""
    allowance: Allowance | None = None
    """Limits on all jobs and questions together; None: each has only its own limits."""
    evidence_shown: bool = False
    """Whether evidence is mounted read-only, so that it takes none of the sandbox's disk; else it is put in."""
    heard: set[int] = field(default_factory=set)
    """Numbers of the action's model calls that are not served to a job again.

    Either a job of this performance has had the answer, or the answers are void.
    """

    async def work(self, job: Job) -> Work:
        """Run the agent's program on the job; if the job is a start, once more with more time (``own_start``).

        Raises:
            AgentFault: stages ``contract``, ``size`` and ``patch``: the agent's result cannot be used; stage
                ``time``: the allowance has no time left; stage ``evidence``: the evidence cannot be laid out.
            Infrastructure: the sandbox or the model failed, or the machine does not respond.
        """
        if job.processor_s is not None:

            def attempt(clock_s: float) -> Awaitable[Work]:
                return self._work_twice(replace(job, time_limit_s=clock_s))

            return await start_with_second_try(
                attempt, lambda work: work.completed, job.processor_s, self._check_machine
            )
        work = await self._work_twice(job)
        if work.completed.timed_out:
            await self._check_machine()
        return work

    async def _work_twice(self, job: Job) -> Work:
        """Do a job once more if its agent lacked answers by its own fault (``dgm.worker.blame``)."""
        heard = set(self.heard)
        try:
            return await self._work(job, last=False)
        except OwnFailure:
            # The same answers are served again, and counted once.
            self.heard.intersection_update(heard)
            if self.allowance:
                self.allowance.forget_last()
        return await self._work(job, last=True)

    async def _work(self, job: Job, *, last: bool) -> Work:
        contract = read_contract(job.source)
        async with self._lend_model(self.role or job.kind.value) as lease:
            if self.allowance:
                job = replace(job, time_limit_s=self.allowance.seconds(job.time_limit_s))
            try:
                completed, left = await self._run_in_sandbox(job, contract, lease)
            except AgentFault as fault:
                # An agent whose model fails is not to blame for its result.
                if lease.failure is not None:
                    raise lease.failure from fault
                raise
            caller = self.gateway.caller
            own = await find_own_failure(caller, lease, completed, job.time_limit_s, last=last)
        said = (tuple(lease.conversation), lease.calls, tuple(lease.refused))
        return Work(left.files, left.patch, completed, *said, left.left_out, own)

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
    async def _lend_model(self, role: str) -> AsyncIterator[Lease]:
        if self.allowance is None:
            with self.gateway.lend(self.action, role, heard=self.heard) as lease:
                yield lease
            return
        async with self.allowance.turn:
            limits = self.allowance.rest(self.gateway.limits)
            with self.gateway.lend(self.action, role, limits, self.heard) as lease:
                self.allowance.takes(lease)
                yield lease

    async def check(self, source: Snapshot) -> Completed:
        """Run an agent's own check in a fresh sandbox, without a model.

        A check that is ``timed_out`` is at fault (``own_start``).

        Raises:
            AgentFault: stage ``contract``: it has no check.
            Infrastructure: the sandbox failed, or the machine does not respond.
        """
        contract, check_s = read_contract(source), self.limits.check_s

        async def attempt(clock_s: float) -> Completed:
            spec = replace(self.spec, lifetime_s=clock_s + AROUND_S)
            async with self.open_sandbox(spec) as sandbox:
                await sandbox.put(source, "/agent")
                return await sandbox.exec(
                    contract.check,
                    timeout_s=clock_s,
                    cwd="/agent",
                    env={**CHECK_ENVIRONMENT, "PYTHONPATH": self._packages},
                    output_limit=CHECK_BYTES,
                    processor_s=check_s,
                )

        return await start_with_second_try(attempt, lambda done: done, check_s, self._check_machine)

    async def _check_machine(self) -> None:
        await check_responds(self.open_sandbox, replace(self.spec, mounts=()))

    @property
    def _packages(self) -> str:
        return ":".join(mount.target for mount in self.spec.mounts)

    @property
    def _socket(self) -> SharedSocket:
        name = self.gateway.socket_name
        return SharedSocket(self.gateway.folder / name, f"{GATEWAY_FOLDER}/{name}")

    async def _run_in_sandbox(
        self, job: Job, contract: Contract, lease: Lease
    ) -> tuple[Completed, FolderChange]:
        """Return how the agent ended, and its result: only the patch if the workspace is in the image."""
        async with self._evidence(job) as shown, self.open_sandbox(self._spec(job, shown)) as sandbox:
            await _put_files(sandbox, job, shown, job_terms(contract, lease))
            running = sandbox.exec(
                ["python3", "-I", "/" + LAUNCHER],
                timeout_s=job.time_limit_s + MOST_LOST_S + GRACE_S,
                cwd="/job",
                stdin=self._launch(job, contract, lease.token),
                output_limit=self.limits.log_bytes,
                processor_s=job.processor_s,
            )
            completed = await _run_within_limit(sandbox, running, job.time_limit_s, lease)
            _check_reached(lease, completed)
            try:
                return _mark_timeout(completed, job.time_limit_s), await self._left(
                    sandbox, job, contract.ignored
                )
            except AgentFault as fault:
                fault.output = completed.output
                raise

    @asynccontextmanager
    async def _evidence(self, job: Job) -> AsyncIterator[Sequence[Mount]]:
        """Lay out the job's evidence in a folder of the host while its sandbox lives; nothing if it is put in."""
        if not (job.evidence and self.evidence_shown):
            yield ()
            return
        # The name begins with the gateway's, so that the cleanup after a dead process removes this folder, too.
        beside = self.gateway.folder
        folder = Path(await asyncio.to_thread(mkdtemp, prefix=f"{beside.name}-evidence-", dir=beside.parent))
        try:
            try:
                await asyncio.to_thread(_write_evidence, job.evidence, folder)
            except UserError as error:
                raise AgentFault("evidence", str(error)) from error
            yield (Mount(folder, EVIDENCE_FOLDER),)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, True)

    async def _left(self, sandbox: Sandbox, job: Job, litter: Sequence[str]) -> FolderChange:
        most = self.limits.patch_bytes
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
        left = await asyncio.to_thread(fit_patch, before, after, most, cut=job.kind is JobKind.SOLVE)
        return replace(left, left_out={**large, **left.left_out})

    def _launch(self, job: Job, contract: Contract, token: str) -> bytes:
        paths = job.environment.paths if job.environment else ()
        record = {
            "command": [
                *(["env", f"{TASK_PATHS}={':'.join(paths)}"] if paths else []),
                "python3",
                "-I",
                "-S",
                "/" + START,
                job.kind.value,
                *contract.command,
                "/job/job.json",
            ],
            "cwd": "/agent",
            "workdir": job.workdir,
            "socket": self._socket.target,
            "token": token,
            "time_limit_s": job.time_limit_s,
            "packages": self._packages,
        }
        return json.dumps(record).encode()

    def _size_limit(self, job: Job) -> int:
        return self.limits.agent_bytes if job.kind is JobKind.IMPROVE else self.limits.workspace_bytes

    def _spec(self, job: Job, shown: Sequence[Mount]) -> SandboxSpec:
        if job.image == self.spec.image:
            base = self.spec
        elif job.image.startswith(IN_ENGINE):
            base = replace(self.spec, **REPOSITORY_LIMITS)
        else:
            base = recipes.load(job.image).spec(self.spec.labels)
        return replace(
            base,
            image=job.image,
            mounts=(*self.spec.mounts, *shown, *([job.environment.mount] if job.environment else [])),
            socket=self._socket,
            filled={job.workdir: job.workspace.source} if isinstance(job.workspace, InImage) else {},
            lifetime_s=job.time_limit_s + MOST_LOST_S + AROUND_S,
        )


def _write_evidence(evidence: Snapshot, folder: Path) -> None:
    """Write evidence readable by any user: a sandbox's user is not the host's."""
    write_folder(evidence, folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def job_terms(contract: Contract, lease: Lease) -> Mapping[str, Any]:
    """Return what the job file says of the lent model: the calls that it may take, and the form of actions if known."""
    actions = contract.actions
    if actions == AUTO_ACTIONS and not lease.takes_tools:
        actions = "text"
    chosen = {} if actions == AUTO_ACTIONS else {"actions": actions}
    return {"calls": lease.limits.calls, **chosen}


async def _put_files(sandbox: Sandbox, job: Job, shown: Sequence[Mount], terms: Mapping[str, Any]) -> None:
    try:
        await sandbox.put(_job_files(job, EVIDENCE_FOLDER if shown else EVIDENCE_PUT, terms), "/")
    except AgentFault as fault:
        if job.kind is JobKind.IMPROVE:
            raise
        raise Infrastructure(f"the task's files do not go into a sandbox: {fault}") from fault


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


def _job_files(job: Job, evidence: str, terms: Mapping[str, Any]) -> Snapshot:
    record = {
        "kind": job.kind.value,
        "problem": job.problem,
        "workdir": job.workdir,
        "time_limit_s": job.time_limit_s,
        "model": "default",
        "evidence": evidence if job.evidence else None,
        **terms,
    }
    gateway = files("dgm.gateway")
    placed = {
        "job/job.json": Entry(json.dumps(record).encode()),
        LAUNCHER: Entry(gateway.joinpath("launcher.py").read_bytes()),
        START: Entry(gateway.joinpath("agent_start.py").read_bytes()),
        f"{START_FOLDER[1:]}/sitecustomize.py": Entry(gateway.joinpath("agent_packages.py").read_bytes()),
        **{f"agent/{path}": entry for path, entry in job.source.items()},
    }
    if evidence == EVIDENCE_PUT:
        placed |= {f"{EVIDENCE_PUT[1:]}/{path}": entry for path, entry in job.evidence.items()}
    if isinstance(job.workspace, InImage):
        return placed
    workdir = job.workdir.strip("/")
    return placed | {f"{workdir}/{path}": entry for path, entry in job.workspace.items()}
