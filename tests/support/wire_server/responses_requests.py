"""What OpenAI's Responses accepts, as strictly as the provider, and how our neutral turns are read from it."""

from collections.abc import Sequence
from typing import Any

from dgm.messages import Message, Request, Role, Tool, ToolCall
from tests.support.wire_server import checks, client_tools, structured
from tests.support.wire_server.errors import Refused
from tests.support.wire_server.openai_chat import ROLES, choice, function
from tests.support.wire_server.protocol import Asked, JsonObject, signed

_PARAMETERS = """
model input instructions stream stream_options tools tool_choice parallel_tool_calls temperature
top_p max_output_tokens max_tool_calls reasoning include store metadata text truncation
previous_response_id service_tier user prompt_cache_key prompt_cache_retention safety_identifier
background top_logprobs prompt_cache_options
"""
KNOWN = frozenset(_PARAMETERS.split())
CALLS = ("function_call", *client_tools.CALLS)
"""Types of items that call a tool."""
PARTS = {"assistant": ("output_text", "refusal"), "": ("input_text",)}


def parse(data: JsonObject, digest: str) -> Asked:
    """Reads a request.

    Raises:
        Refused: as the provider would.
    """
    checks.only(data, KNOWN)
    if data.get("previous_response_id") is not None:
        name = data["previous_response_id"]
        message = f"Previous response with id '{name}' not found."
        raise Refused(400, message, "previous_response_not_found", "previous_response_id")
    model = checks.text(data.get("model"), "model")
    items = _items(data.get("input"))
    offered = _tools(data.get("tools"))
    namespaces: dict[str, str] = {}
    for at, item in enumerate(items):
        if item.get("type") == "additional_tools":
            for space in checks.listed(item.get("tools"), f"input[{at}].tools"):
                inner = _tools(space.get("tools"))
                offered += inner
                namespaces |= {tool.name: space["name"] for tool, _ in inner}
    tools = tuple(tool for tool, _ in offered)
    stated = data.get("instructions")
    head = (Message(Role.SYSTEM, checks.text(stated, "instructions")),) if stated else ()
    reasoning = data.get("reasoning") or {}
    limit = data.get("max_output_tokens")
    request = Request(
        messages=(*head, *_turns(items, stored=data.get("store") is not False)),
        tools=tools,
        model=model,
        temperature=checks.number(data.get("temperature"), "temperature", 2),
        max_output_tokens=None if limit is None else checks.whole(limit, "max_output_tokens", 16),
        top_p=checks.number(data.get("top_p"), "top_p", 1),
        tool_choice=choice(data.get("tool_choice"), tools) if tools else "auto",
        parallel=data.get("parallel_tool_calls") is not False,
        effort=checks.record(reasoning, "reasoning").get("effort") or "",
    )
    encrypted = "reasoning.encrypted_content" in (data.get("include") or ())
    return Asked(
        request,
        model,
        digest,
        data.get("stream") is True,
        True,
        encrypted,
        None,
        _reasoned(items),
        _echo(data),
        {tool.name: kind for tool, kind in offered if kind != "function"},
        structured.responses(data),
        namespaces=namespaces,
    )


def _echo(data: JsonObject) -> JsonObject:
    given: dict[str, Any] = {
        "instructions": None,
        "max_output_tokens": None,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "reasoning": {"effort": None, "summary": None},
        "store": True,
        "text": {"format": {"type": "text"}},
    }
    told = {key: data[key] if data.get(key) is not None else value for key, value in given.items()}
    bare = {"strict": False, "description": None, "parameters": {}}
    told["tools"] = [{**bare, **tool} if tool.get("type") == "function" else tool for tool in told["tools"]]
    return told


def _reasoned(items: Sequence[JsonObject]) -> bool:
    """Whether the model's last items, up to results and users' messages, hold reasoning."""
    reasoned = own = False
    for item in items:
        said = item.get("role") == "assistant" or item.get("type") in ("reasoning", *CALLS)
        if said:
            reasoned = item.get("type") == "reasoning" or (own and reasoned)
        own = said
    return reasoned


def _items(value: Any) -> list[JsonObject]:
    if value is None:
        raise Refused(400, "Missing required parameter: 'input'.", "missing_required_parameter", "input")
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": value}]
    if not checks.listed(value, "input"):
        raise Refused(400, "Invalid 'input': empty array.", "empty_array", "input")
    return [checks.record(item, f"input[{at}]") for at, item in enumerate(value)]


