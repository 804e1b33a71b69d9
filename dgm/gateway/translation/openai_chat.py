"""OpenAI's chat completions protocol in JSON, to and from ``dgm.messages``.

The requests come from untrusted programs: anything not understood is refused, and nothing is guessed.
"""

import json
from collections.abc import Sequence
from typing import Any

from dgm.gateway.translation import parsing
from dgm.gateway.translation.parsing import make_keys
from dgm.gateway.translation.wire import BadRequest, ParsedCall, Wire, WireAnswer
from dgm.messages import JsonObject, Message, Request, Role, Stop, Tool, ToolCall, WireProtocol
from dgm.wires.chat_turns import write_call

ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
}
FINISH = {
    Stop.END: "stop",
    Stop.TOOL_CALLS: "tool_calls",
    Stop.LENGTH: "length",
    Stop.REFUSAL: "content_filter",
}
MAX_STOPS = 4
"""Maximum number of stop sequences; OpenAI's own limit."""

BOOKKEEPING = (
    # Caller identity, storage at the provider and billing; none of it reaches the model.
    *("user", "metadata", "store", "service_tier", "safety_identifier"),
    # The adapter controls caching; it changes only the cost.
    *("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"),
    # A request for the same sample: no provider promises it, and the journal returns recorded replies exactly.
    "seed",
    # A predicted answer makes the answer arrive sooner, but does not change it.
    "prediction",
)
LEGACY = "it is the form before tools; use tools"
FREE_TEXT = "answers are free text"
PROVIDER_SIDE = "the provider reaches out for nothing here"
REQUEST = make_keys(
    "messages model tools tool_choice parallel_tool_calls temperature top_p stop reasoning_effort"
    " max_tokens max_completion_tokens stream stream_options",
    BOOKKEEPING,
    {
        "n": (1,),
        "logprobs": (False,),
        "top_logprobs": (0,),
        "frequency_penalty": (0,),
        "presence_penalty": (0,),
        "logit_bias": ({},),
        "verbosity": ("medium",),
        "modalities": (["text"],),
        "response_format": ({"type": "text"},),
    },
    {
        "functions": LEGACY,
        "function_call": LEGACY,
        "web_search_options": PROVIDER_SIDE,
        "audio": "answers are text",
        "moderation": PROVIDER_SIDE,
        **dict.fromkeys(
            (
                *("guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs"),
                *("structural_tag", "json_schema", "format", "grammar", "regex", "ebnf", "result_format"),
            ),
            FREE_TEXT,
        ),
    },
    ["verbosity"],
)
TEXTS = ("text", "refusal")
"""Types of parts that are texts."""
STREAM = make_keys("include_usage", ["include_obfuscation"])
SPOKEN = make_keys("role content")
ASSISTANT = make_keys(
    "role content refusal tool_calls",
    # The gateway puts reasoning back as the vendor wrote it; `parsed` repeats the content.
    ["reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "parsed"],
    {"annotations": ([],)},
    {"audio": "only text is accepted", "function_call": LEGACY},
)
# The name of a result repeats the call's name.
RESULT = make_keys("role content tool_call_id", ["name"])
PART = make_keys("type text refusal", ["prompt_cache_breakpoint", "cache_control"])
# Stream readers leave the index in; `type` is read.
TOOL_CALL = make_keys("id type function", ["index"])
CALLED = make_keys("name arguments", ["parsed_arguments"])
TOOL = make_keys("type function", ["cache_control"])
# The schema is sent either way, whether a provider enforces it or the model follows it.
FUNCTION = make_keys("name description parameters", ["strict"])


def parse(given: JsonObject) -> ParsedCall:
    """Parse a request's body.

    Raises:
        BadRequest: it is no chat request, or it asks for something that is not offered.
    """
    parsing.check_keys(given, REQUEST)
    messages = parsing.read_entries(given.get("messages"), "messages", parsing.MAX_MESSAGES)
    if not messages:
        raise BadRequest("messages must not be empty")
    tools = parsing.read_tools(given.get("tools"), _parse_tool)
    request = Request(
        messages=tuple(_parse_message(item, f"messages[{at}]") for at, item in enumerate(messages)),
        tools=tools,
        model=parsing.read_text(given.get("model", "default"), "model"),
        temperature=parsing.read_number(given.get("temperature"), "temperature", 2),
        max_output_tokens=_parse_output_limit(given),
        top_p=parsing.read_number(given.get("top_p"), "top_p", 1),
        stop=parsing.read_stops(given.get("stop"), "stop", MAX_STOPS),
        tool_choice=parsing.read_choice(
            parsing.read_function_choice(given.get("tool_choice"), "function"), tools
        ),
        parallel=parsing.read_flag(given.get("parallel_tool_calls"), "parallel_tool_calls", missing=True),
        effort=parsing.read_effort(given.get("reasoning_effort"), "reasoning_effort"),
    )
    return ParsedCall(
        request, parsing.read_flag(given.get("stream"), "stream"), _wants_usage(given.get("stream_options"))
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


def _parse_message(value: Any, place: str) -> Message:  # noqa: ANN401  (what a stranger's JSON holds)
    item = parsing.read_record(value, place)
    role = ROLES[parsing.read_one_of(item.get("role"), f"{place}.role", ROLES)]
    content = item.get("content")
    if role is Role.ASSISTANT:
        return _parse_assistant(item, place)
    parsing.check_keys(item, RESULT if role is Role.TOOL else SPOKEN, place)
    if content is None:
        raise BadRequest(f"{place}.content is missing")
    read = parsing.result_reader(TEXTS, _parse_part) if role is Role.TOOL else _parse_part
    told = parsing.read_parts(content, f"{place}.content", read)
    if role is Role.TOOL:
        return Message(role, told, (), parsing.read_name(item.get("tool_call_id"), f"{place}.tool_call_id"))
    return Message(role, told)


def _parse_assistant(item: JsonObject, place: str) -> Message:
    parsing.check_keys(item, ASSISTANT, place)
    content = item.get("content")
    if content is None:
        content = item.get("refusal")
    told = "" if content is None else parsing.read_parts(content, f"{place}.content", _parse_part)
    calls: Sequence[Any] = ()
    if item.get("tool_calls") is not None:
        calls = parsing.read_entries(item["tool_calls"], f"{place}.tool_calls", parsing.MAX_TOOLS)
    return Message(
        Role.ASSISTANT,
        told,
        tuple(_parse_tool_call(call, f"{place}.tool_calls[{index}]") for index, call in enumerate(calls)),
    )


def _parse_part(part: JsonObject, place: str) -> str:
    kind = part.get("type")
    if kind not in TEXTS:
        raise parsing.refuse_media(kind, place)
    parsing.check_keys(part, PART, place)
    return parsing.read_text(part.get(kind), f"{place}.{kind}")


def _parse_tool_call(call: Any, place: str) -> ToolCall:  # noqa: ANN401
    given = parsing.read_record(call, place)
    parsing.check_keys(given, TOOL_CALL, place)
    if given.get("type", "function") != "function":
        raise BadRequest(
            f"{place}.type must be 'function': no other tools are offered here", "unsupported_tool"
        )
    function = parsing.read_record(given.get("function"), f"{place}.function")
    parsing.check_keys(function, CALLED, f"{place}.function")
    return ToolCall(
        parsing.read_name(given.get("id"), f"{place}.id"),
        parsing.read_name(function.get("name"), f"{place}.function.name"),
        parsing.read_arguments(function.get("arguments"), f"{place}.function.arguments"),
    )


def _parse_tool(given: JsonObject, place: str) -> Tool:
    if given.get("type") != "function":
        raise BadRequest(
            f"{place}: only functions are offered here, no tools of a provider", "unsupported_tool"
        )
    parsing.check_keys(given, TOOL, place)
    function = parsing.read_record(given.get("function"), f"{place}.function")
    parsing.check_keys(function, FUNCTION, f"{place}.function")
    return parsing.read_function(function, f"{place}.function")


def _parse_output_limit(given: JsonObject) -> int | None:
    new = parsing.read_whole(given.get("max_completion_tokens"), "max_completion_tokens")
    old = parsing.read_whole(given.get("max_tokens"), "max_tokens")
    return old if new is None else new


def _wants_usage(options: Any) -> bool:  # noqa: ANN401
    if options is None:
        return False
    given = parsing.read_record(options, "stream_options")
    parsing.check_keys(given, STREAM, "stream_options")
    return parsing.read_flag(given.get("include_usage"), "stream_options.include_usage")
