"""Checks of an agent before any money flows, with models that cost nothing.

``rehearse`` runs its self-check and one job whose model only says DONE, for agents that no vetting has passed: the seed
of a new run, and agents from folders. ``inspect_agent`` runs more and tells what happened; ``dgm.api.own_agent`` says
what of that would stop a search.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from dgm.archive.volatile_text import Conditions
from dgm.config import LimitSettings, Settings
from dgm.domain import ActionId, Budget, Snapshot, Usage
from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.gateway.lease import DEFAULT, DRY_RUN
from dgm.gateway.ledger import Ledger
from dgm.gateway.memory import LeaseMemory
from dgm.gateway.server import LendingRules
from dgm.messages import Exchange, WireReply
from dgm.meta.contract import read_contract
from dgm.meta.vetting import DryRuns
from dgm.models.builtin import DryRun, ScriptedTalk
from dgm.models.choose import AUTO, names_by_role
from dgm.processes import repeat_after_standstill
from dgm.protocols import BuildError, Completed, Job, JobKind, Model, SandboxEngine, Work
from dgm.sandboxes.packages import find_install_scripts
from dgm.worker.session import LentModels, UsageJournal, open_session
from dgm.worker.workbench import AROUND_S, CHECK_BYTES, CHECK_ENVIRONMENT, SandboxWorkbench

SEED_S = 120.0
"""Least limit on the processor time of the start of an agent from which children descend, in seconds."""
COMMAND_S = 300.0
"""Wall time of a user's command in an agent's folder, in seconds."""
MARGIN = 3.0
"""Factor of the seed's own start: a child may do more, and another processor may be slower."""
PROBLEM = "This is a rehearsal: look at the files of the repository, change nothing, and end."
WORKDIR = "/work/repo"
KIRITIMATI_FROM = 10
"""Hour in UTC from which it is the next day in Kiritimati; before, it is the previous day in Pago Pago."""
ZONE_NAME = r"\b(?:[A-Z][a-z]+/[A-Z][A-Za-z_]+|UTC|SST)\b|(?<!\w)[+-]1[14]\b"
"""Pattern of the names of time zones, which no replay changes."""
DAY_S = 86_400.0


def allow_seed_start(limits: LimitSettings) -> LimitSettings:
    """Return the limits under which an agent's start is measured that has no ancestor."""
    return limits.model_copy(update={"check_s": max(limits.check_s, SEED_S)})


def follow_seed_start(limits: LimitSettings, measured_s: float) -> LimitSettings:
    """Return the limits of the children of a seed whose start took ``measured_s`` of processor time.

    So an agent on a package that takes long to import can have children.
    """
    return limits.model_copy(update={"check_s": max(limits.check_s, float(math.ceil(MARGIN * measured_s)))})


def find_start_seconds(done: Completed) -> float:
    """Return the processor seconds of a start; those of the clock if the engine cannot measure them."""
    return done.seconds if done.processor_s is None else done.processor_s


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What the start of an agent showed."""

    limits: LimitSettings
    """The limits with room for the agent's children (``follow_seed_start``)."""
    turn_tokens: int
    """Estimated input tokens of its first turn: prompts, tools and instructions; 0 if it asked nothing."""


