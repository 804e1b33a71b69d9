"""Plans of making the images of tasks: noted on the head, which has no image, and carried out on the nodes.

A benchmark asks for images as it asks a Docker engine. A node makes one when its first sandbox there is opened
(``node_images``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dgm.config import ScaleSettings
from dgm.domain import Snapshot
from dgm.errors import UserError
from dgm.sandboxes.container import IN_ENGINE
from dgm.sandboxes.image_store import refuse_addresses

DOCKER = "docker"
"""Name of the engine that has images."""


@dataclass(frozen=True, slots=True)
class ImagePlan:
    """Plan by which a node makes one image."""

    tag: str
    """The image that sandboxes are opened with."""
    how: Literal["check", "hold", "prepare"]
    """``check``: take the source as it is; ``hold``: make one of its folders a workspace; ``prepare``: use the
    repository at ``/testbed``."""
    sources: tuple[str, ...]
    """The images that it can be made of, the best first."""
    built: bool = False
    """True if the only source is built from a Dockerfile."""
    network: bool = False
    """True if the steps of the Dockerfile may use a network."""
    folder: str = ""
    """The folder to ``hold``."""


@dataclass(frozen=True, slots=True)
class ImageDigests:
    """Images of registries, as all nodes take them."""

    found: Mapping[str, str]
    """Reference → digest of its manifest."""


class PlannedImage(NamedTuple):
    """A plan, and what goes to the node with it."""

    plan: ImagePlan
    context: Snapshot | None
    """The files of the Dockerfile; None if there is none."""


class _Built(NamedTuple):
    """The Dockerfile of an image."""

    context: Snapshot
    network: bool


class ImagePlans:
    """The images that benchmarks asked for; a ``TaskImageStore`` of theirs."""

    def __init__(self, scale: ScaleSettings) -> None:
        self._scale = scale
        self._built: dict[str, _Built] = {}
        self._plans: dict[str, ImagePlan] = {}

    def build(self, context: Snapshot, tag: str, *, network: bool) -> None:
        """Note that ``tag`` is built from the context's ``Dockerfile``.

        Raises:
            UserError: nodes have no images, or the Dockerfile fetches an address without a network.
        """
        self._refuse_bubblewrap(tag)
        if not network:
            refuse_addresses(context["Dockerfile"].data.decode("utf-8", "replace"))
        self._built[tag] = _Built(context, network)

    def hold(self, image: str, folder: str, tag: str) -> None:
        """Note that ``tag`` is the image with its ``folder`` as a workspace.

        Raises:
            UserError: nodes have no images.
        """
        self._note("hold", (image,), tag, folder)

    def check(self, image: str) -> None:
        """Note that sandboxes are opened with an image as it is.

        Raises:
            UserError: nodes have no images.
        """
        self._note("check", (image,), image)

    def prepare(self, sources: Sequence[str], tag: str) -> None:
        """Note that ``tag`` is made of the first of ``sources`` that a node has or can pull.

        Raises:
            UserError: nodes have no images.
        """
        self._note("prepare", tuple(sources), tag)

    def find(self, image: str) -> PlannedImage:
        """Return the plan of an image; one that no benchmark asked for is taken as it is.

        Args:
            image: as a sandbox names it, with ``docker:``.

        Raises:
            UserError: nodes have no images.
        """
        tag = image.removeprefix(IN_ENGINE)
        if tag not in self._plans:
            self.check(tag)
        plan = self._plans[tag]
        built = self._built.get(plan.sources[0])
        return PlannedImage(plan, built.context if built else None)

    def _note(
        self, how: Literal["check", "hold", "prepare"], sources: tuple[str, ...], tag: str, folder: str = ""
    ) -> None:
        self._refuse_bubblewrap(tag)
        built = self._built.get(sources[0])
        self._plans[tag] = ImagePlan(
            tag, how, sources, built is not None, built is not None and built.network, folder
        )

    def _refuse_bubblewrap(self, tag: str) -> None:
        if self._scale.node_engine == "bubblewrap":
            raise UserError(
                f"scale.node_engine=bubblewrap: the image {tag} needs Docker on the nodes: say docker or auto"
            )
