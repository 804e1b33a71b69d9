"""OpenAI's Responses: nothing is kept at the provider, and reasoning is carried on, encrypted, by us.

The protocol has no stop texts, so a request with some is refused instead of being answered as if it had none. A
temperature is sent where the agent asks for one: a reasoning model refuses it, and the agent is told so.
"""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from dgm.messages import Message, Native, Reply, Request, RequestRefused, Role, Stop, Tool, ToolCall
from dgm.models.dialect import Broken
from dgm.models.openai_client import check_offered, events, let_end, provider_error, whole
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

VENDOR = "openai-responses"
ENCRYPTED = "reasoning.encrypted_content"
FINAL = ("response.completed", "response.incomplete", "response.failed")
MAY_PASS = ("", "server_error", "rate_limit_exceeded", "vector_store_timeout")
"""Codes of a failed response after which the same request may be answered."""
FOR_A_PERSON = ("insufficient_quota", "data_residency_mismatch", "invalid_api_key", "model_not_found")
"""Codes that no agent can do anything about."""

Item = Mapping[str, Any]
JsonObject = Mapping[str, Any]


class ResponsesDialect:
    """Speaks Responses through the ``openai`` package."""

    vendor = VENDOR

    def __init__(self, client: "openai.AsyncOpenAI", model: str, stream: bool) -> None:
        """``model`` is OpenAI's own name for it."""
        self._client = client
        self._model = model
        self._stream = stream
        self._encrypted = True

    async def ask(self, request: Request) -> Reply:
        """Asks once; see ``Dialect``."""
        import openai

        asked = arguments(request, self._model)
        if self._encrypted:
            try:
                return await self._ask(request, {**asked, "include": [ENCRYPTED]})
            except openai.BadRequestError as error:
                if not _knows_no_encryption(error):
                    raise
                # A model that does not reason refuses to be asked for its reasoning; that cost nothing.
                self._encrypted = False
        return await self._ask(request, asked)

    async def check(self) -> None:
        """Asks for the list of models; see ``Dialect``."""
        await check_offered(self._client, self._model, compatible=False)

    async def close(self) -> None:
        """Ends the connections."""
        await self._client.close()

    async def _ask(self, request: Request, asked: JsonObject) -> Reply:
        create = self._client.responses.with_raw_response.create
        if not self._stream:
            response = await whole(self._client, create, asked)
        else:
            async with aclosing(events(self._client, create, asked)) as happenings:
                response = await self._last(happenings)
        if response.get("status") == "failed" or response.get("error"):
            self._fail(response.get("error"))
        return read(response, request)

    async def _last(self, happenings: AsyncGenerator[JsonObject, None]) -> JsonObject:
        """The response that a stream ends with."""
        done: list[object] = []
        async for event in happenings:
            match event.get("type"):
                case "error":
                    raise provider_error(
                        self._client, {name: event.get(name) for name in ("code", "message", "param")}
                    )
                case "response.output_item.done":
                    done.append(event.get("item"))
                case kind if kind in FINAL:
                    response = event.get("response")
                    if not isinstance(response, Mapping):
                        raise Broken(f"{kind} holds no response")
                    await let_end(happenings)
                    # Some servers leave out at the end what they have sent before.
                    return {**response, "output": response.get("output") or done}
        raise Broken("the stream ended without a final response")

    def _fail(self, error: object) -> None:
        record = error if isinstance(error, dict) else {}
        code, message = str(record.get("code") or ""), str(record.get("message") or "the response failed")
        if code in MAY_PASS:
            raise Broken(f"{code or 'failed'}: {message}")
        if code in FOR_A_PERSON:
            raise provider_error(self._client, record)
        raise RequestRefused(code, message)


def arguments(request: Request, model: str) -> dict[str, Any]:
    """The request as arguments of ``responses.create``.

    Raises:
        RequestRefused: it holds stop texts.
    """
    if request.stop:
        raise RequestRefused(
            "unsupported_parameter",
            'stop is not supported by OpenAI\'s Responses; leave it out, or set models.openai.api = "chat"',
        )
    messages = list(request.messages)
    leading = next(
        (at for at, message in enumerate(messages) if message.role is not Role.SYSTEM), len(messages)
    )
    asked: dict[str, Any] = {
        "model": model,
        "input": [item for message in messages[leading:] for item in _items(message)],
        "store": False,
    }
    if leading:
        asked["instructions"] = "\n\n".join(message.text for message in messages[:leading])
    if request.tools:
        asked["tools"] = [_tool(tool) for tool in request.tools]
        if not request.parallel:
            asked["parallel_tool_calls"] = False
    if request.tool_choice.startswith("tool:"):
        asked["tool_choice"] = {"type": "function", "name": request.tool_choice.removeprefix("tool:")}
    elif request.tool_choice == "required" or (request.tool_choice == "none" and request.tools):
        asked["tool_choice"] = request.tool_choice
    wishes = {
        "max_output_tokens": request.max_output_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "reasoning": {"effort": request.effort} if request.effort else None,
    }
    asked.update({name: value for name, value in wishes.items() if value is not None})
    return asked


