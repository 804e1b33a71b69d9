"""Several Docker engines as one: each sandbox is opened where the most places are free.

An engine that fails is left alone for a while; what ran there is the loop's to repeat. An image is made on the first
engine that answers, and on each other one before the first sandbox there.
"""

import asyncio
import contextlib
import logging
import math
import secrets
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from dgm.archive.live_nodes import NodeState
from dgm.domain import Snapshot
from dgm.errors import DgmError, Infrastructure, UserError
from dgm.protocols import SandboxSpec
from dgm.sandboxes import recipes
from dgm.sandboxes.container import IN_ENGINE
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.docker_sandbox import DockerSandbox
from dgm.sandboxes.engine_address import EngineAddress
from dgm.sandboxes.image_store import BOUNDED, ImageStore, Progress

T = TypeVar("T")

log = logging.getLogger(__name__)

PLACE = "dgm.place"
"""Label with which one sandbox is found again on its engine."""
REST_S = 30.0
"""Seconds for which an engine that failed is left alone; doubled after each further failure without a success."""
LONGEST_REST_S = 300.0
Connect = Callable[[EngineAddress], DockerEngine]
"""Returns the engine at an address; it blocks, and raises what keeps the engine from being used."""
Make = Callable[[ImageStore], object]


class EngineMember:
    """One engine of several: how many sandboxes fit there, whether it is left alone, and what is left to do on it."""

    def __init__(self, address: EngineAddress, connect: Connect, clock: Callable[[], float]) -> None:
        self.address = address
        self.problem = "not connected yet"
        """Why no sandbox is opened there now; empty if it is used."""
        self.taken: list[float] = []
        """Processors of each open sandbox."""
        self._connect, self._clock = connect, clock
        self._engine: DockerEngine | None = None
        self._cpus = 0
        self._opened = self._failures = self._images = self._failures_in_a_row = 0
        self._ready: set[str] = set()
        """Images that are known to be there."""
        self._rests_until = -math.inf
        self._owed: list[Mapping[str, str]] = []
        """Labels of sandboxes that could not be removed."""

    @property
    def engine(self) -> DockerEngine:
        """The engine.

        Raises:
            Infrastructure: it was never reached.
        """
        if self._engine is None:
            raise Infrastructure(f"{self.address.url}: {self.problem}")
        return self._engine

    @property
    def is_due(self) -> bool:
        """True if it has to be tried again now."""
        return bool(self.problem) and self._rests_until <= self._clock()

    def rank(self, cpus: float) -> tuple[int, float]:
        """Return how many sandboxes of so many processors fit there beside the open ones, and how idle it is."""
        taken = sum(self.taken)
        return max(0, math.floor((self._cpus - taken) / cpus + 1e-9)), -taken / max(self._cpus, 1)

    def reach(self) -> None:
        """Make sure that the engine answers, and remove what could not be removed before; else leave it alone."""
        was_away, self._rests_until = bool(self.problem), math.inf
        try:
            if self._engine is None:
                self._engine = self._connect(self.address)
                self._cpus = self._engine.facts.cpus
            else:
                self._engine.check_answers()
            while self._owed:
                labels = self._owed[-1]
                self._engine.remove_labelled(labels)
                self._owed.remove(labels)
        except DgmError as error:
            self.leave_alone(str(error))
            return
        self._ready.clear()
        self.problem = ""
        if was_away:
            log.info("the engine %s answers", self.address.url)

    def leave_alone(self, why: str) -> None:
        """Open no sandbox there for a while."""
        self._failures += 1
        self._failures_in_a_row += 1
        rest_s = min(LONGEST_REST_S, REST_S * 2 ** (self._failures_in_a_row - 1))
        self._rests_until = self._clock() + rest_s
        self.problem = why
        log.warning("the engine %s failed; left alone for %.0f s: %s", self.address.url, rest_s, why)

    def owe(self, labels: Mapping[str, str]) -> None:
        """Remove sandboxes with these labels when the engine answers again."""
        self._owed.append(labels)

    def note_opened(self) -> None:
        """Count a sandbox that was opened."""
        self._opened += 1
        self._failures_in_a_row = 0

    def make_image(self, tag: str, make: Callable[[DockerEngine], T], *, again: bool = False) -> T | None:
        """Make an image, unless it is known to be there and not asked for ``again``; blocks.

        Raises:
            UserError: it cannot be made there; the message names the engine.
            Infrastructure: the engine failed.
        """
        if tag in self._ready and not again:
            return None
        was_there = self.engine.task_images.has(tag)
        try:
            made = make(self.engine)
        except UserError as error:
            raise UserError(f"{self.address.url}: {error}") from error
        self._images += not was_there
        self._ready.add(tag)
        return made

    def forget_images(self, tags: Collection[str]) -> None:
        """Take note that images may be missing there."""
        self._ready.difference_update(tags)

    def state(self) -> NodeState:
        """Return the state of this moment."""
        return NodeState(
            self.address.url,
            self._cpus,
            len(self.taken),
            self._opened,
            self._failures,
            self._images,
            self.problem,
        )


