"""Answers to agents' completion requests: passed through when both protocols agree, else translated."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dgm.archive.journal import reply_of
from dgm.domain import FindingKind
from dgm.gateway import allowed
from dgm.gateway.allowed import BadRequest, collect_left_out, leave_out
from dgm.gateway.call import AnswerCut, AnyReply, Call, Listener, ModelCaller
from dgm.gateway.lease import DEFAULT, DRY_RUN, MOST_NAMES, Lease
from dgm.gateway.ledger import AnyRequest, Ledger
from dgm.gateway.memory import LeaseMemory
from dgm.gateway.translation import ParsedCall, answer_id, parse_call, parse_document
from dgm.messages import JsonObject, Reply, Request, WireProtocol, WireReply, WireRequest
from dgm.models.pricing import FREE
from dgm.wires import RESPONSES, WIRES, whole_of
from dgm.wires.values import dump_json, records
from dgm.wires.wire import Wire, WireAnswer

if TYPE_CHECKING:
    from starlette.requests import Request as HttpRequest
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

JSON = "application/json"
EVENTS = "text/event-stream"
LONG_NAME = "[1m]"
"""End of a model's name by which Claude Code asks for inputs of up to a million tokens."""
CHARACTERS_PER_TOKEN = 4


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

    async def complete(self, wire: Wire, lease: Lease, http: "HttpRequest") -> "ASGIApp":
        """Answer one request for a completion.

        Raises:
            BadRequest, RequestRefused: the agent gets this as an error.
            Infrastructure: the model failed.
            JobEnded: the job ended before the call was sent.
        """
        raw = await lease.pace.read(http, lease.limits.body_bytes)
        if lease.passes(wire.protocol):
            return await self._pass(wire, lease, http, raw)
        return await self._translate(wire, lease, http, raw)

    async def _pass(self, wire: Wire, lease: Lease, http: "HttpRequest", raw: bytes) -> "ASGIApp":
        from starlette.responses import Response

        async with lease.pace.handle():
            request = build_request(
                wire.protocol, raw, http.headers, lease.memory, one_price=self._has_one_price(lease)
            )
            self.check_model(str(request.body.get("model") or DEFAULT), lease)
            named = {**request.body, "model": lease.names.native}
            limit = self._limit_output(lease, wire.output_limit(named))
            request = replace(request, body=wire.limited(named, limit))
        with ExitStack() as stack:
            call = self._caller.open(lease, request)
            listener = stack.enter_context(call.listening(lease))
            if request.body.get("stream"):
                await call.begins()
                return _StreamedAnswer(self._read_stream(lease, call, listener, request), stack.pop_all())
            reply = await _reply_unless_gone(call, http.receive)
        if reply is None:
            return Response(status_code=499)
        assert isinstance(reply, WireReply)
        self._remember(lease, request, reply)
        return Response(convert_reply(reply, request).content, media_type=JSON)

    async def _read_stream(
        self, lease: Lease, call: Call, listener: Listener, request: WireRequest
    ) -> AsyncIterator[bytes]:
        if call.outcome.done():
            reply = call.outcome.result()
            assert isinstance(reply, WireReply)
            yield convert_reply(reply, request).content
        else:
            try:
                async for news in call.listen(listener):
                    yield news
            except AnswerCut:
                lease.cut = True
                raise
        self._remember(lease, request, call.outcome.result())

    def _remember(self, lease: Lease, request: WireRequest, reply: AnyReply) -> None:
        if request.protocol is WireProtocol.RESPONSES and isinstance(reply, WireReply):
            lease.memory.remember_raw(request, reply)

    async def _translate(self, wire: Wire, lease: Lease, http: "HttpRequest", raw: bytes) -> "Response":
        """Answer a request to a model of another protocol, or of none."""
        from starlette.responses import Response

        async with lease.pace.handle():
            if lease.role == DRY_RUN:
                parsed = self._rehearse(wire, lease, http, raw)
            else:
                parsed = read_call(wire, raw, lease, one_price=self._has_one_price(lease))
            asked = parsed.request
            self.check_model(asked.model, lease)
            whole = parsed.after(lease.memory.conversation(parsed.previous)) if parsed.previous else asked
            whole = lease.memory.add_native_forms(whole)
        answered = await self._ask(lease, whole, http)
        if answered is None:
            return Response(status_code=499)
        call, reply = answered
        assert call.key is not None
        name = answer_id(wire, call.key)
        # Only in Responses may a call name the answer that it continues.
        lease.memory.remember(name, parsed.inherited(whole), reply, goes_on=wire is RESPONSES)
        answer = WireAnswer(reply, name, asked.model, int(time.time()), parsed.echo)
        content = wire.render(wire.write_answer(answer), stream=parsed.stream)
        return Response(content, media_type=EVENTS if parsed.stream else JSON)

    def _rehearse(self, wire: Wire, lease: Lease, http: "HttpRequest", raw: bytes) -> ParsedCall:
        """Read a request of a dry run, and note what it shows."""
        with collect_left_out() as names:
            request = build_request(wire.protocol, raw, http.headers, lease.memory)
        lease.rehearsed.left_out.update(names)
        named = replace(wire.read_request(request.body), model=str(request.body.get("model") or DEFAULT))
        call = ParsedCall(named, bool(request.body.get("stream")))
        if any(item.get("type") == "additional_tools" for item in records(request.body.get("input"))):
            # Codex offers its tools there, in a form that only a translation reads.
            with contextlib.suppress(BadRequest):
                call = parse_call(wire, request.body)
        tokens = estimate_input(request.body)
        lease.rehearsed.note(wire, read_document(wire, raw), tokens, request, call.request)
        return call

    async def ask(self, lease: Lease, request: Request) -> Reply:
        """Return the answer to a question of the host itself; raises as ``complete``."""
        answered = await self._ask(lease, request)
        assert answered is not None
        return answered[1]

    async def _ask(
        self, lease: Lease, request: Request, http: "HttpRequest | None" = None
    ) -> tuple[Call, Reply] | None:
        """Return a call and its reply in dgm's own form, for any protocol of the model; None if the agent hung up."""
        limit = self._limit_output(lease, request.max_output_tokens)
        asked = self._write(lease, replace(request, model=lease.model.name, max_output_tokens=limit))
        if isinstance(asked, WireRequest) and http is None:
            asked = replace(asked, own=True)
        call = self._caller.open(lease, asked)
        with call.listening(lease):
            reply = await (_reply_unless_gone(call, http.receive) if http else asyncio.shield(call.outcome))
        if reply is None:
            return None
        return call, reply if isinstance(reply, Reply) else reply_of(reply, _body(asked))

    def _write(self, lease: Lease, request: Request) -> AnyRequest:
        """Return a question in the form in which the model is asked, or was asked when it was recorded."""
        plain = replace(request, form=None)
        if lease.protocol is None or lease.role == DRY_RUN or lease.memory.holds(plain):
            return plain
        protocols = dict.fromkeys((lease.protocol, *lease.memory.protocols))
        forms = (plain, request) if request.form else (plain,)
        raws = [_write_raw(lease, protocol, one) for protocol in protocols for one in forms]
        wanted = len(forms) > 1 and lease.wire_model is not None and lease.wire_model.takes_form
        return next(filter(lease.memory.holds, raws), raws[1 if wanted else 0])

    def check_model(self, asked: str, lease: Lease) -> None:
        """Refuse a name that does not stand for the lent model, and note the name of another one that does.

        Raises:
            BadRequest: as ``ModelNames.check``.
        """
        if asked not in lease.names.listed and len(lease.asked_models) < MOST_NAMES:
            lease.asked_models[asked[:80]] = None
        try:
            if not lease.names.check(asked):
                return
        except BadRequest as refusal:
            # An agent that was answered knows its model; before that, the name may be its client's default.
            refusal.kind = FindingKind.OTHER_MODEL if lease.calls else None
            raise
        if lease.role == DRY_RUN:
            lease.rehearsed.other_models[asked[:80]] = None
        else:
            leave_out(f"the name {asked[:80]!r} of another model: the lent one answers")

    def count_input(self, wire: Wire, lease: Lease, raw: bytes) -> int:
        """Return the estimated input tokens of a request; raises ``BadRequest`` as for a completion."""
        body = parse_document(raw)
        allowed.check(wire.protocol, body, counting=True)
        body = without_long_name(body, one_price=self._has_one_price(lease))
        self.check_model(str(body.get("model") or DEFAULT), lease)
        return estimate_input(body)

    def _has_one_price(self, lease: Lease) -> bool:
        """Return whether a model costs the same for inputs of every length."""
        return lease.role == DRY_RUN or not self._ledger.price(lease.model.name).long

    def _limit_output(self, lease: Lease, wished: int | None) -> int:
        """Return the output limit for a request that asks for ``wished`` tokens."""
        price = FREE if lease.role == DRY_RUN else self._ledger.price(lease.model.name)
        most = price.reply_limit(lease.limits.output_tokens)
        return min(wished or most, most)


