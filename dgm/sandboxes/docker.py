"""The Docker engine: a hardened, network-less container per sandbox, and commands through the engine's exec.

Nothing of the host is mounted, for the engine may see other files: files go in as tar streams, and a shared socket is
reached through a relay (``container_relay``).

The docker library makes and removes containers; ``attach`` communicates with programs. The library's calls block, so
each runs in a thread.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dgm.domain import Entry, Snapshot
from dgm.errors import AgentFault, Infrastructure
from dgm.protocols import Completed, SandboxSpec, SharedSocket
from dgm.sandboxes import container, image_users, images, recipes, shown_folders, transfer
from dgm.sandboxes.confined import Output
from dgm.sandboxes.container import IN_ENGINE, ContainerBase
from dgm.sandboxes.container_commands import OOM_COUNTERS, bound_command, count_memory_kills, lacks_processes
from dgm.sandboxes.container_programs import ContainerPrograms, Program
from dgm.sandboxes.container_relay import ContainerRelay, end_with, open_relay
from dgm.sandboxes.engine_address import EngineAddress
from dgm.sandboxes.engine_client import (
    call_engine,
    convert_engine_errors,
    remove_container,
)
from dgm.sandboxes.engine_connection import EngineConnection
from dgm.sandboxes.engine_facts import EngineFacts
from dgm.sandboxes.instance_images import InstanceStore
from dgm.sandboxes.processor import (
    SIGNALLED,
    TIMED_OUT,
    ProcessorMeter,
    limit_command,
    out_of_processor,
    processor_of,
)
from dgm.sandboxes.shown_folders import ShownFolder
from dgm.sandboxes.task_images import TaskImageStore
from dgm.sandboxes.threads import finish_work, make_or_dispose

if TYPE_CHECKING:
    from docker import DockerClient

log = logging.getLogger(__name__)

_ENVIRONMENT = {
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
}
_KILLED = 137
_GRACE_S = 15.0
"""Seconds that a program may take to end after its time, before the container is ended."""
_KILLING_TRIES = 8
"""Tries to kill: a fork bomb may hold every process slot, and the kill step needs a free one."""
_SETTLES_S = 1.0
_COPY_S = 300.0
"""Maximum seconds for the copy of a folder of the image, from a disk that may be cold."""


class DockerEngine:
    """An engine that opens sandboxes with Docker, on this machine or another."""

    name = "docker"

    def __init__(self, address: EngineAddress | None = None) -> None:
        """Connect to the engine at ``address``; by default, the one that the environment names.

        Raises:
            UserError: the address is no good.
            Infrastructure: no engine answers there.
        """
        self._connection = EngineConnection(address)
        self._client = self._connection.client
        self._images: set[str] = set()
        self._instances = InstanceStore(self._client)
        self._task_images = TaskImageStore(self._client)

    def close(self) -> None:
        """End the connection; it also ends with this object."""
        self._connection.close()

    @property
    def client(self) -> "DockerClient":
        """The connection, for code that builds images."""
        return self._client

    @property
    def instances(self) -> InstanceStore:
        """Images for benchmarks whose repositories are inside images."""
        return self._instances

    @property
    def task_images(self) -> TaskImageStore:
        """Images that tasks of suites bring or name."""
        return self._task_images

    @property
    def facts(self) -> EngineFacts:
        """The engine as it describes itself; the first access blocks."""
        return self._connection.facts

    @property
    def machine(self) -> str:
        """The architecture of its sandboxes, as ``uname -m`` says it."""
        return self.facts.machine

    @property
    def address(self) -> EngineAddress:
        """The address at which it answers."""
        return self._connection.address

    def build(self, recipe: str) -> str:
        """Return the tag of the recipe's image; build it if there is none, which blocks for a minute or so.

        Raises:
            UserError: there is no such recipe, or its image can be made neither from a registry nor here.
            Infrastructure: the build failed.
        """
        with convert_engine_errors("build an image"):
            return images.ensure(self._client, recipes.load(recipe))

    def images(self) -> list[str]:
        """Return the tags of all images that were built from recipes."""
        with convert_engine_errors("list images"):
            return images.list_images(self._client)

    def collect(self) -> list[str]:
        """Remove images that no present recipe asks for, and what belonged to images; return the images' tags."""
        with convert_engine_errors("remove images"):
            removed = images.collect(self._client)
            image_users.collect(self._client)
        return removed

    @contextlib.asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator["DockerSandbox"]:
        """Open a fresh container, and remove it when the context ends. The image of a recipe is built if necessary.

        Raises:
            UserError: there is no such recipe, or its image can be made neither from a registry nor here.
            Infrastructure: the engine failed, or has no such image.
        """
        shown = await asyncio.to_thread(shown_folders.pack_folders, spec.mounts)
        sandbox = await make_or_dispose(lambda: self._make(spec, shown), DockerSandbox.close)
        try:
            for folder in shown:
                await sandbox.show(folder)
            for target, source in spec.filled.items():
                await sandbox.copy(source, target)
            async with sandbox.relaying(spec.socket):
                yield sandbox
        finally:
            await finish_work(sandbox.close)

    async def reap(self, labels: Mapping[str, str]) -> int:
        """Remove every sandbox of this engine that carries all of ``labels``; return their number."""
        return await asyncio.to_thread(self._reap, labels)

    def _make(self, spec: SandboxSpec, shown: Sequence[ShownFolder]) -> "DockerSandbox":
        self._connection.ensure()
        with convert_engine_errors("start a sandbox"):
            base = self._base(spec.image)
            ident, uid = container.create(self._connection, spec, base, shown)
            sandbox = DockerSandbox(self._connection, ident, base, uid)
            try:
                container.start(self._connection, ident, container.owners(spec, base, uid, shown))
            except BaseException:
                sandbox.close()
                raise
        return sandbox

    def _base(self, image: str) -> ContainerBase:
        """Return the base of a container; build the image of a recipe if necessary."""
        if image.startswith(IN_ENGINE):
            return container.find_base(self._client, image.removeprefix(IN_ENGINE))
        recipe = recipes.load(image)
        if recipe.tag not in self._images:
            images.ensure(self._client, recipe)
            self._images.add(recipe.tag)
        return ContainerBase(recipe.tag, recipe.name, recipe.user)

    def _reap(self, labels: Mapping[str, str]) -> int:
        with convert_engine_errors("look for left sandboxes"):
            wanted = [container.LABEL, *(f"{key}={value}" for key, value in labels.items())]
            found = self._client.api.containers(all=True, filters={"label": wanted})
            for each in found:
                log.info("removing the container %s", each["Id"][:12])
                remove_container(self._client, each["Id"])
        return len(found)


