"""Programs in one running container: prepare, start and wait, as any of its users."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple

from dgm.errors import Infrastructure
from dgm.sandboxes.attach import ExecStream, attach, open_exec
from dgm.sandboxes.confined import Output
from dgm.sandboxes.container_commands import CANNOT_START
from dgm.sandboxes.engine_client import call_engine
from dgm.sandboxes.engine_connection import EngineConnection
from dgm.sandboxes.engine_facts import EngineKind

_NOTED_WITHIN_S = 60.0
"""Maximum seconds in which an engine notes how a program ended, after the end of its output."""
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

        The program's first process has to hold its output open until it ends, as ``container_commands.bound_command``
        makes sure.

        Raises:
            Infrastructure: the engine failed, or the connection to it ended before the program did.
        """
        ident = await self._prepare(program, fed=bool(stdin))
        try:
            async with asyncio.timeout(patience_s):
                await attach(self._connection, self._path(ident), stdin, output)
                code = await self._wait(ident)
                if (
                    code in CANNOT_START
                    and not (output.kept or output.said)
                    and await self._never_started(ident)
                ):
                    raise Infrastructure("the engine did not start a program, and its reason was lost")
                return code
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

    async def _never_started(self, ident: str) -> bool:
        """Return whether Docker never had a process for a program; Podman does not tell after its end."""
        if self._connection.facts.kind is not EngineKind.DOCKER:
            return False
        state = await call_engine("ask whether a program began", lambda: self._client.api.exec_inspect(ident))
        return bool(state["Pid"] == 0)

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
        ends = time.monotonic() + _NOTED_WITHIN_S
        while (code := await self.exit_code(ident)) is None:
            if time.monotonic() > ends:
                raise Infrastructure("the connection to the engine ended before a program's output did")
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _ASKS_AGAIN_S)
        return code
