"""A brain that answers as language models do: right in the end, with prose around it and slips before.

It says what another brain says. Of a question that wants JSON the first answer ends in the middle of its JSON, the
second calls a tool that nobody offered, the third is right, between a draft and a friendly word. In a job in which an
agent improves its own source it first calls a tool that is not there, and its first edit is of a text that no file has.
An answer that lists edits begins with one that fits nowhere, until it is told so.

Its slips are hidden from the brain behind it, so that this one knows only of what it said itself. It keeps no state:
what it says is a function of the request, as a repetition of an action needs it.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from dgm.domain import Usage
from dgm.messages import Message, Reply, Request, Role, Stop, ToolCall
from dgm.offline.talk import fold
from tests.support.wire_server.brain import Brain, Offline
from tests.support.wire_server.protocol import size

COMPLAINT = "That cannot be used"
"""How the host begins to say that it cannot read an answer."""
SLIP = "slip_"
"""Begins the ids of calls that are meant to go wrong."""
NOWHERE = "this text stands in no file\n"
UNOFFERED = "open_browser"
_THINKS = "Let me think about this step by step.\n\n"
_PARTS = "I hope this helps! Let me know if you need {anything else}."


class Talkative:
    """Says what ``inner`` says, as a language model would."""

    def __init__(self, inner: Brain | None = None) -> None:
        self._inner = inner or Offline()

    async def answer(self, request: Request) -> Reply:
        """One reply."""
        if not request.tools:
            return await self._written(request)
        plain = replace(request, messages=_without_slips(request.messages))
        conversation = fold(plain)
        reply = await self._inner.answer(plain)
        if not conversation.own_source:
            return reply
        slips = len(_slips(request.messages))
        if slips == 0:
            call = ToolCall(f"{SLIP}1", UNOFFERED, '{"url": "https://example.org"}')
            return _said(request, _THINKS + "I look that up first.", (call,))
        calls = _misplaced(reply.calls) if slips == 1 else ()
        if calls:
            return _said(request, _THINKS + reply.text, calls)
        if not reply.calls:
            return _said(request, f"{_THINKS}{reply.text}\n\n{_PARTS}")
        return reply

    async def _written(self, request: Request) -> Reply:
        kept, complaints = _answered(request.messages)
        reply = await self._inner.answer(replace(request, messages=kept))
        found = re.search(r"\{.*\}", reply.text, re.S)
        if found is None:
            return reply
        right = found[0]
        if complaints == 0:
            wrong = right[: len(right) * 2 // 3]
            return _said(request, f"{_THINKS}Here it is:\n\n```json\n{wrong}\n```")
        if complaints == 1:
            call = ToolCall(f"{SLIP}2", UNOFFERED, '{"query": "how to answer"}')
            return _said(request, "Sorry! I look up how to do it.", (call,))
        if not _told_of_edits(kept):
            right = _fitting_nowhere(right)
        draft = '{"draft": true}'
        return _said(
            request, f"{_THINKS}A first idea: {draft}\n\nBetter:\n\n```json\n{right}\n```\n\n{_PARTS}"
        )


def _said(request: Request, text: str, calls: tuple[ToolCall, ...] = ()) -> Reply:
    output = len(text) + sum(len(call.arguments) for call in calls)
    usage = Usage(1, max(1, size(request) // 4), max(1, output // 4))
    return Reply(text, calls, Stop.TOOL_CALLS if calls else Stop.END, usage)


def _answered(messages: Sequence[Message]) -> tuple[tuple[Message, ...], int]:
    """What was said before the host's complaints about the present answer, and how many of those there are."""
    kept, complaints = list(messages), 0
    while len(kept) > 2 and kept[-1].role is Role.USER and kept[-1].text.startswith(COMPLAINT):
        del kept[-2:]
        complaints += 1
    return tuple(kept), complaints


def _told_of_edits(messages: Sequence[Message]) -> bool:
    """Whether an answer of this conversation had the edit that fits nowhere."""
    return any(
        json.dumps(NOWHERE)[1:-1] in message.text for message in messages if message.role is Role.ASSISTANT
    )


def _fitting_nowhere(answer: str) -> str:
    """The answer with one more edit before those that it lists, which cannot be made."""
    try:
        value = json.loads(answer)
    except ValueError:
        return answer
    edits = value.get("edits") if isinstance(value, dict) else None
    if not edits:
        return answer
    value["edits"] = [{**edits[0], "old": NOWHERE}, *edits]
    return json.dumps(value, indent=2)


def _slips(messages: Sequence[Message]) -> list[str]:
    return [call.id for message in messages for call in message.calls if call.id.startswith(SLIP)]


def _without_slips(messages: Sequence[Message]) -> tuple[Message, ...]:
    slips = set(_slips(messages))
    return tuple(
        message
        for message in messages
        if message.call_id not in slips and not any(call.id in slips for call in message.calls)
    )


def _misplaced(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The first call that replaces a text, with a text to replace that is nowhere; none where there is none."""
    for call in calls:
        try:
            given = json.loads(call.arguments)
        except ValueError:
            continue
        if isinstance(given, dict) and isinstance(given.get("old"), str):
            return (ToolCall(f"{SLIP}2", call.name, json.dumps({**given, "old": NOWHERE})),)
    return ()
