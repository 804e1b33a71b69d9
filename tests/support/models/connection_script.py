"""A provider by script: what each request is answered with, and a model that asks it in virtual time."""

import asyncio
import json
from contextlib import contextmanager
from random import Random

import httpx2

from dgm.config import ProviderSettings
from dgm.messages import WireProtocol, WireRequest
from dgm.models.hosted import Access, HostedModel, Retries
from dgm.models.throttle import Throttle
from tests.support import virtual_time
from tests.support.virtual_time import clock

NAME = "openai/m-1"
KEY = "k3y-0123456789-abcdefghij-ZZ"
URL = "http://models.test"
COUNTS = {"prompt_tokens": 30, "completion_tokens": 4, "total_tokens": 34}
EVENTS = {"content-type": "text/event-stream"}


def completion(text="Here.", finish="stop", **more):
    """A whole answer of Chat Completions."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "m-1", "choices": [choice]}
    return {**whole, "usage": COUNTS, **more}


def well(text="Here.", **more):
    """The response that holds it."""
    return httpx2.Response(200, json=completion(text, **more))


def answer(status, message="So.", headers=None, **error):
    """A refusal as OpenAI writes it."""
    return httpx2.Response(status, json={"error": {"message": message, **error}}, headers=headers)


def chunk(delta, finish=None, **more):
    """A record of a stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    whole = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m-1", "choices": [choice]}
    return record({**whole, **more})


def record(data, name=""):
    """Data as a server-sent event."""
    named = f"event: {name}\n" if name else ""
    return f"{named}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


USAGE_CHUNK = record({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": COUNTS})
DONE = record("[DONE]")
STREAM = (
    chunk({"role": "assistant", "content": "He"}),
    chunk({"content": "re."}),
    chunk({}, "stop"),
    USAGE_CHUNK,
    DONE,
)


class Pieces(httpx2.AsyncByteStream):
    """A body in pieces; an exception among them is raised, a number is waited for in seconds."""

    def __init__(self, pieces):
        self.pieces = pieces

    async def __aiter__(self):
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            if isinstance(piece, bytes):
                yield piece
            else:
                await asyncio.sleep(piece)


def streamed(*pieces):
    """A streamed response."""
    return httpx2.Response(200, headers=EVENTS, stream=Pieces(pieces))


class Reply:
    """What a model reads of an ``aiohttp.ClientResponse``."""

    def __init__(self, response):
        self.status, self.headers = response.status_code, response.headers
        self._pieces = response.stream
        self.content = self
        self.closed = False

    def iter_any(self):
        return aiter(self._pieces)

    def set_exception(self, error):
        """Forget the error."""

    def read_nowait(self):
        """Nothing is left."""
        return b""

    async def read(self):
        return b"".join([piece async for piece in self._pieces])

    def close(self):
        self.closed = True


class Script:
    """``dgm.models.connections.Connection``: gives its steps in order, then whole answers for ever."""

    base_url = URL
    secrets = (KEY,)
    key_env = "A_KEY"
    list_path = "/models"
    proxy = ""

    def __init__(self, *steps, protocol=WireProtocol.CHAT, pages=None):
        self.protocol, self.protocols = protocol, (protocol,)
        self.steps = list(steps)
        self.pages = pages or {}
        self.bodies, self.headers, self.at, self.places = [], [], [], []
        self.closed = False

    async def post(self, path, body, *, headers, ready, own=False):
        """The next step; a refused connection never gets the whole request."""
        self.places.append((path, bool(body.get("stream"))))
        self.bodies.append(dict(body))
        self.headers.append(dict(headers))
        self.at.append(clock())
        step = self.steps.pop(0) if self.steps else well()
        if not isinstance(step, ConnectionRefusedError):
            await ready()
        step = await step(body) if callable(step) else step
        if isinstance(step, Exception):
            raise step
        return Reply(step)

    async def get(self, path):
        return json.dumps(self.pages.get(path, "Not Found")).encode()

    async def close(self):
        self.closed = True

    @property
    def gaps(self):
        """Seconds between the requests."""
        return [after - before for before, after in zip(self.at, self.at[1:], strict=False)]


class Heard:
    """A listener that keeps all."""

    def __init__(self):
        self.lessons, self.told_waits, self.overruns = [], [], []

    def learned(self, model, abilities, words, usage=None):
        self.lessons.append((model, abilities, words))

    def waits(self, model, words, until):
        self.told_waits.append((model, words, until))

    def overran(self, model, asked, billed):
        self.overruns.append((model, asked, billed))


class Log:
    """A delivery that keeps what happened, in order."""

    def __init__(self):
        self.events = []
        self.passed = b""
        self.wasted = []

    @contextmanager
    def waiting(self):
        begun = clock()
        self.events.append("waiting")
        yield
        self.events.append(f"waited {clock() - begun:.0f}")

    async def begin(self):
        """Record nothing."""

    def sending(self):
        self.events.append("sending")

    def pass_on(self, data):
        self.passed += data

    def take_back(self, wasted):
        self.events.append("take back")
        self.wasted.append(wasted)


def asked(protocol=WireProtocol.CHAT, **more):
    """A request of an agent."""
    turn = {"role": "user", "content": "Hi"}
    body = {"model": "default", "messages": [turn], "max_tokens": 64, **more}
    if protocol is WireProtocol.RESPONSES:
        body = {"model": "default", "input": [turn], "max_output_tokens": 64, **more}
    return WireRequest(protocol, body)


class Bench:
    """A model whose provider answers by script."""

    def __init__(self, *steps, access=None, protocol=WireProtocol.CHAT, pages=None, **limits):
        settings = ProviderSettings(**{"concurrency": 4, "tries": 3, **limits})
        self.script = Script(*steps, protocol=protocol, pages=pages)
        self.throttle = Throttle(settings, asyncio.sleep, clock)
        retries = Retries(settings.tries, settings.backoff_s, asyncio.sleep, clock, clock, Random(1))
        known = {"key_env": "A_KEY", "secrets": (KEY,), **(access or {})}
        self.model = HostedModel(NAME, "m-1", self.script, self.throttle, retries, Access(**known))
        self.heard = Heard()
        self.model.adopt(self.heard, None)
        self.log = Log()

    def ask(self, **more):
        return virtual_time.run(self.send(**more))

    async def send(self, **more):
        return await self.model.send(asked(self.script.protocol, **more), self.log)

    def check(self):
        return virtual_time.run(self.model.check())


def text_of(reply):
    """What an answer in one piece says."""
    return json.loads(reply.content)["choices"][0]["message"]["content"]
