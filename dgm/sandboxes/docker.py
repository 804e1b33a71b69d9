"""The Docker engine: a hardened, network-less container per sandbox, and commands through the engine's exec.

Nothing of the host is mounted, for the engine may see other files: files go in as tar streams, and a shared socket is
reached through a relay (``relay``).

``docker_sandbox`` runs commands. The docker library makes and removes containers, and ``attach`` communicates with
programs. The library's calls block, so each runs in a thread.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dgm.errors import Infrastructure
from dgm.protocols import SandboxSpec
from dgm.sandboxes import container, owners, prepared, recipes, volumes
from dgm.sandboxes.container import IN_ENGINE, ContainerBase, Shown
from dgm.sandboxes.docker_sandbox import DockerSandbox
from dgm.sandboxes.engine_address import EngineAddress
from dgm.sandboxes.engine_client import (
    EngineConnection,
    EngineFacts,
    convert_engine_errors,
    note_use,
    remove_container,
    remove_ended_helpers,
)
from dgm.sandboxes.image_store import ImageStore
from dgm.sandboxes.threads import finish_work, make_or_dispose
from dgm.sandboxes.volumes import ShownFolder, VolumeStore

if TYPE_CHECKING:
    from docker import DockerClient

log = logging.getLogger(__name__)


class DockerEngine:
    """An engine that opens sandboxes with Docker, on this machine or another."""

    name = "docker"

    def __init__(self, address: EngineAddress | None = None) -> None:
        """Connect to the engine at ``address``; by default, the one that the environment names.

        Raises:
            UserError: the address is no good.
            Infrastructure: no engine answers there.
        """
        self._connection = EngineConnection(address)
        self.client: DockerClient = self._connection.client
        """The docker library's client, whose calls block."""
        self.task_images = self.instances = ImageStore(self.client)
        """Its images, also for benchmarks whose repositories are inside images."""
        self._volumes = VolumeStore(self._connection)

    def close(self) -> None:
        """End the connection; it also ends with this object."""
        self._connection.close()

    @property
    def facts(self) -> EngineFacts:
        """The engine as it describes itself; the first access blocks."""
        return self._connection.facts

    @property
    def machine(self) -> str:
        """The architecture of its sandboxes, as ``uname -m`` says it."""
        return self.facts.machine

    @property
    def address(self) -> EngineAddress:
        """The address at which it answers."""
        return self._connection.address

    def check_answers(self) -> None:
        """Make sure that the engine answers; blocks."""
        self._connection.check_answers()

    def remove_labelled(self, labels: Mapping[str, str], *, only_left: bool = False) -> int:
        """Remove every sandbox of this engine that carries all of ``labels``; return their number; blocks.

        Containers in which an ended process prepared an image go, too.

        Args:
            labels: values by name.
            only_left: leave those of living processes alone.
        """
        wanted = [container.LABEL, *(f"{key}={value}" for key, value in labels.items())]
        with convert_engine_errors("look for left sandboxes"):
            remove_ended_helpers(self.client)
            containers = self.client.api.containers(all=True, filters={"label": wanted})
            removed = [
                each["Id"]
                for each in containers
                if not only_left or owners.has_ended((each.get("Labels") or {}).get(owners.LABEL, ""))
            ]
            for ident in removed:
                log.info("removing the container %s", ident[:12])
                remove_container(self.client, ident)
        return len(removed)

    def build(self, recipe: str) -> str:
        """Return the tag of the recipe's image; build it if there is none, which blocks for a minute or so.

        Raises:
            UserError: there is no such recipe, or its image cannot be made.
            Infrastructure: the build failed.
        """
        return self.task_images.build_recipe(recipes.load(recipe))

    def collect(self) -> list[str]:
        """Remove images of former recipes, and images and volumes unused for a week; return the images' tags."""
        removed = self.task_images.collect_unused()
        with convert_engine_errors("remove volumes"):
            volumes.collect(self.client)
        return removed

    @contextlib.asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[DockerSandbox]:
        """Open a fresh container, and remove it when the context ends. The image of a recipe is built if necessary.

        Raises:
            UserError: there is no such recipe, its image cannot be made, or a Podman's own seccomp profile would hold.
            Infrastructure: the engine failed, or has no such image.
        """
        shown = await asyncio.to_thread(
            volumes.pack_folders, [mount for mount in spec.mounts if not mount.digest]
        )
        sandbox = await make_or_dispose(lambda: self._make(spec, shown), DockerSandbox.close)
        try:
            for folder in shown:
                await sandbox.show(folder)
            for target, source in spec.filled.items():
                await sandbox.copy(source, target)
            async with sandbox.relaying(spec.socket):
                yield sandbox
        finally:
            await finish_work(sandbox.close)

    async def reap(self, labels: Mapping[str, str]) -> int:
        """Remove every sandbox of this engine that carries all of ``labels``; return their number."""
        return await asyncio.to_thread(self.remove_labelled, labels)

    async def reap_left(self, labels: Mapping[str, str]) -> int:
        """Do the same with those whose owners have ended; leave those of living processes alone."""
        return await asyncio.to_thread(self.remove_labelled, labels, only_left=True)

    def _make(self, spec: SandboxSpec, shown: Sequence[ShownFolder]) -> DockerSandbox:
        with convert_engine_errors("start a sandbox"):
            base = self._base(spec.image)
            mounted = {
                mount.target: self._volumes.ensure_folder(base.image, mount)
                for mount in spec.mounts
                if mount.digest
            }
            if spec.runtime:
                runtime = container.find_base(self.client, self._reference(spec.runtime), spec.runtime, 0)
                mounted |= self._volumes.ensure_runtime(runtime.image, base.image)
            # An engine would make volumes without bounds. They are read-only, as all of the image.
            writable = container.owners(spec, base, 0, shown)
            mounted |= {
                folder: self._volumes.ensure_part(base.image, folder)
                for folder in base.volumes
                if folder not in writable and folder not in mounted
            }
            ident, uid = container.create(self._connection, spec, base, Shown(shown, mounted))
            sandbox = DockerSandbox(self._connection, ident, base, uid)
            try:
                container.start(self._connection, ident, container.owners(spec, base, uid, shown))
            except BaseException:
                sandbox.close()
                raise
        return sandbox

    def _base(self, image: str) -> ContainerBase:
        """Return the base of a container; make its image if necessary."""
        recipe = None if image.startswith(IN_ENGINE) else recipes.load(image)
        reference = recipe.tag if recipe else image.removeprefix(IN_ENGINE)
        group = recipe.user if recipe else prepared.GROUP
        try:
            tag = prepared.prepare(self.client, reference, group=group).tag
        except prepared.ImageMissing as error:
            if recipe is None:
                raise Infrastructure(str(error)) from error
            tag = prepared.prepare(self.client, self.task_images.build_recipe(recipe), group=group).tag
        note_use(reference)
        note_use(tag)
        return container.find_base(self.client, tag, image if recipe else reference, group)

    def _reference(self, image: str) -> str:
        """Return the engine's name of an image; build that of a recipe if necessary."""
        return image.removeprefix(IN_ENGINE) if image.startswith(IN_ENGINE) else self.build(image)
