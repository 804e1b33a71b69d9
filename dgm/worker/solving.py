"""The work of one agent on one repository of the user's: outside of any search, with nothing recorded."""

import asyncio
import logging
from dataclasses import dataclass, replace
from pathlib import Path

from dgm.archive.repository import patch
from dgm.config import Settings
from dgm.domain import Snapshot, Usage
from dgm.processes import StandstillWatch
from dgm.protocols import Job, JobKind, SandboxEngine, Work
from dgm.worker.session import UsageJournal, open_solver
from dgm.worker.user_repository import LIMIT_BYTES, find_ignored_around

log = logging.getLogger(__name__)

WORKDIR = "/work/repo"


@dataclass(frozen=True, slots=True)
class SolveRequest:
    """A problem in a repository of the user's."""

    repository: Path
    """Only asked for its ignored files."""
    files: Snapshot
    problem: str
    time_limit_s: float


@dataclass(frozen=True, slots=True)
class SolveResult:
    """The agent's work, its usage and the changed files."""

    work: Work
    usage: Usage
    changed: tuple[str, ...]
    """Files that the patch creates, changes or removes."""


async def solve(
    source: Snapshot, request: SolveRequest, engine: SandboxEngine, settings: Settings, journal: UsageJournal
) -> SolveResult:
    """Let an agent work on a copy in a sandbox.

    Args:
        source: the agent's own folder.
        request: the problem.
        engine: of the sandbox.
        settings: models, prices and limits; ``limits.usd`` is the whole limit on its cost.
        journal: the usage is added here, whatever the result.

    Raises:
        AgentFault: the agent's result cannot be used.
        Infrastructure: the sandbox or the model failed.
    """
    async with (
        open_solver(engine, settings, journal, source=source, patch_bytes=LIMIT_BYTES) as bench,
        StandstillWatch() as watch,
    ):
        job = Job(
            JobKind.SOLVE,
            request.problem,
            source,
            request.files,
            bench.spec.image,
            WORKDIR,
            request.time_limit_s,
        )
        work = await bench.work(job)
        if work.completed.exit_code and (stopped := watch.find_standstill()):
            log.warning("%s: the agent may have lacked time or answers by that", stopped)
    return await asyncio.to_thread(_drop_ignored_files, work, request, journal.usage)


def _drop_ignored_files(work: Work, request: SolveRequest, usage: Usage) -> SolveResult:
    """Drop files that the user's own git ignores; the workbench has applied the repository's own rules."""
    before, after = request.files, work.workspace
    dropped = find_ignored_around(request.repository, [name for name in after if name not in before])
    if dropped:
        after = {name: entry for name, entry in after.items() if name not in dropped}
        work = replace(work, workspace=after, patch=patch(before, after))
    changed = (name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return SolveResult(work, usage, tuple(sorted(changed)))
