"""Requests of Responses: their correction, conversion to neutral form, and writing."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dgm.messages import (
    AnswerForm,
    JsonObject,
    Message,
    Native,
    Reply,
    Request,
    RequestRefused,
    Role,
    Tool,
    ToolCall,
)
from dgm.wires import responses_answer
from dgm.wires.neutral import (
    FAILED,
    floating,
    same_turn,
    schema_of,
    text_of_parts,
    tool_choice_of,
    tool_of,
    whole_number,
)
from dgm.wires.values import arguments_text, mend_arguments, mend_each, mend_halves, records, texts

VENDOR = "openai-responses"
ENCRYPTED = "reasoning.encrypted_content"
_SPEAKERS = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "assistant": Role.ASSISTANT}
_CALL_FIELDS = ("arguments", "input", "action", "operation")
"""Fields of call items that hold the input."""


def output_limit(body: JsonObject) -> int | None:
    """Return the requested output limit."""
    return whole_number(body.get("max_output_tokens"))


def set_output_limit(body: JsonObject, tokens: int) -> JsonObject:
    """Return the body with an output limit."""
    return {**body, "max_output_tokens": tokens}


def choices(body: JsonObject) -> int:
    """Return 1: the protocol has no other number of answers."""
    del body
    return 1


def mend_request(body: JsonObject) -> JsonObject:
    """Return the body without broken JSON in earlier calls; see ``Wire.mended_request``."""
    return mend_each(mend_halves(body), "input", _mend_item)


def read_request(body: JsonObject) -> Request:
    """Return the request in neutral form; never raises."""
    messages = []
    if body.get("instructions"):
        messages.append(Message(Role.SYSTEM, text_of_parts(body["instructions"])))
    given = body.get("input")
    if isinstance(given, str):
        messages.append(Message(Role.USER, given))
    messages += _read_items(records(given))
    reasoning = body.get("reasoning")
    effort = reasoning.get("effort") if isinstance(reasoning, Mapping) else ""
    return Request(
        messages=messages,
        tools=[tool_of(tool, "parameters", instead=tool.get("type")) for tool in records(body.get("tools"))],
        model=str(body.get("model") or ""),
        temperature=floating(body.get("temperature")),
        max_output_tokens=output_limit(body),
        top_p=floating(body.get("top_p")),
        tool_choice=tool_choice_of(body.get("tool_choice")),
        parallel=body.get("parallel_tool_calls") is not False,
        effort=str(effort or ""),
    )


def read_reply(whole: JsonObject, request: JsonObject) -> Reply:
    """Return the answer in neutral form; never raises."""
    mended = responses_answer.mend_answer(whole, request)
    items = records(mended.get("output"))
    thoughts = [_reasoning_of(item) for item in items if item.get("type") == "reasoning"]
    return Reply(
        _text(items),
        _calls(items),
        responses_answer.stop(mended),
        responses_answer.usage(mended, request),
        "\n\n".join(filter(None, thoughts)),
        _native(items),
    )


def write_request(request: Request, model: str) -> JsonObject:
    """Return the body for a neutral request; the provider stores nothing.

    Raises:
        RequestRefused: the request holds stop texts, which the protocol does not have.
    """
    if request.stop:
        raise RequestRefused(
            "unsupported_parameter", "stop is not supported by OpenAI's Responses; leave it out"
        )
    messages = list(request.messages)
    leading = next((at for at, turn in enumerate(messages) if turn.role is not Role.SYSTEM), len(messages))
    items = [item for message in messages[leading:] for item in _write_items(message)]
    body: dict[str, Any] = {"model": model, "input": items, "store": False, "include": [ENCRYPTED]}
    if leading:
        body["instructions"] = "\n\n".join(message.text for message in messages[:leading])
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if not request.parallel:
            body["parallel_tool_calls"] = False
    if request.tool_choice.startswith("tool:"):
        body["tool_choice"] = {"type": "function", "name": request.tool_choice.removeprefix("tool:")}
    elif request.tool_choice == "required" or (request.tool_choice == "none" and request.tools):
        body["tool_choice"] = request.tool_choice
    wishes = {
        "max_output_tokens": request.max_output_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "reasoning": {"effort": request.effort} if request.effort else None,
        "text": _text_settings(request.form),
    }
    body.update({name: value for name, value in wishes.items() if value is not None})
    return body


def _text_settings(form: AnswerForm | None) -> JsonObject | None:
    if form is None:
        return None
    return {"format": {"type": "json_schema", "name": form.name, "schema": form.schema, "strict": True}}


def _mend_item(item: Any) -> Any:  # noqa: ANN401  (any JSON)
    if not isinstance(item, dict) or item.get("type") != "function_call":
        return item
    arguments = mend_arguments(item.get("arguments"))
    return item if arguments is item.get("arguments") else {**item, "arguments": arguments}


def _read_items(items: Sequence[JsonObject]) -> list[Message]:
    """Return the turns of a conversation; consecutive items of the model are one turn."""
    turns: list[Message] = []
    said: list[JsonObject] = []
    for item in items:
        if _is_model_item(item):
            said.append(item)
            continue
        turns += _assistant_turn(said)
        said = []
        turns.append(_read_item(item))
    return turns + _assistant_turn(said)


def _is_model_item(item: JsonObject) -> bool:
    kind = str(item.get("type") or "message")
    return item.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")


def _assistant_turn(items: Sequence[JsonObject]) -> list[Message]:
    if not items:
        return []
    return [Message(Role.ASSISTANT, _text(items), _calls(items), native=_native(items))]


def _read_item(item: JsonObject) -> Message:
    kind = str(item.get("type") or "message")
    if kind.endswith("_output"):
        text = text_of_parts(item.get("output"))
        name = str(item.get("call_id") or item.get("id") or "")
        return Message(Role.TOOL, text.removeprefix(FAILED), call_id=name, failed=text.startswith(FAILED))
    if kind != "message":
        return Message(Role.USER, f"[{kind}]")
    return Message(_SPEAKERS.get(str(item.get("role")), Role.USER), text_of_parts(item.get("content")))


def _text(items: Sequence[JsonObject]) -> str:
    spoken = [item for item in items if (item.get("type") or "message") == "message"]
    return "\n\n".join(filter(None, (text_of_parts(item.get("content")) for item in spoken)))


def _calls(items: Sequence[JsonObject]) -> tuple[ToolCall, ...]:
    calls = [item for item in items if str(item.get("type")).endswith("_call") and item.get("call_id")]
    return tuple(_read_call(item) for item in calls)


def _read_call(item: JsonObject) -> ToolCall:
    said = next((item[name] for name in _CALL_FIELDS if name in item), None)
    text = arguments_text(said)
    name = item.get("name") or str(item.get("type")).removesuffix("_call")
    return ToolCall(str(item["call_id"]), str(name), text if text.strip() else "{}")


def _reasoning_of(item: JsonObject) -> str:
    return texts(item.get("summary"), "text") or texts(item.get("content"), "text")


def _native(items: Sequence[JsonObject]) -> Native | None:
    """Return the output to send back, without unencrypted reasoning, which the provider would look up in vain."""
    kept = [
        _clean_item(item)
        for item in items
        if item.get("type") != "reasoning" or item.get("encrypted_content")
    ]
    if not any(item.get("type") == "reasoning" for item in kept):
        return None
    return Native(VENDOR, json.dumps(kept))


def _clean_item(item: JsonObject) -> JsonObject:
    """Return an item in a form that the provider accepts: without nulls of its own and the status of reasoning."""
    dropped = "status" if item.get("type") == "reasoning" else ""
    return {name: value for name, value in item.items() if value is not None and name != dropped}


def _write_items(message: Message) -> list[JsonObject]:
    match message.role:
        case Role.ASSISTANT:
            return _assistant(message)
        case Role.TOOL:
            text = FAILED + message.text if message.failed else message.text
            return [{"type": "function_call_output", "call_id": message.call_id, "output": text}]
        case Role.SYSTEM:
            return [{"role": "developer", "content": message.text}]
        case Role.USER:
            return [{"role": "user", "content": message.text}]


def _assistant(message: Message) -> list[JsonObject]:
    """Return the turn's items; none for an empty turn, because reasoning without its result is refused."""
    if not message.text and not message.calls:
        return []
    theirs: list[JsonObject] = []
    if message.native is not None and message.native.vendor == VENDOR:
        theirs = json.loads(message.native.data)
    if theirs and same_turn(message, _text(theirs), _calls(theirs)):
        return theirs
    items = [item for item in theirs if item.get("type") == "reasoning"]
    if message.text:
        items.append(_write_text(message.text, theirs))
    ids = {item["call_id"]: item["id"] for item in theirs if "call_id" in item and "id" in item}
    return items + [_call(call, ids.get(call.id)) for call in message.calls]


def _write_text(text: str, theirs: Sequence[JsonObject]) -> JsonObject:
    """Return our text; after reasoning under the id of the resulting message, which pairs them."""
    paired = next((item["id"] for item in theirs if item.get("type") == "message" and "id" in item), None)
    if paired is None:
        return {"role": "assistant", "content": text}
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": paired, "role": "assistant", "status": "completed", "content": content}


def _call(call: ToolCall, item_id: str | None) -> JsonObject:
    item = {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
    return {**item, "id": item_id} if item_id else item


def _tool(tool: Tool) -> JsonObject:
    described = {"name": tool.name, "description": tool.description, "parameters": schema_of(tool)}
    return {"type": "function", **described, "strict": False}
