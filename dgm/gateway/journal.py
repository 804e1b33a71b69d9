"""The durable record of paid calls: every exchange is in the traces and the log before its reply is handed on.

Exchanges that end at about the same time are synced together, because syncing is the expensive part.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
from dgm.archive.exchange import RequestBase, encode_reply, encode_request
from dgm.archive.journal import cut_calls, exchanges, read_kernels
from dgm.archive.run import Run
from dgm.archive.traces import name_of
from dgm.archive.wire_exchange import WireBase, encode_wire_reply, encode_wire_request
from dgm.domain import ActionId, Digest, Evaluate, Usage
from dgm.gateway.withheld import withhold
from dgm.messages import BegunCall, CallKey, CutCall, Exchange, PaidCall, Request, WireReply, WireRequest
from dgm.models.check import overrun_warning
from dgm.volatile_text import Conditions

_CONVERSATIONS = 64
"""Number of conversations whose last request is kept in memory as the base of the next one."""
_LINKS = 32
"""Number of requests that may build on each other before one is stored whole."""
_TOGETHER = 32
"""Maximum number of exchanges that are made durable together."""
_WHOLE_BYTES = 32_768
"""Size up to which a request is recorded whole before it is answered; a larger one by its digest until then."""
_REFUSED_BYTES = 4_000_000
"""Bytes of one action's refused requests that are recorded whole; further ones by their digests."""
_NOTED = """
SELECT 1 FROM events WHERE kind = 'call_refused'
AND json_extract(body, '$.code') = ? AND json_extract(body, '$.message') = ? LIMIT 1
"""
_SHOWN = 500
"""Characters kept of a refusal's message, which may quote the agent's input."""