class GroupImages:
    """The images of several engines as those of one; each method raises as ``ImageStore``'s, naming the engine."""

    def __init__(self, members: Sequence[EngineMember]) -> None:
        self._members = members
        self._makers: dict[str, Make] = {}
        """Tag → how it is made on a further engine."""

    def build(self, context: Snapshot, tag: str, *, network: bool) -> None:
        """Build the context's ``Dockerfile`` as ``tag``."""
        self._make(tag, lambda store: store.build(context, tag, network=network))

    def build_agent(self, dockerfile: str, source: Snapshot) -> str:
        """Return the tag of an agent's own image; build it if it is missing."""
        tag = self._on_first(lambda member: member.engine.task_images.build_agent(dockerfile, source))
        self._makers[tag] = lambda store: store.build_agent(dockerfile, source)
        return tag

    def hold(self, image: str, folder: str, tag: str) -> None:
        """Make ``tag``, the image with its ``folder`` as a workspace."""
        make_source = self._makers.get(image)

        def make(store: ImageStore) -> None:
            if make_source is not None:
                make_source(store)
            store.hold(image, folder, tag)

        self._make(tag, make)

    def prepare(self, reference: str, tag: str) -> bool:
        """Make the start image of sandboxes; return whether it was made just now."""

        def make(store: ImageStore) -> bool:
            if not (store.has(tag) or store.has(reference)):
                store.pull(reference)
            return store.prepare(reference, tag)

        return bool(self._make(tag, make))

    def check(self, image: str) -> None:
        """Check on every engine that answers that sandboxes can be made of an image."""
        for member in used_members(self._members):
            member.make_image(image, lambda engine: engine.task_images.check(image), again=True)

    def has_programs(self, reference: str) -> bool:
        """Return whether an image has the programs that sandboxes need."""
        return self._on_first(lambda member: member.engine.task_images.has_programs(reference))

    def has(self, reference: str) -> bool:
        """Return whether the first engine that answers has an image of that name."""
        return self._on_first(lambda member: member.engine.task_images.has(reference))

    def offered(self, reference: str) -> bool:
        """Return whether a registry offers the image to the first engine that answers."""
        return self._on_first(lambda member: member.engine.task_images.offered(reference))

    def pull(self, reference: str, progress: Progress | None = None) -> None:
        """Pull an image to the first engine that answers."""
        self._on_first(lambda member: member.engine.task_images.pull(reference, progress))

    def disk_bytes(self) -> int:
        """Return the bytes of all tasks' images on the engine that has the most."""
        return max(member.engine.task_images.disk_bytes() for member in used_members(self._members))

    def collect(
        self, limit_bytes: int, spared: Collection[str] = (), kinds: Collection[str] = BOUNDED
    ) -> Sequence[str]:
        """Remove the longest unused on each engine until all fit into the limit; return the removed tags."""
        removed: set[str] = set()
        for member in used_members(self._members):
            tags = member.engine.task_images.collect(limit_bytes, spared, kinds)
            member.forget_images(tags)
            removed |= set(tags)
        return sorted(removed)

    def ensure_on(self, member: EngineMember, image: str) -> None:
        """Make sure that an engine has the image of a sandbox."""
        if not image.startswith(IN_ENGINE):
            member.make_image(recipes.load(image).tag, lambda engine: engine.build(image))
            return
        tag = image.removeprefix(IN_ENGINE)
        if tag in self._makers:
            member.make_image(tag, lambda engine: self._makers[tag](engine.task_images))

    def _make(self, tag: str, make: Callable[[ImageStore], T]) -> T | None:
        """Make an image on the first engine that answers, and remember how."""
        made = self._on_first(
            lambda member: member.make_image(tag, lambda engine: make(engine.task_images), again=True)
        )
        self._makers[tag] = make
        return made

    def _on_first(self, work: Callable[[EngineMember], T]) -> T:
        """Return the result of the first engine that does not fail."""
        while True:
            member = used_members(self._members)[0]
            try:
                return work(member)
            except Infrastructure as error:
                member.leave_alone(str(error))
                if all(each.problem for each in self._members):
                    raise Infrastructure(f"{member.address.url}: {error}") from error


def used_members(members: Sequence[EngineMember]) -> Sequence[EngineMember]:
    """Return the engines that answer.

    Raises:
        Infrastructure: there is none.
    """
    used = [member for member in members if not member.problem]
    if not used:
        problems = "; ".join(f"{member.address.url}: {member.problem}" for member in members)
        raise Infrastructure(f"none of the engines answers: {problems}")
    return used


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
        if all(member.problem for member in self._members):
            problems = "; ".join(f"{member.address.url}: {member.problem}" for member in self._members)
            raise UserError(f"no Docker sandbox: {problems}")
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
        return min(self._members, key=lambda member: bool(member.problem)).engine.machine

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
        member = await self._find_member(spec)
        label = {PLACE: secrets.token_hex(8)}
        is_open = False
        member.taken.append(spec.cpus)
        try:
            for image in filter(None, (spec.image, spec.runtime)):
                await asyncio.to_thread(self.task_images.ensure_on, member, image)
            async with member.engine.open(replace(spec, labels={**spec.labels, **label})) as sandbox:
                is_open = True
                member.note_opened()
                yield sandbox
        except Infrastructure as error:
            member.owe(label)
            if is_open:
                # Find out whether its engine still answers.
                if not member.problem:
                    await asyncio.to_thread(member.reach)
                raise
            member.leave_alone(str(error))
            raise Infrastructure(f"no sandbox on the engine {member.address.url}: {error}") from error
        finally:
            member.taken.remove(spec.cpus)

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
            member.owe(labels)
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
        return max(used_members(self._members), key=lambda member: member.rank(spec.cpus))

    def _warn_of_differences(self) -> None:
        first, *others = used = used_members(self._members)
        for member in others:
            if member.engine.machine != first.engine.machine:
                log.warning(
                    "the engine %s is for %s, and %s for %s: verdicts may differ",
                    member.address.url,
                    member.engine.machine,
                    first.address.url,
                    first.engine.machine,
                )
        known: dict[str, str] = {}
        for member in used:
            url, ident = member.address.url, member.engine.facts.ident
            if ident and known.setdefault(ident, url) != url:
                log.warning(
                    "%s and %s are the same engine: its processors are counted twice", known[ident], url
                )
