"""The images of tasks on a node, for all its sandboxes at once: each is made once, while others wait for it."""

import asyncio
from typing import NamedTuple

from dgm.domain import Snapshot
from dgm.sandboxes.ray.image_plans import ImageDigests, ImagePlan
from dgm.sandboxes.ray.node_images import HERE, NodeImages
from dgm.sandboxes.ray.wire import NodeStock

_AT_ONCE = 2
"""Images that a node makes at the same time."""


class ImageOrder(NamedTuple):
    """An image to be made."""

    plan: ImagePlan
    context: Snapshot | None
    digests: ImageDigests


class ImageShelf:
    """The images of one engine of a node."""

    def __init__(self, images: NodeImages) -> None:
        self._images = images
        self._held: dict[str, str] = {}
        """Sandbox → the image that it is made from."""
        self._locks: dict[str, asyncio.Lock] = {}
        self._makers = asyncio.Semaphore(_AT_ONCE)

    async def list(self, *, measured: bool) -> NodeStock:
        """Return the images that dgm made or pulled; their size takes some milliseconds an image."""
        tags = await asyncio.to_thread(self._images.tags)
        return NodeStock(tags, await asyncio.to_thread(self._images.measure) if measured else 0)

    async def find(self, sandbox: str, plan: ImagePlan, registry: str) -> str:
        """Return the state of an image, and hold it for a sandbox."""
        self._held[sandbox] = plan.tag
        async with self._lock(plan):
            return await asyncio.to_thread(self._images.find_state, plan, registry)

    async def resolve(self, plan: ImagePlan, registry: str) -> ImageDigests:
        """Return what a registry offers for an image."""
        return await asyncio.to_thread(self._images.resolve, plan, registry)

    async def make(self, sandbox: str, order: ImageOrder, registry: str, limit_bytes: int) -> None:
        """Make an image that is missing, then remove others beyond a limit; raise as ``NodeImages.make``."""
        self._held[sandbox] = order.plan.tag
        async with self._lock(order.plan):
            if await asyncio.to_thread(self._images.find_state, order.plan, registry) == HERE:
                return
            async with self._makers:
                await asyncio.to_thread(self._images.make, order.plan, order.context, order.digests, registry)
                spared = frozenset(self._held.values())
                await asyncio.to_thread(self._images.collect, limit_bytes, spared)

    def release(self, sandbox: str) -> None:
        """Let go of the image of a sandbox."""
        self._held.pop(sandbox, None)

    def _lock(self, plan: ImagePlan) -> asyncio.Lock:
        return self._locks.setdefault(plan.tag, asyncio.Lock())
