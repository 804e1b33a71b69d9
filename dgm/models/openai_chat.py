"""OpenAI's Chat Completions, as OpenAI itself and the many compatible servers (vLLM, Ollama, OpenRouter …) speak it.

Instructions are sent as ``system``, also to OpenAI: every model and every compatible server knows that role, OpenAI
itself reads it as ``developer`` for its reasoning models, and many servers refuse ``developer``.
What an agent asks for and a server does not know (a temperature of a reasoning model, more than four stop texts) is
sent all the same, so that the agent hears it from the provider instead of finding it ignored.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from dgm.messages import Message, Native, Reply, Request, Role, Stop, Tool, ToolCall
from dgm.models.dialect import Broken
from dgm.models.openai_chunks import assemble
from dgm.models.openai_client import check_offered, events, whole
from dgm.models.openai_turns import (
    arguments_text,
    length,
    result,
    schema,
    texts,
    unchanged,
    used,
    with_ids,
)

if TYPE_CHECKING:
    import openai

VENDOR = "openai-chat"
REASONING = ("reasoning_content", "reasoning", "reasoning_details")
"""Where compatible servers put it: DeepSeek and vLLM, vLLM and OpenRouter, OpenRouter."""
PLAIN_CALL = ("id", "type", "function", "index")
"""Fields of a call that ours holds; what is beside them (a signature of the thought behind it) makes a native."""
CALLED = ("tool_calls", "function_call")
CUT_OFF = ("length", "max_tokens", "model_length")
WITHHELD = ("content_filter", "refusal")
FAILED = ("error", "abort", "insufficient_system_resource")

JsonObject = Mapping[str, Any]


class ChatDialect:
    """Speaks Chat Completions through the ``openai`` package."""

    vendor = VENDOR

    def __init__(self, client: "openai.AsyncOpenAI", model: str, stream: bool, compatible: bool) -> None:
        """``model`` is the server's own name for it; ``compatible``: the server is not OpenAI's."""
        self._client = client
        self._model = model
        self._stream = stream
        self._compatible = compatible

    async def ask(self, request: Request) -> Reply:
        """Asks once; see ``Dialect``."""
        create = self._client.chat.completions.with_raw_response.create
        asked = arguments(request, self._model, self._compatible)
        if not self._stream:
            return read(await whole(self._client, create, asked), request)
        asked["stream_options"] = {"include_usage": True}
        async with aclosing(events(self._client, create, asked)) as chunks:
            return read(await assemble(chunks), request)

    async def check(self) -> None:
        """Asks for the list of models; see ``Dialect``."""
        await check_offered(self._client, self._model, compatible=self._compatible)

    async def close(self) -> None:
        """Ends the connections."""
        await self._client.close()


def arguments(request: Request, model: str, compatible: bool) -> dict[str, Any]:
    """The request as arguments of ``chat.completions.create``."""
    asked: dict[str, Any] = {"model": model, "messages": [_message(message) for message in request.messages]}
    if request.tools:
        asked["tools"] = [_tool(tool) for tool in request.tools]
        if not request.parallel:
            # Left out where it is allowed, which is the default: some reasoning models refuse the word itself.
            asked["parallel_tool_calls"] = False
    if request.tool_choice.startswith("tool:"):
        name = request.tool_choice.removeprefix("tool:")
        asked["tool_choice"] = {"type": "function", "function": {"name": name}}
    elif request.tool_choice == "required" or (request.tool_choice == "none" and request.tools):
        asked["tool_choice"] = request.tool_choice
    if request.max_output_tokens is not None:
        asked["max_tokens" if compatible else "max_completion_tokens"] = request.max_output_tokens
    if not compatible:
        # Some accounts keep every completion unless told not to.
        asked["store"] = False
    wishes = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "stop": list(request.stop) or None,
        "reasoning_effort": request.effort or None,
    }
    asked.update({name: value for name, value in wishes.items() if value is not None})
    return asked


def read(answer: JsonObject, request: Request) -> Reply:
    """What a completion says.

    Raises:
        Broken: it holds no choice, or a malformed one.
    """
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        raise Broken("the answer holds no choice")
    reason = choice.get("finish_reason")
    if reason in FAILED:
        raise Broken(f"the provider gave up ({reason}): {_why(choice.get('error'))}")
    entries = _entries(message, request)
    calls = _calls(entries)
    text, reasoning = _text(message), _reasoning(message)
    said = len(text) + len(reasoning) + length(calls)
    reply = Reply(
        text,
        calls,
        _stop(reason, calls, bool(message.get("refusal"))),
        used(request, said, answer.get("usage"), "prompt", "completion"),
        reasoning,
        _native(message, entries),
    )
    if reason in CALLED and not calls:
        raise Broken("the answer ends in a call of a tool, but holds none", reply)
    return reply


def _message(message: Message) -> JsonObject:
    match message.role:
        case Role.ASSISTANT:
            return _assistant(message)
        case Role.TOOL:
            return {"role": "tool", "tool_call_id": message.call_id, "content": result(message)}
        case role:
            return {"role": role.value, "content": message.text}


def _assistant(message: Message) -> JsonObject:
    ours: dict[str, Any] = {"role": "assistant", "content": message.text or (None if message.calls else "")}
    if message.calls:
        ours["tool_calls"] = [_call(call) for call in message.calls]
    if message.native is None or message.native.vendor != VENDOR:
        return ours
    theirs: dict[str, Any] = json.loads(message.native.data)
    if unchanged(message, _text(theirs), _calls(theirs.get("tool_calls", ()))):
        return theirs
    return {**ours, **{name: theirs[name] for name in REASONING if name in theirs}}


def _call(call: ToolCall) -> JsonObject:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _tool(tool: Tool) -> JsonObject:
    function = {"name": tool.name, "description": tool.description, "parameters": schema(tool)}
    return {"type": "function", "function": function}


def _text(message: JsonObject) -> str:
    content, refusal = message.get("content"), message.get("refusal")
    text = content if isinstance(content, str) else texts(content, "text")
    return text + (refusal if isinstance(refusal, str) else "")


def _reasoning(message: JsonObject) -> str:
    for name in REASONING[:2]:
        text = message.get(name)
        if isinstance(text, str) and text:
            return text
    return texts(message.get("reasoning_details"), "text", "summary")


def _entries(message: JsonObject, request: Request) -> list[JsonObject]:
    """The message's calls, each with an id, a name and arguments that are text."""
    given = message.get("tool_calls") or []
    if not given and isinstance(message.get("function_call"), Mapping):
        given = [{"function": message["function_call"]}]
    if not isinstance(given, list) or not all(
        isinstance(call, Mapping) and isinstance(call.get("function"), Mapping) for call in given
    ):
        raise Broken("a tool call of the answer names no function")
    ids = with_ids([call["id"] if isinstance(call.get("id"), str) else "" for call in given], request)
    return [_entry(call, name) for call, name in zip(given, ids, strict=True)]