def read(response: JsonObject, request: Request) -> Reply:
    """What a response says.

    Raises:
        Broken: it holds no output, or is not at its end.
    """
    status, output = response.get("status") or "completed", response.get("output")
    if status not in ("completed", "incomplete"):
        raise Broken(f"the response is {status}")
    if not isinstance(output, list) or not all(isinstance(item, Mapping) for item in output):
        raise Broken("the response holds no output")
    items = _named(output, request)
    text, calls = _text(items), _calls(items)
    reasoning = "\n\n".join(
        filter(None, (_thought(item) for item in items if item.get("type") == "reasoning"))
    )
    said = len(text) + len(reasoning) + length(calls)
    reply = Reply(
        text,
        calls,
        _stop(status, response.get("incomplete_details"), items, calls),
        used(request, said, response.get("usage"), "input", "output"),
        reasoning,
        _native(items),
    )
    if not items and reply.stop is Stop.END:
        raise Broken("the response holds no output", reply)
    return reply


def _items(message: Message) -> list[Item]:
    match message.role:
        case Role.ASSISTANT:
            return _assistant(message)
        case Role.TOOL:
            return [{"type": "function_call_output", "call_id": message.call_id, "output": result(message)}]
        case Role.SYSTEM:
            return [{"role": "developer", "content": message.text}]
        case Role.USER:
            return [{"role": "user", "content": message.text}]


def _assistant(message: Message) -> list[Item]:
    """The turn's items; an empty turn is none, and reasoning without what it led to is refused by the provider."""
    if not message.text and not message.calls:
        return []
    theirs: list[Item] = []
    if message.native is not None and message.native.vendor == VENDOR:
        theirs = json.loads(message.native.data)
    if theirs and unchanged(message, _text(theirs), _calls(theirs)):
        return theirs
    items = [item for item in theirs if item.get("type") == "reasoning"]
    if message.text:
        items.append(_said(message.text, theirs))
    ids = {item["call_id"]: item["id"] for item in theirs if "call_id" in item and "id" in item}
    return items + [_call(call, ids.get(call.id)) for call in message.calls]


def _said(text: str, theirs: Sequence[Item]) -> Item:
    """Our text; after reasoning under the id of the message that it led to, by which the provider pairs the two."""
    paired = next((item["id"] for item in theirs if item.get("type") == "message" and "id" in item), None)
    if paired is None:
        return {"role": "assistant", "content": text}
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": paired, "role": "assistant", "status": "completed", "content": content}


def _call(call: ToolCall, item_id: str | None) -> Item:
    item = {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
    return {**item, "id": item_id} if item_id else item


def _tool(tool: Tool) -> JsonObject:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": schema(tool),
        "strict": False,
    }


def _named(output: Sequence[Item], request: Request) -> list[Item]:
    """The items, with an id on every call and arguments that are text."""
    calls = [item for item in output if item.get("type") == "function_call"]
    if not all(isinstance(call.get("name"), str) and call["name"] for call in calls):
        raise Broken("a tool call of the response names no function")
    ids = iter(with_ids([str(call.get("call_id") or "") for call in calls], request))
    return [
        {**item, "call_id": next(ids), "arguments": arguments_text(item.get("arguments"))}
        if item.get("type") == "function_call"
        else item
        for item in output
    ]


def _text(items: Sequence[Item]) -> str:
    messages = [item for item in items if item.get("type") == "message"]
    return "\n\n".join(
        filter(None, (texts(message.get("content"), "text", "refusal") for message in messages))
    )


def _calls(items: Sequence[Item]) -> tuple[ToolCall, ...]:
    calls = [item for item in items if item.get("type") == "function_call"]
    return tuple(ToolCall(item["call_id"], item["name"], item["arguments"]) for item in calls)


def _thought(item: Item) -> str:
    return texts(item.get("summary"), "text") or texts(item.get("content"), "text")


def _native(items: Sequence[Item]) -> Native | None:
    """The output as it is to be sent back; reasoning that is not encrypted would be looked for and not be found."""
    kept = [
        _returned(item) for item in items if item.get("type") != "reasoning" or item.get("encrypted_content")
    ]
    if not any(item.get("type") == "reasoning" for item in kept):
        return None
    return Native(VENDOR, json.dumps(kept))


def _returned(item: Item) -> Item:
    """An item as the provider takes it back: it refuses nulls of its own, and the ``status`` of reasoning."""
    dropped = "status" if item.get("type") == "reasoning" else ""
    return {name: value for name, value in item.items() if value is not None and name != dropped}


def _stop(status: str, details: object, items: Sequence[Item], calls: Sequence[ToolCall]) -> Stop:
    reason = details.get("reason") if isinstance(details, Mapping) else None
    if status == "incomplete":
        return Stop.REFUSAL if reason == "content_filter" else Stop.LENGTH
    parts = [part for item in items if isinstance(item.get("content"), list) for part in item["content"]]
    if any(isinstance(part, Mapping) and part.get("type") == "refusal" for part in parts):
        return Stop.REFUSAL
    return Stop.TOOL_CALLS if calls else Stop.END


def _knows_no_encryption(error: "openai.BadRequestError") -> bool:
    return error.param == "include" or "encrypted content is not supported" in error.message.lower()