@dataclass(slots=True)
class _QueuedCall:
    """A call that is being written to disk, with the future to resolve when it is durable."""

    call: BegunCall | PaidCall
    settles: Sequence[CutCall]
    recorded: asyncio.Future[None]


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
        self._last: OrderedDict[ActionId, RequestBase | WireBase] = OrderedDict()
        self._begun: dict[CallKey, Digest] = {}
        self._withheld: set[CallKey] = set()
        self._noted: set[str] = set()
        self._refused_bytes: dict[ActionId, int] = {}
        self._waiting: list[_QueuedCall] = []
        self._writer: asyncio.Task[None] | None = None

    def exchanges(self, action: ActionId) -> Sequence[Exchange]:
        """Return the action's recorded exchanges, in the order of its calls.

        Raises:
            ArchiveCorrupt: a trace is missing or damaged.
        """
        return exchanges(self._run, action)

    def cut_calls(self, action: ActionId) -> Sequence[CutCall]:
        """Return the action's calls that the death of a process cut off; raises as ``exchanges``."""
        return cut_calls(self._run, action)

    def conditions(self, action: ActionId) -> Conditions:
        """Return the days of the action's events, and the kernel releases of the run's sessions."""
        if self._kernels is None:
            self._kernels = read_kernels(self._run)
        moments = [item.at for item in self._run.store.events_of_action(action)]
        return Conditions.at(*moments, kernels=self._kernels)

    async def begin(self, call: BegunCall) -> None:
        """Record durably that a call is about to be sent; raises as ``record``."""
        await self._put(call, ())

    async def record(self, call: PaidCall, settles: Sequence[CutCall] = ()) -> None:
        """Make the exchange durable; return only when it is on disk, even if cancelled meanwhile.

        Raises:
            Infrastructure: the disk is full or failing; nothing was recorded.
            DgmError: a call is already recorded under this key.
        """
        await self._put(call, settles)

    async def _put(self, call: BegunCall | PaidCall, settles: Sequence[CutCall]) -> None:
        recorded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_QueuedCall(call, settles, recorded))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write(), name="journal")
            self._writer.add_done_callback(self._ended)
        try:
            await asyncio.shield(recorded)
        except asyncio.CancelledError:
            await asyncio.wait([recorded])
            raise

    def book(self, action: ActionId, number: int, model: str, role: str, usage: Usage) -> None:
        """Record the usage to count for a call that was begun and got no answer."""
        self._begun.pop(CallKey(action, number), None)
        self._withheld.discard(CallKey(action, number))
        self._run.append(CallBooked(action, number, model, role, usage))

    def lose(self, call: BegunCall) -> None:
        """Count a call that was cut off at its worst case, until it is answered; do nothing if its answer is recorded.

        Raises:
            Infrastructure: the disk is full or failing.
        """
        key, asked = call.key, self._begun.pop(call.key, None)
        self._withheld.discard(key)
        if asked is not None:
            booked = CallBooked(
                key.action, key.number, call.model, call.role, call.most, open=True, request=asked
            )
            self._run.append(booked)

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

    async def _write(self) -> None:
        while self._waiting:
            batch = self._waiting[:_TOGETHER]
            await self._write_together(batch)
            del self._waiting[: len(batch)]

    def _ended(self, writer: asyncio.Task[None]) -> None:
        """Cancel all waiting calls when the end of the program cuts the writer short."""
        if writer.cancelled():
            for one in self._waiting:
                one.recorded.cancel()
            self._waiting.clear()

    async def _write_together(self, batch: Sequence[_QueuedCall]) -> None:
        try:
            # Traces are synced in a thread. The log is written here, where its events are folded in order.
            events = await asyncio.to_thread(self._put_traces, batch)
            self._run.append_many(events)
        except Exception as error:  # noqa: BLE001  (raised again where the call is waited for)
            self._last.clear()
            if len(batch) == 1:
                batch[0].recorded.set_exception(error)
                return
            # An exchange that cannot be recorded must not fail the others.
            for one in batch:
                await self._write_together([one])
        else:
            for one in batch:
                if isinstance(one.call, PaidCall):
                    self._begun.pop(one.call.key, None)
                    self._withheld.discard(one.call.key)
                one.recorded.set_result(None)

    def _put_traces(self, batch: Sequence[_QueuedCall]) -> Sequence[Event]:
        traces: list[bytes] = []
        events: list[Event] = []
        for one in batch:
            call = one.call
            if isinstance(call, BegunCall):
                self._begun[call.key] = self._add(traces, self._encode_begun(call))
                events.append(_call_started_event(call, self._begun[call.key]))
                continue
            asked = self._begun.get(call.key)
            if asked is None or call.key in self._withheld:
                asked = self._add(traces, self._encode_answered(call))
            reply = call.reply
            data = encode_wire_reply(reply) if isinstance(reply, WireReply) else encode_reply(reply)
            events.append(_model_called_event(call, asked, self._add(traces, data)))
            events += [
                CallBooked(call.key.action, cut.number, cut.model, cut.role, cut.booked)
                for cut in one.settles
            ]
        self._run.traces.put_all(traces)
        return events

    @staticmethod
    def _add(traces: list[bytes], data: bytes) -> Digest:
        traces.append(data)
        return name_of(data)

    def _encode_begun(self, call: BegunCall) -> bytes:
        """Return the record of a request that may never be answered."""
        data, base = self._encode(call.key.action, call.request)
        if len(data) > _WHOLE_BYTES:
            self._withheld.add(call.key)
            return _encode_alone(withhold(call.request))
        self._remember(call.key.action, base)
        return data

    def _encode_answered(self, call: PaidCall) -> bytes:
        """Return the record of a request that was answered, or refused."""
        action = call.key.action
        data, base = self._encode(action, call.request)
        if call.reply.error:
            refused = self._refused_bytes.get(action, 0) + len(data)
            if refused > _REFUSED_BYTES:
                return _encode_alone(withhold(call.request))
            self._refused_bytes[action] = refused
        self._remember(action, base)
        return data

    def _encode(
        self, action: ActionId, request: Request | WireRequest
    ) -> tuple[bytes, RequestBase | WireBase]:
        """Return the request as a difference to the action's last one, and itself as the base of the next one."""
        base = self._last.get(action)
        if base and base.links >= _LINKS:
            base = None
        if isinstance(request, WireRequest):
            wire_base = base if isinstance(base, WireBase) else None
            data = encode_wire_request(request, wire_base)
            return data, WireBase(name_of(data), request, base.links + 1 if wire_base and base else 0)
        own_base = base if isinstance(base, RequestBase) else None
        data = encode_request(request, own_base)
        return data, RequestBase(name_of(data), request, base.links + 1 if own_base and base else 0)

    def _remember(self, action: ActionId, base: RequestBase | WireBase) -> None:
        self._last.pop(action, None)
        self._last[action] = base
        if len(self._last) > _CONVERSATIONS:
            self._last.popitem(last=False)


def _encode_alone(request: Request | WireRequest) -> bytes:
    return encode_wire_request(request) if isinstance(request, WireRequest) else encode_request(request)


def _call_started_event(call: BegunCall, asked: Digest) -> CallStarted:
    return CallStarted(call.key.action, call.key.number, call.model, call.role, asked, call.most)


def _model_called_event(call: PaidCall, asked: Digest, answered: Digest) -> ModelCalled:
    key, usage = call.key, call.reply.usage
    return ModelCalled(key.action, key.number, call.model, call.role, asked, answered, usage, call.seconds)
