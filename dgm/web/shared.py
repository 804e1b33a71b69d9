"""A run that all viewers share: two threads read it, and what they computed once serves everyone.

A result is computed again only after new events, and at most for a tenth of the time: the longer it takes, the longer
it is served. So neither many viewers nor many events can keep a thread busy. What takes seconds in a long run, such as
finding the best agent, has a thread and an open run of its own; the tree and the news never wait for it.
"""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from dgm.archive.log import FILE
from dgm.archive.run import LIVING, PAUSE_EVENTS, Run, state
from dgm.domain import AgentId
from dgm.errors import Infrastructure, UserError
from dgm.render.safe import one_line
from dgm.views.run import RunReader, RunView

T = TypeVar("T")
FOLLOW_S = 0.25
"""Seconds between two looks at the log."""
FRESH_S = 5.0
"""Seconds after which ages and durations of a living run are computed again, without a new event."""
SHARE = 10
"""A result that took t seconds is served for at least this many times t."""
LARGEST = 2**53
"""Numbers in addresses are smaller, so that scripts and SQLite can hold them."""
BEST_S = 0.3
"""Maximum seconds that a page waits for the best agent of a run when none is known yet."""
ENTRIES, BYTES = 200, 64_000_000
"""Maximum number of results that are kept of a run, and of bytes in them."""


class News(NamedTuple):
    """The cheap facts of a run at one moment; they are sent to every viewer."""

    seq: int
    """Number of the newest event."""
    state: str
    living: bool
    """True while a process writes the run."""
    agents: int
    evaluations: int
    running: int
    """Actions under way."""
    waiting: int
    """Children that wait for approval."""
    usd: float
    tokens: int
    best: int | None
    """The recommended agent; in a long run, that of a moment ago."""


class _Result(NamedTuple):
    value: Any
    seq: int
    """Number of the last event in it, and in all results that it was computed from."""
    state: str
    at: float
    took_s: float
    size: int


