"""Answers by script, passed as the gateway passes them, and read by the vendors' real clients."""

import asyncio
import json

import anthropic
import httpx2
import openai

from dgm.messages import WireProtocol
from dgm.wires import WIRES
from dgm.wires.events import DONE
from dgm.wires.sse import read_events

CHAT, RESPONSES, MESSAGES = WireProtocol.CHAT, WireProtocol.RESPONSES, WireProtocol.MESSAGES
TURN = {"role": "user", "content": "Hi"}
BODIES = {
    CHAT: {"model": "m", "messages": [TURN]},
    RESPONSES: {"model": "m", "input": [TURN]},
    MESSAGES: {"model": "m", "max_tokens": 100, "messages": [TURN]},
}


class Bytes(httpx2.AsyncByteStream):
    """A body in pieces."""

    def __init__(self, pieces):
        self.pieces = pieces

    async def __aiter__(self):
        for piece in self.pieces:
            yield piece


def sse(*events, end="data: [DONE]\n\n", named=None):
    """Events as bytes; a string goes on the wire as it is. Events with a type are named by it unless told not to."""
    lines = []
    for event in events:
        if isinstance(event, str):
            lines.append(event)
            continue
        name = f"event: {event['type']}\n" if "type" in event and named is not False else ""
        lines.append(f"{name}data: {json.dumps(event)}\n\n")
    return ("".join(lines) + end).encode()


def read_records(*pieces):
    """The records of a body that comes in pieces."""

    async def scenario():
        response = httpx2.Response(
            200,
            headers={"content-type": "text/event-stream"},
            stream=Bytes(pieces),
            request=httpx2.Request("POST", "http://models.test"),
        )
        return [record async for record in read_events(response.aiter_bytes())]

    return asyncio.run(scenario())


def passed(protocol, content, request=None):
    """A streamed body as it is passed on: the bytes, and the reader that read it."""
    reader = WIRES[protocol].reader(request or BODIES[protocol])
    sent, done = [], False
    for record in read_records(content):
        if record.data == DONE:
            done = True
            continue
        events = reader.take(json.loads(record.data), record.name)
        sent += [record.raw] if events is None else [event.render() for event in events]
    sent += [event.render() for event in reader.finish(done=done)]
    if protocol is CHAT:
        sent.append(b"data: [DONE]\n\n")
    return b"".join(sent), reader


def untouched(protocol, *events, request=None):
    """Whether a stream passes as it came."""
    content = sse(*events, end="data: [DONE]\n\n" if protocol is CHAT else "")
    return passed(protocol, content, request)[0] == content


def streamed(content):
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=content)


def _client(package, kind, answer):
    transport = httpx2.MockTransport(lambda request: answer)
    return kind(
        api_key="k",
        base_url="http://models.test/v1",
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=transport),
    )


def ask(protocol, answer, body=None):
    """What the vendor's client makes of an answer: streamed through its own accumulating helper, or whole."""

    async def chat_streamed(client):
        asked = {**BODIES[CHAT], **(body or {})}
        async with client.chat.completions.stream(**asked) as stream:
            async for _ in stream:
                pass
            return await stream.get_final_completion()

    async def responses_streamed(client):
        async with client.responses.stream(**BODIES[RESPONSES]) as stream:
            async for _ in stream:
                pass
            return await stream.get_final_response()

    async def messages_streamed(client):
        async with client.messages.stream(**BODIES[MESSAGES]) as stream:
            async for _ in stream:
                pass
            return await stream.get_final_message()

    async def scenario():
        if protocol is MESSAGES:
            async with _client(anthropic, anthropic.AsyncAnthropic, answer) as client:
                if answer.headers["content-type"].startswith("application/json"):
                    return await client.messages.create(**BODIES[MESSAGES])
                return await messages_streamed(client)
        async with _client(openai, openai.AsyncOpenAI, answer) as client:
            if answer.headers["content-type"].startswith("application/json"):
                create = client.chat.completions if protocol is CHAT else client.responses
                return await create.create(**BODIES[protocol])
            return await (chat_streamed if protocol is CHAT else responses_streamed)(client)

    return asyncio.run(asyncio.wait_for(scenario(), 30))


def ask_streamed(protocol, *events, end=None, request=None, named=None):
    """The answer to a stream as the vendor's client reads what is passed on, and our own reading of it."""
    end = ("data: [DONE]\n\n" if protocol is CHAT else "") if end is None else end
    content, reader = passed(protocol, sse(*events, end=end, named=named), request)
    return ask(protocol, streamed(content)), reader.whole()


def ask_whole(protocol, whole, request=None):
    """A whole answer as the vendor's client reads it once it is mended."""
    WIRES[protocol].check(whole)
    return ask(
        protocol, httpx2.Response(200, json=WIRES[protocol].mended(whole, request or BODIES[protocol]))
    )
