"""Who answers: the offline model, an echo, a script; and a wrapper that makes any of them think aloud."""

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from dgm.domain import Usage
from dgm.messages import Message, Reply, Request, Role, Stop
from dgm.offline import OfflineModel
from tests.support.wire_server.protocol import sign, size


class Brain(Protocol):
    """Answers what a wire understood."""

    async def answer(self, request: Request) -> Reply:
        """Return one reply.

        Raises:
            RequestRefused: the provider is to refuse.
        """
        ...


class Offline:
    """The offline model, errors included: it answers here as it answers directly."""

    def __init__(self) -> None:
        self._model = OfflineModel()

    async def answer(self, request: Request) -> Reply:
        return await self._model.reply(request)


class Echo:
    """Repeats the last message, cut at the output limit."""

    async def answer(self, request: Request) -> Reply:
        text = request.messages[-1].text
        limit = request.max_output_tokens
        stop = Stop.END
        if limit is not None and len(text) // 4 > limit:
            text, stop = text[: limit * 4], Stop.LENGTH
        return Reply(text, stop=stop, usage=Usage(1, max(1, size(request) // 4), max(1, len(text) // 4)))


class Scripted:
    """Gives its replies in order, the last one again for ever; an exception among them is raised."""

    def __init__(self, replies: Sequence[Reply | Exception]) -> None:
        self._replies = tuple(replies)
        self._lock = threading.Lock()
        self.asked: list[Request] = []

    async def answer(self, request: Request) -> Reply:
        with self._lock:
            at = len(self.asked)
            self.asked.append(request)
        reply = self._replies[min(at, len(self._replies) - 1)]
        if isinstance(reply, Exception):
            raise reply
        return reply


class Thinking:
    """Adds reasoning to every reply of another brain: the same for the same request."""

    def __init__(self, inner: Brain) -> None:
        self._inner = inner

    async def answer(self, request: Request) -> Reply:
        reply = await self._inner.answer(request)
        last = next((m for m in reversed(request.messages) if m.role is not Role.SYSTEM), Message(Role.USER))
        mark = sign(json.dumps([(m.role, m.text) for m in request.messages]))[:12]
        thought = f"({mark}) Let me see. The last word was: {last.text[:60]!r}. What follows is plain."
        spent = len(thought) // 4
        output = (reply.usage.output_tokens or max(1, len(reply.text) // 4)) + spent
        return replace(
            reply, reasoning=thought, usage=replace(reply.usage, output_tokens=output, reasoning_tokens=spent)
        )
