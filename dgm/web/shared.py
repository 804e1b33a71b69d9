"""A run that all viewers share: one thread reads it, and what it computed once serves everyone.

A result is computed again only after new events, and at most for a tenth of the time: the longer it takes, the longer
it is served. So neither many viewers nor many events can keep the thread busy.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from dgm.archive.log import FILE
from dgm.archive.run import LIVING, Run, state
from dgm.domain import AgentId
from dgm.errors import Infrastructure
from dgm.views.run import RunReader, RunView

T = TypeVar("T")
FOLLOW_S = 0.25
"""Seconds between two looks at the log."""
FRESH_S = 5.0
"""Seconds after which ages and durations of a living run are computed again, without a new event."""
SHARE = 10
"""A result that took t seconds is served for at least this many times t."""
ENTRIES, BYTES = 200, 64_000_000
"""Maximum number of results that are kept of a run, and of bytes in them."""


class News(NamedTuple):
    """The cheap facts of a run at one moment; they are sent to every viewer."""

    seq: int
    """Number of the newest event."""
    state: str
    living: bool
    """Whether a process writes the run."""
    agents: int
    evaluations: int
    running: int
    """Actions under way."""
    waiting: int
    """Children that wait for approval."""
    usd: float
    tokens: int


class _Result(NamedTuple):
    value: Any
    seq: int
    """Number of the last event in it, and in all results that it was computed from."""
    state: str
    at: float
    took_s: float
    size: int


class RunSource:
    """The run as the thread of a ``SharedRun`` sees it; pages are computed from it."""

    def __init__(self, reader: RunReader, clock: Callable[[], float] = time.monotonic) -> None:
        self.reader = reader
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

    def follow(self) -> News:
        """Read what was appended."""
        # Ask first, so that the last events of a writer are not missed.
        self._state = state(self.run)
        self.reader.follow()
        if self.run.tree.stop_reason:
            self._state = state(self.run)
        return self.news()

    def news(self) -> News:
        """Return the cheap facts of the run as far as it was read."""
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
        kept = sum(each.size for each in self._results.values())
        while len(self._results) > ENTRIES or (kept > BYTES and len(self._results) > 1):
            kept -= self._results.popitem(last=False)[1].size
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

    def _is_fresh(self, result: _Result) -> bool:
        now = self._clock()
        if now < result.at + max(FOLLOW_S, SHARE * result.took_s):
            return True
        same = (result.seq, result.state) == (self.run.tree.seq, self._state)
        return same and (self._state not in LIVING or now < result.at + FRESH_S)

    def view(self) -> RunView:
        """Return the run at this moment; in a long run, of a moment ago."""
        return self.memo("view", self.reader.view)

    def best(self) -> AgentId | None:
        """Return the recommended agent; in a long run, that of a moment ago."""
        return self.memo("best", self.reader.best)


class SharedRun:
    """A run that is open for all viewers. ``close`` ends its thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.used_at = time.monotonic()
        self.news: News | None = None
        self.listeners = 0
        self._latest: News | None = None
        self._closing = False
        self._thread = ThreadPoolExecutor(1, "run-reader")
        self._inode = _read_inode(folder)
        self._source: RunSource | None = None
        self._followed_at = float("-inf")
        self._changed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    @property
    def is_outdated(self) -> bool:
        """Whether the run was removed or replaced."""
        return _read_inode(self.folder) != self._inode

    async def compute(self, key: str, work: Callable[[RunSource], T]) -> tuple[int, T]:
        """Return a result and the number of the last event in it.

        Args:
            key: names the result: address and query of a page.
            work: computes it, in the thread of the run.

        Raises:
            UserError: there is no such thing in the run.
            ArchiveCorrupt: a part of the run is damaged.
            Infrastructure: the run cannot be read now.
        """

        def answer() -> tuple[int, T]:
            source = self._read()
            value = source.memo(key, lambda: work(source))
            return source.seq, value

        self.used_at = time.monotonic()
        return await asyncio.get_running_loop().run_in_executor(self._thread, answer)

    async def next_news(self, last: News | None) -> News:
        """Return the newest facts as soon as they are not ``last``; the newest only, however many there were.

        Raises:
            DgmError: the run cannot be read any more.
        """
        self.used_at = time.monotonic()
        self.listeners += 1
        try:
            while self.news is None or self.news == last:
                if self._following is None or self._following.done():
                    self._following = asyncio.create_task(self._follow())
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
        loop = asyncio.get_running_loop()
        while self.listeners and not self._closing:
            news = await loop.run_in_executor(self._thread, self._look)
            if news != self.news:
                self.news = news
                changed, self._changed = self._changed, asyncio.Event()
                changed.set()
            await asyncio.sleep(FOLLOW_S)

    def _look(self) -> News | None:
        self._read()
        return self._latest

    def _read(self) -> RunSource:
        """Return the run, opened if it is not and followed if that was some time ago; in its thread."""
        if self.is_outdated:
            raise Infrastructure("the run was removed or replaced")
        if self._source is None:
            self._source = RunSource(RunReader(Run.open(self.folder, pause=self._pause)))
        if time.monotonic() >= self._followed_at + FOLLOW_S:
            self._latest = self._source.follow()
            self._followed_at = time.monotonic()
        return self._source

    def _pause(self) -> None:
        if self._closing:
            raise Infrastructure("the server ends")

    def close(self) -> None:
        """Close the run once its thread is done."""
        self._closing = True

        def close() -> None:
            if self._source is not None:
                self._source.run.close()

        self._thread.submit(close)
        self._thread.shutdown(wait=False)


def _read_inode(folder: Path) -> int | None:
    try:
        return (folder / FILE).stat().st_ino
    except OSError:
        return None
