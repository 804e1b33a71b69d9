"""Supplies of an agent beside a sandbox's image: files of its own image, packages, the files of its job, a launcher."""

import asyncio
import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from dgm.archive.conversations import thread_of
from dgm.archive.snapshots import write_folder
from dgm.domain import Entry, Snapshot
from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.gateway.agent_start import FOLDER as START_FOLDER
from dgm.gateway.agent_start import TASK_PATHS
from dgm.gateway.lease import Lease
from dgm.meta.contract import AUTO_ACTIONS, Contract, read_contract
from dgm.meta.evidence import EVIDENCE_FOLDER
from dgm.meta.trajectories import KNOWN, join_files, read_trajectory
from dgm.protocols import (
    BuildError,
    InImage,
    Job,
    JobKind,
    Mount,
    OwnTrajectory,
    Sandbox,
    SandboxEngine,
    SandboxSpec,
)
from dgm.sandboxes import recipes
from dgm.sandboxes.building import SandboxBuilder
from dgm.sandboxes.container import IN_ENGINE
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_client import note_use
from dgm.sandboxes.engine_group import EngineGroup
from dgm.sandboxes.packages import MODULES, NPM_RECIPE, ensure_npm_packages, packages_mount
from dgm.sandboxes.transfer import get_files, list_files
from dgm.sandboxes.volumes import RUNTIME

USUAL = "python"
"""Recipe of the sandboxes in which agents without an image of their own are checked and edited."""
HOME_DISK_MB = 1024
"""Minimum disk of these sandboxes: programs such as Copilot unpack themselves when they start."""


@dataclass(frozen=True, slots=True)
class Supply:
    """What an agent has in sandboxes of one image."""

    mounts: Sequence[Mount] = ()
    packages: str = ""
    """Value of ``PYTHONPATH``; empty if it has no packages."""
    modules: Mount | None = None
    """Packages from the npm registry, for the agent's own folder; none for the programs that it starts elsewhere."""
    runtime: str = ""
    """Image whose files are shown beside the sandbox's own (``SandboxSpec.runtime``); empty if none are."""

    def mounts_for(self, job: Job) -> Sequence[Mount]:
        """Return the mounts for a job; one on an agent's source has its packages there, too.

        They are above the source, where programs of Node.js look as well, because they are no part of it.
        """
        if self.modules is None or job.kind is not JobKind.IMPROVE:
            return self.mounts
        above = job.workdir.rpartition("/")[0]
        return (*self.mounts, replace(self.modules, target=f"{above}/{MODULES}"))


@dataclass(frozen=True, slots=True)
class Home:
    """Where agents are checked and edited."""

    image: str
    runtime: str = ""
    """Image whose files are shown there, because sandboxes cannot be made of it."""


class Supplies:
    """The supplies of agents that need nothing beside the image."""

    async def supply(self, spec: SandboxSpec) -> Supply:  # noqa: ARG002  (nothing depends on the image)
        """Return the supply for the image of ``spec``."""
        return Supply()


class AgentSupplies(Supplies):
    """The supplies of one agent and its descendants, found out once for each image."""

    def __init__(self, engine: SandboxEngine, source: Snapshot) -> None:
        """Begin with what an agent's contract asks for; its descendants cannot change that.

        Raises:
            AgentFault: stage ``contract``: it is invalid.
        """
        self._engine = engine
        self._source = source
        self._contract = read_contract(source)
        self._home: Home | None = None
        self._known: dict[str, Supply] = {}
        self._turn = asyncio.Lock()

    async def home_spec(self, labels: Mapping[str, str]) -> SandboxSpec:
        """Return the specification of sandboxes in which the agent is checked and edited.

        Raises:
            UserError: there is no such recipe, or its image cannot be built.
            Infrastructure: the engine failed.
        """
        async with self._turn:
            home = await self._find_home()
        spec = recipes.load(USUAL if home.image.startswith(IN_ENGINE) else home.image).spec(labels)
        return replace(spec, image=home.image, disk_mb=max(spec.disk_mb, HOME_DISK_MB))

    async def supply(self, spec: SandboxSpec) -> Supply:
        """Return the supply for the image of ``spec``, whose labels a sandbox gets that is asked for its Python.

        Raises:
            UserError: the packages cannot be installed, or the agent's own image cannot be built.
            Infrastructure: a sandbox failed, or has no Python.
        """
        if not (self._contract.requires or self._contract.image or self._contract.npm):
            return Supply()
        async with self._turn:
            known = self._known.get(spec.image)
            if known is None:
                home = await self._find_home()
                known = self._known[spec.image] = await self._find_supply(spec, home)
        if self._home:
            note_use((self._home.runtime or self._home.image).removeprefix(IN_ENGINE))
        return known

    async def _find_supply(self, spec: SandboxSpec, home: Home) -> Supply:
        beside = home.image if self._contract.image and spec.image != home.image else ""
        runtime = home.runtime or beside
        # With a runtime, the agent runs on its own image's Python, wherever it works.
        runs_on = replace(spec, image=home.image) if self._contract.image else spec
        plain = replace(runs_on, mounts=(), socket=None, filled={}, runtime="")
        mounts = await packages_mount(self._contract.requires, self._engine, plain)
        packages = ":".join(mount.target for mount in mounts)
        modules = await self._find_modules(spec.labels) if self._contract.npm else None
        return Supply((*mounts, *([modules] if modules else ())), packages, modules, runtime)

    async def _find_modules(self, labels: Mapping[str, str]) -> Mount:
        machine = self._engine.machine if isinstance(self._engine, DockerEngine | EngineGroup) else ""
        builder = SandboxBuilder(self._engine, labels, NPM_RECIPE)
        folder = await ensure_npm_packages(self._source, builder, machine)
        return Mount(folder, f"/agent/{MODULES}", digest=folder.name)

    async def _find_home(self) -> Home:
        if self._home is None:
            self._home = await asyncio.to_thread(find_home, self._engine, self._contract, self._source)
        return self._home


def find_home(engine: SandboxEngine, contract: Contract, source: Snapshot) -> Home:
    """Return where an agent is checked and edited; build its own image if it has one.

    That is its own image, if it has all that sandboxes need. Else it is the usual one with the own image's files beside
    it.

    Raises:
        UserError: there is no such recipe, or its image cannot be built.
        Infrastructure: the engine failed.
    """
    if not contract.image:
        return Home(USUAL)
    if contract.image not in source:
        recipes.load(contract.image)
        return Home(contract.image)
    if not isinstance(engine, DockerEngine | EngineGroup):
        raise BuildError(
            f"agent.toml: image: {engine.name} has no images but those of recipes: set sandbox to docker, or name a "
            "recipe (with bubblewrap, agents use this machine's own programs)"
        )
    fixed = {path: entry for path, entry in source.items() if not contract.may_change(path)}
    try:
        tag = engine.task_images.build_agent(contract.image, fixed)
    except UserError as error:
        raise BuildError(str(error)) from error
    if engine.task_images.has_programs(tag):
        return Home(f"{IN_ENGINE}{tag}")
    return Home(USUAL, runtime=f"{IN_ENGINE}{tag}")


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
