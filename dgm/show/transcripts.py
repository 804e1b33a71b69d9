"""The conversation of an action with its model: each message once, in the order in which it was said."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dgm.archive.events import ModelCalled
from dgm.archive.journal import read_new_messages
from dgm.archive.traces import Traces
from dgm.messages import Message, Reply, Role, ToolCall


@dataclass(frozen=True, slots=True)
class CallTranscript:
    """One call of a model."""

    call: ModelCalled
    asked: Sequence[Message]
    """The new messages of its request; the answer before it is not repeated."""
    reply: Reply


def read_exchanges(traces: Traces, calls: Sequence[ModelCalled]) -> Iterator[CallTranscript]:
    """Yield the calls with the new messages of each.

    Raises:
        ArchiveCorrupt, ValueError, LookupError, TypeError: a trace is missing, damaged or of another form; the calls
            before it have been yielded.
    """
    before: Reply | None = None
    for call in calls:
        asked, reply = read_new_messages(traces, call)
        fresh = [message for message in asked if before is None or not _is_repeat(message, before)]
        yield CallTranscript(call, fresh, reply)
        before = reply


def turns_record(exchange: CallTranscript) -> list[dict[str, Any]]:
    """Return the turns of a call for programs, the model's own last."""
    number, reply = exchange.call.number, exchange.reply
    asked = [_turn_record(number, message.role, message.text, message.calls) for message in exchange.asked]
    said = _turn_record(number, Role.ASSISTANT, reply.text, reply.calls)
    if reply.reasoning:
        said["reasoning"] = reply.reasoning
    if reply.error:
        said["error"] = reply.error
    return [*asked, {**said, "model": exchange.call.model}]


def _turn_record(number: int, role: Role, text: str, calls: Sequence[ToolCall]) -> dict[str, Any]:
    tools = [{"name": call.name, "arguments": call.arguments} for call in calls]
    return {"call": number, "role": role.value, "text": text, **({"tools": tools} if tools else {})}


def _is_repeat(message: Message, reply: Reply) -> bool:
    return message.role is Role.ASSISTANT and (message.text, message.calls) == (reply.text, reply.calls)
