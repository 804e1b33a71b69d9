"""Inspection of an agent before any money flows: what each part of its start takes, and what it leaves behind.

It tells what happened; ``dgm.sessions.agent_findings`` says what of that would stop a search.
"""

import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from dgm.config import LimitSettings
from dgm.domain import Snapshot
from dgm.errors import AgentFault, UserError
from dgm.meta.contract import FILE
from dgm.meta.vetting import Stages
from dgm.models.dry_run import DryRun
from dgm.models.scripted_talk import ScriptedTalk
from dgm.protocols import Completed, Job, JobKind, SandboxEngine, Work
from dgm.worker.rehearsal import open_rehearsal, refuse_probe
from dgm.worker.solving import IMAGE

PROBLEM = "This is a rehearsal: look at the files of the repository, change nothing, and end."
WORKDIR = "/work/repo"


@dataclass(frozen=True, slots=True)
class PackagesInstalled:
    """The packages that an agent requires."""

    failure: str = ""
    """Why they cannot be installed; empty if they are."""
    size_bytes: int = 0
    seconds: float = 0.0
    """Seconds until they were there; near 0 if they were installed before."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """Results of trying an agent; a part that needs a failed one is None."""

    packages: PackagesInstalled
    start: Completed | None = None
    """End of the self-check."""
    solve: Work | None = None
    """Result of a job in which the model looks around and then finishes."""
    solve_fault: str = ""
    improve_fault: str = ""
    """Fault of the stage ``improve`` of vetting, which would kill each child; empty if there is none."""
    improved: bool = False
    """True if that stage was tried."""


async def inspect_agent(
    source: Snapshot,
    workspace: Snapshot,
    engine: SandboxEngine,
    limits: LimitSettings,
    begins: Callable[[str], None] = lambda _: None,
) -> Inspection:
    """Install an agent's packages, run its self-check and one dry conversation of each kind.

    Args:
        source: of the agent, with a valid contract.
        workspace: the repository of the dry ``solve``.
        engine: of the sandboxes.
        limits: as a run has them.
        begins: hears the name of each part.

    Raises:
        UserError: the machine lacks what a sandbox needs.
        Infrastructure: a sandbox failed, which says nothing about the agent.
    """
    begins("packages")
    began = time.monotonic()
    async with AsyncExitStack() as opened:
        try:
            bench = await opened.enter_async_context(open_rehearsal(source, engine, limits, ScriptedTalk()))
        except UserError as error:
            if not str(error).startswith(FILE):
                # The machine lacks what the sandbox needs.
                raise
            return Inspection(PackagesInstalled(str(error)))
        size = sum(_folder_size(mount.source) for mount in bench.spec.mounts)
        found = Inspection(PackagesInstalled("", size, time.monotonic() - began))
        begins("start")
        done = await bench.check(source)
        found = replace(found, start=done)
        if done.exit_code or done.timed_out:
            return found
        begins("solve")
        job = Job(JobKind.SOLVE, PROBLEM, source, workspace, IMAGE, WORKDIR, 0.0, processor_s=limits.check_s)
        try:
            found = replace(found, solve=await bench.work(job))
        except AgentFault as fault:
            found = replace(found, solve_fault=f"{fault.stage}: {fault}")
    begins("improve")
    return await _try_improve(found, source, engine, limits)


def _folder_size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


async def _try_improve(
    found: Inspection, source: Snapshot, engine: SandboxEngine, limits: LimitSettings
) -> Inspection:
    async with open_rehearsal(source, engine, limits, DryRun()) as bench:
        stages = Stages(bench, IMAGE, limits.check_s, (), refuse_probe)
        try:
            await stages.start_improve(source)
        except AgentFault as fault:
            return replace(found, improved=True, improve_fault=str(fault))
    return replace(found, improved=True)
