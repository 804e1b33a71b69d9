"""Bounds of a request, checked before anything is parsed, and identifiers for calls."""

from collections.abc import Sequence

from dgm.messages import CONTEXT_LENGTH, Message, Request, RequestRefused, Role, ToolCall

CONTEXT = 200_000
"""Maximum number of characters of messages and tools together; a longer request is refused."""


def count_characters(request: Request) -> int:
    """Return the number of characters of a request."""
    said = sum(len(m.text) + sum(len(c.arguments) + len(c.name) for c in m.calls) for m in request.messages)
    offered = sum(len(tool.name) + len(tool.description) for tool in request.tools)
    return said + offered


def check_request(request: Request) -> None:
    """Refuse a request that cannot be answered.

    Raises:
        RequestRefused: the request is too long (``context_length_exceeded``) or has no message
            (``invalid_request_error``).
    """
    if not request.messages:
        raise RequestRefused("invalid_request_error", "messages: at least one message is required")
    length = count_characters(request)
    if length > CONTEXT:
        raise RequestRefused(
            CONTEXT_LENGTH,
            f"This model's maximum context length is {CONTEXT // 4} tokens; the messages have {length // 4}.",
        )


def identifiers(messages: Sequence[Message], count: int) -> list[str]:
    """Return identifiers for the next calls that no call in the conversation has."""
    used = {call.id for message in messages for call in _calls(message)}
    turn = sum(message.role is Role.ASSISTANT for message in messages) + 1
    found: list[str] = []
    number = 1
    while len(found) < count:
        name = f"call_{turn}_{number}"
        if name not in used:
            found.append(name)
        number += 1
    return found


def _calls(message: Message) -> tuple[ToolCall, ...]:
    return message.calls
