"""OpenAI's responses protocol in JSON, to and from ``dgm.messages``.

Items become turns: a message and the function calls around it, with only reasoning between them, are one assistant
turn. Reasoning that comes back is ignored, because the gateway remembers it as the vendor wrote it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dgm.gateway.translation import parsing
from dgm.gateway.translation.openai_chat import models, one_model, render_error
from dgm.gateway.translation.parsing import make_keys
from dgm.gateway.translation.responses_tools import (
    describe_tools,
    flatten_tools,
    name_tools,
    read_tools,
    write_call,
)
from dgm.gateway.translation.wire import BadRequest, ParsedCall, Wire, WireAnswer
from dgm.messages import JsonObject, Message, Request, Role, Stop, ToolCall, WireProtocol

ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT}

BOOKKEEPING = (
    # Caller identity, storage at the provider and billing; none of it reaches the model.
    *("user", "metadata", "store", "service_tier", "safety_identifier"),
    # The adapter controls caching; it changes only the cost.
    *("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"),
    # The limit on calls of the provider's tools, of which there are none.
    "max_tool_calls",
)
KEPT_HERE = "send the items, or previous_response_id"
REQUEST = make_keys(
    "input instructions model tools tool_choice parallel_tool_calls temperature top_p reasoning text"
    " max_output_tokens previous_response_id stream stream_options include",
    BOOKKEEPING,
    {"background": (False,), "truncation": ("disabled",), "top_logprobs": (0,), "context_management": ([],)},
    {
        "conversation": KEPT_HERE,
        "prompt": "prompts that a provider stores are not reachable",
        "moderation": "no tools of a provider",
        "image": "answers are text",
        "access_programs": "the account is not the agent's",
    },
)
INCLUDED = ("reasoning.encrypted_content",)
"""The only allowed ``include`` value: reasoning is remembered here, and the other values are for tools not offered."""
REASONING = make_keys(
    # Readable reasoning is always returned, in the one available form.
    "effort",
    ["summary", "generate_summary"],
    {"context": ("auto",), "mode": ("standard",)},
    None,
    ["context"],
)
TEXT = make_keys("format", (), {"verbosity": ("medium",)}, None, ["verbosity"])
TEXT_FORMAT = make_keys("type")
STREAM = make_keys("", ["include_obfuscation"])
# Additional fields of an answer's items; they come back and are not read.
MESSAGE = make_keys("type role content", ["id", "status", "phase"])
CALL = make_keys(
    "type call_id name arguments namespace",
    ["id", "status", "parsed_arguments"],
    {"caller": ({"type": "direct"},)},
)
CUSTOM_CALL = make_keys("type call_id name input namespace", ["id", "status"])
RESULT = make_keys("type call_id output", ["id", "status", "name"], {"caller": ({"type": "direct"},)})
PART = make_keys("type text refusal", ["annotations", "logprobs", "parsed", "prompt_cache_breakpoint"])
TEXTS = ("input_text", "output_text", "text", "refusal")
"""Types of parts that are texts."""
_Names = Mapping[tuple[object, object], str]
"""Map of namespace and name of a tool to the name that the model knows."""
INCOMPLETE = {Stop.LENGTH: "max_output_tokens", Stop.REFUSAL: "content_filter"}
"""Reasons of an answer that is incomplete."""


def parse(given: JsonObject) -> ParsedCall:
    """Parse a request's body.

    Raises:
        BadRequest: it is no request for a response, or it asks for something that is not offered.
    """
    parsing.check_keys(given, REQUEST)
    _check_options(given)
    offered = flatten_tools(given)
    tools = read_tools(offered)
    instructions = given.get("instructions")
    preface = (
        ()
        if instructions is None
        else (Message(Role.SYSTEM, parsing.read_text(instructions, "instructions")),)
    )
    previous = given.get("previous_response_id")
    request = Request(
        messages=(*preface, *_parse_input(given.get("input"), offered)),
        tools=tools,
        model=parsing.read_text(given.get("model", "default"), "model"),
        temperature=parsing.read_number(given.get("temperature"), "temperature", 2),
        max_output_tokens=parsing.read_whole(given.get("max_output_tokens"), "max_output_tokens"),
        top_p=parsing.read_number(given.get("top_p"), "top_p", 1),
        tool_choice=parsing.read_choice(parsing.read_function_choice(given.get("tool_choice")), tools),
        parallel=parsing.read_flag(given.get("parallel_tool_calls"), "parallel_tool_calls", missing=True),
        effort=_parse_effort(given.get("reasoning")),
    )
    return ParsedCall(
        request,
        parsing.read_flag(given.get("stream"), "stream"),
        stream_usage=True,
        previous="" if previous is None else parsing.read_name(previous, "previous_response_id"),
        preface=len(preface),
        echo={**_echoed_fields(given, request), "tools": describe_tools(offered, tools)},
    )


def write_answer(answer: WireAnswer) -> JsonObject:
    """Return the whole answer."""
    used, reason = answer.reply.usage, INCOMPLETE.get(answer.reply.stop)
    return {
        "id": answer.id,
        "object": "response",
        "created_at": answer.created,
        "completed_at": None if reason else answer.created,
        "status": _response_status(answer),
        "background": False,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": answer.model,
        "output": _render_items(answer),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **answer.echo,
        "text": {"format": {"type": "text"}},
        "truncation": "disabled",
        "store": True,
        "metadata": {},
        "usage": {
            "input_tokens": used.input_tokens,
            "input_tokens_details": {
                "cached_tokens": used.cached_tokens,
                "cache_write_tokens": used.written_tokens,
            },
            "output_tokens": used.output_tokens,
            "output_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
            "total_tokens": used.tokens,
        },
    }


WIRE = Wire(
    WireProtocol.RESPONSES,
    "/responses",
    parse,
    write_answer,
    render_error,
    models,
    one_model,
    "resp_",
)


def _echoed_fields(given: JsonObject, request: Request) -> JsonObject:
    """Return the request fields that a response repeats; clients demand some of them."""
    word = request.tool_choice
    return {
        "instructions": given.get("instructions"),
        "max_output_tokens": request.max_output_tokens,
        "parallel_tool_calls": request.parallel,
        "previous_response_id": given.get("previous_response_id"),
        "reasoning": {"effort": request.effort or None, "summary": None},
        "temperature": request.temperature,
        "tool_choice": {"type": "function", "name": word[5:]} if word.startswith("tool:") else word,
        "top_p": request.top_p,
    }


def _check_options(given: JsonObject) -> None:
    if given.get("include") is not None:
        for at, word in enumerate(parsing.read_entries(given["include"], "include", parsing.MAX_TOOLS)):
            parsing.read_one_of(word, f"include[{at}]", INCLUDED)
    if given.get("stream_options") is not None:
        parsing.check_keys(
            parsing.read_record(given["stream_options"], "stream_options"), STREAM, "stream_options"
        )
    if given.get("text") is not None:
        text = parsing.read_record(given["text"], "text")
        parsing.check_keys(text, TEXT, "text")
        if text.get("format") is not None:
            form = parsing.read_record(text["format"], "text.format")
            if form.get("type") != "text":
                raise BadRequest("text.format.type must be 'text'", "unsupported_parameter")
            parsing.check_keys(form, TEXT_FORMAT, "text.format")


def _parse_effort(value: Any) -> str:  # noqa: ANN401  (what a stranger's JSON holds)
    if value is None:
        return ""
    given = parsing.read_record(value, "reasoning")
    parsing.check_keys(given, REASONING, "reasoning")
    return parsing.read_effort(given.get("effort"), "reasoning.effort")


def _parse_input(value: Any, offered: Sequence[JsonObject]) -> tuple[Message, ...]:  # noqa: ANN401
    if isinstance(value, str):
        return (Message(Role.USER, value),)
    items = parsing.read_entries(value, "input", parsing.MAX_MESSAGES)
    if not items:
        raise BadRequest("input must not be empty")
    names = {(tool.get("namespace"), tool.get("name")): name for name, tool in name_tools(offered).items()}
    turns: list[Message] = []
    for at, item in enumerate(items):
        _add_item(turns, parsing.read_record(item, f"input[{at}]"), f"input[{at}]", names)
    return tuple(turns)


def _add_item(turns: list[Message], item: JsonObject, place: str, names: _Names) -> None:
    kind = item.get("type")
    if kind is None:
        kind = "item_reference" if "id" in item and "role" not in item else "message"
    match kind:
        case "message":
            _add_message(turns, item, place)
        case "function_call" | "custom_tool_call":
            call = _parse_call(item, place, names)
            if turns and turns[-1].role is Role.ASSISTANT:
                turns[-1] = replace(turns[-1], calls=(*turns[-1].calls, call))
            else:
                turns.append(Message(Role.ASSISTANT, "", (call,)))
        case "function_call_output" | "custom_tool_call_output":
            parsing.check_keys(item, RESULT, place)
            read = parsing.result_reader(TEXTS, _parse_part)
            told = parsing.read_parts(item.get("output"), f"{place}.output", read)
            turns.append(
                Message(Role.TOOL, told, (), parsing.read_name(item.get("call_id"), f"{place}.call_id"))
            )
        case "reasoning" | "additional_tools":
            pass
        case "item_reference":
            raise BadRequest(
                f"{place}: single items are not kept here; send the item itself, or previous_response_id",
                "unsupported_content",
            )
        case _:
            raise BadRequest(
                f"{place}: items of the type {str(kind)[:40]!r} are not offered here,"
                " only messages and function calls with their outputs",
                "unsupported_content",
            )


def _add_message(turns: list[Message], item: JsonObject, place: str) -> None:
    parsing.check_keys(item, MESSAGE, place)
    role = ROLES[parsing.read_one_of(item.get("role"), f"{place}.role", ROLES)]
    told = parsing.read_parts(item.get("content"), f"{place}.content", _parse_part)
    last = turns[-1] if turns else None
    if role is Role.ASSISTANT and last and last.calls:
        # No other turn fits between calls and their results, so it is the same turn.
        turns[-1] = replace(last, text=last.text + told)
    else:
        turns.append(Message(role, told))


def _parse_part(part: JsonObject, place: str) -> str:
    kind = part.get("type")
    if kind not in TEXTS:
        raise parsing.refuse_media(kind, place)
    parsing.check_keys(part, PART, place)
    key = "refusal" if kind == "refusal" else "text"
    return parsing.read_text(part.get(key), f"{place}.{key}")


def _parse_call(item: JsonObject, place: str, names: _Names) -> ToolCall:
    name = parsing.read_name(item.get("name"), f"{place}.name")
    if item.get("type") == "custom_tool_call":
        parsing.check_keys(item, CUSTOM_CALL, place)
        text = parsing.read_text(item.get("input"), f"{place}.input")
        arguments = json.dumps({"input": text}, ensure_ascii=False)
    else:
        parsing.check_keys(item, CALL, place)
        arguments = parsing.read_arguments(item.get("arguments"), f"{place}.arguments")
    return ToolCall(
        parsing.read_name(item.get("call_id"), f"{place}.call_id"),
        names.get((item.get("namespace"), name), name),
        arguments,
    )


def _render_items(answer: WireAnswer) -> list[dict[str, Any]]:
    reply = answer.reply
    status = _response_status(answer)
    items: list[dict[str, Any]] = []
    mark = answer.id.removeprefix("resp_")
    if reply.reasoning:
        summary = [{"type": "summary_text", "text": reply.reasoning}]
        items.append({"id": f"rs_{mark}", "type": "reasoning", "summary": summary})
    if reply.text or not reply.calls:
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        message = {"id": f"msg_{mark}", "type": "message", "status": status, "role": "assistant"}
        items.append({**message, "content": [part]})
    names = name_tools(answer.echo.get("tools", ()))
    items += [write_call(call, names, f"{mark}_{index}") for index, call in enumerate(reply.calls)]
    return items


def _response_status(answer: WireAnswer) -> str:
    return "incomplete" if answer.reply.stop in INCOMPLETE else "completed"
