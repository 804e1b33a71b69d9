"""Find what an agent has beside a sandbox's image: the files of its own image, and its packages (Python, npm)."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dgm.domain import Snapshot
from dgm.errors import UserError
from dgm.meta.contract import Contract, read_contract
from dgm.protocols import BuildError, Job, JobKind, Mount, SandboxEngine, SandboxSpec
from dgm.sandboxes import recipes
from dgm.sandboxes.building import SandboxBuilder
from dgm.sandboxes.container import IN_ENGINE
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_client import note_use
from dgm.sandboxes.engine_group import EngineGroup
from dgm.sandboxes.packages import MODULES, NPM_RECIPE, ensure_npm_packages, packages_mount

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
