"""Answers to agents' completion requests: passed through when both protocols agree, else translated."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dgm.archive.journal import reply_of
from dgm.gateway.allowed import BadRequest
from dgm.gateway.calls import AnswerCut, JobEnded, ProviderCall, retrieve_error
from dgm.gateway.http import EVENTS, JSON
from dgm.gateway.lease import Lease
from dgm.gateway.leaving_out import collect_left_out, leave_out
from dgm.gateway.ledger import Ledger
from dgm.gateway.model_names import DEFAULT
from dgm.gateway.passing import build_request, convert_reply, estimate_input, read_call, read_document
from dgm.gateway.performing import DRY_RUN, ModelCaller
from dgm.gateway.translation import ParsedCall, answer_id, parse_call, render_answer
from dgm.messages import CallKey, Reply, Request, WireProtocol, WireReply, WireRequest
from dgm.models.pricing import FREE
from dgm.wires import RESPONSES, WIRES
from dgm.wires.values import records
from dgm.wires.wire import Wire, WireAnswer

if TYPE_CHECKING:
    from starlette.requests import Request as HttpRequest
    from starlette.responses import Response


class CompletionHandler:
    """The request handler of one gateway."""

    def __init__(self, caller: ModelCaller, ledger: Ledger) -> None:
        """Create the handler.

        Args:
            caller: asks the models.
            ledger: knows the maximum output of each model.
        """
        self._caller = caller
        self._ledger = ledger

    async def complete(self, wire: Wire, lease: Lease, http: "HttpRequest") -> "Response":
        """Answer one request for a completion.

        Raises:
            BadRequest, RequestRefused: the agent gets this as an error.
            Infrastructure: the model failed.
            JobEnded: the job ended before the call was sent.
        """
        raw = await lease.pace.read(http, lease.limits.body_bytes)
        if lease.role != DRY_RUN and wire.protocol is lease.protocol and not lease.memory.holds_neutral:
            return await self._pass(wire, lease, http, raw)
        return await self._translate(wire, lease, http, raw)

    # Requests that pass unchanged

    async def _pass(self, wire: Wire, lease: Lease, http: "HttpRequest", raw: bytes) -> "Response":
        from starlette.responses import Response, StreamingResponse

        async with lease.pace.handle():
            request = build_request(
                wire.protocol, raw, http.headers, lease.memory, one_price=self.has_one_price(lease)
            )
            self.check_model(str(request.body.get("model") or DEFAULT), lease)
            named = {**request.body, "model": lease.names.native}
            limit = self.output(lease, WIRES[wire.protocol].output_limit(named))
            request = replace(request, body=WIRES[wire.protocol].limited(named, limit))
        ordinal = lease.admit()
        call = self._caller.call(lease, request)
        lease.note_listener(call)
        task = asyncio.create_task(
            self._caller.answer(lease, ordinal, request, call), name=f"call {lease.action}.{ordinal}"
        )
        lease.keep(task)
        task.add_done_callback(retrieve_error)
        call.begin_listening(lease.performance)
        if request.body.get("stream"):
            try:
                await call.begins()
            except BaseException:
                call.end_listening(lease.performance)
                raise
            return StreamingResponse(self._told(lease, call, request), media_type=EVENTS)
        try:
            reply = await _unless_gone(call, http)
        finally:
            call.end_listening(lease.performance)
        if reply is None:
            return Response(status_code=499)
        self._remember(lease, request, reply)
        return Response(convert_reply(reply, request).content, media_type=JSON)

    async def _told(self, lease: Lease, call: ProviderCall, request: WireRequest) -> AsyncIterator[bytes]:
        """Yield a stream's bytes as they arrive; break the connection off where the answer breaks in the middle."""
        try:
            if call.outcome.done():
                yield convert_reply(call.outcome.result(), request).content
            else:
                async for news in call.listen():
                    yield news
            self._remember(lease, request, call.outcome.result())
        except AnswerCut:
            lease.cut = True
            raise
        finally:
            call.end_listening(lease.performance)

    def _remember(self, lease: Lease, request: WireRequest, reply: WireReply) -> None:
        if request.protocol is WireProtocol.RESPONSES:
            lease.memory.remember_raw(request, reply)

    # Requests between different protocols, and to models without a wire protocol

    async def _translate(self, wire: Wire, lease: Lease, http: "HttpRequest", raw: bytes) -> "Response":
        from starlette.responses import Response

        async with lease.pace.handle():
            if lease.role == DRY_RUN:
                with collect_left_out() as names:
                    request = build_request(wire.protocol, raw, http.headers, lease.memory)
                lease.rehearsed.left_out.update(names)
                named = replace(
                    wire.read_request(request.body), model=str(request.body.get("model") or DEFAULT)
                )
                call = ParsedCall(named, bool(request.body.get("stream")))
                if any(item.get("type") == "additional_tools" for item in records(request.body.get("input"))):
                    # Codex offers its tools there, in a form that only a translation reads.
                    with contextlib.suppress(BadRequest):
                        call = parse_call(wire, request.body)
                tokens = estimate_input(request.body)
                lease.rehearsed.note(wire, read_document(wire, raw), tokens, request, call.request)
            else:
                call = read_call(wire, raw, lease, one_price=self.has_one_price(lease))
        asked = call.request
        self.check_model(asked.model, lease)
        whole = call.after(lease.memory.conversation(call.previous)) if call.previous else asked
        output = self.output(lease, whole.max_output_tokens)
        whole = lease.memory.add_native_forms(
            replace(whole, model=lease.model.name, max_output_tokens=output)
        )
        ordinal = lease.admit()
        task = asyncio.create_task(self.said(lease, ordinal, whole), name=f"call {lease.action}.{ordinal}")
        lease.keep(task)
        try:
            # The reply is awaited to its end, and journaled, even if the agent hangs up meanwhile.
            key, reply = await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            raise JobEnded from None
        name = answer_id(wire, key)
        # Only in Responses may a call name the answer that it continues.
        lease.memory.remember(name, call.inherited(whole), reply, goes_on=wire is RESPONSES)
        answer = WireAnswer(reply, name, asked.model, int(time.time()), call.echo)
        content = render_answer(wire, answer, stream=call.stream)
        return Response(content, media_type=EVENTS if call.stream else JSON)

    async def said(self, lease: Lease, ordinal: int, request: Request) -> tuple[CallKey, Reply]:
        """Return the key of one call and its reply in dgm's own form, for any protocol of the model."""
        protocol, plain = lease.protocol, replace(request, form=None)
        if protocol is None or lease.role == DRY_RUN or lease.memory.holds(plain):
            key, reply = await self._caller.answer(lease, ordinal, plain)
            assert isinstance(reply, Reply)
            return key, reply
        raw = self._write_raw(lease, protocol, plain)
        if request.form and not lease.memory.holds(raw):
            formed = self._write_raw(lease, protocol, request)
            # A recording has no settings of the provider's: the request is the recorded one.
            wanted = lease.wire_model is not None and lease.wire_model.takes_form
            raw = formed if wanted or lease.memory.holds(formed) else raw
        call = self._caller.call(lease, raw)
        lease.note_listener(call)
        call.begin_listening(lease.performance)
        try:
            key, said = await self._caller.answer(lease, ordinal, raw, call)
        finally:
            call.end_listening(lease.performance)
        assert isinstance(said, WireReply)
        return key, reply_of(said, raw.body)

    def _write_raw(self, lease: Lease, protocol: WireProtocol, request: Request) -> WireRequest:
        body = {**WIRES[protocol].write_request(request, lease.names.native), "stream": True}
        return WireRequest(protocol, body, form_optional=request.form is not None)

    # Checks of a request

    def check_model(self, asked: str, lease: Lease) -> None:
        """Refuse a name that does not stand for the lent model, and note the name of another one that does.

        Raises:
            BadRequest: as ``ModelNames.check``.
        """
        if not lease.names.check(asked):
            return
        if lease.role == DRY_RUN:
            lease.rehearsed.other_models[asked[:80]] = None
        else:
            leave_out(f"the name {asked[:80]!r} of another model: the lent one answers")

    def has_one_price(self, lease: Lease) -> bool:
        """Return whether a model costs the same for inputs of every length."""
        return lease.role == DRY_RUN or not self._ledger.price(lease.model.name).long

    def output(self, lease: Lease, wished: int | None) -> int:
        """Return the output limit for a request that asks for ``wished`` tokens."""
        price = FREE if lease.role == DRY_RUN else self._ledger.price(lease.model.name)
        most = price.reply_limit(lease.limits.output_tokens)
        return min(wished or most, most)


async def _unless_gone(call: ProviderCall, http: "HttpRequest") -> WireReply | None:
    """Return a call's reply; None if the agent hung up first. The call continues in either case."""
    if not call.outcome.done():
        gone = asyncio.ensure_future(http.receive())
        try:
            either: set[asyncio.Future[Any]] = {call.outcome, gone}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await gone
        if not call.outcome.done():
            return None
    return call.outcome.result()