async def rehearse(name: str, source: Snapshot, engine: SandboxEngine, settings: Settings) -> Rehearsal:
    """Run an agent's self-check and one dry job, each in a sandbox that is removed afterwards.

    Args:
        name: of the agent, for messages.
        source: of the agent.
        engine: of the sandboxes.
        settings: the agent asks for the model of the role ``solve``; ``limits.check_s`` bounds the self-check and the
            dry job if it is more than ``SEED_S``.

    Raises:
        UserError: the agent cannot start; the message has its program's last output.
        Infrastructure: the sandboxes failed, which says nothing about the agent.
    """
    limits = settings.limits
    allowed = settings.model_copy(update={"limits": allow_seed_start(limits)})

    async def start() -> tuple[float, int]:
        async with _open_bench(source, engine, allowed, DryRun(_stands_for(settings, "solve"))) as bench:
            dry = DryRuns(bench, bench.spec.image, allowed.limits.check_s)
            # Side by side, because starting a sandbox takes as long as the work in it.
            ends = await asyncio.gather(dry.check(source), dry.start_solve(source), return_exceptions=True)
            # A sandbox that failed says nothing about the agent, whatever its other sandbox says.
            faults = [end for end in ends if isinstance(end, BaseException)]
            for fault in sorted(faults, key=lambda fault: not isinstance(fault, Infrastructure)):
                raise fault
            work = next((end for end in ends if isinstance(end, Work)), None)
            done = [end for end in (ends[0], work and work.completed) if isinstance(end, Completed)]
            calls = work.dry_calls if work else None
            return max(map(find_start_seconds, done)), calls.turn_tokens if calls else 0

    try:
        seconds, tokens = await repeat_after_standstill(start, lambda _: False)
        return Rehearsal(follow_seed_start(limits, seconds), tokens)
    except AgentFault as fault:
        raise UserError(f"{name}: the agent cannot start, so nothing was begun: {fault}") from fault
    except Infrastructure as error:
        raise Infrastructure(
            f"{name}: whether the agent can start was not found out, for its sandbox failed: {error}"
        ) from error


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
    allowed = allow_seed_start(settings.limits)
    talk = ScriptedTalk(_stands_for(settings, "solve"))
    try:
        async with _open_bench(source, engine, _with_limits(settings, allowed), talk) as bench:
            seconds = time.monotonic() - began
            mounts = (await bench.supplies.supply(bench.spec)).mounts
            size = sum(_folder_size(mount.source) for mount in mounts)
            inspection = Inspection(
                PackagesInstalled("", size, seconds, find_install_scripts(source)), limits=allowed
            )
            begins("start")
            done = await bench.check(source)
            inspection = replace(inspection, start=done)
            if done.exit_code or done.timed_out:
                return inspection
            limits = follow_seed_start(settings.limits, find_start_seconds(done))
            inspection = replace(inspection, limits=limits)
            begins("solve")
            image, check_s = bench.spec.image, limits.check_s
            job = Job(JobKind.SOLVE, PROBLEM, source, workspace, image, WORKDIR, 0.0, processor_s=check_s)
            job = replace(job, time_zone="UTC")
            try:
                work = await bench.work(job)
                inspection = replace(inspection, solve=work)
                if work.calls:
                    begins("repeat")
                    inspection = await _repeat(inspection, work, bench, job)
            except AgentFault as fault:
                inspection = replace(inspection, solve_fault=f"{fault.stage}: {fault}")
    except BuildError as error:
        return Inspection(PackagesInstalled(str(error)))
    begins("improve")
    dry = DryRun(_stands_for(settings, "improve"))
    async with _open_bench(source, engine, _with_limits(settings, limits), dry) as bench:
        try:
            await DryRuns(bench, bench.spec.image, limits.check_s).start_improve(source)
        except AgentFault as fault:
            return replace(inspection, improved=True, improve_fault=str(fault))
    return replace(inspection, improved=True)


async def _repeat(inspection: Inspection, first: Work, bench: SandboxWorkbench, job: Job) -> Inspection:
    """Do the job again where it is another day; if the requests differ, do it once more here, to tell the cause."""
    elsewhere = await bench.work(replace(job, time_zone=zone_of_another_day(time.time())))
    differs = find_difference(job, first, elsewhere)
    if not differs:
        return inspection
    here = find_difference(job, first, await bench.work(job))
    return replace(inspection, differs=here or differs, differs_by_day=not here)


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


async def run_command(source: Snapshot, command: str, engine: SandboxEngine, settings: Settings) -> Completed:
    """Run a shell command in the folder of an agent's source: in a fresh sandbox, with its packages, without a model.

    Raises:
        AgentFault: stage ``contract``: the source is no agent.
        UserError: its packages cannot be installed.
        Infrastructure: the sandbox failed.
    """
    async with _open_bench(source, engine, settings, DryRun(_stands_for(settings, "solve"))) as bench:
        supply = await bench.supplies.supply(bench.spec)
        life_s = COMMAND_S + AROUND_S
        spec = replace(bench.spec, mounts=supply.mounts, runtime=supply.runtime, lifetime_s=life_s)
        async with bench.open_sandbox(spec) as sandbox:
            await sandbox.put(source, "/agent")
            return await sandbox.exec(
                ["sh", "-c", command],
                timeout_s=COMMAND_S,
                cwd="/agent",
                env={**CHECK_ENVIRONMENT, "PYTHONPATH": supply.packages},
                output_limit=CHECK_BYTES,
            )


def _folder_size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _with_limits(settings: Settings, limits: LimitSettings) -> Settings:
    return settings.model_copy(update={"limits": limits})


@asynccontextmanager
async def _open_bench(
    source: Snapshot, engine: SandboxEngine, settings: Settings, model: Model
) -> AsyncIterator[SandboxWorkbench]:
    """Open a workbench whose model is lent under the name of one of the settings; no call is journaled or priced."""
    lent = LentModels(
        {DRY_RUN: model},
        UsageJournal(),
        Ledger({}, Usage, Budget),
        rules=LendingRules(settings.models.aliases, any_name=model.name == DEFAULT),
    )
    async with open_session(engine, source, settings.limits, lent) as session:
        yield session.open_bench(ActionId(1), DRY_RUN)


def _stands_for(settings: Settings, role: str) -> str:
    """Return the full name of the model that a dry model stands for; ``default`` while none is chosen."""
    name = names_by_role(settings)[role]
    return DEFAULT if name == AUTO else name
