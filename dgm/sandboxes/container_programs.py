"""Programs in one running container: prepare, start and wait, as any of its users."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple

from dgm.sandboxes.attach import ExecStream, attach, open_exec
from dgm.sandboxes.confined import Output
from dgm.sandboxes.engine_client import call_engine
from dgm.sandboxes.engine_connection import EngineConnection

_ASKS_AGAIN_S = 0.5
"""Maximum seconds between two questions about a program's end."""


class Program(NamedTuple):
    """A command, its user (``uid:gid``) and its whole environment beside the image's own."""

    argv: Sequence[str]
    user: str
    environment: Mapping[str, str]


class ContainerPrograms:
    """The programs of the container ``ident``."""

    def __init__(self, connection: EngineConnection, ident: str) -> None:
        self._connection = connection
        self._client = connection.client
        self._id = ident

    async def run(self, program: Program, stdin: bytes, output: Output, patience_s: float) -> int | None:
        """Return the exit code, or ``None`` if the program had to be left behind after ``patience_s`` seconds.

        Raises:
            Infrastructure: the engine failed.
        """
        ident = await self._prepare(program, fed=bool(stdin))
        try:
            async with asyncio.timeout(patience_s):
                await attach(self._connection, self._path(ident), stdin, output)
                return await self._wait(ident)
        except TimeoutError:
            return None

    @contextlib.asynccontextmanager
    async def open(self, program: Program) -> AsyncIterator[tuple[str, ExecStream]]:
        """Start a program, and yield its id and its stream; hang up when the context ends.

        Raises:
            Infrastructure: the engine failed.
        """
        ident = await self._prepare(program, fed=True)
        async with open_exec(self._connection, self._path(ident)) as stream:
            yield ident, stream

    async def exit_code(self, ident: str) -> int | None:
        """Return the exit code of a program; ``None`` while it runs, or while the engine has not noted how it ended.

        Raises:
            Infrastructure: the engine failed.
        """
        state = await call_engine("ask how a program ended", lambda: self._client.api.exec_inspect(ident))
        code = state["ExitCode"]
        return None if code is None else int(code)

    async def _prepare(self, program: Program, *, fed: bool) -> str:
        def prepare() -> str:
            made = self._client.api.exec_create(
                self._id,
                list(program.argv),
                stdin=fed,
                user=program.user,
                workdir="/",
                environment=dict(program.environment),
            )
            return str(made["Id"])

        return await call_engine("start a program", prepare)

    def _path(self, ident: str) -> str:
        return f"/v{self._client.api.api_version}/exec/{ident}/start"

    async def _wait(self, ident: str) -> int:
        """Wait for the exit code: a busy engine closes a program's output before it has noted how the program ended."""
        pause_s = 0.01
        while (code := await self.exit_code(ident)) is None:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _ASKS_AGAIN_S)
        return code
