"""Several Docker engines as one: each sandbox is opened where the most places are free.

An engine that fails is left alone for a while; what ran there is the loop's to repeat. An image is made on an engine
before the first sandbox there.
"""

import asyncio
import contextlib
import logging
import math
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from operator import methodcaller

from dgm.archive.live import NodeState
from dgm.domain import Snapshot
from dgm.errors import DgmError, Infrastructure, UserError
from dgm.protocols import SandboxSpec
from dgm.sandboxes import recipes
from dgm.sandboxes.container import IN_ENGINE
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.docker_sandbox import DockerSandbox
from dgm.sandboxes.engine_address import EngineAddress
from dgm.sandboxes.image_store import ImagePlans, Step

log = logging.getLogger(__name__)

PLACE = "dgm.place"
"""Label with which one sandbox is found again on its engine."""
REST_S = 30.0
"""Seconds for which an engine that failed is left alone; doubled after each further failure without a success."""
LONGEST_REST_S = 300.0
Connect = Callable[[EngineAddress], DockerEngine]
"""Returns the engine at an address; it blocks, and raises what keeps the engine from being used."""


class EngineMember:
    """One engine of several: how many sandboxes fit there, whether it is left alone, and what is left to do on it."""

    def __init__(self, address: EngineAddress, connect: Connect, clock: Callable[[], float]) -> None:
        self.address = address
        self.problem = "not connected yet"
        """Why no sandbox is opened there now; empty if it is used."""
        self.busy: list[float] = []
        """Processors of each open sandbox."""
        self._connect, self._clock = connect, clock
        self._engine: DockerEngine | None = None
        self._cpus = self._opened = self._failures = self._images = self._failures_in_a_row = 0
        self._ready: set[str] = set()
        """Images that are known to be there."""
        self._rests_until = -math.inf
        self._unremoved: list[Mapping[str, str]] = []
        """Labels of sandboxes that could not be removed."""

    @property
    def engine(self) -> DockerEngine:
        """The engine."""
        if self._engine is None:
            raise Infrastructure(f"{self.address.url}: {self.problem}")
        return self._engine

    @property
    def is_due(self) -> bool:
        """True if it has to be tried again now."""
        return bool(self.problem) and self._rests_until <= self._clock()

    @property
    def state(self) -> NodeState:
        """The state of this moment."""
        counts = (self._cpus, len(self.busy), self._opened, self._failures, self._images)
        return NodeState(self.address.url, *counts, self.problem)

    def rank(self, cpus: float) -> tuple[int, float]:
        """Return how many sandboxes of so many processors fit there beside the open ones, and how idle it is."""
        used = sum(self.busy)
        return max(0, math.floor((self._cpus - used) / cpus + 1e-9)), -used / max(self._cpus, 1)

    def reach(self) -> None:
        """Make sure that the engine answers, and remove what could not be removed before; else leave it alone."""
        self._rests_until = math.inf
        try:
            if self._engine is None:
                self._engine = self._connect(self.address)
                self._cpus = self._engine.facts.cpus
            else:
                self._engine.check_answers()
            while self._unremoved:
                self._engine.remove_labelled(self._unremoved[-1])
                self._unremoved.pop()
        except DgmError as error:
            self.leave_alone(str(error))
            return
        if self.problem:
            log.info("the engine %s answers", self.address.url)
        self._ready.clear()
        self.problem = ""

    def leave_alone(self, why: str) -> None:
        """Open no sandbox there for a while."""
        self._failures += 1
        self._failures_in_a_row += 1
        rest_s = min(LONGEST_REST_S, REST_S * 2 ** (self._failures_in_a_row - 1))
        self._rests_until = self._clock() + rest_s
        self.problem = why
        log.warning("the engine %s failed; left alone for %.0f s: %s", self.address.url, rest_s, why)

    def remove_later(self, labels: Mapping[str, str]) -> None:
        """Remove sandboxes with these labels when the engine answers again."""
        self._unremoved.append(labels)

    def note_opened(self) -> None:
        """Count a sandbox that was opened."""
        self._opened += 1
        self._failures_in_a_row = 0

    def make_image(self, image: str, steps: Sequence[Step]) -> None:
        """Make the image of a sandbox's specification, unless it is known to be there; blocks.

        Raises:
            UserError: it cannot be made there; the message names the engine.
        """
        tag = image.removeprefix(IN_ENGINE) if image.startswith(IN_ENGINE) else recipes.load(image).tag
        if tag in self._ready:
            return
        was_there = self.engine.task_images.has(tag)
        try:
            if not image.startswith(IN_ENGINE):
                self.engine.build(image)
            for step in steps:
                step(self.engine.task_images)
        except UserError as error:
            raise UserError(f"{self.address.url}: {error}") from error
        self._images += not was_there
        self._ready.add(tag)


