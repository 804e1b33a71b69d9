"""The conversations of an action with its models, put together from its recorded calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dgm.archive.conversations import ConversationBuilder, Thread, Turn
from dgm.archive.events import ModelCalled
from dgm.archive.journal import CallReader
from dgm.errors import ArchiveCorrupt


@dataclass(frozen=True, slots=True)
class Transcript:
    """The conversations of an action."""

    threads: Sequence[Thread]
    calls: Mapping[int, ModelCalled]
    """Number → call, as far as they were read."""
    fault: Exception | None = None
    """Reason why the calls after those cannot be read."""


def read_transcript(reader: CallReader, calls: Sequence[ModelCalled]) -> Transcript:
    """Return the conversations of the calls, up to the first one that cannot be read."""
    conversations, done = ConversationBuilder(), dict[int, ModelCalled]()
    fault: Exception | None = None
    try:
        for call in calls:
            conversations.add(*reader.exchange(call), call.number)
            done[call.number] = call
    except (ArchiveCorrupt, ValueError, LookupError, TypeError) as error:
        fault = error
    return Transcript(conversations.threads(), done, fault)


def threads_record(transcript: Transcript) -> dict[str, Any]:
    """Return the conversations for programs: system prompts and tools once, and each turn once."""
    threads, turns = [], []
    for number, thread in enumerate(transcript.threads, 1):
        prompts = [
            {
                "system": each.system,
                "tools": [
                    {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
                    for tool in each.tools
                ],
            }
            for each in thread.prompts
        ]
        threads.append(
            {
                "thread": number,
                "calls": thread.calls,
                "segments": [{"left_out": segment.left_out} for segment in thread.segments],
                "prompts": prompts,
            }
        )
        for place, segment in enumerate(thread.segments, 1):
            turns += [
                {"thread": number, "segment": place, **_turn_record(turn, transcript.calls)}
                for turn in segment.turns
            ]
    return {"threads": threads, "turns": turns}


def _turn_record(turn: Turn, calls: Mapping[int, ModelCalled]) -> dict[str, Any]:
    message, reply = turn.message, turn.reply
    record: dict[str, Any] = {"call": turn.call, "role": message.role.value, "text": message.text}
    if message.calls:
        record["tools"] = [{"name": call.name, "arguments": call.arguments} for call in message.calls]
    if reply is None:
        return record
    if reply.reasoning:
        record["reasoning"] = reply.reasoning
    if reply.error:
        record["error"] = reply.error
    return {**record, "model": calls[turn.call].model}
