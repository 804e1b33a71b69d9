"""Requests of Anthropic's Messages: their correction and conversion to neutral form.

The effort of a request is one word:

- ``output_config.effort`` if it is given
- ``high`` for adaptive thinking, because that is its default
- for enabled thinking, by budget: below 4,000 tokens ``low``, below 16,000 ``medium``, else ``high``
- ``none`` for disabled thinking
- the model's default if nothing is given
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dgm.messages import JsonObject, Message, Native, Reply, Request, Role, Stop, ToolCall
from dgm.wires import messages_answer
from dgm.wires.neutral import as_texts, floating, text_of_parts, tool_choice_of, tool_of, whole_number
from dgm.wires.values import arguments_of, mend_each, mend_halves, records, texts

VENDOR = "anthropic"
REASONING = frozenset(("thinking", "redacted_thinking"))
BLOCK_GAP = "\n\n"
"""Separator between the texts of several blocks, which would else run together; not used in an assistant's turns."""
BUDGETS = ((4_000, "low"), (16_000, "medium"))
UNREADABLE = "INVALID_JSON"
"""The single key for a call's input whose text is no JSON object, as the vendor's documentation proposes."""
_LEAST_THINKING = 1024
"""The smallest ``budget_tokens`` that the provider accepts."""


def output_limit(body: JsonObject) -> int | None:
    """Return the requested output limit."""
    return whole_number(body.get("max_tokens"))


def set_output_limit(body: JsonObject, tokens: int) -> JsonObject:
    """Return the body with an output limit, and with a thinking budget below it, as the protocol requires."""
    thinking = body.get("thinking")
    budget = whole_number(thinking.get("budget_tokens")) if isinstance(thinking, dict) else None
    if budget is None or budget < tokens:
        return {**body, "max_tokens": tokens}
    return {**body, "max_tokens": tokens, "thinking": {**body["thinking"], "budget_tokens": _below(tokens)}}


def choices(body: JsonObject) -> int:
    """Return 1: the protocol has no other number of answers."""
    del body
    return 1


def mend_request(body: JsonObject) -> JsonObject:
    """Return the body without earlier calls whose input is no object; see ``Wire.mended_request``."""
    return mend_each(mend_halves(body), "messages", _mend_turn)


def read_request(body: JsonObject) -> Request:
    """Return the request in neutral form; never raises."""
    system = text_of_parts(body.get("system"), BLOCK_GAP)
    messages = [Message(Role.SYSTEM, system)] if system else []
    for turn in records(body.get("messages")):
        messages += _read_turn(turn)
    choice = body.get("tool_choice")
    return Request(
        messages=messages,
        tools=[
            tool_of(tool, "input_schema", instead=tool.get("type")) for tool in records(body.get("tools"))
        ],
        model=str(body.get("model") or ""),
        temperature=floating(body.get("temperature")),
        max_output_tokens=output_limit(body),
        top_p=floating(body.get("top_p")),
        stop=as_texts(body.get("stop_sequences")),
        tool_choice=tool_choice_of(choice),
        parallel=not (isinstance(choice, Mapping) and choice.get("disable_parallel_tool_use")),
        effort=_read_effort(body),
    )


def read_reply(whole: JsonObject, request: JsonObject) -> Reply:
    """Return the answer in neutral form; never raises."""
    mended = messages_answer.mend_answer(whole, request)
    content = records(mended.get("content"))
    stop, text = messages_answer.stop(mended), _text(content)
    used = messages_answer.usage(mended, request)
    if stop is Stop.REFUSAL:
        # Content before a refusal is not meant to be used, least of all its calls.
        details = mended.get("stop_details")
        why = details.get("explanation") if isinstance(details, Mapping) else None
        return Reply(text or str(why or "The model refuses to answer."), (), stop, used)
    thoughts = [str(block["thinking"]) for block in content if block.get("thinking")]
    return Reply(text, _calls(content), stop, used, "\n\n".join(thoughts), _native(content))


def _read_effort(body: JsonObject) -> str:
    """Return the effort as one word, as the module describes."""
    config, thinking = body.get("output_config"), body.get("thinking")
    effort = str(config.get("effort") or "") if isinstance(config, Mapping) else ""
    if not isinstance(thinking, Mapping):
        return effort
    match thinking.get("type"):
        case "disabled":
            return "none"
        case "adaptive":
            return effort or "high"
        case "enabled":
            budget = whole_number(thinking.get("budget_tokens")) or 0
            return effort or next((word for bound, word in BUDGETS if budget < bound), "high")
        case _:
            return effort


def _below(tokens: int) -> int:
    return max(_LEAST_THINKING, tokens - 1)


def _mend_turn(turn: Any) -> Any:  # noqa: ANN401  (any JSON)
    return mend_each(turn, "content", _mend_block) if isinstance(turn, dict) else turn


def _mend_block(block: Any) -> Any:  # noqa: ANN401  (any JSON)
    if not isinstance(block, dict) or block.get("type") != "tool_use" or isinstance(block.get("input"), dict):
        return block
    return {**block, "input": arguments_of(block.get("input"))}


def _read_turn(turn: JsonObject) -> list[Message]:
    content = turn.get("content")
    if turn.get("role") == "assistant":
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else records(content)
        return [Message(Role.ASSISTANT, _text(blocks), _calls(blocks), native=_native(blocks))]
    role = Role.SYSTEM if turn.get("role") == "system" else Role.USER
    if not isinstance(content, list):
        text = text_of_parts(content)
        return [Message(role, text)] if text or role is Role.USER else []
    results = [block for block in records(content) if block.get("type") == "tool_result"]
    messages = [_read_result(block) for block in results]
    rest = [part for part in content if part not in results]
    text = text_of_parts(rest, BLOCK_GAP)
    return [*messages, Message(role, text)] if text or (not messages and role is Role.USER) else messages


def _read_result(block: JsonObject) -> Message:
    name, failed = str(block.get("tool_use_id") or ""), block.get("is_error") is True
    return Message(Role.TOOL, text_of_parts(block.get("content"), BLOCK_GAP), call_id=name, failed=failed)


def _text(content: Sequence[JsonObject]) -> str:
    return texts([block for block in content if block.get("type") == "text"], "text")


def _calls(content: Sequence[JsonObject]) -> tuple[ToolCall, ...]:
    calls = [block for block in content if block.get("type") == "tool_use"]
    return tuple(
        ToolCall(
            str(call.get("id") or ""),
            str(call.get("name") or ""),
            _read_input(call.get("input")),
        )
        for call in calls
    )


def _read_input(value: object) -> str:
    """Return the text of a call's arguments, as the model wrote it."""
    arguments = arguments_of(value)
    raw = arguments.get(UNREADABLE)
    return raw if len(arguments) == 1 and isinstance(raw, str) else json.dumps(arguments, ensure_ascii=False)


def _native(content: Sequence[JsonObject]) -> Native | None:
    if not any(block.get("type") in REASONING for block in content):
        return None
    return Native(VENDOR, json.dumps(list(content), ensure_ascii=False))