class GroupImages(ImagePlans):
    """The images of tasks and agents on several engines."""

    def __init__(self, members: Sequence[EngineMember]) -> None:
        super().__init__()
        self._members = members

    def check(self, image: str) -> None:
        """Check on every engine that answers that sandboxes can be made of an image."""
        super().check(image)
        for member in _used(self._members):
            member.make_image(f"{IN_ENGINE}{image}", self.steps(f"{IN_ENGINE}{image}"))

    def build_agent(self, dockerfile: str, source: Snapshot) -> str:
        """Return the tag of an agent's own image, which is built on the first engine that answers."""
        tag = _used(self._members)[0].engine.task_images.build_agent(dockerfile, source)
        self.plan(tag, methodcaller("build_agent", dockerfile, dict(source)))
        return tag

    def has_programs(self, reference: str) -> bool:
        """Return whether an agent's own image has the programs that sandboxes need."""
        return _used(self._members)[0].engine.task_images.has_programs(reference)


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
        try:
            self._warn_of_differences()
        except Infrastructure as error:
            raise UserError(f"no Docker sandbox: {error}") from error
        self.task_images = GroupImages(self._members)

    @property
    def machine(self) -> str:
        """The architecture of the sandboxes, as ``uname -m`` says it; where engines differ, of the first."""
        return min(self._members, key=lambda member: bool(member.problem)).engine.machine

    def nodes(self) -> Sequence[NodeState]:
        """Return the state of each engine."""
        return [member.state for member in self._members]

    def plan_instance(self, sources: Sequence[str], tag: str) -> None:
        """Note that ``tag`` is made of the first of ``sources`` that can be had, from its repository."""
        self.task_images.prepare(sources, tag)

    @contextlib.asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[DockerSandbox]:
        """Open a fresh sandbox on the engine with the most free places; one without any is not refused.

        Raises:
            UserError: as for one engine, or an image cannot be made there.
            Infrastructure: no engine answers, or the chosen one failed; the next sandbox is opened on another.
        """
        member = await self._find_member(spec)
        label = {PLACE: secrets.token_hex(8)}
        is_open = False
        member.busy.append(spec.cpus)
        try:
            for image in filter(None, (spec.image, spec.runtime)):
                await asyncio.to_thread(member.make_image, image, self.task_images.steps(image))
            async with member.engine.open(replace(spec, labels={**spec.labels, **label})) as sandbox:
                is_open = True
                member.note_opened()
                yield sandbox
        except Infrastructure as error:
            member.remove_later(label)
            if is_open:
                # Find out whether its engine still answers.
                if not member.problem:
                    await asyncio.to_thread(member.reach)
                raise
            member.leave_alone(str(error))
            raise Infrastructure(f"no sandbox on the engine {member.address.url}: {error}") from error
        finally:
            member.busy.remove(spec.cpus)

    async def reap(self, labels: Mapping[str, str]) -> int:
        """Remove every sandbox that carries all of ``labels``; return their number.

        Where an engine does not answer now, its sandboxes are removed when it does.
        """
        removed = 0
        for member in self._members:
            try:
                if not member.problem:
                    removed += await member.engine.reap(labels)
                    continue
            except Infrastructure as error:
                member.leave_alone(str(error))
            member.remove_later(labels)
        return removed

    async def _find_member(self, spec: SandboxSpec) -> EngineMember:
        """Return the engine for a sandbox."""
        due = next((member for member in self._members if member.is_due), None)
        if due is not None:
            await asyncio.to_thread(due.reach)
        if all(member.problem for member in self._members):
            # Nothing is lost by asking before an engine's rest is over.
            for member in self._members:
                await asyncio.to_thread(member.reach)
        return max(_used(self._members), key=lambda member: member.rank(spec.cpus))

    def _warn_of_differences(self) -> None:
        first, *others = _used(self._members)
        for member in others:
            if member.engine.machine != first.engine.machine:
                log.warning(
                    "the engine %s is for %s, and %s for %s: verdicts may differ",
                    member.address.url,
                    member.engine.machine,
                    first.address.url,
                    first.engine.machine,
                )


def _used(members: Sequence[EngineMember]) -> Sequence[EngineMember]:
    """Return the engines that answer."""
    used = [member for member in members if not member.problem]
    if not used:
        problems = "; ".join(f"{member.address.url}: {member.problem}" for member in members)
        raise Infrastructure(f"none of the engines answers: {problems}")
    return used
