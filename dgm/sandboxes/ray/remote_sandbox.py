"""The head's end of a sandbox on a node: what it is asked goes there as records, and errors come back as they were."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from dgm.domain import Entry, Snapshot
from dgm.errors import Infrastructure
from dgm.protocols import Completed
from dgm.sandboxes.ray.cluster import Remote
from dgm.sandboxes.ray.door import Link
from dgm.sandboxes.ray.waiting import stop, within
from dgm.sandboxes.ray.wire import Command, decode, decode_files, encode, encode_files

T = TypeVar("T")

APART_S = 10.0
"""Seconds without the gateway that a program may have had; after more it counts for nothing."""
_SPARE_S = 300.0
"""Seconds beyond a command's own time for an engine that is busy."""
_FILES_S = 900.0


class RemoteSandbox:
    """One sandbox on a node."""

    def __init__(
        self, host: Remote, node: str, link: Link | None, confirm: Callable[[], Awaitable[None]]
    ) -> None:
        """Speak for a sandbox that is open.

        Args:
            host: its program on the node.
            node: name of the node, for people.
            link: the node's way to the gateway, if the sandbox has one.
            confirm: raises ``Infrastructure`` if the node may have ended the sandbox before it answered.
        """
        self._host = host
        self._node = node
        self._link = link
        self._confirm = confirm
        self.is_lost = False
        """True if the process on the node that held the sandbox is gone, or the node is."""
        self.failure = ""
        """Message of the node's engine when it failed; empty: it did not."""

    async def exec(  # noqa: PLR0913  (all but two have their usual value)
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        cwd: str = "/work",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        output_limit: int = 1_000_000,
        processor_s: float | None = None,
    ) -> Completed:
        """Run a command to its end, or kill all of it.

        Raises:
            AgentFault: as the node's engine says.
            Infrastructure: the sandbox, its node or the way to the gateway failed.
        """
        command = Command(tuple(argv), timeout_s, cwd, dict(env or {}), stdin, output_limit, processor_s)
        before_s = self._link.pipe.apart_s if self._link else 0.0
        running = asyncio.ensure_future(self._call(timeout_s + _SPARE_S, "exec", encode(command)))
        try:
            await self._wait(running)
        finally:
            await stop(running)
        done = self._read(running.result(), Completed)
        await self._confirm_lease()
        if self._link is not None and self._link.pipe.apart_s - before_s > APART_S:
            raise Infrastructure(
                f"{self._node} was without the gateway for {self._link.pipe.apart_s - before_s:.0f} s"
            )
        return done

    async def put(self, files: Snapshot, target: str) -> None:
        """Write the files below ``target``."""
        self._read(await self._call(_FILES_S, "put", encode_files(files), target), str)

    async def get(self, source: str, *, limit_bytes: int, exclude: Sequence[str] = ()) -> dict[str, Entry]:
        """Return the contents of a folder."""
        said = await self._call(_FILES_S, "get", source, limit_bytes, tuple(exclude))
        try:
            found = decode_files(said)
        except Infrastructure as error:
            self.failure = str(error)
            raise
        await self._confirm_lease()
        return found

    async def halt(self) -> None:
        """End all programs in the sandbox; its files stay."""
        self._read(await self._call(_SPARE_S, "halt"), str)

    async def _wait(self, running: "asyncio.Future[object]") -> None:
        """Wait for a command.

        Raises:
            Infrastructure: the way to the gateway broke meanwhile: what the command does counts for nothing.
        """
        if self._link is None:
            await asyncio.wait([running])
            return
        broken = asyncio.create_task(self._link.pipe.wait_until_broken(), name="loss of the gateway")
        try:
            ends: list[asyncio.Future[Any]] = [running, broken]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await stop(broken)
        if not running.done():
            self.is_lost = True
            raise Infrastructure(
                f"{self._node} lost the gateway: {self._link.pipe.broken or 'the head let it go'}"
            )

    def _read(self, record: object, kind: type[T]) -> T:
        try:
            return decode(record, kind)
        except Infrastructure as error:
            self.failure = str(error)
            raise

    async def _confirm_lease(self) -> None:
        try:
            await self._confirm()
        except Infrastructure:
            self.is_lost = True
            raise

    async def _call(self, seconds: float, method: str, *args: object) -> object:
        try:
            return await within(seconds, self._host.call(method, *args), f"a sandbox on {self._node}")
        except Infrastructure:
            self.is_lost = True
            raise
