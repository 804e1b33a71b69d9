"""One node as a session uses it: questions to its keeper, and folders that are sent to it once."""

import asyncio
from pathlib import Path

from dgm.sandboxes.ray.cache import PackedFolder
from dgm.sandboxes.ray.cluster import ClusterNode, Remote
from dgm.sandboxes.ray.door import Link
from dgm.sandboxes.ray.waiting import within
from dgm.sandboxes.ray.wire import decode

CALL_S = 60.0
"""Maximum seconds for an answer of a keeper, on a node that may be busy."""


class NodeUse:
    """One node as this session uses it."""

    def __init__(self, node: ClusterNode, keeper: Remote, session: str = "", node_engine: str = "") -> None:
        self.node = node
        self.session = session
        """Its id, as the node knows it."""
        self.node_engine = node_engine
        """The setting."""
        self.engine = ""
        """Name of the node's own engine; empty: none answered."""
        self.links: dict[Path, Link] = {}
        """Socket of the head → the node's way to it."""
        self.renewing: asyncio.Task[None] | None = None
        self.renewed_at = 0.0
        """Time at which the lease was last asked for with success."""
        self._keeper = keeper
        self._sending: dict[str, asyncio.Lock] = {}

    async def ask(self, method: str, *args: object) -> object:
        """Return the keeper's record.

        Raises:
            Infrastructure: the keeper or its node is lost, or does not answer in time.
        """
        return await self.ask_within(CALL_S, method, *args)

    async def ask_within(self, seconds: float, method: str, *args: object) -> object:
        """Return the keeper's record of work that may take long; raise as ``ask``."""
        return await within(seconds, self._keeper.call(method, *args), f"the keeper of {self.node.name}")

    async def show(self, sandbox: str, folder: PackedFolder) -> str:
        """Return the node's path of a folder; send it if it is not there, once for all that wait for it."""
        async with self._sending.setdefault(folder.digest, asyncio.Lock()):
            found = decode(await self.ask("find_folder", sandbox, folder.digest), str)
            if not found:
                found = decode(await self.ask("store_folder", sandbox, folder.digest, folder.stream), str)
        return found
