"""Who answers: the offline model, an echo, a script; and a wrapper that makes any of them think aloud."""

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from dgm.domain import Usage
from dgm.messages import Message, Native, Reply, Request, Role, Stop
from dgm.offline import OfflineModel
from tests.support.wire_server.errors import BrainFault
from tests.support.wire_server.protocol import sign, size

REDACTED = Native("wire-server", "redacted")
"""Tells a wire that the reasoning is to be hidden."""


class Brain(Protocol):
    """Answers what a wire understood."""

    async def answer(self, request: Request) -> Reply:
        """One reply.

        Raises:
            RequestRefused: the provider is to say so.
        """
        ...


class Offline:
    """The offline model, errors included: what it answers here is what it answers directly."""

    def __init__(self) -> None:
        self._model = OfflineModel()

    async def answer(self, request: Request) -> Reply:
        return await self._model.reply(request)


class Echo:
    """Says again what was said last, cut where the output limit says."""

    async def answer(self, request: Request) -> Reply:
        text = request.messages[-1].text
        limit = request.max_output_tokens
        stop = Stop.END
        if limit is not None and len(text) // 4 > limit:
            text, stop = text[: limit * 4], Stop.LENGTH
        usage = Usage(1, max(1, size(request) // 4), max(1, len(text) // 4))
        return Reply(text, stop=stop, usage=usage)


class Scripted:
    """Gives its replies in order, one for each call that is answered; an exception among them is raised.

    Args:
        replies: at least one.
        repeat: give the last one for ever; else a call beyond the last is the test's mistake.
    """

    def __init__(self, replies: Sequence[Reply | Exception], *, repeat: bool = True) -> None:
        self._replies = tuple(replies)
        self._repeat = repeat
        self._lock = threading.Lock()
        self.asked: list[Request] = []

    async def answer(self, request: Request) -> Reply:
        with self._lock:
            at = len(self.asked)
            self.asked.append(request)
        if at >= len(self._replies) and not self._repeat:
            raise BrainFault(f"the script has {len(self._replies)} replies, and a further call came")
        reply = self._replies[min(at, len(self._replies) - 1)]
        if isinstance(reply, Exception):
            raise reply
        return reply


class Thinking:
    """Adds reasoning to every reply of another brain: the same for the same request.

    Args:
        inner: gives the reply proper.
        redacted: hide the reasoning, as Anthropic does with some of it.
    """

    def __init__(self, inner: Brain, *, redacted: bool = False) -> None:
        self._inner = inner
        self._redacted = redacted

    async def answer(self, request: Request) -> Reply:
        reply = await self._inner.answer(request)
        last = next((m for m in reversed(request.messages) if m.role is not Role.SYSTEM), Message(Role.USER))
        mark = sign(json.dumps([(m.role, m.text) for m in request.messages]))[:12]
        thought = f"({mark}) Let me see. The last word was: {last.text[:60]!r}. What follows is plain."
        spent = len(thought) // 4
        used = reply.usage
        usage = replace(
            used,
            output_tokens=(used.output_tokens or max(1, len(reply.text) // 4)) + spent,
            reasoning_tokens=spent,
        )
        native = REDACTED if self._redacted else None
        return replace(reply, reasoning=thought, usage=usage, native=native)