class RunSource:
    """A run as a thread of a ``SharedRun`` sees it; pages are computed from it."""

    def __init__(
        self,
        reader: RunReader,
        find_best: Callable[[], AgentId | None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read a run.

        Args:
            reader: the run.
            find_best: returns the recommended agent without delay; None: it is computed here.
            clock: gives seconds.
        """
        self.reader = reader
        self._find_best = find_best
        self._clock = clock
        self._state = state(reader.run)
        self._results: OrderedDict[str, _Result] = OrderedDict()
        self._last_seq = 0
        self._under_way: list[int] = []
        """For each result that is being computed, the last event in it so far."""

    @property
    def run(self) -> Run:
        """The run, as far as its log is folded."""
        return self.reader.run

    def follow(self) -> None:
        """Read what was appended."""
        # Ask first, so that the last events of a writer are not missed.
        self._state = state(self.run)
        self.reader.follow()
        if self.run.tree.stop_reason:
            self._state = state(self.run)

    def news(self, best: AgentId | None = None) -> News:
        """Return the cheap facts of the run as far as it was read, with the best agent where that is known."""
        tree = self.run.tree
        return News(
            tree.seq,
            self._state,
            self._state in LIVING,
            len(tree.agents),
            tree.evaluations,
            len(tree.pending),
            len(tree.waiting),
            tree.spend.usd,
            tree.spend.tokens,
            best,
        )

    def memo(self, key: str, compute: Callable[[], T]) -> T:
        """Return a result that was computed before and is fresh enough, or compute it."""
        result = self._results.get(key)
        if result is None or not self._is_fresh(result):
            result = self._results[key] = self._compute(compute)
        self._results.move_to_end(key)
        if self._under_way:
            self._under_way[-1] = min(self._under_way[-1], result.seq)
        self._last_seq = result.seq
        size = sum(stored.size for stored in self._results.values())
        while len(self._results) > ENTRIES or (size > BYTES and len(self._results) > 1):
            size -= self._results.popitem(last=False)[1].size
        value: T = result.value
        return value

    def _compute(self, compute: Callable[[], T]) -> _Result:
        started = self._clock()
        self._under_way.append(self.run.tree.seq)
        try:
            value = compute()
        finally:
            seq = self._under_way.pop()
        size = len(value) if isinstance(value, bytes) else 0
        now = self._clock()
        return _Result(value, seq, self._state, now, now - started, size)

    @property
    def seq(self) -> int:
        """Number of the last event in what is being computed, or in what was computed last."""
        return self._under_way[-1] if self._under_way else self._last_seq

    def peek(self, key: str, state: str | None) -> tuple[int, Any] | None:
        """Return a result that need not be computed again yet, in any thread; ``state`` is the newest that is known."""
        result = self._results.get(key)
        return (result.seq, result.value) if result and self._is_young(result, state or self._state) else None

    def _is_young(self, result: _Result, state: str) -> bool:
        return result.state == state and self._clock() < result.at + max(FOLLOW_S, SHARE * result.took_s)

    def _is_fresh(self, result: _Result) -> bool:
        same = (result.seq, result.state) == (self.run.tree.seq, self._state)
        still = self._state not in LIVING or self._clock() < result.at + FRESH_S
        return self._is_young(result, self._state) or (same and still)

    def view(self) -> RunView:
        """Return the run at this moment; in a long run, of a moment ago."""
        return self.memo("view", self.reader.view)

    def best(self) -> AgentId | None:
        """Return the recommended agent; in a long run, that of a moment ago, or None until it is found."""
        return self._find_best() if self._find_best else self.memo("best", self.reader.best)


class _Worker:
    """One thread with an open run of its own."""

    def __init__(self, folder: Path, find_best: Callable[[], AgentId | None] | None = None) -> None:
        self.events_read = 0
        self.source: RunSource | None = None
        self._folder, self._find_best = folder, find_best
        self._closing = False
        self._followed_at = float("-inf")
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # Nothing waits for it at the end of the program: the best agent of a huge run takes minutes.
        threading.Thread(target=self._work, name="run-reader", daemon=True).start()

    def submit(self, work: Callable[[RunSource], T]) -> Future[T]:
        future: Future[T] = Future()

        def answer() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work(self._read()))
                except Exception as error:  # noqa: BLE001  (it is raised where the answer is awaited)
                    future.set_exception(error)

        if self._closing:
            future.set_exception(Infrastructure("the run is being closed"))
        else:
            self._jobs.put(answer)
        return future

    def close(self) -> None:
        self._closing = True
        self._jobs.put(None)

    def _work(self) -> None:
        while job := self._jobs.get():
            job()
        if self.source is not None:
            self.source.run.close()

    def _read(self) -> RunSource:
        """Return the run, opened if it is not and followed if that was some time ago."""
        if self.source is None:
            reader = RunReader(Run.open(self._folder, pause=self._pause))
            self.source = RunSource(reader, self._find_best)
        if time.monotonic() >= self._followed_at + FOLLOW_S:
            self.source.follow()
            self._followed_at = time.monotonic()
        return self.source

    def _pause(self) -> None:
        self.events_read += PAUSE_EVENTS
        if self._closing:
            raise Infrastructure("the server ends")


def parse_number(text: str, name: str) -> int:
    """Return a number of an address.

    Raises:
        UserError: it is none.
    """
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else LARGEST
    if number >= LARGEST:
        raise UserError(f"{name} {one_line(text, 40)}: not a number that dgm gives")
    return number


class SharedRun:
    """A run that is open for all viewers. ``close`` ends its threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.used_at = time.monotonic()
        self.listeners = 0
        self.news: News | None = None
        self.best: AgentId | None = None
        """The recommended agent; None until it is found."""
        self._inode = _read_inode(folder)
        self._quick, self._slow = _Worker(folder, self._find_best), _Worker(folder)
        self._finding: Future[None] | None = None
        self._changed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    @property
    def is_outdated(self) -> bool:
        """True if the run was removed or replaced."""
        return _read_inode(self.folder) != self._inode

    def count_events_to_open(self, *, slow: bool) -> int | None:
        """Return how many events were read so far while the run is opened; None once it is open."""
        worker = self._slow if slow else self._quick
        return worker.events_read if worker.source is None else None

    async def compute(self, key: str, work: Callable[[RunSource], T], *, slow: bool = False) -> tuple[int, T]:
        """Return a result and the number of the last event in it.

        Args:
            key: names the result: address and query of a page.
            work: computes it, in a thread of the run.
            slow: whether that takes long in a long run.

        Raises:
            UserError: there is no such thing in the run.
            ArchiveCorrupt: a part of the run is damaged.
            Infrastructure: the run cannot be read now.
        """
        self._check()
        worker = self._slow if slow else self._quick
        known_state = self.news.state if self.news else None
        if worker.source and (known := worker.source.peek(key, known_state)):
            return known

        def answer(source: RunSource) -> tuple[int, T]:
            value = source.memo(key, lambda: work(source))
            return source.seq, value

        return await asyncio.wrap_future(worker.submit(answer))

    async def next_news(self, last: News | None) -> News:
        """Return the newest facts as soon as they are not ``last``; the newest only, however many there were.

        Raises:
            DgmError: the run cannot be read any more.
        """
        self.listeners += 1
        try:
            while self.news is None or self.news == last:
                if self._following is None or self._following.done():
                    self._following = asyncio.create_task(self._follow())
                    self._following.add_done_callback(lambda task: task.cancelled() or task.exception())
                changed = asyncio.create_task(self._changed.wait())
                try:
                    await asyncio.wait((changed, self._following), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
                if self._following.done() and not self._following.cancelled():
                    self._following.result()
            return self.news
        finally:
            self.listeners -= 1

    async def _follow(self) -> None:
        """Look at the log while somebody waits for news."""
        while self.listeners:
            self._check()
            news = await asyncio.wrap_future(self._quick.submit(lambda source: source.news(self.best)))
            if news != self.news:
                self.news = news
                changed, self._changed = self._changed, asyncio.Event()
                changed.set()
                self._find_best(0)
            await asyncio.sleep(FOLLOW_S)

    def _find_best(self, wait_s: float = BEST_S) -> AgentId | None:
        """Return the recommended agent that is known, and look for a newer one in the other thread."""

        def find(source: RunSource) -> None:
            self.best = source.best()

        if self._finding is None or self._finding.done():
            self._finding = self._slow.submit(find)
        if self.best is None:
            wait((self._finding,), wait_s)
        return self.best

    def _check(self) -> None:
        self.used_at = time.monotonic()
        if self.is_outdated:
            raise Infrastructure("the run was removed or replaced")

    def close(self) -> None:
        """Close the run once its threads are done."""
        self._quick.close()
        self._slow.close()


def _read_inode(folder: Path) -> int | None:
    try:
        return (folder / FILE).stat().st_ino
    except OSError:
        return None