def build_request(
    protocol: WireProtocol,
    raw: bytes,
    given: Mapping[str, str],
    memory: LeaseMemory,
    *,
    one_price: bool = True,
) -> WireRequest:
    """Return a request in the form to send, except the model's name and the output limit.

    Args:
        protocol: the request's protocol.
        raw: its body.
        given: its headers.
        memory: the memory of the same job, for a request that continues an answer.
        one_price: as for ``select_headers``.

    Raises:
        BadRequest: it is malformed, or it asks for something that is not offered.
    """
    body = parse_document(raw)
    if protocol is WireProtocol.RESPONSES:
        body = dict(memory.continued(body))
    allowed.check(protocol, body)
    sent = without_long_name(allowed.prepare(protocol, body), one_price=one_price)
    return WireRequest(protocol, sent, allowed.select_headers(given, protocol, one_price=one_price))


def read_document(wire: Wire, raw: bytes, *, one_price: bool = True) -> JsonObject:
    """Return a body of which only what may pass is left.

    Raises:
        BadRequest: it is malformed, or asks for something that is not offered.
    """
    body = parse_document(raw)
    previous = body.pop("previous_response_id", None) if wire.protocol is WireProtocol.RESPONSES else None
    allowed.check(wire.protocol, body)
    body = without_long_name(body, one_price=one_price)
    return body if previous is None else {**body, "previous_response_id": previous}


