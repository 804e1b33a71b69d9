"""One engine of several: how many sandboxes fit there, whether it is left alone, and what is left to do on it."""

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping

from dgm.archive.live_nodes import NodeState
from dgm.errors import DgmError, Infrastructure
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_address import EngineAddress

log = logging.getLogger(__name__)

REST_S = 30.0
"""Seconds for which an engine that failed is left alone; doubled after each further failure without a success."""
LONGEST_REST_S = 300.0
Connect = Callable[[EngineAddress], DockerEngine]


class EngineMember:
    """One engine of several."""

    def __init__(
        self, address: EngineAddress, connect: Connect, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Connect to nothing yet.

        Args:
            address: of the engine.
            connect: returns the engine at an address; it blocks, and raises what keeps the engine from being used.
            clock: seconds.
        """
        self.address = address
        self.problem = "not connected yet"
        """Why no sandbox is opened there now; empty if it is used."""
        self._connect = connect
        self._clock = clock
        self._engine: DockerEngine | None = None
        self._cpus = 0
        self._taken: list[float] = []
        """Processors of each open sandbox."""
        self._opened = self._failures = self._images = 0
        self._failures_in_a_row = 0
        self._ready: set[str] = set()
        """Images that are known to be there."""
        self._making: dict[str, threading.Lock] = {}
        self._rests_until = -math.inf
        self._is_reached_for = False
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
    def is_used(self) -> bool:
        """True while sandboxes are opened there."""
        return not self.problem

    @property
    def is_due(self) -> bool:
        """True if it has to be tried again now."""
        return bool(self.problem) and not self._is_reached_for and self._rests_until <= self._clock()

    @property
    def load(self) -> float:
        """Share of its processors that open sandboxes have."""
        return sum(self._taken) / max(self._cpus, 1)

    def free_places(self, cpus: float) -> int:
        """Return how many sandboxes of so many processors fit there beside the open ones."""
        return max(0, math.floor((self._cpus - sum(self._taken)) / cpus + 1e-9))

    def reach(self) -> None:
        """Make sure that the engine answers, and remove what could not be removed before; blocks.

        Where it does not, it is left alone for a while.
        """
        self._is_reached_for = True
        try:
            if self._engine is None:
                self._engine = self._connect(self.address)
                self._cpus = self._engine.facts.cpus
            else:
                self._engine.check_answers()
            while self._owed:
                self._engine.remove_labelled(self._owed[-1])
                self._owed.pop()
        except DgmError as error:
            self.leave_alone(str(error))
            return
        finally:
            self._is_reached_for = False
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

    def owe(self, labels: Mapping[str, str]) -> None:
        """Remove sandboxes with these labels when the engine answers again."""
        self._owed.append(labels)

    @contextlib.contextmanager
    def hold_place(self, cpus: float) -> Iterator[None]:
        """Count a sandbox while the context lasts."""
        self._taken.append(cpus)
        try:
            yield
        finally:
            self._taken.remove(cpus)

    def note_opened(self) -> None:
        """Count a sandbox that was opened."""
        self._opened += 1
        self._failures_in_a_row = 0

    def forget_images(self, tags: Collection[str]) -> None:
        """Take note that images were removed there."""
        self._ready.difference_update(tags)

    def make_image(self, tag: str, make: Callable[[DockerEngine], object]) -> None:
        """Make an image, or do nothing where it is known to be there; blocks, one caller an image at a time.

        Args:
            tag: under which the engine has it afterwards.
            make: makes it if it is missing.

        Raises:
            UserError: it cannot be made there.
            Infrastructure: the engine failed.
        """
        with self._making.setdefault(tag, threading.Lock()):
            if tag in self._ready:
                return
            engine = self.engine
            was_there = engine.has_image(tag)
            make(engine)
            self._images += not was_there
            self._ready.add(tag)

    def state(self) -> NodeState:
        """Return the state of this moment."""
        return NodeState(
            self.address.url,
            self._cpus,
            len(self._taken),
            self._opened,
            self._failures,
            self._images,
            self.problem,
        )
