"""The files with which a job's sandbox is furnished, and how its agent is started."""

import asyncio
import json
import logging
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from dgm.archive.conversations import thread_of
from dgm.archive.snapshots import write_folder
from dgm.domain import Entry, Snapshot
from dgm.errors import AgentFault, Infrastructure
from dgm.gateway.agent_start import FOLDER as START_FOLDER
from dgm.gateway.agent_start import TASK_PATHS
from dgm.gateway.lease import Lease
from dgm.meta.contract import AUTO_ACTIONS, Contract
from dgm.meta.evidence import EVIDENCE_FOLDER
from dgm.meta.trajectories import KNOWN, join_files, read_trajectory
from dgm.protocols import InImage, Job, JobKind, OwnTrajectory, Sandbox
from dgm.sandboxes.transfer import get_files, list_files
from dgm.sandboxes.volumes import RUNTIME
from dgm.worker.supplies import Supply

log = logging.getLogger(__name__)

LAUNCHER = "job/launcher.py"
START = "job/start.py"
TRAJECTORY_BYTES = 20_000_000
"""A larger trajectory of the agent's own is not read."""
_MAX_FILES = 200
"""Maximum number of files of a trajectory; more are not read."""
CHECK = "check"
"""Kind of a self-check, which is no job: it has no model."""


def launch_record(job: Job, contract: Contract, supply: Supply, socket: str, token: str, model: str) -> bytes:
    """Return what the launcher is told."""
    paths = job.environment.paths if job.environment else ()
    variables = job.environment.variables if job.environment else ()
    given = [
        f"{name}={value}"
        for name, value in ((TASK_PATHS, ":".join(paths)), ("TZ", job.time_zone), *variables)
        if value
    ]
    started = start_command(job.kind.value, [*contract.command, "/job/job.json"], contract, supply)
    record = {
        "command": [*(["env", *given] if given else []), *started],
        "cwd": "/agent",
        "workdir": job.workdir,
        # In an improve job they are the agent's own.
        "hidden": contract.hidden if job.kind is JobKind.SOLVE else (),
        "socket": socket,
        "token": token,
        "model": model,
        "time_limit_s": job.time_limit_s,
        "packages": supply.packages,
    }
    return json.dumps(record).encode()


def start_command(kind: str, command: Sequence[str], contract: Contract, supply: Supply) -> list[str]:
    """Return the command line by which an agent starts with all its variables.

    Args:
        kind: of the job, or ``CHECK``.
        command: of the agent.
        contract: of the agent.
        supply: of its sandbox.
    """
    told = {
        "kind": kind,
        "env": dict(contract.env),
        "runtime": RUNTIME if supply.runtime else "",
        "beside": bool(contract.image),
    }
    return ["python3", "-I", "-S", "/" + START, json.dumps(told), *command]


async def put_start(sandbox: Sandbox) -> None:
    """Put the program of ``start_command`` into a sandbox."""
    await sandbox.put({START: Entry(files("dgm.gateway").joinpath("agent_start.py").read_bytes())}, "/")


async def read_own_trajectory(sandbox: Sandbox, contract: Contract) -> OwnTrajectory | None:
    """Return what an agent wrote of its work; None if it wrote no such file, or none that can be read.

    Files of several names are in the order of their folders' depth and their names: that of a sub-agent comes after
    that of its agent.

    Raises:
        Infrastructure: the sandbox failed.
    """
    if not contract.trajectory:
        return None
    folder, pattern = _split_pattern(contract.trajectory)
    try:
        names = [pattern]
        if "*" in pattern:
            matches = glob_pattern(pattern).fullmatch
            names = [name for name in await list_files(sandbox, folder) if matches(name)]
            names = sorted(names, key=lambda name: (name.count("/"), name))[:_MAX_FILES]
        found = await get_files(sandbox, folder, names, TRAJECTORY_BYTES) if names else {}
    except AgentFault as fault:
        log.info("the trajectory %s is not read: %s", contract.trajectory, fault)
        return None
    files = [found[name].data for name in names if name in found]
    threads = await asyncio.to_thread(
        lambda: [thread_of(messages) for messages in map(read_trajectory, files) if messages]
    )
    if files and not threads:
        log.warning("the trajectory %s has no form that is known (%s)", contract.trajectory, KNOWN)
    return OwnTrajectory(join_files(files), threads) if threads else None


def _split_pattern(path: str) -> tuple[str, str]:
    """Return the folder above the first wildcard of a path, and the rest."""
    folder = path.partition("*")[0].rpartition("/")[0]
    return folder, path[len(folder) + 1 :]


def glob_pattern(pattern: str) -> re.Pattern[str]:
    """Return the expression for a path in which ``*`` is any part of a name, and ``**`` any number of folders."""
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
    parts = re.split(r"(\*\*/|\*\*|\*)", pattern)
    return re.compile("".join(words.get(part) or re.escape(part) for part in parts), re.S)


def write_evidence(evidence: Snapshot, folder: Path) -> None:
    """Write evidence readable by any user: a sandbox's user is not the host's."""
    write_folder(evidence, folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def job_terms(contract: Contract, lease: Lease) -> Mapping[str, Any]:
    """Return what the job file says of the lent model: name, number of calls, and the form of actions if known."""
    actions = contract.actions
    if actions == AUTO_ACTIONS and not lease.takes_tools:
        actions = "text"
    chosen = {} if actions == AUTO_ACTIONS else {"actions": actions}
    return {"model": lease.names.native, "calls": lease.limits.calls, **chosen}


async def put_files(sandbox: Sandbox, job: Job, terms: Mapping[str, Any]) -> None:
    """Put a job's files into its sandbox, with the ``job_terms`` of the lent model; evidence is mounted.

    Raises:
        AgentFault: the agent's own files do not go in.
        Infrastructure: the task's do not, or the sandbox failed.
    """
    try:
        await sandbox.put(_job_files(job, terms), "/")
    except AgentFault as fault:
        if job.kind is JobKind.IMPROVE:
            raise
        raise Infrastructure(f"the task's files do not go into a sandbox: {fault}") from fault


def _job_files(job: Job, terms: Mapping[str, Any]) -> Snapshot:
    record = {
        "kind": job.kind.value,
        "problem": job.problem,
        "workdir": job.workdir,
        "time_limit_s": job.time_limit_s,
        "evidence": EVIDENCE_FOLDER if job.evidence else None,
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
    if isinstance(job.workspace, InImage):
        return placed
    workdir = job.workdir.strip("/")
    return placed | {f"{workdir}/{path}": entry for path, entry in job.workspace.items()}
