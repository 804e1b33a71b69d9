"""Performs a session for a program: told of its events, stopped by Ctrl-C, with messages in Python's words."""

import asyncio
import re
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any, TypeVar

from dgm import launch
from dgm.archive.events import Recorded
from dgm.errors import UserError
from dgm.models.auto import Offer
from dgm.search.loop import Search

T = TypeVar("T")
OnEvent = Callable[[Recorded], object]
_PYTHON = (
    (re.compile(r"dgm run --set gates.approve=true"), 'dgm.evolve(settings={"gates.approve": True})'),
    (re.compile(r"--max-usd (\S+): the evaluation"), r"max_usd \1: the evaluation"),
    (re.compile(r"--max-(\w+)"), r"budget.\1"),
    (re.compile(r"--until-score"), "budget.until_score"),
    (re.compile(r"--patience"), "budget.patience"),
    (re.compile(r"--set (\S)"), r"settings \1"),
    (re.compile(r"dgm resume (\S+) --benchmark PATH"), r'dgm.open("\1").resume(benchmark=PATH)'),
    (re.compile(r"'?dgm resume ([\w.-]+)'?"), r'dgm.open("\1").resume()'),
    (
        re.compile(r"\bdgm replay RUN evaluations --perform"),
        "run.replay.evaluations(how=dgm.replay.How(True))",
    ),
    (re.compile(r"\bdgm replay (\S+) (decisions|evaluations)"), r'dgm.open("\1").replay.\2()'),
    (re.compile(r"\bdgm archive unpack FILE"), "dgm.unpack(FILE)"),
    (re.compile(r"\bdgm archive unpack (\S+)"), r'dgm.unpack("\1")'),
    (re.compile(r"\bdgm archive verify"), "dgm.verify"),
    (re.compile(r"\bdgm trust (?:'([^']*)'|(\S+)) --network"), r'dgm.trust("\1\2", network=True)'),
    (re.compile(r"\bdgm trust (?:'([^']*)'|(\S+))"), r'dgm.trust("\1\2")'),
    (re.compile(r"\bdgm benchmark list"), "dgm.suites()"),
    (re.compile(r"\bdgm benchmark show ([\w.:-]+)"), r'dgm.suite("\1")'),
    (re.compile(r"\bdgm sandbox build (\w+)"), r'dgm.build_images("\1")'),
    (re.compile(r"\bdgm show (\S+) AGENT"), r'dgm.open("\1").agents[N].record()'),
    (re.compile(r"\bdgm list\b"), "dgm.runs()"),
    (re.compile(r"\bdgm settings\b"), "dgm.settings()"),
    (re.compile(r"\bdgm simulate --record command"), "dgm.record_trial call"),
    (re.compile(r"\bdgm (evaluate|sweep) command"), r"dgm.\1 call"),
    (re.compile(r"\bdgm (evaluate|solve|sweep|compare|doctor)\b"), r"dgm.\1"),
    (re.compile(r"--seed-agent\b"), "seed_agent"),
    (re.compile(r"--(name|model|seed|benchmark|sandbox|engine|workers|policy|operator)\b"), r"\1"),
    (re.compile(r"--(kind|after|tail|into|split|attempts?|predictions|evaluation|transcript)\b"), r"\1"),
    (re.compile(r"--(seeds|record|figures)\b"), r"\1"),
    (re.compile(r"--tasks?\b"), "tasks"),
    (re.compile(r"--family\b"), "families"),
    (re.compile(r"--(force|group)-(\w+)"), r"\1_\2"),
)
"""Flags and commands in messages → what a program writes."""


class ProgramWatcher(launch.Watcher):
    """Tells a program's own function of events, and stops the work when the program is asked to."""

    def __init__(self, on_event: OnEvent | None) -> None:
        self._on_event = on_event
        self._raised: BaseException | None = None
        self._stop: Callable[[], bool] = lambda: False
        self.task: asyncio.Task[Any] | None = None
        self.allow_paid = False

    def may_use(self, offer: Offer) -> bool:
        """Return whether the program allows what costs money."""
        return self.allow_paid or super().may_use(offer)

    def begins(self, search: Search) -> None:
        """Stop the search in good order on Ctrl-C."""

        def stop() -> bool:
            if search.stopping:
                return False
            search.ask_to_stop("stopped as asked")
            return True

        self.stops_by(stop)

    def stops_by(self, stop: Callable[[], bool]) -> None:
        """Stop the work by this function on Ctrl-C, where this is the main thread.

        Args:
            stop: returns whether the work ends in good order; if not, it is cancelled.
        """
        self._stop = stop
        if self.task is not None and threading.current_thread() is threading.main_thread():
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self.interrupt)

    def event(self, recorded: Recorded) -> None:
        """Call the program's function; raise what it raised before.

        Events of model calls are told while a call is performed, where an exception counts as the call's failure.
        """
        if self._raised is not None:
            raise self._raised
        if self._on_event is not None:
            try:
                self._on_event(recorded)
            except BaseException as error:
                self._raised = error
                raise

    def interrupt(self) -> None:
        """End in good order; the second time, or before the work goes on, at once."""
        if not self._stop() and self.task is not None:
            self.task.cancel()


def block(work: Callable[[ProgramWatcher], Awaitable[T]], on_event: OnEvent | None) -> T:
    """Perform the work and return what comes of it, in a thread of its own where a loop runs in this one."""
    session = ProgramWatcher(on_event)

    async def perform() -> T:
        session.task = asyncio.current_task()
        return await work(session)

    with in_python():
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            try:
                return asyncio.run(perform())
            except asyncio.CancelledError:
                raise KeyboardInterrupt from None
        return _in_thread(perform, session)


def call_beside_loop(work: Callable[[], T]) -> T:
    """Call a function that starts a loop of its own, in a thread of its own where one runs in this one."""

    async def call() -> T:
        return await asyncio.to_thread(work)

    with in_python():
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return work()
        return _in_thread(call, ProgramWatcher(None))


def _in_thread(perform: Callable[[], Awaitable[T]], session: ProgramWatcher) -> T:
    outcome: Future[T] = Future()
    loops: list[asyncio.AbstractEventLoop] = []

    async def watched() -> T:
        loops.append(asyncio.get_running_loop())
        return await perform()

    def go() -> None:
        try:
            outcome.set_result(asyncio.run(watched()))
        except BaseException as error:  # noqa: BLE001  (raised again by the thread that waits)
            outcome.set_exception(error)

    threading.Thread(target=go, name="dgm").start()
    while not outcome.done():
        # Not ``Thread.join``: before Python 3.13 a thread counts as ended after an interrupted join.
        try:
            wait([outcome])
        except KeyboardInterrupt:
            for loop in loops:
                loop.call_soon_threadsafe(session.interrupt)
    try:
        return outcome.result()
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@contextmanager
def in_python() -> Iterator[None]:
    """Let messages name arguments instead of flags."""
    try:
        yield
    except UserError as error:
        raise type(error)(python_words(str(error))) from error


def python_words(message: str) -> str:
    """Return a message of the command line in the words of a program."""
    for pattern, words in _PYTHON:
        message = pattern.sub(words, message)
    return message