def _entry(call: JsonObject, call_id: str) -> JsonObject:
    function = call["function"]
    if not isinstance(function.get("name"), str) or not function["name"]:
        raise Broken("a tool call of the answer names no function")
    told = {**function, "arguments": arguments_text(function.get("arguments"))}
    kept = {name: value for name, value in call.items() if name != "index" and value is not None}
    return {**kept, "id": call_id, "type": "function", "function": told}


def _calls(entries: Sequence[JsonObject]) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(entry["id"], entry["function"]["name"], entry["function"]["arguments"]) for entry in entries
    )


def _native(message: JsonObject, entries: Sequence[JsonObject]) -> Native | None:
    """The turn as it is to be sent back: only fields that a server takes, and only where ours would lose some."""
    kept = {name: message[name] for name in REASONING if message.get(name)}
    if not kept and not any(set(entry) - set(PLAIN_CALL) for entry in entries):
        return None
    turn: dict[str, Any] = {"role": "assistant", "content": message.get("content"), **kept}
    if message.get("refusal"):
        turn["refusal"] = message["refusal"]
    if entries:
        turn["tool_calls"] = entries
    return Native(VENDOR, json.dumps(turn))


def _stop(reason: object, calls: Sequence[ToolCall], refused: bool) -> Stop:
    """Calls count more than the reason: many compatible servers say ``stop`` beside them."""
    if reason in CUT_OFF:
        return Stop.LENGTH
    if refused or reason in WITHHELD:
        return Stop.REFUSAL
    return Stop.TOOL_CALLS if calls else Stop.END


def _why(error: object) -> str:
    message = error.get("message") if isinstance(error, Mapping) else None
    return str(message or "it says no more")
