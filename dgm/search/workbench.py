"""Lets one agent work on one job: a sandbox, a lent model, and the host's own diff of what came of it."""

import asyncio
import json
from dataclasses import dataclass, replace
from importlib.resources import files

from dgm.archive.repository import patch
from dgm.config import LimitSettings
from dgm.domain import ActionId, Entry, Snapshot
from dgm.errors import AgentFault, Infrastructure
from dgm.gateway.lease import Lease
from dgm.gateway.server import Gateway
from dgm.meta.contract import Contract, read_contract
from dgm.protocols import Completed, Job, JobKind, Mount, OpenSandbox, Sandbox, SandboxSpec, Work

GATEWAY_FOLDER = "/run/dgm"
LAUNCHER = "job/launcher.py"
TIMED_OUT = 124
GRACE_S = 15.0
"""Beyond an agent's time limit, for the launcher to end it in good order."""


@dataclass(frozen=True, slots=True)
class SandboxWorkbench:
    """The workbench of one action."""

    open_sandbox: OpenSandbox
    gateway: Gateway
    action: ActionId
    spec: SandboxSpec
    """Image and mounts are filled in by the job."""
    limits: LimitSettings
    role: str | None = None
    """Of the lent model; default: the kind of the job."""

    async def work(self, job: Job) -> Work:
        """Runs the agent's program on the job.

        Raises:
            AgentFault: stages ``contract``, ``size`` and ``patch``: what it left cannot be used.
            Infrastructure: the sandbox or the model failed.
        """
        contract = read_contract(job.source)
        with self.gateway.lend(self.action, self.role or job.kind.value) as lease:
            try:
                completed, after = await self._in_sandbox(job, contract, lease)
            except AgentFault as fault:
                # What an agent leaves when its model fails says nothing of the agent.
                if lease.failure is not None:
                    raise lease.failure from fault
                raise
        if lease.failure is not None:
            raise lease.failure
        diff = await asyncio.to_thread(patch, job.workspace, after)
        if len(diff) > self.limits.patch_bytes:
            raise AgentFault(
                "patch", f"the patch has {len(diff)} bytes; {self.limits.patch_bytes} are allowed"
            )
        return Work(after, diff, completed, tuple(lease.conversation), lease.calls)

    async def _in_sandbox(self, job: Job, contract: Contract, lease: Lease) -> tuple[Completed, Snapshot]:
        async with self.open_sandbox(self._spec(job)) as sandbox:
            await _fill(sandbox, job)
            completed = await sandbox.exec(
                ["python3", "-I", "/" + LAUNCHER],
                timeout_s=job.time_limit_s + GRACE_S,
                cwd="/job",
                stdin=_launch(job, contract, lease.token, self.gateway.socket_name),
                output_limit=self.limits.log_bytes,
            )
            after = await sandbox.get(
                job.workdir, limit_bytes=self._size_limit(job), exclude=(".git", "__pycache__")
            )
        return _in_time(completed, job.time_limit_s), after

    def _size_limit(self, job: Job) -> int:
        return self.limits.agent_bytes if job.kind is JobKind.IMPROVE else self.limits.workspace_bytes

    def _spec(self, job: Job) -> SandboxSpec:
        return SandboxSpec(
            image=job.image,
            labels=self.spec.labels,
            mounts=(Mount(self.gateway.folder, GATEWAY_FOLDER),),
            cpus=self.spec.cpus,
            memory_mb=self.spec.memory_mb,
            pids=self.spec.pids,
            disk_mb=self.spec.disk_mb,
            lifetime_s=job.time_limit_s + 120.0,
        )


async def _fill(sandbox: Sandbox, job: Job) -> None:
    try:
        await sandbox.put(_files(job), "/")
    except AgentFault as fault:
        if job.kind is JobKind.IMPROVE:
            raise
        raise Infrastructure(f"the task's files do not go into a sandbox: {fault}") from fault


def _in_time(completed: Completed, limit_s: float) -> Completed:
    """Tells a time-out that the launcher saw, and answered with its own exit status, from any other end."""
    late = completed.exit_code == TIMED_OUT and completed.seconds >= limit_s
    return replace(completed, timed_out=completed.timed_out or late)


def _files(job: Job) -> Snapshot:
    record = {
        "kind": job.kind.value,
        "problem": job.problem,
        "workdir": job.workdir,
        "time_limit_s": job.time_limit_s,
        "model": "default",
        "evidence": "/job/evidence" if job.evidence else None,
    }
    launcher = files("dgm.gateway").joinpath("launcher.py").read_bytes()
    placed = {
        "job/job.json": Entry(json.dumps(record).encode()),
        LAUNCHER: Entry(launcher),
        **{f"agent/{path}": entry for path, entry in job.source.items()},
        **{f"job/evidence/{path}": entry for path, entry in job.evidence.items()},
    }
    workdir = job.workdir.strip("/")
    return placed | {f"{workdir}/{path}": entry for path, entry in job.workspace.items()}


def _launch(job: Job, contract: Contract, token: str, socket_name: str) -> bytes:
    record = {
        "command": [*contract.command, "/job/job.json"],
        "cwd": "/agent",
        "workdir": job.workdir,
        "socket": f"{GATEWAY_FOLDER}/{socket_name}",
        "token": token,
        "time_limit_s": job.time_limit_s,
    }
    return json.dumps(record).encode()
