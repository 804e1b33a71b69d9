"""Chat Completions: calls that are translated, and their answers."""

import json
from collections.abc import Sequence
from typing import Any

from dgm.gateway.translation.reading import read_request
from dgm.gateway.translation.wire import ParsedCall, Wire, WireAnswer
from dgm.messages import JsonObject, Stop, WireProtocol
from dgm.wires.chat_turns import write_call

FINISH = {
    Stop.END: "stop",
    Stop.TOOL_CALLS: "tool_calls",
    Stop.LENGTH: "length",
    Stop.REFUSAL: "content_filter",
}


def parse(body: JsonObject) -> ParsedCall:
    """Parse a request's body.

    Raises:
        BadRequest: it cannot be translated.
    """
    options = body.get("stream_options")
    return ParsedCall(
        read_request(WireProtocol.CHAT, body, ("function",)),
        stream=bool(body.get("stream")),
        stream_usage=isinstance(options, dict) and bool(options.get("include_usage")),
    )


def write_answer(answer: WireAnswer) -> JsonObject:
    """Return the whole answer."""
    reply, used = answer.reply, answer.reply.usage
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        message["content"] = reply.text or None
        message["tool_calls"] = [write_call(call) for call in reply.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": FINISH[reply.stop]}
    return {
        "id": answer.id,
        "object": "chat.completion",
        "created": answer.created,
        "model": answer.model,
        "choices": [choice],
        "usage": {
            "prompt_tokens": used.input_tokens,
            "completion_tokens": used.output_tokens,
            "total_tokens": used.tokens,
            "prompt_tokens_details": {"cached_tokens": used.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
        },
    }


def render_error(status: int, code: str, message: str) -> bytes:
    """Return the body of a refusal."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}).encode()


def models(names: Sequence[str]) -> bytes:
    """Return the body of a list of models."""
    data = [{"id": name, "object": "model", "created": 0, "owned_by": "dgm"} for name in names]
    return json.dumps({"object": "list", "data": data}).encode()


def one_model(name: str) -> bytes:
    """Return the body that describes one model."""
    return json.dumps({"id": name, "object": "model", "created": 0, "owned_by": "dgm"}).encode()


WIRE = Wire(
    WireProtocol.CHAT,
    "/chat/completions",
    parse,
    write_answer,
    render_error,
    models,
    one_model,
    "chatcmpl-",
)
