"""Several Docker engines as one: each sandbox is opened where the most places are free.

An engine that fails is left alone for a while; what ran there is the loop's to repeat. Images are made on each
(``group_images``).
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from dgm.archive.live_nodes import NodeState
from dgm.errors import Infrastructure, UserError
from dgm.protocols import SandboxSpec
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.docker_sandbox import DockerSandbox
from dgm.sandboxes.engine_address import EngineAddress
from dgm.sandboxes.engine_member import Connect, EngineMember
from dgm.sandboxes.group_images import GroupImages

log = logging.getLogger(__name__)

PLACE = "dgm.place"
"""Label with which one sandbox is found again on its engine."""


class EngineGroup:
    """An engine that opens sandboxes on several Docker engines."""

    name = "docker"

    def __init__(
        self,
        addresses: Sequence[EngineAddress],
        connect: Connect = DockerEngine,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Connect to all engines; those that do not answer now are tried again later. Blocks.

        Args:
            addresses: of the engines, the preferred ones first.
            connect: returns the engine at an address.
            clock: seconds.

        Raises:
            UserError: no engine answers.
        """
        self._members = [EngineMember(address, connect, clock) for address in addresses]
        with ThreadPoolExecutor(len(self._members)) as threads:
            list(threads.map(EngineMember.reach, self._members))
        if not self._used:
            raise UserError(f"no Docker sandbox: {self._problems}")
        self._warn_of_differences()
        self.task_images = self.instances = GroupImages(self._members)
        """The images of tasks on all engines."""

    @property
    def addresses(self) -> Sequence[EngineAddress]:
        """The addresses of all engines."""
        return [member.address for member in self._members]

    @property
    def machine(self) -> str:
        """The architecture of the sandboxes, as ``uname -m`` says it; where engines differ, of the first."""
        return self._used[0].engine.machine if self._used else self._members[0].engine.machine

    def nodes(self) -> Sequence[NodeState]:
        """Return the state of each engine."""
        return [member.state() for member in self._members]

    @contextlib.asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[DockerSandbox]:
        """Open a fresh sandbox on the engine with the most free places; one without any is not refused.

        Raises:
            UserError: as for one engine.
            Infrastructure: no engine answers, or the chosen one failed; the next sandbox is opened on another.
        """
        member = await self._place(spec)
        label = {PLACE: secrets.token_hex(8)}
        is_open = False
        with member.hold_place(spec.cpus):
            try:
                await asyncio.to_thread(self.task_images.ensure_on, member, spec.image)
                placed = replace(spec, labels={**spec.labels, **label})
                async with member.engine.open(placed) as sandbox:
                    is_open = True
                    member.note_opened()
                    yield sandbox
            except Infrastructure as error:
                if is_open:
                    await self._look_at(member, label)
                    raise
                member.owe(label)
                member.leave_alone(str(error))
                raise Infrastructure(f"no sandbox on the engine {member.address.url}: {error}") from error

    async def reap(self, labels: Mapping[str, str]) -> int:
        """Remove every sandbox that carries all of ``labels``; return their number.

        Where an engine does not answer now, its sandboxes are removed when it does.
        """
        removed = 0
        for member in self._members:
            if not member.is_used:
                member.owe(labels)
                continue
            try:
                removed += await member.engine.reap(labels)
            except Infrastructure as error:
                member.owe(labels)
                member.leave_alone(str(error))
        return removed

    @property
    def _used(self) -> Sequence[EngineMember]:
        return [member for member in self._members if member.is_used]

    @property
    def _problems(self) -> str:
        return "; ".join(f"{member.address.url}: {member.problem}" for member in self._members)

    async def _place(self, spec: SandboxSpec) -> EngineMember:
        """Return the engine for a sandbox."""
        due = next((member for member in self._members if member.is_due), None)
        if due is not None:
            await self._reach(due)
        if not self._used:
            # Nothing is lost by asking before an engine's rest is over.
            for member in self._members:
                await self._reach(member)
        if not self._used:
            raise Infrastructure(f"none of the engines answers: {self._problems}")
        return max(self._used, key=lambda member: (member.free_places(spec.cpus), -member.load))

    async def _look_at(self, member: EngineMember, label: Mapping[str, str]) -> None:
        """After a failure in an open sandbox, find out whether its engine still answers."""
        member.owe(label)
        if member.is_used:
            await self._reach(member)

    async def _reach(self, member: EngineMember) -> None:
        was_away = not member.is_used
        await asyncio.to_thread(member.reach)
        if was_away and member.is_used:
            log.info("the engine %s answers again", member.address.url)

    def _warn_of_differences(self) -> None:
        known: dict[str, EngineMember] = {}
        for member in self._used:
            facts = member.engine.facts
            if (other := known.setdefault(facts.ident, member)) is not member and facts.ident:
                log.warning(
                    "%s and %s are the same engine: its processors are counted twice",
                    other.address.url,
                    member.address.url,
                )
            if facts.machine != self.machine:
                log.warning(
                    "the engine %s is for %s, and %s for %s: verdicts may differ",
                    member.address.url,
                    facts.machine,
                    self._used[0].address.url,
                    self.machine,
                )
