"""The wires alone before scripted replies, and the vendors' own clients in front of them."""

import asyncio
import json
from contextlib import asynccontextmanager

import httpx2
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from dgm.domain import Usage
from dgm.gateway.allowed import BadRequest
from dgm.gateway.answering import read_document
from dgm.gateway.translation import answer_id, parse_call
from dgm.messages import CallKey, Reply, Stop, ToolCall
from dgm.wires import CHAT, MESSAGES, RESPONSES
from dgm.wires.wire import WireAnswer

WIRES = (CHAT, RESPONSES, MESSAGES)
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
USED = Usage(1, 100, 30, 0.0, 60, 10, 20)
SAID = Reply("Done.", usage=USED)
CALLED = Reply(
    "Let me look.",
    (ToolCall("call_1", "bash", '{"command": "ls"}'), ToolCall("call_2", "bash", '{"command": "pwd"}')),
    Stop.TOOL_CALLS,
    USED,
    "The user wants a listing.",
)


def parse(wire, body):
    """What the gateway reads of a request that is to be translated."""
    return parse_call(
        wire, read_document(wire, body if isinstance(body, bytes) else json.dumps(body).encode())
    )


class Table:
    """Gives its replies in order, the last one for ever; keeps what was asked."""

    def __init__(self, *replies):
        self.replies = replies
        self.calls = []
        self.bodies = []

    def app(self):
        routes = [Route("/v1" + wire.path, self._endpoint(wire), methods=["POST"]) for wire in WIRES]
        return Starlette(routes=routes)

    def _endpoint(self, wire):
        async def endpoint(http):
            body = await http.body()
            self.bodies.append(json.loads(body))
            try:
                call = parse(wire, body)
            except BadRequest as refusal:
                error = wire.render_error(refusal.status, refusal.code, str(refusal))
                return Response(error, refusal.status, media_type="application/json")
            self.calls.append(call)
            number = len(self.calls)
            reply = self.replies[min(number, len(self.replies)) - 1]
            answer = WireAnswer(
                reply, answer_id(wire, CallKey(7, number)), call.request.model, 1_700_000_000, call.echo
            )
            kind = "text/event-stream" if call.stream else "application/json"
            return Response(wire.render(wire.write_answer(answer), stream=call.stream), media_type=kind)

        return endpoint


@asynccontextmanager
async def openai_client(table):
    import openai

    web = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=table.app()))
    async with openai.AsyncOpenAI(
        api_key="k", base_url="http://g/v1", http_client=web, max_retries=0
    ) as vendor:
        yield vendor


@asynccontextmanager
async def anthropic_client(table):
    import anthropic

    web = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=table.app()))
    async with anthropic.AsyncAnthropic(
        api_key="k", base_url="http://g", http_client=web, max_retries=0
    ) as vendor:
        yield vendor


def with_client(client, talk, *replies):
    """What a talk makes of the replies, and the table with what it asked."""
    table = Table(*(replies or (CALLED,)))

    async def scenario():
        async with client(table) as vendor:
            return await talk(vendor)

    return asyncio.run(asyncio.wait_for(scenario(), 60)), table
