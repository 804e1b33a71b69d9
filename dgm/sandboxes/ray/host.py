"""One sandbox at a time on a node, behind records; a program of its own on the node runs this."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from dgm.errors import Infrastructure
from dgm.protocols import Mount, Sandbox, SandboxEngine, SandboxSpec, SharedSocket
from dgm.sandboxes.ray.keeper import open_node_engine
from dgm.sandboxes.ray.wire import (
    Command,
    HostedSpec,
    Record,
    answers,
    decode,
    decode_files,
    encode,
    encode_files,
)


class SandboxHost:
    """The node's end of a sandbox; the outputs are cut here, while they stream. Every method answers with a record."""

    def __init__(self) -> None:
        self._engines: dict[str, SandboxEngine] = {}
        self._opened: AsyncExitStack | None = None
        self._sandbox: Sandbox | None = None

    @answers
    async def open(self, node_engine: str, record: Record) -> Record:
        """Open a sandbox by the node's own engine.

        Raises:
            Infrastructure: one is open already, or the engine failed.
            UserError: the engine has no such image, or is not available.
        """
        if self._opened is not None:
            raise Infrastructure("the sandbox before this one was never closed")
        spec = decode(record, HostedSpec)
        if node_engine not in self._engines:
            self._engines[node_engine] = await asyncio.to_thread(open_node_engine, node_engine)
        engine = self._engines[node_engine]
        opened = self._opened = AsyncExitStack()
        try:
            self._sandbox = await opened.enter_async_context(engine.open(_local_spec(spec)))
        except BaseException:
            self._opened = None
            raise
        return encode(engine.name)

    @answers
    async def exec(self, record: Record) -> Record:
        """Run a command; return ``Completed``."""
        command = decode(record, Command)
        done = await self._present().exec(
            command.argv,
            timeout_s=command.timeout_s,
            cwd=command.cwd,
            env=command.env,
            stdin=command.stdin,
            output_limit=command.output_limit,
            processor_s=command.processor_s,
        )
        return encode(done)

    @answers
    async def put(self, files: Record, target: str) -> Record:
        """Write files."""
        await self._present().put(decode_files(files), target)
        return encode(target)

    @answers
    async def get(self, source: str, limit_bytes: int, exclude: tuple[str, ...]) -> Record:
        """Return a folder as files."""
        found = await self._present().get(source, limit_bytes=limit_bytes, exclude=exclude)
        return encode_files(found)

    @answers
    async def halt(self) -> Record:
        """End all programs."""
        await self._present().halt()
        return encode("")

    @answers
    async def close(self) -> Record:
        """Remove the sandbox, if one is open."""
        opened, self._opened, self._sandbox = self._opened, None, None
        if opened is not None:
            await opened.aclose()
        return encode("")

    def _present(self) -> Sandbox:
        if self._sandbox is None:
            raise Infrastructure("the sandbox is closed")
        return self._sandbox


def _local_spec(spec: HostedSpec) -> SandboxSpec:
    return SandboxSpec(
        image=spec.image,
        labels=spec.labels,
        mounts=[Mount(Path(source), target, digest) for source, target, digest in spec.folders],
        socket=SharedSocket(Path(spec.socket[0]), spec.socket[1]) if spec.socket else None,
        filled=spec.filled,
        cpus=spec.cpus,
        memory_mb=spec.memory_mb,
        pids=spec.pids,
        disk_mb=spec.disk_mb,
        lifetime_s=spec.lifetime_s,
    )
