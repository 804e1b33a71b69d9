"""A server of OpenAI's protocols by script, in the test's own process, asked through the real package."""

import asyncio
import json
from contextlib import aclosing

import httpx2

from dgm.config import ProviderSettings
from dgm.models.openai_client import open_client

EVENTS = {"content-type": "text/event-stream; charset=utf-8"}
URL = "http://models.test/v1"


def whole(body, status=200):
    """An answer in one piece."""
    return httpx2.Response(status, json=body)


def page(text="<html>502</html>"):
    """What a proxy says in a server's place."""
    return httpx2.Response(200, headers={"content-type": "text/html"}, text=text)


def stream(*events, end="data: [DONE]\n\n"):
    """A streamed answer; a string is put on the wire as it is, a record with a type is sent as a named event."""
    lines = [event if isinstance(event, str) else _event(event) for event in events]
    return httpx2.Response(200, headers=EVENTS, content=("".join(lines) + end).encode())


def _event(event):
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n"


class Torn(httpx2.AsyncByteStream):
    """A body whose connection dies."""

    def __init__(self, *pieces):
        self.pieces = pieces

    async def __aiter__(self):
        for part in self.pieces:
            yield part
        raise httpx2.ReadError("connection reset")


class Hanging(Torn):
    """A body that never ends."""

    async def __aiter__(self):
        for part in self.pieces:
            yield part
        await asyncio.Event().wait()


class Server:
    """Answers the scripted responses in order and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []
        self.requests = []

    def __call__(self, request):
        self.requests.append(request)
        self.asked.append(json.loads(request.content) if request.content else None)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self, *, compatible=False, key="sk-test", **settings):
        transport = httpx2.MockTransport(self)
        return open_client(
            ProviderSettings(base_url=URL, **settings),
            key,
            compatible=compatible,
            http_client=httpx2.AsyncClient(transport=transport),
        )


def talk(dialect, *requests):
    """The replies to requests, one after the other."""

    async def scenario():
        async with aclosing(_Closing(dialect)):
            return [await dialect.ask(request) for request in requests]

    return asyncio.run(asyncio.wait_for(scenario(), 60))


def check(dialect):
    """Asks whether the model is offered."""
    asyncio.run(asyncio.wait_for(dialect.check(), 60))


class _Closing:
    def __init__(self, dialect):
        self.aclose = dialect.close
