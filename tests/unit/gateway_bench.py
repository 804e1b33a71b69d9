"""A gateway with a journal in memory and a model that does as it is told; and a client on its socket."""

import asyncio
import json
from contextlib import asynccontextmanager

import httpx2

from dgm.domain import ActionId, Usage
from dgm.errors import BudgetExhausted
from dgm.gateway.server import Gateway
from dgm.messages import Reply

ACTION = ActionId(7)


class MemoryJournal:
    """Keeps what was paid for; a key is paid once."""

    def __init__(self):
        self.replies = {}
        self.requests = {}
        self.poor = False

    def afford(self, key):
        if self.poor:
            raise BudgetExhausted("nothing is left")

    def recorded(self, key):
        return self.replies.get(key)

    def record(self, key, role, request, reply, seconds):
        assert key not in self.replies, f"{key} is paid twice"
        self.replies[key] = reply
        self.requests[key] = request


class Script:
    """Gives its answers in order, the last one again for ever; an exception among them is raised."""

    def __init__(self, *answers, name="scripted"):
        self.name = name
        self.answers = answers or (Reply("hello", usage=Usage(1, 10, 5)),)
        self.asked = []

    async def reply(self, request):
        self.asked.append(request)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return answer


class Slow(Script):
    """Answers when it is let go, and knows how many wait at once."""

    def __init__(self):
        super().__init__()
        self.go = asyncio.Event()
        self.waiting = 0
        self.most = 0
        self.cancelled = 0

    async def reply(self, request):
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.waiting -= 1
        return await super().reply(request)


@asynccontextmanager
async def gateway(folder, model=None, journal=None, **options):
    """An open gateway that lends ``model`` for both roles."""
    lent = model or Script()
    models = {"solve": lent, "improve": lent, "dry-run": lent}
    async with Gateway(folder, journal or MemoryJournal(), models, **options) as opened:
        yield opened


def client(opened, token):
    """A client on the gateway's socket."""
    transport = httpx2.AsyncHTTPTransport(uds=str(opened.folder / opened.socket_name))
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.AsyncClient(transport=transport, base_url="http://gateway/v1", headers=headers, timeout=30)


def chat(text="hi", **more):
    """The body of a small request."""
    return {"model": "default", "messages": [{"role": "user", "content": text}], **more}


async def ask(http, **more):
    """One call; status and body."""
    response = await http.post("/chat/completions", content=json.dumps(chat(**more)))
    return response.status_code, response.json()
