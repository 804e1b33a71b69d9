"""The Docker engine: a hardened, network-less container per sandbox, and commands through the engine's exec.

Nothing of the host is mounted, for the engine may see other files: files go in as tar streams, and a shared socket is
reached through a relay (``container_relay``).

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
from dgm.sandboxes import (
    container,
    owners,
    prepared,
    recipes,
    shown_folders,
    volumes,
)
from dgm.sandboxes.container import IN_ENGINE, ContainerBase, Shown
from dgm.sandboxes.docker_sandbox import DockerSandbox
from dgm.sandboxes.engine_address import EngineAddress
from dgm.sandboxes.engine_client import (
    EngineConnection,
    EngineFacts,
    convert_engine_errors,
    find_image,
    remove_container,
)
from dgm.sandboxes.image_store import AGENT, ImageStore, StoredImage
from dgm.sandboxes.shown_folders import ShownFolder
from dgm.sandboxes.threads import finish_work, make_or_dispose
from dgm.sandboxes.uses import note_use
from dgm.sandboxes.volumes import VolumeStore

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
        self._client = self._connection.client
        self._bases: dict[str, tuple[str, ContainerBase]] = {}
        """Tag of a recipe's image → the prepared one."""
        self._store = ImageStore(self._client)
        self._volumes = VolumeStore(self._connection)

    def close(self) -> None:
        """End the connection; it also ends with this object."""
        self._connection.close()

    @property
    def client(self) -> "DockerClient":
        """The connection, for code that builds images."""
        return self._client

    @property
    def instances(self) -> ImageStore:
        """Its images, for benchmarks whose repositories are inside images."""
        return self._store

    @property
    def task_images(self) -> ImageStore:
        """Its images, for tasks that bring or name one."""
        return self._store

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

    @property
    def addresses(self) -> Sequence[EngineAddress]:
        """The same, as a group of engines has several."""
        return [self.address]

    def check_answers(self) -> None:
        """Make sure that the engine answers; blocks.

        Raises:
            Infrastructure: it does not.
        """
        self._connection.check_answers()

    def has_image(self, reference: str) -> bool:
        """Return whether there is an image of that name.

        Raises:
            Infrastructure: the engine failed.
        """
        return self._store.has(reference)

    def identify(self, image: str) -> str:
        """Return the id of an image, which no other contents have; empty if the engine has no such image; blocks.

        Args:
            image: as in a sandbox's specification.

        Raises:
            UserError: there is no such recipe.
            Infrastructure: the engine failed.
        """
        name = image.removeprefix(IN_ENGINE) if image.startswith(IN_ENGINE) else recipes.load(image).tag
        with convert_engine_errors(f"look for the image {name}"):
            found = find_image(self._client, name)
        return str(found["Id"]) if found else ""

    def remove_labelled(self, labels: Mapping[str, str], *, only_left: bool = False) -> int:
        """Remove every sandbox of this engine that carries all of ``labels``; return their number; blocks.

        Args:
            labels: values by name.
            only_left: leave those of living processes alone.

        Raises:
            Infrastructure: the engine failed.
        """
        with convert_engine_errors("look for left sandboxes"):
            wanted = [container.LABEL, *(f"{key}={value}" for key, value in labels.items())]
            found = self._client.api.containers(all=True, filters={"label": wanted})
            if only_left:
                found = [
                    each
                    for each in found
                    if owners.has_ended((each.get("Labels") or {}).get(owners.LABEL, ""))
                ]
            for each in found:
                log.info("removing the container %s", each["Id"][:12])
                remove_container(self._client, each["Id"])
        return len(found)

    def build(self, recipe: str) -> str:
        """Return the tag of the recipe's image; build it if there is none, which blocks for a minute or so.

        Raises:
            UserError: there is no such recipe, or its image cannot be made.
            Infrastructure: the build failed.
        """
        return self._store.build_recipe(recipes.load(recipe))

    def images(self) -> list[str]:
        """Return the tags of all images that were built from recipes."""
        return self._store.list_recipes()

    def agent_images(self) -> Sequence[StoredImage]:
        """Return agents' own images, the longest unused first."""
        return self._store.list_images([AGENT])

    def collect(self) -> list[str]:
        """Remove images of former recipes, and images and volumes unused for a week; return the images' tags."""
        removed = self._store.collect_unused()
        with convert_engine_errors("remove volumes"):
            volumes.collect(self._client)
        return removed

    @contextlib.asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[DockerSandbox]:
        """Open a fresh container, and remove it when the context ends. The image of a recipe is built if necessary.

        Raises:
            UserError: there is no such recipe, its image cannot be made, or a Podman's own seccomp profile would hold.
            Infrastructure: the engine failed, or has no such image.
        """
        shown = await asyncio.to_thread(
            shown_folders.pack_folders, [mount for mount in spec.mounts if not mount.digest]
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
                own = container.find_base(self._client, self._reference(spec.runtime), spec.runtime, 0)
                mounted |= self._volumes.ensure_runtime(own.image, base.image)
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
        reference, in_engine = self._reference(image), image.startswith(IN_ENGINE)
        # A recipe's tag stands for its contents; other names may refer to another image at any time.
        tag, base = ("", None) if in_engine else self._bases.get(reference, ("", None))
        if base is not None and find_image(self._client, base.image) is None:
            # Somebody has removed it meanwhile.
            del self._bases[reference]
            reference, base = self._reference(image), None
        if base is None:
            if in_engine and find_image(self._client, reference) is None:
                raise Infrastructure(f"the engine has no image {reference}: pull or build it, then try again")
            group = prepared.GROUP if in_engine else recipes.load(image).user
            tag = prepared.prepare(self._client, reference, group=group).tag
            base = container.find_base(self._client, tag, reference if in_engine else image, group)
            if not in_engine:
                self._bases[reference] = tag, base
        note_use(reference)
        note_use(tag)
        return base

    def _reference(self, image: str) -> str:
        """Return the engine's name of an image; build that of a recipe if necessary."""
        if image.startswith(IN_ENGINE):
            return image.removeprefix(IN_ENGINE)
        recipe = recipes.load(image)
        return recipe.tag if recipe.tag in self._bases else self._store.build_recipe(recipe)
