"""Answers by script: Messages as its provider streams them."""

import json

from dgm.wires import WIRES
from tests.support.wires.vendors import (
    MESSAGES,
    ask_streamed,
    passed,
    sse,
)

WIRE = WIRES[MESSAGES]
COUNTS = {"input_tokens": 10, "output_tokens": 20}
TEXT = {"type": "text", "text": "Here."}
THINKING = {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls ä"}}
STOP = {"type": "message_stop"}


def message(*content, reason="end_turn", **more):
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": list(content)}
    return {**whole, "stop_reason": reason, "stop_sequence": None, "usage": COUNTS, **more}


def told(*content, reason="end_turn", **more):
    """A message as Anthropic streams it."""
    return [event.data for event in WIRE.split(message(*content, reason=reason, **more))]


def start(**more):
    return {"type": "message_start", "message": message(reason=None, **more)}


def begin(block, index=0):
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(kind="text", text="x", index=0):
    field = {"input_json": "partial_json"}.get(kind, kind)
    return {"type": "content_block_delta", "index": index, "delta": {"type": f"{kind}_delta", field: text}}


def end(reason="end_turn", **more):
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 20},
        **more,
    }


def halt(index=0):
    return {"type": "content_block_stop", "index": index}


def both(*events, request=None, done="", named=None):
    """The message as the vendor's client reads it and as ours does; they have to agree."""
    theirs, ours = ask_streamed(MESSAGES, *events, end=done, request=request, named=named)
    assert [
        block.model_dump(exclude_none=True, exclude={"caller", "citations"}) for block in theirs.content
    ] == [{name: value for name, value in block.items() if name != "citations"} for block in ours["content"]]
    assert theirs.stop_reason == ours["stop_reason"]
    return theirs, ours


def kinds(*events, done=""):
    answer, _ = passed(MESSAGES, sse(*events, end=done))
    return [line[7:] for line in answer.content.decode().splitlines() if line.startswith("event: ")]


def without(event, *path):
    """The event without one field."""
    *way, last = path
    event = inner = json.loads(json.dumps(event))
    for name in way:
        inner = inner[name]
    inner.pop(last, None)
    return event
