"""The durable record of calls: a call is in the log before it is sent, and its answer before it is handed on whole.

One thread commits all calls that wait at that time in one transaction, because syncing is the expensive part.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from dgm.archive.events import (
    CallBooked,
    CallRefused,
    CallStarted,
    Event,
    ModelCalled,
    ModelLearned,
    ModelNoted,
    NoteKind,
    Recorded,
)
from dgm.archive.journal import FAILED_BYTES, CallWriter, cut_calls, exchanges, read_kernels
from dgm.archive.run import Run
from dgm.domain import ActionId, Evaluate, Usage
from dgm.errors import Infrastructure
from dgm.messages import BegunCall, CutCall, Exchange, PaidCall
from dgm.models.check import overrun_warning
from dgm.volatile_text import Conditions

_NUMBERS = """
SELECT json_extract(body, '$.number'), kind = 'model_called' FROM events
WHERE action = ? AND kind IN ('call_started', 'model_called')
"""
_NOTED = """
SELECT 1 FROM events WHERE kind = 'call_refused'
AND json_extract(body, '$.code') = ? AND json_extract(body, '$.message') = ? LIMIT 1
"""
_SHOWN = 500
"""Characters kept of a refusal's message, which may quote the agent's input."""


@dataclass(slots=True)
class _Entry:
    """What is to be committed of a call, with the future to resolve when it is durable."""

    events: Sequence[Event]
    write: Callable[[sqlite3.Connection], None]
    durable: asyncio.Future[None]
    error: Exception | None = None


class RunJournal:
    """The gateway's journal of one run, implementing ``dgm.protocols.Journal``; used in one event loop at a time."""

    def __init__(self, run: Run, told: Callable[[Recorded], None] = lambda _: None) -> None:
        """Create a journal that has written nothing.

        Args:
            run: open to write, or to be read only.
            told: called with messages that a person should see at once.
        """
        self._run = run
        self._told = told
        self._kernels: Sequence[str] | None = None
        self._noted: set[str] = set()
        self._calls = CallWriter()
        self._waiting: list[_Entry] = []
        self._thread = ThreadPoolExecutor(1, "journal")
        self._commit: Future[None] | None = None

    def numbers(self, action: ActionId) -> tuple[int, Collection[int]]:
        """Return the highest number of the action's calls, or 0, and the numbers of those that are answered."""
        calls = self._run.store.query(_NUMBERS, (action,))
        return max((number for number, _ in calls), default=0), {
            number for number, answered in calls if answered
        }

    def exchanges(self, action: ActionId, numbers: Collection[int] | None = None) -> Sequence[Exchange]:
        """Return the action's recorded exchanges of these numbers, or all, in the order of its calls.

        Raises:
            ArchiveCorrupt: one is missing or damaged.
        """
        return exchanges(self._run, action, numbers)

    def cut_calls(self, action: ActionId) -> Sequence[CutCall]:
        """Return the action's calls that the death of a process cut off; raises as ``exchanges``."""
        return cut_calls(self._run, action)

    def conditions(self, action: ActionId) -> Conditions:
        """Return the days of the action's events, and the kernel releases of the run's sessions."""
        if self._kernels is None:
            self._kernels = read_kernels(self._run)
        moments = self._run.store.query("SELECT at FROM events WHERE action = ?", (action,))
        return Conditions.at(*(at for (at,) in moments), kernels=self._kernels)

    async def begin(self, call: BegunCall) -> None:
        """Record durably that a call is about to be sent; raises as ``record``."""
        key, request = call.key, call.request
        started = CallStarted(key.action, key.number, call.model, call.role, most=call.most)
        await self._put([started], lambda log: self._calls.begin(log, key.action, key.number, request))

    async def record(self, call: PaidCall, settles: Sequence[CutCall] = ()) -> None:
        """Make the exchange durable; return only when it is on disk, even if cancelled meanwhile.

        Raises:
            Infrastructure: the disk is full or failing; nothing was recorded.
            DgmError: a call is already recorded under this key.
        """
        action, number, reply = call.key.action, call.key.number, call.reply
        called = ModelCalled(action, number, call.model, call.role, usage=reply.usage, seconds=call.seconds)
        settled = [CallBooked(action, cut.number, cut.model, cut.role, cut.booked) for cut in settles]
        await self._put(
            [called, *settled], lambda log: self._calls.answer(log, action, number, call.request, reply)
        )

    async def _put(self, events: Sequence[Event], write: Callable[[sqlite3.Connection], None]) -> None:
        loop = asyncio.get_running_loop()
        entry = _Entry(events, write, loop.create_future())
        self._waiting.append(entry)
        self._start(loop)
        try:
            await asyncio.shield(entry.durable)
        except asyncio.CancelledError:
            await asyncio.wait([entry.durable])
            raise

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let the thread commit all that waits, unless it is at work."""
        if self._waiting and (self._commit is None or self._commit.done()):
            batch, self._waiting = self._waiting, []
            self._commit = self._thread.submit(self._commit_together, batch)
            ended = partial(self._end, loop, batch)
            self._commit.add_done_callback(lambda _: loop.call_soon_threadsafe(ended))

    def _commit_together(self, batch: Sequence[_Entry]) -> None:
        """Commit a batch, in the thread."""

        def write(log: sqlite3.Connection) -> None:
            for one in batch:
                one.write(log)

        try:
            self._run.commit([event for one in batch for event in one.events], write)
        except Exception as error:  # noqa: BLE001  (raised again where the call is waited for)
            self._calls.forget()
            if len(batch) == 1 or isinstance(error, Infrastructure):
                for one in batch:
                    one.error = error
                return
            # A call that cannot be recorded must not fail the others.
            for one in batch:
                self._commit_together([one])

    def _end(self, loop: asyncio.AbstractEventLoop, batch: Sequence[_Entry]) -> None:
        """Fold what was committed, and resolve the calls."""
        self._start(loop)
        try:
            self._run.fold_committed()
        except Exception as error:  # noqa: BLE001  (raised again where the calls are waited for)
            for one in batch:
                one.error = one.error or error
        for one in batch:
            if one.error:
                one.durable.set_exception(one.error)
            else:
                one.durable.set_result(None)

    def book(self, action: ActionId, number: int, model: str, role: str, usage: Usage) -> None:
        """Record the usage to count for a call that was begun and got no answer."""
        booked = CallBooked(action, number, model, role, usage)
        self._run.commit([booked], lambda log: self._calls.blank(log, action, number, FAILED_BYTES))
        self._run.fold_committed()

    def lose(self, call: BegunCall) -> None:
        """Count a call that was cut off at its worst case, until it is answered; do nothing if its answer is recorded.

        Raises:
            Infrastructure: the disk is full or failing.
        """
        key = call.key
        if (key.action, key.number) in self._run.tree.model_calls.open:
            self._run.append(CallBooked(key.action, key.number, call.model, call.role, call.most, open=True))

    def book_cut_calls(self) -> None:
        """Count every call that a dead process had begun at its worst case; call once, before the first call."""
        opened = list(self._run.tree.model_calls.open.values())
        booked = [
            CallBooked(one.action, one.number, one.model, one.role, one.most, open=True, request=one.request)
            for one in opened
        ]
        if booked:
            self._run.append_many(booked)

    def _tell(self, event: Event) -> None:
        self._told(self._run.append(event))

    def learned(
        self, model: str, abilities: Mapping[str, Any], words: str, usage: Usage | None = None
    ) -> None:
        """Record the known abilities of a model from now on."""
        self._tell(ModelLearned(model, abilities, words[:_SHOWN], usage or Usage()))

    def waits(self, model: str, words: str, until: float) -> None:
        """Record that calls of a model wait until a Unix time, and the reason."""
        self._tell(ModelNoted(model, NoteKind.WAITS, words[:_SHOWN], until))

    def overran(self, model: str, asked: int, billed: int) -> None:
        """Record that a model billed more output tokens than the request allowed."""
        self._tell(ModelNoted(model, NoteKind.OVERRUN, overrun_warning(asked, billed)))

    def refuse(self, action: ActionId, role: str, status: int, code: str, message: str) -> None:
        """Record a refusal of an agent's request, or, once for each agent, what is left out of its requests."""
        if status >= 400:
            self._run.append(CallRefused(action, role, status, code, message[:_SHOWN]))
            return
        what = self._run.tree.pending.get(action)
        if what is not None:
            agent = what.agent if isinstance(what, Evaluate) else what.parents[0]
            message = f"agent {agent}: {message}"
        message = message[:_SHOWN]
        if message not in self._noted and not self._run.store.query(_NOTED, (code, message)):
            self._tell(CallRefused(action, role, status, code, message))
        self._noted.add(message)
