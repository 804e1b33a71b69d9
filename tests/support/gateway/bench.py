"""A gateway with a journal in memory and a model that does as it is told; and a client on its socket."""

import asyncio
import json
from contextlib import asynccontextmanager

import httpx2

from dgm.archive.volatile_text import UNKNOWN
from dgm.domain import ActionId, Budget, Usage
from dgm.gateway.ledger import Ledger
from dgm.gateway.server import Gateway
from dgm.messages import CallKey, Exchange, Message, PaidCall, Reply, Request, Role
from dgm.models.pricing import Price, TokenRates

ACTION = ActionId(7)


class MemoryJournal:
    """Keeps what was paid for; a key is paid once."""

    def __init__(self):
        self.paid = {}
        self.refused = []
        self.begun = []
        self.booked = []
        self.cut = []
        self.lost = []
        self.taught = []
        self.then = UNKNOWN

    def numbers(self, action):
        answered = {key.number for key in self.paid if key.action == action}
        return max([0, *answered, *(cut.number for cut in self.cut_calls(action))]), answered

    def recall(self, action, numbers):
        keys = [CallKey(action, number) for number in sorted(numbers)]
        return [Exchange(key.number, self.paid[key].request, self.paid[key].reply) for key in keys], self.then

    def cut_calls(self, action):
        return [call for call in self.cut if action == ACTION]

    async def begin(self, call):
        assert call.key not in self.paid, f"{call.key} begins after it was paid"
        self.begun.append(call)

    async def record(self, call, settles=()):
        assert call.key not in self.paid, f"{call.key} is paid twice"
        self.paid[call.key] = call
        self.booked += [(cut.number, cut.booked) for cut in settles]

    def book(self, action, number, model, role, usage):
        self.booked.append((number, usage))

    def lose(self, call):
        if call.key not in self.paid:
            self.lost.append(call)

    def learned(self, model, abilities, words, usage=None):
        self.taught.append((model, words))

    def refuse(self, action, role, status, code, message):
        self.refused.append((action, role, status, code, message))

    def already(self, reply, text="hi", number=1):
        """Makes it that the question was answered in an earlier performance."""
        key = CallKey(ACTION, number)
        request = Request((Message(Role.USER, text),), model="scripted")
        self.paid[key] = PaidCall(key, "scripted", "solve", request, reply, 0.1)

    @property
    def spent(self):
        return sum((call.reply.usage for call in self.paid.values()), Usage())


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

    async def check(self):
        pass

    async def close(self):
        pass


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


PRICE = Price(TokenRates(1.0, 0.1, 1.0, 10.0))


@asynccontextmanager
async def gateway(folder, model=None, journal=None, budget=None, **options):
    """An open gateway that lends ``model`` for all roles."""
    lent, kept = model or Script(), journal or MemoryJournal()
    models = dict.fromkeys(("solve", "improve", "diagnose", "dry-run"), lent)
    ledger = Ledger({lent.name: PRICE}, lambda: kept.spent, lambda: budget or Budget())
    async with Gateway(folder, kept, models, ledger, **options) as opened:
        yield opened


def client(opened, token):
    """A client on the gateway's socket."""
    transport = httpx2.AsyncHTTPTransport(uds=str(opened.folder / opened.socket_name))
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.AsyncClient(transport=transport, base_url="http://gateway/v1", headers=headers, timeout=30)


@asynccontextmanager
async def talking(opening, action=ACTION, role="solve"):
    """Open a gateway and lend its model to an agent; yields the gateway, the lease and the agent's client."""
    async with opening as opened:
        with opened.lend(action, role) as lease:
            async with client(opened, lease.token) as http:
                yield opened, lease, http


def chat(text="hi", **more):
    """The body of a small request."""
    return {"model": "default", "messages": [{"role": "user", "content": text}], **more}


async def ask(http, **more):
    """One call; status and body."""
    response = await http.post("/chat/completions", content=json.dumps(chat(**more)))
    return response.status_code, response.json()