class DockerSandbox:
    """One running container."""

    def __init__(self, connection: EngineConnection, ident: str, base: ContainerBase, uid: int) -> None:
        self._client = connection.client
        self._id = ident
        self._programs = ContainerPrograms(connection, ident)
        self._user = f"{uid}:{base.group}"
        self._keeper = f"{base.keeper}:{base.keeper}"
        self._environment = {**_ENVIRONMENT, "PATH": base.search_path}
        self._relay: ContainerRelay | None = None
        self._memory_kills = 0
        self._closed = False

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
        """Run a command to its end, or kill all of it; its background processes run on.

        Raises:
            AgentFault: stage ``processes``: so many run in the sandbox that no further one can be started.
            Infrastructure: the sandbox is closed or its lifetime is over, or the engine failed.
        """
        started = time.monotonic()
        bounded = bound_command(limit_command(argv, processor_s), cwd, timeout_s, fed=bool(stdin))
        meter = ProcessorMeter(processor_s, self._processor_s)
        await meter.begin()
        for attempt in range(_KILLING_TRIES):
            output = Output(output_limit)
            async with meter.watching(self.halt), end_with(self._relay, self.halt):
                exit_code = await self._run(bounded, env or {}, stdin, output, timeout_s + _GRACE_S)
            if not lacks_processes(exit_code, output):
                break
            log.warning("the sandbox %s is full of processes: killing them", self._id[:12])
            await asyncio.sleep(0.1 * attempt)
            await self._kill_strays()
        else:
            raise AgentFault("processes", "so many processes run in the sandbox that no other can be started")
        seconds = time.monotonic() - started
        used_s = await meter.used_s()
        if self._relay is not None and await self._relay.was_starved(self._memory_was_short):
            self._relay = None
            done = Completed(
                _KILLED, bytes(output.kept), output.truncated, out_of_memory=True, seconds=seconds
            )
            return replace(done, processor_s=used_s)
        if meter.over or (processor_s is not None and exit_code == SIGNALLED):
            await self._kill_strays()
            return out_of_processor(output, seconds, used_s)
        kept = output.result(exit_code)
        late = seconds >= timeout_s and exit_code in (_KILLED, TIMED_OUT)
        if exit_code is None or late:
            await self._kill_strays()
        # A busy engine takes its time to start a program: one that died of memory did not run out of time.
        if exit_code is None or (late and not (exit_code == _KILLED and await self._memory_was_short())):
            ended = Completed(TIMED_OUT, kept, output.truncated, timed_out=True, seconds=seconds)
            return replace(ended, processor_s=used_s)
        out_of_memory = late or (exit_code == _KILLED and await self._killed_for_memory())
        done = Completed(exit_code, kept, output.truncated, out_of_memory=out_of_memory, seconds=seconds)
        return replace(done, processor_s=used_s)

    async def put(self, files: Snapshot, target: str) -> None:
        """Write the files below ``target``, as the sandbox's user."""
        await transfer.put(self, files, target)

    async def get(self, source: str, *, limit_bytes: int, exclude: Sequence[str] = ()) -> dict[str, Entry]:
        """Return the contents of a folder; end all programs in the sandbox first, so that none changes it meanwhile."""
        await self._kill_strays()
        return await transfer.get(self, source, limit_bytes=limit_bytes, exclude=exclude)

    async def halt(self) -> None:
        """End all programs in the sandbox; its files stay.

        Raises:
            AgentFault: stage ``processes``: so many run that they cannot be ended.
            Infrastructure: the engine failed.
        """
        crowded = False
        for attempt in range(_KILLING_TRIES):
            # The kill fails if it found nothing to kill.
            ended = await self._kill_strays()
            if ended in (0, 1):
                return
            crowded = crowded or ended is not None
            await asyncio.sleep(0.1 * attempt)
        if not crowded:
            raise Infrastructure(
                f"the engine did not end the programs of a sandbox in {_KILLING_TRIES} tries"
            )
        raise AgentFault("processes", "so many processes run in the sandbox that they cannot be ended")

    async def copy(self, source: str, target: str) -> None:
        """Copy a folder of the image, as the sandbox's user, who owns the copy.

        Raises:
            Infrastructure: there is no such folder, or it does not fit.
        """
        done = await self.exec(["cp", "-a", "--", f"{source}/.", target], timeout_s=_COPY_S, cwd="/")
        if done.exit_code:
            first = done.output.decode("utf-8", "replace").strip().split("\n", 1)[0]
            said = first or f"exit {done.exit_code}"
            raise Infrastructure(f"the image's folder {source} cannot be copied to {target}: {said}")

    async def show(self, folder: ShownFolder) -> None:
        """Unpack a folder that the sandbox's user can only read.

        Raises:
            Infrastructure: it cannot be unpacked.
        """
        await shown_folders.unpack(self._programs, self._keeper, self._environment["PATH"], folder)

    @contextlib.asynccontextmanager
    async def relaying(self, shared: SharedSocket | None) -> AsyncIterator[None]:
        """Offer a socket of the host, if there is one, while the context lasts.

        Raises:
            Infrastructure: the relay does not start.
        """
        path = self._environment["PATH"]
        async with open_relay(self._programs, self._keeper, path, shared) as self._relay:
            yield

    def close(self) -> None:
        """Remove the container; the second call does nothing."""
        if self._closed:
            return
        self._closed = True
        with convert_engine_errors("remove a sandbox"):
            remove_container(self._client, self._id)

    async def _run(
        self, argv: Sequence[str], env: Mapping[str, str], stdin: bytes, output: Output, patience_s: float
    ) -> int | None:
        """Return the exit code, or ``None`` if the program had to be left behind."""
        if self._closed:
            raise Infrastructure("the sandbox is closed")
        program = Program(argv, self._user, {**self._environment, **env})
        return await self._programs.run(program, stdin, output, patience_s)

    async def _processor_s(self) -> float | None:
        """Return the container's processor seconds so far, by the engine's account."""
        said: Mapping[str, Any] = await call_engine(
            "ask what a sandbox has taken",
            lambda: self._client.api.stats(self._id, stream=False, one_shot=True),
        )
        return processor_of(said)

    async def _kill_strays(self) -> int | None:
        """Kill all processes of the sandbox's user: a program may have moved out of reach of its timeout."""
        return await self._run(["sh", "-c", "kill -9 -1"], {}, b"", Output(1000), _GRACE_S)

    async def _killed_for_memory(self) -> bool:
        """Return whether memory ran out, by the container's counters; the engine's flag covers its main process only.

        Raises:
            Infrastructure: the program was killed because the container is going away.
        """
        short = await self._memory_was_short()
        if short is not None:
            return short
        await asyncio.sleep(_SETTLES_S)
        state = await call_engine("look at a sandbox", lambda: self._client.api.inspect_container(self._id))
        if not state["State"]["Running"]:
            raise Infrastructure("the sandbox ended while a program ran in it")
        return True

    async def _memory_was_short(self) -> bool | None:
        """Return whether programs were killed for memory since the last call; None if that cannot be read."""
        output = Output(10_000)
        if await self._run(["cat", *OOM_COUNTERS], {}, b"", output, _GRACE_S) not in (0, 1):
            return None
        kills = count_memory_kills(bytes(output.kept))
        before, self._memory_kills = self._memory_kills, kills
        return kills > before