def read_call(wire: Wire, raw: bytes, lease: Lease, *, one_price: bool) -> ParsedCall:
    """Return a call that is to be translated into another protocol.

    Raises:
        BadRequest: it is malformed, or asks for something that is not offered; not the agent's fault if its provider
            would accept it in the same protocol.
    """
    body = read_document(wire, raw, one_price=one_price)
    try:
        return parse_call(wire, body)
    except BadRequest as refusal:
        if lease.protocol is None:
            raise
        message = (
            f"{refusal} (the model is asked in another protocol, {lease.protocol}, which cannot carry it; "
            f"where its provider speaks {wire.protocol} too, set api = '{wire.protocol}' in its settings)"
        )
        raise BadRequest(message, refusal.code, refusal.status, own=False) from refusal


def without_long_name(body: JsonObject, *, one_price: bool) -> dict[str, Any]:
    """Return the body without the end of the model's name that asks for long inputs, where they cost no more."""
    name = body.get("model")
    if not (one_price and isinstance(name, str) and name.endswith(LONG_NAME)):
        return dict(body)
    leave_out(f"the end {LONG_NAME} of the model's name")
    return {**body, "model": name.removesuffix(LONG_NAME)}


def convert_reply(reply: WireReply, request: WireRequest) -> WireReply:
    """Return a reply streamed or whole, as the request asks; a recorded one may have the other form."""
    wanted = bool(request.body.get("stream"))
    if reply.stream == wanted or reply.error:
        return reply
    content = WIRES[reply.protocol].render(whole_of(reply, request.body), stream=wanted)
    return replace(reply, content=content, stream=wanted)


def estimate_input(body: Mapping[str, Any]) -> int:
    """Return the estimated input tokens of a request: a quarter of its bytes."""
    return max(1, len(dump_json(body)) // CHARACTERS_PER_TOKEN)


def _write_raw(lease: Lease, protocol: WireProtocol, request: Request) -> WireRequest:
    body = {**WIRES[protocol].write_request(request, lease.names.native), "stream": True}
    return WireRequest(protocol, body, form_optional=request.form is not None)


def _body(request: AnyRequest) -> JsonObject:
    return request.body if isinstance(request, WireRequest) else {}


class _StreamedAnswer:
    """A response that is sent as it arrives; the agent listens to its call until the end, or until it hangs up."""

    def __init__(self, parts: AsyncIterator[bytes], listening: ExitStack) -> None:
        self._parts = parts
        self._listening = listening

    async def __call__(self, _scope: "Scope", receive: "Receive", send: "Send") -> None:
        with self._listening:
            sent = asyncio.ensure_future(self._send(send))
            try:
                await _wait_unless_gone(sent, receive)
            finally:
                sent.cancel()
            # The server breaks the connection off where an answer broke in the middle.
            with contextlib.suppress(asyncio.CancelledError, AnswerCut):
                await sent

    async def _send(self, send: "Send") -> None:
        headers = [(b"content-type", EVENTS.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for part in self._parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _reply_unless_gone(call: Call, receive: "Receive") -> AnyReply | None:
    """Return a call's reply; None if the agent hung up first. The call continues in either case."""
    await _wait_unless_gone(call.outcome, receive)
    return call.outcome.result() if call.outcome.done() else None


async def _wait_unless_gone(what: "asyncio.Future[Any]", receive: "Receive") -> None:
    """Wait until something is done or the agent hangs up."""
    gone = asyncio.ensure_future(receive())
    try:
        await asyncio.wait({what, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await gone
