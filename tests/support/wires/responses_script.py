"""Answers by script: Responses as its provider streams them."""

import json

from dgm.wires import WIRES
from tests.support.wires.vendors import (
    RESPONSES,
)

WIRE = WIRES[RESPONSES]
COUNTS = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 15,
}
TEXT = {"type": "output_text", "text": "DONE", "annotations": []}
SAID = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [TEXT]}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "bash",
    "arguments": '{"a":1}',
    "status": "completed",
}
THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "e",
}


def response(*output, status="completed", **more):
    whole = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": status,
        "output": list(output),
    }
    fixed = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": COUNTS}
    return {**whole, **fixed, **more}


CREATED = {"type": "response.created", "response": response(status="in_progress", usage=None)}


def completed(*output, **more):
    return {"type": "response.completed", "response": response(*output, **more)}


def delta(text, kind="output_text", **place):
    place = place or {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    return {"type": f"response.{kind}.delta", **place, "delta": text}


def told(*output):
    """A response as OpenAI streams it."""
    return [event.data for event in WIRE.split(response(*output))]


def texts_of(theirs):
    return [part.text for item in theirs.output if item.type == "message" for part in item.content]


def calls_of(theirs):
    return [
        (item.call_id, item.name, json.loads(item.arguments))
        for item in theirs.output
        if item.type == "function_call"
    ]
