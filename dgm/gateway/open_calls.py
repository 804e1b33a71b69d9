"""The calls of a session that are not answered yet, counted for people who watch the run."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from dgm.archive.live_calls import LiveCalls, remove_live_calls, write_live_calls
from dgm.gateway.calls import ProviderCall
from dgm.live_telling import TELL_S, tell_changes


class OpenCalls:
    """The open calls of one gateway."""

    def __init__(self) -> None:
        self._calls: set[ProviderCall] = set()
        self._asked = 0

    def track(self, call: ProviderCall) -> None:
        """Count a call to a provider until it ends."""
        self._calls.add(call)
        call.outcome.add_done_callback(lambda _: self._calls.discard(call))

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Count a call to a model in dgm's own form while the context lasts."""
        self._asked += 1
        try:
            yield
        finally:
            self._asked -= 1

    def count(self) -> LiveCalls:
        """Return the calls of this moment."""
        waits = [call.waits_since for call in self._calls if call.waits_since is not None]
        under_way = self._asked + len(self._calls) - len(waits)
        return LiveCalls(under_way, len(waits), min(waits, default=None))


@asynccontextmanager
async def tell_open_calls(folder: Path, calls: OpenCalls, every_s: float = TELL_S) -> AsyncIterator[None]:
    """Keep the file of open calls in a run's folder up to date while the context lasts; remove it then.

    Args:
        folder: of the run.
        calls: of its gateway.
        every_s: seconds between two looks at the calls.
    """
    async with tell_changes(
        calls.count,
        lambda now: write_live_calls(folder, now),
        lambda: remove_live_calls(folder),
        every_s,
    ):
        yield
