"""The nodes that have the images of tasks: where a sandbox is best opened, and one making of an image for each node."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping

from dgm.errors import DgmError, Infrastructure
from dgm.sandboxes.ray.image_plans import ImageDigests, PlannedImage
from dgm.sandboxes.ray.node_images import HERE, WANTING
from dgm.sandboxes.ray.node_use import NodeUse
from dgm.sandboxes.ray.wire import NodeStock, decode, encode, encode_files

MAKE_S = 7200.0
"""Maximum seconds to pull an image and make another of it, others that the node makes before it included."""
_RESOLVE_S = 180.0
LEFT_S = 300.0
"""Seconds for which a node is left alone with an image that it could not make, while others are there."""

log = logging.getLogger(__name__)


class ImagePlaces:
    """The images of the nodes of one session."""

    def __init__(
        self, digests: MutableMapping[str, ImageDigests], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Know nothing yet.

        Args:
            digests: image → what all nodes take from a registry; it is added to.
            clock: seconds.
        """
        self._clock = clock
        self._digests = digests
        self._tags: dict[str, set[str]] = {}
        """Node → the images that it is known to have."""
        self._left: dict[tuple[str, str], float] = {}
        """Node and image → time until which that node is not taken for that image."""
        self._making: dict[tuple[str, str], asyncio.Lock] = {}
        self._resolving: dict[str, asyncio.Lock] = {}

    async def learn(self, uses: Mapping[str, NodeUse]) -> None:
        """Ask the nodes which images they have; those that have told it are not asked again."""
        new = [node for node in uses if node not in self._tags]
        asked = (uses[node].ask("list_images", uses[node].node_engine, False) for node in new)
        for node, answer in zip(new, await asyncio.gather(*asked, return_exceptions=True), strict=True):
            with contextlib.suppress(Infrastructure):
                tags = () if isinstance(answer, BaseException) else decode(answer, NodeStock).tags
                self._tags.setdefault(node, set()).update(tags)

    def near(self, tag: str) -> Collection[str]:
        """Return the nodes that have an image."""
        return [node for node, tags in self._tags.items() if tag in tags]

    def avoided(self, tag: str) -> Collection[str]:
        """Return the nodes that could not make an image a short time ago."""
        now = self._clock()
        return [node for (node, image), until in self._left.items() if image == tag and until > now]

    async def ensure(
        self, node: str, use: NodeUse, sandbox: str, planned: PlannedImage, others: Iterable[str]
    ) -> bool:
        """Make sure that a node has an image; return whether it was made just now.

        Another sandbox's making of the same image is waited for.

        Args:
            node: id of the node.
            use: of the node.
            sandbox: that needs it, and keeps it from being removed.
            planned: how it is made.
            others: nodes that could take the sandbox instead.

        Raises:
            UserError: it cannot be made there; the message says why.
            Infrastructure: the node failed.
        """
        tag = planned.plan.tag
        async with self._making.setdefault((node, tag), asyncio.Lock()):
            plan = encode(planned.plan)
            state = decode(await use.ask("find_image", use.session, sandbox, plan), str)
            if state != HERE:
                began = self._clock()
                try:
                    digests = await self._resolve(use, planned) if state == WANTING else ImageDigests({})
                    context = None if planned.context is None else encode_files(planned.context)
                    making = ("make_image", use.session, sandbox, plan, encode(digests), context)
                    decode(await use.ask_within(MAKE_S, *making), str)
                except DgmError:
                    # Another node may have what this one lacks.
                    if set(others) - {node, *self.avoided(tag)}:
                        self._left[node, tag] = self._clock() + LEFT_S
                    raise
                log.info("%s made the image %s in %.0f s", use.node.name, tag, self._clock() - began)
            self._tags.setdefault(node, set()).add(tag)
            return state != HERE

    async def _resolve(self, use: NodeUse, planned: PlannedImage) -> ImageDigests:
        """Return what is taken from a registry for an image; the first answer holds for all nodes."""
        tag = planned.plan.tag
        async with self._resolving.setdefault(tag, asyncio.Lock()):
            if tag not in self._digests:
                asked = use.ask_within(_RESOLVE_S, "resolve_image", use.session, encode(planned.plan))
                found = decode(await asked, ImageDigests)
                if not found.found:
                    return found
                self._digests[tag] = found
            return self._digests[tag]
