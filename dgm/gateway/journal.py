"""Makes what was paid for durable: every exchange is in the traces and the log before its reply is handed on.

Exchanges that end at about the same time are made durable together: syncing is what it costs.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from dgm.archive.events import CallRefused, ModelCalled
from dgm.archive.exchange import Base, encode_reply, encode_request
from dgm.archive.journal import exchanges
from dgm.archive.run import Run
from dgm.archive.traces import name_of
from dgm.domain import ActionId, Digest
from dgm.messages import Exchange, PaidCall, Request

_CONVERSATIONS = 64
"""Conversations whose last request is kept in memory, for the next one to build on."""
_LINKS = 32
"""A request is stored whole after so many that build on each other."""
_TOGETHER = 32
"""Exchanges at most that are made durable together."""
_SHOWN = 500
"""Characters kept of a refusal's message, which may quote what an agent sent."""

_Waiting = tuple[PaidCall, asyncio.Future[None]]
"""A call, and what is told when it is on disk."""


class RunJournal:
    """The gateway's journal of one run: ``dgm.protocols.Journal``; used in one event loop at a time."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._last: OrderedDict[ActionId, Base] = OrderedDict()
        self._waiting: list[_Waiting] = []
        self._writer: asyncio.Task[None] | None = None

    def exchanges(self, action: ActionId) -> Sequence[Exchange]:
        """What the action was answered so far, in the order of its calls.

        Raises:
            ArchiveCorrupt: a trace is missing or damaged.
        """
        return exchanges(self._run, action)

    async def record(self, call: PaidCall) -> None:
        """Makes the exchange durable; returns only when it is on disk, even if it is cancelled meanwhile.

        Raises:
            Infrastructure: the disk is full or failing; nothing was recorded.
            DgmError: a call is already recorded under this key.
        """
        recorded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((call, recorded))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write(), name="journal")
            self._writer.add_done_callback(self._ended)
        try:
            await asyncio.shield(recorded)
        except asyncio.CancelledError:
            await asyncio.wait([recorded])
            raise

    def refuse(self, action: ActionId, role: str, status: int, code: str, message: str) -> None:
        """Notes that the agent was refused something, and what."""
        self._run.append(CallRefused(action, role, status, code, message[:_SHOWN]))

    async def _write(self) -> None:
        while self._waiting:
            batch = self._waiting[:_TOGETHER]
            await self._write_together(batch)
            del self._waiting[: len(batch)]

    def _ended(self, writer: asyncio.Task[None]) -> None:
        """Lets nobody wait for a writer that the end of the program cut short."""
        if writer.cancelled():
            for _, recorded in self._waiting:
                recorded.cancel()
            self._waiting.clear()

    async def _write_together(self, batch: Sequence[_Waiting]) -> None:
        try:
            # Traces are synced in a thread; the log is written here, where its events are folded in their order.
            events = await asyncio.to_thread(self._put_traces, [call for call, _ in batch])
            self._run.append_many(events)
        except Exception as error:  # noqa: BLE001  (raised again where the call is waited for)
            self._last.clear()
            if len(batch) == 1:
                batch[0][1].set_exception(error)
                return
            # One that cannot be recorded takes no other with it.
            for one in batch:
                await self._write_together([one])
        else:
            for _, recorded in batch:
                recorded.set_result(None)

    def _put_traces(self, calls: Sequence[PaidCall]) -> Sequence[ModelCalled]:
        traces: list[bytes] = []
        for call in calls:
            traces += (self._encoded(call.key.action, call.request), encode_reply(call.reply))
        digests = self._run.traces.put_all(traces)
        named = zip(calls, digests[::2], digests[1::2], strict=True)
        return [_event(call, asked, answered) for call, asked, answered in named]

    def _encoded(self, action: ActionId, request: Request) -> bytes:
        """The request on top of the action's last one, which it replaces."""
        base = self._last.pop(action, None)
        if base and base.links >= _LINKS:
            base = None
        data = encode_request(request, base)
        self._last[action] = Base(name_of(data), request, base.links + 1 if base else 0)
        if len(self._last) > _CONVERSATIONS:
            self._last.popitem(last=False)
        return data


def _event(call: PaidCall, asked: Digest, answered: Digest) -> ModelCalled:
    key, usage = call.key, call.reply.usage
    return ModelCalled(key.action, key.number, call.model, call.role, asked, answered, usage, call.seconds)