def _turns(items: Sequence[JsonObject], *, stored: bool) -> list[Message]:
    """Calls belong to the assistant's text right before them; reasoning begins a turn."""
    turns: list[Message] = []
    said: tuple[str, list[ToolCall]] | None = None
    for at, item in enumerate(items):
        place = f"input[{at}]"
        kind = item.get("type", "message" if "role" in item else None)
        assistant = kind == "message" and item.get("role") == "assistant"
        if said is not None and kind not in CALLS:
            turns.append(Message(Role.ASSISTANT, said[0], tuple(said[1])))
            said = None
        if assistant:
            said = (_content(item, place), [])
        elif kind in CALLS:
            said = said or ("", [])
            said[1].append((_call if kind == "function_call" else client_tools.responses_call)(item, place))
        elif kind == "message":
            turns.append(_said(item, place))
        elif kind == "additional_tools":
            continue
        elif kind == "function_call_output":
            turns.append(_result(item, place))
        elif str(kind).removesuffix("_output") in client_tools.CALLS:
            turns.append(client_tools.responses_result(item, place))
        elif kind == "reasoning":
            _thought(item, items[at + 1] if at + 1 < len(items) else {}, stored=stored)
        else:
            raise Refused(400, f"Invalid value: '{kind}'.", "invalid_value", f"{place}.type")
    if said is not None:
        turns.append(Message(Role.ASSISTANT, said[0], tuple(said[1])))
    _matched(turns)
    return turns


def _said(item: JsonObject, place: str) -> Message:
    role = ROLES.get(str(item.get("role")))
    if role is None or role is Role.TOOL:
        raise Refused(400, f"Invalid value: '{item.get('role')}'.", "invalid_value", f"{place}.role")
    return Message(role, _content(item, place))


def _content(item: JsonObject, place: str) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    wanted = PARTS.get(str(item.get("role")), PARTS[""])
    texts = []
    for at, part in enumerate(checks.listed(content, f"{place}.content")):
        kind = checks.record(part, place).get("type")
        if kind not in wanted:
            told = " and ".join(f"'{word}'" for word in wanted)
            message = f"Invalid value: '{kind}'. Supported values are: {told}."
            raise Refused(400, message, "invalid_value", f"{place}.content[{at}]")
        texts.append(
            checks.text(part.get("refusal" if kind == "refusal" else "text"), f"{place}.content[{at}]")
        )
    return "".join(texts)


def _call(item: JsonObject, place: str) -> ToolCall:
    name = item.get("id")
    if name is not None and not str(name).startswith("fc"):
        message = f"Invalid '{place}.id': '{name}'. Expected an ID that begins with 'fc'."
        raise Refused(400, message, "invalid_value", f"{place}.id")
    return ToolCall(
        checks.text(item.get("call_id"), f"{place}.call_id"),
        checks.text(item.get("name"), f"{place}.name"),
        checks.text(item.get("arguments"), f"{place}.arguments"),
    )


def _result(item: JsonObject, place: str) -> Message:
    output = item.get("output")
    if not isinstance(output, str):
        parts = checks.listed(output, f"{place}.output")
        output = "".join(checks.text(checks.record(part, place).get("text"), place) for part in parts)
    return Message(Role.TOOL, output, call_id=checks.text(item.get("call_id"), f"{place}.call_id"))


def _thought(item: JsonObject, following: JsonObject, *, stored: bool) -> None:
    name = checks.text(item.get("id"), "input.id")
    checks.listed(item.get("summary"), "input.summary")
    content = item.get("encrypted_content")
    if content is None and not stored:
        message = f"Item with id '{name}' not found. Items are not persisted when `store` is set to false."
        raise Refused(404, message, param="input", type="invalid_request_error")
    if content is not None:
        hidden, _, signature = str(content).rpartition(".")
        if not signed(signature, "reasoning", name, hidden):
            message = f"The encrypted content for item {name} could not be verified."
            raise Refused(400, message, "invalid_encrypted_content")
    own = following.get("type") in ("reasoning", *CALLS) or following.get("role") == "assistant"
    if not own:
        message = f"Item '{name}' of type 'reasoning' was provided without its required following item."
        raise Refused(400, message, param="input")


def _matched(turns: Sequence[Message]) -> None:
    called = [call.id for turn in turns for call in turn.calls]
    answered: set[str] = set()
    known: set[str] = set()
    for turn in turns:
        known |= {call.id for call in turn.calls}
        if turn.role is Role.TOOL:
            if turn.call_id not in known:
                message = f"No tool call found for function call output with call_id {turn.call_id}."
                raise Refused(400, message, param="input")
            answered.add(turn.call_id)
    for name in called:
        if name not in answered:
            raise Refused(400, f"No tool output found for function call {name}.", param="input")


def _tools(given: Any) -> list[tuple[Tool, str]]:
    """Each tool and its type."""
    found = []
    for at, tool in enumerate(checks.listed(given or [], "tools")):
        record = checks.record(tool, f"tools[{at}]")
        kind = str(record.get("type"))
        own = client_tools.responses_tool(record, f"tools[{at}]")
        if own is None and kind != "function":
            raise Refused(400, f"Invalid value: '{kind}'.", "invalid_value", f"tools[{at}].type")
        found.append((own or function(record, f"tools[{at}]"), kind))
    return found
