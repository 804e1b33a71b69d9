"""The relay of one container: started as its keeper, proven to answer, and noticed when it is lost."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files

from dgm.errors import DgmError, Infrastructure
from dgm.protocols import SharedSocket
from dgm.sandboxes.confined import Output
from dgm.sandboxes.container_programs import ContainerPrograms, ExecStream, Program
from dgm.sandboxes.relay import Relay

MEMORY_MB = 16
"""Memory of the relay itself, for which no agent is charged."""
_START = """
import os, sys
source = b""
while len(source) < int(sys.argv[2]):
    source += os.read(0, int(sys.argv[2]) - len(source)) or sys.exit("no program came")
exec(source)
"""
"""Program that runs the source that comes first on its standard input: no file of it is needed inside."""
_KILLED = 137
_SHOWN = 200


class ContainerRelay:
    """A relay that runs in a container."""

    def __init__(
        self, programs: ContainerPrograms, ident: str, stream: ExecStream, shared: SharedSocket
    ) -> None:
        self._programs = programs
        self._id = ident
        self._stream = stream
        self._said = Output(0)
        self._relay = Relay(self, shared.source)
        self._carrying = asyncio.create_task(self._relay.carry(), name="relay")

    async def read(self) -> bytes:
        """Return the next bytes from inside; none at the end."""
        return await self._stream.read(self._said)

    def write(self, data: bytes) -> None:
        """Queue bytes for the inside."""
        self._stream.write(data)

    async def drain(self) -> None:
        """Wait until few bytes are queued."""
        await self._stream.drain()

    async def wait_until_lost(self) -> None:
        """Wait until it carries nothing any more."""
        await asyncio.wait([self._carrying])

    async def check(self) -> None:
        """Wait until it answers.

        Raises:
            Infrastructure: it is lost, or does not answer; the message says why.
        """
        answering = asyncio.ensure_future(self._relay.ping())
        try:
            await asyncio.wait([answering, self._carrying], return_when=asyncio.FIRST_COMPLETED)
            if not self._carrying.done():
                await answering
                return
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
        error = self._carrying.exception()
        if error is not None:
            raise error
        said = ascii(self._said.said.decode("utf-8", "replace").strip().rpartition("\n")[2][-_SHOWN:])
        raise Infrastructure(f"it ended with exit code {await self._exit_code()}, saying {said}")

    async def was_starved(self, memory_was_short: Callable[[], Awaitable[bool | None]]) -> bool:
        """Return whether the kernel killed it because the sandbox's programs took all memory: their own doing.

        Raises:
            Infrastructure: it is lost for another reason, or does not answer.
        """
        try:
            await self.check()
        except Infrastructure as error:
            ended = self._carrying.done() and self._carrying.exception() is None
            if ended and await self._exit_code() == _KILLED and await memory_was_short():
                return True
            raise Infrastructure(f"the sandbox's relay to the gateway was lost: {error}") from error
        return False

    async def close(self) -> None:
        """End all connections."""
        self._carrying.cancel()
        await asyncio.gather(self._carrying, return_exceptions=True)

    async def _exit_code(self) -> int | None:
        """Return how it ended; the engine may note that late."""
        for _ in range(20):
            code = await self._programs.exit_code(self._id)
            if code is not None:
                return code
            await asyncio.sleep(0.1)
        return None


@contextlib.asynccontextmanager
async def open_relay(
    programs: ContainerPrograms, user: str, path: str, shared: SharedSocket | None
) -> AsyncIterator[ContainerRelay | None]:
    """Start the relay of a shared socket, if there is one, and end it when the context ends.

    Args:
        programs: of the container.
        user: ``uid:gid`` of the relay; not that of agents, who could kill it.
        path: search path for ``python3``.
        shared: the socket; None: no relay is needed.

    Raises:
        Infrastructure: it cannot be started, or does not answer.
    """
    if shared is None:
        yield None
        return
    source = files("dgm.sandboxes").joinpath("relay_inside.py").read_bytes()
    argv = ["python3", "-I", "-c", _START, shared.target, str(len(source))]
    async with programs.open(Program(argv, user, {"PATH": path})) as (ident, stream):
        stream.write(source)
        relay = ContainerRelay(programs, ident, stream, shared)
        try:
            try:
                await relay.check()
            except Infrastructure as error:
                raise Infrastructure(f"no relay to the gateway runs in the sandbox: {error}") from error
            yield relay
        finally:
            await relay.close()


@contextlib.asynccontextmanager
async def end_with(relay: ContainerRelay | None, halt: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Call ``halt`` if the relay is lost in the context: what programs do without the gateway counts for nothing."""
    if relay is None:
        yield
        return

    async def end() -> None:
        await relay.wait_until_lost()
        with contextlib.suppress(DgmError):
            await halt()

    ending = asyncio.create_task(end(), name="end with the relay")
    try:
        yield
    finally:
        ending.cancel()
        await asyncio.gather(ending, return_exceptions=True)
