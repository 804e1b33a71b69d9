"""How the images of tasks are made on several engines or nodes: planned here, made where a sandbox needs one.

A benchmark asks for images as it asks one Docker engine (``ImageStore``). Images that only this machine has are not
sent.
"""

from collections.abc import Callable, Sequence
from functools import partial
from operator import methodcaller

from dgm.domain import Snapshot
from dgm.errors import UserError
from dgm.sandboxes.container import IN_ENGINE
from dgm.sandboxes.image_store import ImageStore, refuse_addresses

Step = Callable[[ImageStore], object]
"""One step of making an image, which can be pickled; it blocks and raises as ``ImageStore`` does."""


class ImagePlans:
    """The images that benchmarks asked for. Its methods are those of a store of task images; each plans.

    They raise ``UserError`` if the nodes have no images.
    """

    def __init__(self, node_engine: str = "docker") -> None:
        self._node_engine = node_engine
        self._steps: dict[str, tuple[Step, ...]] = {}

    def build(self, context: Snapshot, tag: str, *, network: bool) -> None:
        """Build the context's ``Dockerfile`` as ``tag``.

        Raises:
            UserError: it fetches an address, and has no network.
        """
        if not network:
            refuse_addresses(context["Dockerfile"].data.decode("utf-8", "replace"))
        self.plan(tag, methodcaller("build", dict(context), tag, network=network))

    def hold(self, image: str, folder: str, tag: str) -> None:
        """Make ``tag``: the image with its ``folder`` as a workspace."""
        self.plan(tag, *self._steps_of(image), methodcaller("hold", image, folder, tag))

    def prepare(self, sources: Sequence[str], tag: str) -> None:
        """Make ``tag``, the start image of an instance, of the first of ``sources`` that there is."""
        self.plan(tag, partial(_prepare, sources=tuple(sources), tag=tag))

    def check(self, image: str) -> None:
        """Check that sandboxes can be made of an image."""
        self.plan(image, *self._steps_of(image)[:1], methodcaller("check", image))

    def plan(self, tag: str, *steps: Step) -> None:
        """Make ``tag`` in these steps."""
        if self._node_engine == "bubblewrap":
            raise UserError(
                f"scale.node_engine=bubblewrap: the image {tag} needs Docker on the nodes: use docker or auto"
            )
        self._steps[tag] = steps

    def steps(self, image: str) -> tuple[Step, ...]:
        """Return how the image of a sandbox's specification is made; no step for that of a recipe."""
        if not image.startswith(IN_ENGINE):
            return ()
        tag = image.removeprefix(IN_ENGINE)
        if tag not in self._steps:
            self.check(tag)
        return self._steps[tag]

    def _steps_of(self, image: str) -> tuple[Step, ...]:
        return self._steps.get(image, (partial(_find, names=(image,)),))


def _prepare(store: ImageStore, sources: Sequence[str], tag: str) -> None:
    if not store.has(tag):
        store.prepare(_find(store, sources), tag)


def _find(store: ImageStore, names: Sequence[str]) -> str:
    """Return the first name of which there is an image, pulled if necessary."""
    for name in names:
        if store.has(name):
            return name
    for name in names:
        if store.offered(name):
            store.pull(name)
            return name
    raise UserError(
        f"no image {names[0]} here, and no registry offers it: push it to a registry that the nodes reach, or copy "
        f"it: docker save {names[0]} | ssh NODE docker load"
    )
