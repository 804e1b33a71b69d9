"""Inspection of an agent before any money flows: what each part of its start takes, and what it leaves behind.

It tells what happened; ``dgm.api.own_agent`` says what of that would stop a search.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from dgm.archive.volatile_text import Conditions
from dgm.config import LimitSettings, Settings
from dgm.domain import Snapshot, Usage
from dgm.errors import AgentFault, UserError
from dgm.gateway.memory import LeaseMemory
from dgm.messages import Exchange, WireReply
from dgm.meta.contract import FILE, NPM_FILES, read_contract
from dgm.meta.vetting import DryRuns
from dgm.models.builtin import DryRun, ScriptedTalk
from dgm.protocols import Completed, Job, JobKind, SandboxEngine, Work
from dgm.sandboxes.npm_locks import find_install_scripts
from dgm.worker.own_start import allow_seed_start, find_start_seconds, follow_seed_start
from dgm.worker.rehearsal import open_rehearsal, stands_for
from dgm.worker.workbench import SandboxWorkbench

PROBLEM = "This is a rehearsal: look at the files of the repository, change nothing, and end."
WORKDIR = "/work/repo"
KIRITIMATI_FROM = 10
"""Hour in UTC from which it is the next day in Kiritimati; before, it is the previous day in Pago Pago."""
ZONE_NAME = r"\b(?:[A-Z][a-z]+/[A-Z][A-Za-z_]+|UTC|SST)\b|(?<!\w)[+-]1[14]\b"
"""Pattern of the names of time zones, which no replay changes."""
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class PackagesInstalled:
    """The packages that an agent requires."""

    failure: str = ""
    """Why they cannot be installed; empty if they are."""
    size_bytes: int = 0
    seconds: float = 0.0
    """Seconds until they were there; near 0 if they were installed before."""
    install_scripts: Sequence[str] = ()
    """Names of those with install scripts, which are not run."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """Results of trying an agent; a part that needs a failed one is None."""

    packages: PackagesInstalled
    start: Completed | None = None
    """End of the self-check."""
    solve: Work | None = None
    """Result of a job in which the model looks around and then finishes."""
    solve_fault: str = ""
    differs: str = ""
    """Difference between the requests of the job and of its repetition; empty if there is none."""
    differs_by_day: bool = False
    """True if only a repetition in a time zone where it is another day differs."""
    improve_fault: str = ""
    """Fault of the stage ``improve`` of vetting, which would kill each child; empty if there is none."""
    improved: bool = False
    """True if that stage was tried."""
    limits: LimitSettings = field(default_factory=LimitSettings)
    """Limits of the self-check; once that was measured, those of children."""


async def inspect_agent(
    source: Snapshot,
    workspace: Snapshot,
    engine: SandboxEngine,
    settings: Settings,
    begins: Callable[[str], None] = lambda _: None,
) -> Inspection:
    """Install an agent's packages, run its self-check and one dry conversation of each kind.

    Args:
        source: of the agent, with a valid contract.
        workspace: the repository of the dry ``solve``.
        engine: of the sandboxes.
        settings: as a run has them.
        begins: hears the name of each part.

    Raises:
        UserError: the machine lacks what a sandbox needs.
        Infrastructure: a sandbox failed, which says nothing about the agent.
    """
    begins("packages")
    began = time.monotonic()
    async with AsyncExitStack() as opened:
        try:
            allowed = allow_seed_start(settings.limits)
            measured = settings.model_copy(update={"limits": allowed})
            talk = ScriptedTalk(stands_for(settings, "solve"))
            bench = await opened.enter_async_context(open_rehearsal(source, engine, measured, talk))
        except UserError as error:
            if not str(error).startswith((FILE, *NPM_FILES)):
                # The machine lacks what the sandbox needs.
                raise
            return Inspection(PackagesInstalled(str(error)))
        size = sum(_folder_size(mount.source) for mount in (await bench.supplies.supply(bench.spec)).mounts)
        installed = PackagesInstalled("", size, time.monotonic() - began, find_install_scripts(source))
        found = Inspection(installed, limits=allowed)
        begins("start")
        done = await bench.check(source)
        found = replace(found, start=done)
        if done.exit_code or done.timed_out:
            return found
        limits = follow_seed_start(settings.limits, find_start_seconds(done))
        found = replace(found, limits=limits)
        begins("solve")
        where, most_s = bench.spec.image, limits.check_s
        dry = Job(JobKind.SOLVE, PROBLEM, source, workspace, where, WORKDIR, 0.0, processor_s=most_s)
        job = replace(dry, time_zone="UTC")
        try:
            found = replace(found, solve=await bench.work(job))
            if found.solve is not None and found.solve.calls:
                begins("repeat")
                found = await _repeat(found, found.solve, bench, job)
        except AgentFault as fault:
            found = replace(found, solve_fault=f"{fault.stage}: {fault}")
    begins("improve")
    return await _try_improve(found, source, engine, settings.model_copy(update={"limits": limits}))


async def _repeat(found: Inspection, first: Work, bench: SandboxWorkbench, job: Job) -> Inspection:
    """Do the job again where it is another day; if the requests differ, do it once more here, to tell the cause."""
    elsewhere = await bench.work(replace(job, time_zone=zone_of_another_day(time.time())))
    differs = find_difference(job, first, elsewhere)
    if not differs:
        return found
    here = find_difference(job, first, await bench.work(job))
    return replace(found, differs=here or differs, differs_by_day=not here)


def zone_of_another_day(now: float) -> str:
    """Return the name of a time zone in which the date is not that of UTC."""
    is_late = datetime.fromtimestamp(now, UTC).hour >= KIRITIMATI_FROM
    return "Pacific/Kiritimati" if is_late else "Pacific/Pago_Pago"


def find_difference(job: Job, recorded: Work, repeated: Work) -> str:
    """Return how a repetition first differs, by the comparison of a replay on another day; empty if it does not."""
    before, after = (work.dry_calls.requests if work.dry_calls else () for work in (recorded, repeated))
    paid = [
        Exchange(number, request, WireReply(request.protocol, b"", stream=False, usage=Usage()))
        for number, request in enumerate(before, 1)
    ]
    memory = LeaseMemory()
    memory.recall(paid, Conditions.at(*(time.time() + days * DAY_S for days in (-1, 0, 1))))
    memory.begin_job((*read_contract(job.source).volatile, ZONE_NAME), job.problem)
    for number, request in enumerate(after, 1):
        if memory.take(request, number) is None:
            difference = memory.difference(request, number) or "one more than before"
            return f"call {number}: {difference}"
    return ""


def _folder_size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


async def _try_improve(
    found: Inspection, source: Snapshot, engine: SandboxEngine, settings: Settings
) -> Inspection:
    dry = DryRun(stands_for(settings, "improve"))
    async with open_rehearsal(source, engine, settings, dry) as bench:
        try:
            await DryRuns(bench, bench.spec.image, settings.limits.check_s).start_improve(source)
        except AgentFault as fault:
            return replace(found, improved=True, improve_fault=str(fault))
    return replace(found, improved=True)
