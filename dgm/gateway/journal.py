"""The durable record of calls: a call is in the log before it is sent, and its answer before it is handed on whole.

One thread commits all calls that wait at that time in one transaction, because syncing is the expensive part.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue
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
    RunStarted,
)
from dgm.archive.journal import CallReader, CallWriter
from dgm.archive.log import Write
from dgm.archive.run import Run
from dgm.archive.volatile_text import Conditions
from dgm.domain import ActionId, Evaluate, Usage
from dgm.errors import Infrastructure
from dgm.messages import BegunCall, CallKey, CutCall, Exchange, PaidCall
from dgm.models.check import overrun_warning

_SHOWN = 500
"""Characters kept of a refusal's message, which may quote the agent's input."""


_Entry = tuple[Sequence[Event], Write, "Future[None]"]
"""Events of a call, what is written with them, and what is resolved when both are durable."""


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
        self._noted: set[tuple[str, str]] | None = None
        self._settled: set[CallKey] = set()
        self._calls = CallWriter()
        self._waiting: SimpleQueue[_Entry] = SimpleQueue()
        self._thread = ThreadPoolExecutor(1, "journal")

    def numbers(self, action: ActionId) -> tuple[int, Collection[int]]:
        """Return the highest number of the action's calls, or 0, and the numbers of those that are answered."""
        events = [item.event for item in self._run.store.events_of_action(action)]
        answered = {event.number for event in events if isinstance(event, ModelCalled)}
        started = {event.number for event in events if isinstance(event, CallStarted)}
        return max(answered | started, default=0), answered

    def recall(self, action: ActionId, numbers: Collection[int]) -> tuple[Sequence[Exchange], Conditions]:
        """Return the action's recorded exchanges of these numbers, in the order of its calls, and their conditions.

        Those are the days of the action's events, and the kernel releases of the run's sessions.

        Raises:
            ArchiveCorrupt: an exchange is missing or damaged.
        """
        store, reader = self._run.store, CallReader(self._run.store)
        calls = [call for call in store.calls(action) if call.number in numbers] if numbers else []
        found = [Exchange(call.number, reader.request(call), reader.reply(call)) for call in calls]
        if self._kernels is None:
            self._kernels = [event.kernel for event in store.events(RunStarted)]
        moments = store.query("SELECT at FROM events WHERE action = ?", (action,))
        return found, Conditions.at(*(at for (at,) in moments), kernels=self._kernels)

    def cut_calls(self, action: ActionId) -> Sequence[CutCall]:
        """Return the action's calls that the death of a process cut off; raises as ``recall``."""
        reader = CallReader(self._run.store)
        return [
            CutCall(number, reader.request(call), call.model, call.role, call.usage)
            for (whose, number), call in sorted(self._run.tree.model_calls.cut.items())
            if whose == action
        ]

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
        # Equal calls may be answered together; one of them settles.
        new = [cut for cut in settles if CallKey(action, cut.number) not in self._settled]
        self._settled.update(CallKey(action, cut.number) for cut in new)
        settled = [CallBooked(action, cut.number, cut.model, cut.role, cut.booked) for cut in new]
        await self._put(
            [called, *settled], lambda log: self._calls.answer(log, action, number, call.request, reply)
        )

    async def _put(self, events: Sequence[Event], write: Write) -> None:
        done: Future[None] = Future()
        self._waiting.put((events, write, done))
        self._thread.submit(self._commit_waiting)
        durable = asyncio.wrap_future(done)
        try:
            await asyncio.shield(durable)
        except asyncio.CancelledError:
            await asyncio.wait([durable])
            raise
        finally:
            self._run.fold_committed()

    def _commit_waiting(self) -> None:
        """Commit all that waits, in the thread."""
        batch = []
        with suppress(Empty):
            while True:
                batch.append(self._waiting.get_nowait())
        if batch:
            self._commit(batch)

    def _commit(self, batch: Sequence[_Entry]) -> None:
        def write_all(log: sqlite3.Connection) -> None:
            for _, write, _ in batch:
                write(log)

        try:
            self._run.commit([event for events, _, _ in batch for event in events], write_all)
        except Exception as error:  # noqa: BLE001  (raised again where the call is waited for)
            self._calls.forget()
            if len(batch) > 1 and not isinstance(error, Infrastructure):
                # A call that cannot be recorded must not fail the others.
                for one in batch:
                    self._commit([one])
                return
            for _, _, done in batch:
                done.set_exception(error)
        else:
            for _, _, done in batch:
                done.set_result(None)

    def book(self, action: ActionId, number: int, model: str, role: str, usage: Usage) -> None:
        """Record the usage to count for a call that was begun; do nothing if its end is recorded."""
        if (action, number) not in self._run.tree.model_calls.open:
            return
        booked = CallBooked(action, number, model, role, usage)
        self._run.commit([booked], lambda log: self._calls.fail(log, action, number))
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
            CallBooked(call.action, call.number, call.model, call.role, call.most, open=True)
            for call in opened
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
        if self._noted is None:
            self._noted = {(event.code, event.message) for event in self._run.store.events(CallRefused)}
        if (code, message) not in self._noted:
            self._tell(CallRefused(action, role, status, code, message))
            self._noted.add((code, message))
