"""The images of tasks on one node: found, pulled by digest, or made there; the longest unused go beyond a bound."""

import logging
import re
from collections.abc import Collection, Sequence
from typing import Protocol, runtime_checkable

from dgm.domain import Snapshot
from dgm.errors import DgmError, UserError
from dgm.sandboxes.image_store import ImageStore
from dgm.sandboxes.ray.image_plans import ImageDigests, ImagePlan

HERE, MAKEABLE, WANTING = "here", "makeable", "wanting"
"""States of an image: it can be used; it can be made with what the node has; a registry should be asked first."""

log = logging.getLogger(__name__)


@runtime_checkable
class ImageEngine(Protocol):
    """An engine with images."""

    @property
    def task_images(self) -> ImageStore:
        """Its images, and their use."""
        ...


class NodeImages:
    """The images of one engine. All methods block; those for the same image are not for several threads at once."""

    def __init__(self, engine: ImageEngine) -> None:
        self._store = engine.task_images
        self._ready: set[str] = set()
        """Tags that this process has made or looked at."""

    def find_state(self, plan: ImagePlan, registry: str) -> str:
        """Return whether an image is here, can be made, or wants a registry; one that is here counts as used."""
        if plan.tag in self._ready and self._store.has(plan.tag):
            self._store.note_use(plan.tag)
            return HERE
        if plan.built:
            return MAKEABLE if not registry or self._store.has(plan.tag) else WANTING
        known = (plan.tag, *plan.sources)
        return MAKEABLE if any(self._store.has(each) for each in known) else WANTING

    def resolve(self, plan: ImagePlan, registry: str) -> ImageDigests:
        """Return the digest of the best image that a registry offers for a plan; none if none offers one."""
        for reference, _ in _offers(plan, registry):
            if digest := self._store.resolve(reference):
                return ImageDigests({reference: digest})
        return ImageDigests({})

    def make(self, plan: ImagePlan, context: Snapshot | None, digests: ImageDigests, registry: str) -> None:
        """Make an image if it is missing.

        Args:
            plan: how.
            context: the files of its Dockerfile, if it has one.
            digests: what all nodes take from registries.
            registry: that the settings name; empty: none.

        Raises:
            UserError: it cannot be made of what is here and what registries offer.
            Infrastructure: the engine failed.
        """
        self._pull(plan, digests, registry)
        match plan.how:
            case "prepare":
                self._store.prepare(self._find_source(plan), plan.tag)
            case "hold":
                self._build(plan, context)
                self._store.hold(plan.sources[0], plan.folder, plan.tag)
            case "check":
                self._build(plan, context)
                self._find_source(plan)
                self._store.check(plan.tag)
                self._store.note_use(plan.tag)
        self._ready.add(plan.tag)

    def collect(self, limit_bytes: int, spared: Collection[str]) -> Sequence[str]:
        """Remove the longest unused images until all fit into the limit; return them."""
        try:
            return self._store.collect(limit_bytes, spared)
        except DgmError as error:
            log.warning("images of tasks cannot be removed: %s", error)
            return ()

    def tags(self) -> tuple[str, ...]:
        """Return the images that dgm made or pulled here."""
        return tuple(image.tag for image in self._store.list_images())

    def measure(self) -> int:
        """Return the bytes of all of them, with common layers counted once."""
        return self._store.disk_bytes()

    def _build(self, plan: ImagePlan, context: Snapshot | None) -> None:
        if plan.built and context is not None and not self._store.has(plan.tag):
            self._store.build(context, plan.sources[0], network=plan.network)

    def _pull(self, plan: ImagePlan, digests: ImageDigests, registry: str) -> None:
        """Pull the image itself or a source of it, where nothing of it is here."""
        if self._store.has(plan.tag):
            return
        if not plan.built and any(self._store.has(source) for source in plan.sources):
            return
        for reference, name in _offers(plan, registry):
            if digest := digests.found.get(reference):
                self._store.pull_as(reference, digest, name)
                return

    def _find_source(self, plan: ImagePlan) -> str:
        """Return a source that is here, or the first one if the image itself is.

        Raises:
            UserError: neither is here.
        """
        for source in plan.sources:
            if self._store.has(source):
                return source
        if self._store.has(plan.tag):
            return plan.sources[0]
        raise UserError(
            f"the engine has no image {' or '.join(plan.sources)}, and no registry offers it: pull or build it there, "
            "or name a registry that has it (scale.registry)"
        )


def _offers(plan: ImagePlan, registry: str) -> list[tuple[str, str]]:
    """Return the references to ask registries for, the best first, and what the node calls each image."""
    named = []
    if registry:
        wanted = dict.fromkeys((plan.tag, *plan.sources))
        named = [(f"{registry}/{without_host(each)}", each) for each in wanted]
    return named if plan.built else [*named, (plan.sources[0], plan.sources[0])]


def without_host(reference: str) -> str:
    """Return a reference without its registry, as another registry may have it."""
    first, slash, rest = reference.partition("/")
    return rest if slash and re.search(r"[.:]|^localhost$", first) else reference
