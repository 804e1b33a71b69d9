"""Answers by script, passed as the gateway passes them, and read by the vendors' real clients."""

import asyncio
import itertools
import json

import anthropic
import httpx2
import openai

from dgm.messages import WireProtocol
from dgm.models.receiving import AnswerReader
from dgm.wires import WIRES

CHAT, RESPONSES, MESSAGES = WireProtocol.CHAT, WireProtocol.RESPONSES, WireProtocol.MESSAGES
TURN = {"role": "user", "content": "Hi"}
BODIES = {
    CHAT: {"model": "m", "messages": [TURN]},
    RESPONSES: {"model": "m", "input": [TURN]},
    MESSAGES: {"model": "m", "max_tokens": 100, "messages": [TURN]},
}


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


def passed(protocol, content, request=None, cuts=()):
    """A streamed body as it is passed on, in pieces: the answer, and what was handed on before its end."""
    asked = {**(request or BODIES[protocol]), "stream": True}
    reader = AnswerReader(WIRES[protocol], asked, asked)
    places = [0, *sorted(cut % (len(content) + 1) for cut in cuts), len(content)]
    news = b"".join(reader.feed(content[start:end]) for start, end in itertools.pairwise(places))
    answer = reader.end()
    assert answer.content.startswith(news)
    return answer, news


def untouched(protocol, *events, request=None):
    """Whether a stream passes as it came."""
    content = sse(*events, end="data: [DONE]\n\n" if protocol is CHAT else "")
    return passed(protocol, content, request)[0].content == content


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
    answer, _ = passed(protocol, sse(*events, end=end, named=named), request)
    return ask(protocol, streamed(answer.content)), answer.whole


def ask_whole(protocol, whole, request=None):
    """A whole answer as the vendor's client reads it once it is mended."""
    asked = request or BODIES[protocol]
    reader = AnswerReader(WIRES[protocol], asked, asked, streamed=False)
    reader.feed(json.dumps(whole).encode())
    headers = {"content-type": "application/json"}
    return ask(protocol, httpx2.Response(200, headers=headers, content=reader.end().content))
