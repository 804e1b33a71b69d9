"""OpenAI's Responses, in the dialects of OpenAI itself and of compatible servers.

Tools of other types than functions become functions for a model of another protocol, and the calls in a translated
answer get the form back that the agent knows: tools in a namespace, or in an item of the input, stand beside the
others; a custom tool, whose input is a free text, is a function with one text.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dgm.domain import Usage
from dgm.messages import (
    AnswerForm,
    JsonObject,
    Message,
    Native,
    Reply,
    Request,
    RequestRefused,
    Role,
    Stop,
    Tool,
    ToolCall,
    WireProtocol,
)
from dgm.wires.neutral import (
    FAILED,
    openai_fields,
    same_turn,
    schema_of,
    text_of_parts,
    whole_number,
)
from dgm.wires.values import (
    Ids,
    arguments_text,
    characters,
    is_json,
    mend_arguments,
    mend_each,
    mend_halves,
    openai_usage,
    record,
    records,
    texts,
)
from dgm.wires.wire import ErrorInAnswer, Event, Key, Sent, UnusableReply, Wire, WireAnswer, status_of

VENDOR = "openai-responses"
ENCRYPTED = "reasoning.encrypted_content"
INCOMPLETE = {Stop.LENGTH: "max_output_tokens", Stop.REFUSAL: "content_filter"}
"""Reasons of an answer that is incomplete."""
INPUT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
"""Schema of a custom tool as a function."""
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Types of calls that the agent executes → the field with the model's input."""
_OTHER_CALLS = ("local_shell_call", "shell_call", "apply_patch_call", "computer_call")
_PREFIXES = {"message": "msg_", "function_call": "fc_", "custom_tool_call": "ctc_", "reasoning": "rs_"}
_CALL_FIELDS = ("arguments", "input", "action", "operation")
"""Fields of call items that hold the input."""
_NOT_SAID = ("id", "type", "status", "role", "call_id", "encrypted_content")
_SPEAKERS = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "assistant": Role.ASSISTANT}
_BEGINS = ("response.created", "response.queued", "response.in_progress")
_ENDS = ("response.completed", "response.incomplete", "response.done")
_TEXTS = {
    "response.output_text": ("message", "output_text", "content_index", "text"),
    "response.refusal": ("message", "refusal", "content_index", "refusal"),
    "response.function_call_arguments": ("function_call", "arguments", "", "arguments"),
    "response.custom_tool_call_input": ("custom_tool_call", "input", "", "input"),
    "response.reasoning_summary_text": ("reasoning", "summary_text", "summary_index", "text"),
    "response.reasoning_text": ("reasoning", "reasoning_text", "content_index", "text"),
}
"""Prefixes of a text's events (without ``.delta`` or ``.done``) → its item and part types, index and text names."""
_PARTS = {"output_text": "text", "refusal": "refusal", "reasoning_text": "text", "summary_text": "text"}
"""Types of parts → the field with their text."""
_LISTS = {"message": ("content", "output_text"), "reasoning": ("summary", "summary_text")}
"""Types of items → the field with their parts, and the usual type of these."""


class _Item:
    def __init__(self, at: int, item: JsonObject, given_id: object) -> None:
        self.at, self.item, self.given_id, self.done = at, item, given_id, False
        self.parts: dict[tuple[str, int], list[str]] = {}
        """Type and index of a part → its pieces; for a call's arguments: the field and 0."""

    @property
    def kind(self) -> str:
        return str(self.item["type"])

    @property
    def is_whole(self) -> bool:
        if self.done or self.kind != "function_call":
            return True
        text = self.item.get("arguments") or self.text("arguments", 0)
        return not text.strip() or is_json(text)

    def text(self, kind: str, index: int) -> str:
        return "".join(self.parts.get((kind, index), ()))

    def renew(self, entry: JsonObject) -> bool:
        """Take a later form of the item; return whether it has the ids that were sent first, and all of its content."""
        call_id, known = str(self.item.get("call_id")), self.item.get("id")
        self.item = _mend_item(entry, str(known or entry.get("id") or ""), lambda _: call_id)
        sound = self.item is entry
        self.item = self.final()
        return sound and self.item is entry

    def final(self) -> JsonObject:
        """Return the item completed with the content of its pieces."""
        item, more = self.item, dict[str, Any]()
        if self.kind in _CALLS:
            name = _CALLS[self.kind]
            text = item.get(name) or self.text(name, 0)
            more[name] = "{}" if self.kind == "function_call" and not text.strip() else text
        elif self.kind == "message" and not texts(given := item.get("content"), "text", "refusal"):
            content = self._content("output_text", "refusal")
            more["content"] = given if given and not texts(content, "text", "refusal") else content
        elif self.kind == "reasoning":
            more["summary"] = item.get("summary") or self._content("summary_text")
            if content := item.get("content") or self._content("reasoning_text"):
                more["content"] = content
        if item.get("status") == "in_progress":
            more["status"] = "completed"
        changed = {name: value for name, value in more.items() if item.get(name) != value}
        return {**item, **changed} if changed else item

    def _content(self, *kinds: str) -> list[JsonObject]:
        parts: list[JsonObject] = []
        for (kind, _), pieces in sorted(self.parts.items(), key=lambda entry: entry[0][1]):
            if kind in kinds:
                parts.append({**_new_part(kind), _PARTS[kind]: "".join(pieces)})
        return parts


class _Fold:
    def __init__(self, request: JsonObject) -> None:
        self._request = request
        self._response: dict[str, Any] = {}
        self._items: list[_Item] = []
        self._slots: dict[int, _Item] = {}
        self._named = len(records(request.get("input")))
        self._taken: set[str] = set()
        self._calls: Ids | None = None
        self.spoken, self.text = False, ""
        self.ending = self.stopped = self.complete = False

    def take(self, event: JsonObject, name: str) -> bool:
        kind = event.get("type") or name
        if not isinstance(kind, str):
            kind = name
        RESPONSES.raise_error(event, kind)
        self.text, sound = "", kind == event.get("type")
        if not self._response and kind not in _BEGINS and kind.startswith("response."):
            self._response, sound = self._first_response(record(event.get("response"))), False
        prefix, _, step = kind.rpartition(".")
        if kind in _BEGINS or kind in _ENDS:
            return self._lifecycle(event, kind) and sound
        if prefix == "response.output_item":
            return self._take_item(event, step == "done") and sound
        if prefix in _TEXTS:
            return self._take_text(event, prefix, step == "done") and sound
        if prefix == "response.content_part" and record(event.get("part")).get("type") != "reasoning_text":
            return self._take_part(event, step == "done") and sound
        item = self._slots.get(_number(event.get("output_index")))
        return sound and (item is None or "item_id" not in event or self._fits(event, item))

    def _first_response(self, known: JsonObject) -> dict[str, Any]:
        """Return the response at the beginning of a stream, made from its last form if the first is missing."""
        return {
            "id": known.get("id") or "resp_dgm_0",
            "object": "response",
            "created_at": known.get("created_at") or 0,
            "status": "in_progress",
            "model": known.get("model") or self._request.get("model") or "",
            "output": [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }

    def _lifecycle(self, event: JsonObject, kind: str) -> bool:
        response = record(event.get("response"))
        # The first id stays: some proxies change it later.
        known = self._response.get("id") or response.get("id") or "resp_dgm_0"
        sound = event.get("response") is response and response.get("id") == known
        first = {} if kind in _ENDS and response.get("id") else self._response
        self._response = {**first, **response, "id": known}
        if kind in _BEGINS:
            return sound
        RESPONSES.raise_error(response, "")
        ended = "response.completed" if kind == "response.done" else kind
        self.ending = self.stopped = self.complete = True
        status = ended.removeprefix("response.")
        if response.get("status") != status and (kind != "response.done" or not response.get("status")):
            self._response["status"], sound = status, False
        sound = sound and kind == ended and isinstance(response.get("usage"), dict)
        sound = sound and (ended == "response.incomplete" or all(item.done for item in self._items))
        given = response.get("output")
        entries = records(given)
        if not isinstance(given, list) or len(entries) < len(given) or len(entries) < len(self._items):
            return False
        for place, entry in enumerate(entries):
            if place >= len(self._items):
                self._new(entry, None)
                sound = False
            elif self._items[place].kind == entry.get("type"):
                sound = self._items[place].renew(entry) and sound
            else:
                sound = False
        return sound

    def _new(self, given: JsonObject, index: object) -> tuple[_Item, bool]:
        """Add an item, and return whether it is as the vendor's client needs it."""
        own = given.get("id")
        if not isinstance(own, str) or not own or own in self._taken:
            self._named += 1
            own = f"{_PREFIXES.get(str(given.get('type')), 'item_')}dgm_{self._named}"
        self._taken.add(own)
        if self._calls is None:
            items = records(self._request.get("input"))
            self._calls = Ids(
                item.get("call_id") for item in items if not str(item.get("type")).endswith("_output")
            )
        read = _mend_item(given, own, self._calls.take)
        item, self.stopped = _Item(len(self._items), read, given.get("id")), self.complete
        self._items.append(item)
        if type(index) is int:
            self._slots[index] = item
        self.spoken = self.spoken or item.kind in _CALLS or _count_chars([read]) > 0
        return item, read is given and type(index) is int and index == item.at

    def _find(self, event: JsonObject, kind: object) -> _Item | None:
        """Return the item of an event: by its index, else its id, else the last one of its type."""
        index, item_id = event.get("output_index"), event.get("item_id")
        item = self._slots.get(index) if type(index) is int else None
        if item is not None and item.kind == kind:
            return item
        same = [one for one in reversed(self._items) if one.kind == kind]
        if item_id:
            return next((one for one in same if item_id in (one.given_id, one.item.get("id"))), None)
        return next((one for one in same if not one.done), None) if index is None else None

    def _found(self, event: JsonObject, kind: str) -> tuple[_Item, bool]:
        """Return the item of an event, a new one if it was never announced, and whether the event is as it must be."""
        item = self._find(event, kind)
        if item is not None:
            return item, self._fits(event, item)
        given = {"type": kind, "id": event.get("item_id"), "status": "in_progress"}
        given |= {name: event[name] for name in ("name", "call_id") if event.get(name)}
        if kind == "reasoning":
            del given["status"]
        return self._new(given, event.get("output_index"))[0], False

    @staticmethod
    def _fits(event: JsonObject, item: _Item) -> bool:
        index, known = event.get("output_index"), item.item.get("id")
        return index == item.at and type(index) is int and (not known or event.get("item_id") == known)

    def _take_item(self, event: JsonObject, done: bool) -> bool:
        given, index = event.get("item"), event.get("output_index")
        if not isinstance(given, dict):
            return True
        own = given.get("id")
        item = self._find({"output_index": index, "item_id": own}, given.get("type"))
        if item is not None and item.done:
            item = None
        if not done:
            known = item is not None and own and own == item.given_id
            return not known and self._new(given, index)[1]
        sound = item is not None and index == item.at and type(index) is int
        item = item or self._new(given, index)[0]
        sound = item.renew(given) and sound
        item.done = True
        # A call may be missing after a completed text, and the agent would take the text as its last word.
        self.stopped = item.kind in _CALLS and all(one.done for one in self._items)
        self.spoken = self.spoken or _count_chars([item.item]) > 0
        return sound

    def _take_text(self, event: JsonObject, prefix: str, done: bool) -> bool:
        kind, part, index_name, whole = _TEXTS[prefix]
        item, sound = self._found(event, kind)
        index = _number(event.get(index_name)) if index_name else 0
        sound = sound and (not index_name or type(event.get(index_name)) is int)
        sound = sound and (kind != "message" or (part, index) in item.parts)
        pieces = item.parts.setdefault((part, index), [])
        given = event.get(whole if done else "delta")
        text = given if isinstance(given, str) else "" if given is None else arguments_text(given)
        if done and pieces:
            # It repeats what the deltas told.
            item.parts[part, index] = [text] if text else pieces
        else:
            self.text = text
            pieces.append(text)
            # Agents that read only deltas would miss a text that is only told at its end.
            sound = sound and not (done and text)
        self.spoken = self.spoken or bool(text)
        return sound and isinstance(given, str)

    def _take_part(self, event: JsonObject, done: bool) -> bool:
        part = record(event.get("part"))
        item, sound = self._found(event, "message")
        index, name = event.get("content_index"), str(part.get("type"))
        key, text = (name, _number(index)), texts([part], "text", "refusal")
        sound = sound and type(index) is int and isinstance(part.get(_PARTS.get(name, "type")), str)
        if done:
            sound = sound and key in item.parts
        pieces = item.parts.setdefault(key, [])
        if text and (done or not pieces):
            item.parts[key] = [text]
        return sound

    def finish(self, *, done: bool) -> None:
        if not self.complete:
            if not self._items:
                raise UnusableReply("the stream ended before the model said anything")
            if not all(item.is_whole for item in self._items):
                raise UnusableReply("the stream ended within the arguments of a tool call")
        if not all(item.kind not in _CALLS or _is_name(item.item.get("name")) for item in self._items):
            raise UnusableReply("a tool call of the response names no function")
        status = self._response.get("status") if self.complete else "completed"
        if status not in ("completed", "incomplete"):
            raise UnusableReply(f"the response is {status}")
        self._response["status"] = status
        if not isinstance(self._response.get("usage"), dict):
            used = RESPONSES.usage(self.whole(), self._request)
            self._response["usage"] = {
                "input_tokens": used.input_tokens,
                "input_tokens_details": {"cached_tokens": used.cached_tokens},
                "output_tokens": used.output_tokens,
                "output_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
                "total_tokens": used.tokens,
            }
        if not (done or self.stopped):
            raise UnusableReply("the stream ended without a final response", self.whole())
        if not self._items and status == "completed":
            raise UnusableReply("the response holds no output", self.whole())

    def whole(self) -> JsonObject:
        return {"object": "response", **self._response, "output": [item.final() for item in self._items]}


class _Responses(Wire):
    protocol, path, turns = WireProtocol.RESPONSES, "/responses", "input"
    content, prefix = "output", "resp_"

    # Answers of a provider

    def fold(self, request: JsonObject) -> _Fold:
        return _Fold(request)

    def accept(self, whole: JsonObject, request: JsonObject) -> JsonObject:
        if (status := whole.get("status")) in ("queued", "in_progress"):
            raise UnusableReply(f"the response is {status}")
        return super().accept(whole, request)

    def raise_error(self, event: JsonObject, kind: str) -> None:
        error, failed = event.get("error"), kind in ("response.failed", "response.cancelled")
        response = record(event.get("response")) if failed else event
        if failed or (not kind and (error or response.get("status") in ("failed", "cancelled"))):
            status = response.get("status") or "failed"
            told = response.get("error") or {"code": "", "message": f"the response {status}"}
            raise ErrorInAnswer({"error": told, "status": status}, status_of(told))
        if kind in ("error", "response.error") or event.get("type") == "error" or error:
            told = error or {name: event.get(name) for name in ("code", "message", "param")}
            raise ErrorInAnswer({"type": "error", "error": told}, status_of(told) or status_of(event))

    def split(self, whole: JsonObject, sent: Sent | None = None) -> Iterator[Event]:
        sent = sent or Sent()
        number = sent.events
        for event in _split(whole):
            [(key, text)] = self.pieces(event)
            item_done = ("response.output_item.done", event.get("output_index"), None)
            if sent.events and (event["type"] in _BEGINS or not sent.lacks(item_done)):
                continue
            if not sent.lacks(key):
                if not (text and (text := sent.rest(key, text))):
                    continue
                event = {**event, "delta": text}
            yield Event({"type": event["type"], "sequence_number": number, **event}, event["type"])
            number += 1

    def pieces(self, event: JsonObject) -> Iterator[tuple[Key, str]]:
        part = event.get("content_index", event.get("summary_index"))
        kind, delta = str(event.get("type")), event.get("delta")
        yield (kind, event.get("output_index"), part), delta if isinstance(delta, str) else ""

    def usage(self, whole: JsonObject, request: JsonObject) -> Usage:
        return openai_usage(whole, request, _count_chars(records(whole.get("output"))), "input", "output")

    def stop(self, whole: JsonObject) -> Stop:
        items = records(whole.get("output"))
        if whole.get("status") == "incomplete":
            reason = record(whole.get("incomplete_details")).get("reason")
            return Stop.REFUSAL if reason == "content_filter" else Stop.LENGTH
        if any(part.get("type") == "refusal" for item in items for part in records(item.get("content"))):
            return Stop.REFUSAL
        return Stop.TOOL_CALLS if any(map(_is_call, items)) else Stop.END

    def read_reply(self, whole: JsonObject, request: JsonObject) -> Reply:
        items = records(whole.get("output"))
        thoughts = [
            texts(item.get("summary"), "text") or texts(item.get("content"), "text")
            for item in items
            if item.get("type") == "reasoning"
        ]
        reasoning = "\n\n".join(filter(None, thoughts))
        used = self.usage(whole, request)
        return Reply(_text_of(items), _read_calls(items), self.stop(whole), used, reasoning, _native(items))

    # Requests

    def output_limit(self, body: JsonObject) -> int | None:
        return whole_number(body.get("max_output_tokens"))

    def limited(self, body: JsonObject, tokens: int) -> JsonObject:
        return {**body, "max_output_tokens": tokens}

    def mended_request(self, body: JsonObject) -> JsonObject:
        def mend(item: JsonObject) -> JsonObject:
            if item.get("type") != "function_call":
                return item
            arguments = mend_arguments(item.get("arguments"))
            return item if arguments is item.get("arguments") else {**item, "arguments": arguments}

        return mend_each(mend_halves(body), "input", mend)

    def read_messages(self, body: JsonObject) -> list[Message]:
        given = body.get("input")
        system = text_of_parts(body["instructions"]) if body.get("instructions") else None
        messages = [] if system is None else [Message(Role.SYSTEM, system)]
        if isinstance(given, str):
            messages.append(Message(Role.USER, given))
        return messages + _read_items(records(given))

    def read_effort(self, body: JsonObject) -> str:
        return str(record(body.get("reasoning")).get("effort") or "")

    def write_request(self, request: Request, model: str) -> JsonObject:
        # The provider stores nothing.
        if request.stop:
            message = "stop is not supported by OpenAI's Responses; leave it out"
            raise RequestRefused("unsupported_parameter", message)
        messages = list(request.messages)
        leading = next(
            (at for at, turn in enumerate(messages) if turn.role is not Role.SYSTEM), len(messages)
        )
        body = {
            "model": model,
            "input": [item for message in messages[leading:] for item in _write_items(message)],
            "store": False,
            "include": [ENCRYPTED],
        }
        return body | openai_fields(
            request,
            _write_tool,
            lambda name: {"type": "function", "name": name},
            instructions="\n\n".join(message.text for message in messages[:leading]) if leading else None,
            max_output_tokens=request.max_output_tokens,
            reasoning={"effort": request.effort} if request.effort else None,
            text=_write_form(request.form),
        )

    # Answers to an agent

    def write_answer(self, answer: WireAnswer) -> JsonObject:
        used, reason = answer.reply.usage, INCOMPLETE.get(answer.reply.stop)
        return {
            "id": answer.id,
            "object": "response",
            "created_at": answer.created,
            "completed_at": None if reason else answer.created,
            "status": "incomplete" if reason else "completed",
            "background": False,
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "model": answer.model,
            "output": _write_output(answer),
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


RESPONSES = _Responses()


def _number(value: object) -> int:
    return value if type(value) is int and value >= 0 else 0


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_call(item: JsonObject) -> bool:
    return str(item.get("type")).endswith("_call") and bool(item.get("call_id"))


def _count_chars(items: Sequence[JsonObject]) -> int:
    """Return the number of characters in the items: of texts, their parts, or an action's command."""
    said = [value for item in items for name, value in item.items() if name not in _NOT_SAID]
    return sum(
        characters(list(value.values())) if isinstance(value, dict) else len(texts(value, "text", "refusal"))
        for value in said
    )


def _new_part(kind: str) -> dict[str, Any]:
    return {
        "type": kind,
        _PARTS.get(kind, "text"): "",
        **({"annotations": []} if kind == "output_text" else {}),
    }


def _mend_item(item: JsonObject, item_id: str, call_id: Any) -> JsonObject:  # noqa: ANN401  (a function of any JSON)
    """Return an item in a form that the vendor's client can read; the same one if nothing changed."""
    kind, fixed = item.get("type"), dict[str, Any]()
    if not isinstance(kind, str) or not kind:
        kind = "function_call" if "arguments" in item else "reasoning" if "summary" in item else "message"
        fixed["type"] = kind
    if kind in _PREFIXES and item.get("id") != item_id:
        fixed["id"] = item_id
    if (kind in _CALLS or kind in _OTHER_CALLS) and (named := call_id(item.get("call_id"))) != item.get(
        "call_id"
    ):
        fixed["call_id"] = named
    if kind in _CALLS and not isinstance(given := item.get(_CALLS[kind]), str):
        fixed[_CALLS[kind]] = "" if given is None else arguments_text(given)
    if kind == "message":
        content = item.get("content")
        if not isinstance(content, list):
            fixed["content"] = (
                [{**_new_part("output_text"), "text": content}] if isinstance(content, str) else []
            )
        if not item.get("role"):
            fixed["role"] = "assistant"
    if kind == "reasoning" and not isinstance(item.get("summary"), list):
        fixed["summary"] = []
    parts, usual = _LISTS.get(kind, ("", ""))
    return mend_each({**item, **fixed} if fixed else item, parts, lambda part: _mend_part(part, usual))


def _mend_part(part: JsonObject, usual: str) -> JsonObject:
    kind = part.get("type")
    if not isinstance(kind, str) or not kind:
        part = {**part, "type": usual}
    key = _PARTS.get(part["type"])
    return part if key is None or isinstance(part.get(key), str) else {**part, key: ""}


def _split(whole: JsonObject) -> Iterator[JsonObject]:
    unknown = dict.fromkeys(("completed_at", "incomplete_details", "usage"))
    begun = {**whole, **unknown, "status": "in_progress", "output": []}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    output = whole.get("output")
    for index, item in enumerate(output if isinstance(output, list) else ()):
        yield from _split_item(item, index)
    ended = "response.incomplete" if whole.get("status") == "incomplete" else "response.completed"
    yield {"type": ended, "response": whole}


def _split_item(item: Any, index: int) -> Iterator[JsonObject]:  # noqa: ANN401  (any JSON)
    kind, place = str(record(item).get("type")), {"item_id": record(item).get("id"), "output_index": index}
    first, parts = item, _LISTS.get(kind, ("", ""))[0]
    if isinstance(record(item).get(parts), list):
        first = {**first, parts: []}
    if isinstance(given := record(item).get(field := _CALLS.get(kind, "")), str):
        first = {**first, field: ""}
    if "status" in record(item):
        first = {**first, "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": index, "item": first}
    for number, part in enumerate(records(record(item).get(parts))):
        name = "reasoning_summary_text" if kind == "reasoning" else str(part.get("type"))
        whole = "reasoning_summary_part" if kind == "reasoning" else "content_part"
        key = "refusal" if name == "refusal" else "text"
        here = {**place, "summary_index" if kind == "reasoning" else "content_index": number}
        logged: JsonObject = {"logprobs": []} if name == "output_text" else {}
        empty = {**part, key: ""} if kind == "reasoning" else _new_part(name)
        yield {"type": f"response.{whole}.added", **here, "part": empty}
        if isinstance(text := part.get(key), str):
            yield {"type": f"response.{name}.delta", **here, "delta": text, **logged}
            yield {"type": f"response.{name}.done", **here, key: text, **logged}
        yield {"type": f"response.{whole}.done", **here, "part": part}
    if isinstance(given, str):
        name = "function_call_arguments" if kind == "function_call" else "custom_tool_call_input"
        yield {"type": f"response.{name}.delta", **place, "delta": given}
        yield {"type": f"response.{name}.done", **place, field: given, "name": item.get("name")}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _read_items(items: Sequence[JsonObject]) -> list[Message]:
    """Return the turns of a conversation; consecutive items of the model are one turn."""
    turns: list[Message] = []
    said: list[JsonObject] = []
    for item in (*items, None):
        kind = str(item.get("type") or "message") if item else ""
        if item and (item.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")):
            said.append(item)
            continue
        if said:
            turns.append(Message(Role.ASSISTANT, _text_of(said), _read_calls(said), native=_native(said)))
            said = []
        if item is not None:
            turns.append(_read_item(item, kind))
    return turns


def _read_item(item: JsonObject, kind: str) -> Message:
    if kind.endswith("_output"):
        text = text_of_parts(item.get("output"))
        name = str(item.get("call_id") or item.get("id") or "")
        return Message(Role.TOOL, text.removeprefix(FAILED), call_id=name, failed=text.startswith(FAILED))
    if kind != "message":
        return Message(Role.USER, f"[{kind}]")
    return Message(_SPEAKERS.get(str(item.get("role")), Role.USER), text_of_parts(item.get("content")))


def _text_of(items: Sequence[JsonObject]) -> str:
    spoken = [item for item in items if (item.get("type") or "message") == "message"]
    return "\n\n".join(filter(None, (text_of_parts(item.get("content")) for item in spoken)))


def _read_calls(items: Sequence[JsonObject]) -> tuple[ToolCall, ...]:
    return tuple(_read_call(item) for item in items if _is_call(item))


def _read_call(item: JsonObject) -> ToolCall:
    text = arguments_text(next((item[name] for name in _CALL_FIELDS if name in item), None))
    name = item.get("name") or str(item.get("type")).removesuffix("_call")
    return ToolCall(str(item["call_id"]), str(name), text if text.strip() else "{}")


def _native(items: Sequence[JsonObject]) -> Native | None:
    """Return the output to send back, without unencrypted reasoning, which the provider would look up in vain."""
    kept = [item for item in items if item.get("type") != "reasoning" or item.get("encrypted_content")]
    if not any(item.get("type") == "reasoning" for item in kept):
        return None
    # The provider takes no nulls of its own, and no status of reasoning.
    clean = [
        {
            name: value
            for name, value in item.items()
            if value is not None and (name != "status" or item.get("type") != "reasoning")
        }
        for item in kept
    ]
    return Native(VENDOR, json.dumps(clean))


def _write_form(form: AnswerForm | None) -> JsonObject | None:
    if form is None:
        return None
    return {"format": {"type": "json_schema", "name": form.name, "schema": form.schema, "strict": True}}


def _write_items(message: Message) -> list[JsonObject]:
    match message.role:
        case Role.ASSISTANT:
            return _write_assistant(message)
        case Role.TOOL:
            text = FAILED + message.text if message.failed else message.text
            return [{"type": "function_call_output", "call_id": message.call_id, "output": text}]
        case role:
            return [{"role": "developer" if role is Role.SYSTEM else "user", "content": message.text}]


def _write_assistant(message: Message) -> list[JsonObject]:
    """Return the turn's items; none for an empty turn, because reasoning without its result is refused."""
    if not message.text and not message.calls:
        return []
    theirs: list[JsonObject] = []
    if message.native is not None and message.native.vendor == VENDOR:
        theirs = json.loads(message.native.data)
    if theirs and same_turn(message, _text_of(theirs), _read_calls(theirs)):
        return theirs
    items = [item for item in theirs if item.get("type") == "reasoning"]
    if message.text:
        items.append(_write_text(message.text, theirs))
    ids = {item["call_id"]: item["id"] for item in theirs if "call_id" in item and "id" in item}
    return items + [_write_call(call, ids.get(call.id)) for call in message.calls]


def _write_text(text: str, theirs: Sequence[JsonObject]) -> JsonObject:
    """Return our text; after reasoning under the id of the resulting message, which pairs them."""
    paired = next((item["id"] for item in theirs if item.get("type") == "message" and "id" in item), None)
    if paired is None:
        return {"role": "assistant", "content": text}
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": paired, "role": "assistant", "status": "completed", "content": content}


def _write_call(call: ToolCall, item_id: str | None) -> JsonObject:
    item = {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
    return {**item, "id": item_id} if item_id else item


def _write_tool(tool: Tool) -> JsonObject:
    described = {"name": tool.name, "description": tool.description, "parameters": schema_of(tool)}
    return {"type": "function", **described, "strict": False}


def _write_output(answer: WireAnswer) -> list[JsonObject]:
    reply, mark = answer.reply, answer.id.removeprefix("resp_")
    status = "incomplete" if reply.stop in INCOMPLETE else "completed"
    items: list[JsonObject] = []
    if reply.reasoning:
        summary = [{"type": "summary_text", "text": reply.reasoning}]
        items.append({"id": f"rs_{mark}", "type": "reasoning", "summary": summary})
    if reply.text or not reply.calls:
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        message = {"id": f"msg_{mark}", "type": "message", "status": status, "role": "assistant"}
        items.append({**message, "content": [part]})
    names = name_tools(answer.echo.get("tools", ()))
    return items + [
        _write_answered_call(call, names.get(call.name, {}), f"{mark}_{at}")
        for at, call in enumerate(reply.calls)
    ]


def _write_answered_call(call: ToolCall, tool: JsonObject, mark: str) -> JsonObject:
    """Return a call in the form of the tool that it calls."""
    head = {"status": "completed", "call_id": call.id, "name": tool.get("name", call.name)}
    if tool.get("namespace"):
        head["namespace"] = tool["namespace"]
    if tool.get("type") != "custom":
        return {"id": f"fc_{mark}", "type": "function_call", **head, "arguments": call.arguments}
    try:
        written = json.loads(call.arguments)
    except ValueError:
        written = None
    # The model may not keep to the function's form.
    text = written.get("input") if isinstance(written, dict) else written
    given = text if isinstance(text, str) else call.arguments
    return {"id": f"ctc_{mark}", "type": "custom_tool_call", **head, "input": given}


# Tools of an agent


def flatten_tools(holder: JsonObject) -> Iterator[JsonObject]:
    """Yield the tools of a request or an item, those of namespaces included, each with its ``namespace``."""
    for tool in records(holder.get("tools")):
        if tool.get("type") == "namespace":
            yield from ({**inner, "namespace": str(tool.get("name"))} for inner in flatten_tools(tool))
        else:
            yield tool


def name_tools(tools: Sequence[JsonObject]) -> dict[str, JsonObject]:
    """Return functions and custom tools by the name that the model knows: with the namespace only where it must be."""
    named = [tool for tool in tools if tool.get("type") in ("function", "custom")]
    times = Counter(str(tool.get("name")) for tool in named)
    return {
        f"{tool['namespace']}__{tool['name']}"
        if times[str(tool.get("name"))] > 1 and tool.get("namespace")
        else str(tool.get("name")): tool
        for tool in named
    }


def with_plain_functions(body: JsonObject, tools: Sequence[JsonObject]) -> JsonObject:
    """Return a request with these functions and custom tools as its only tools, all of them functions."""
    named = name_tools(tools)
    names = {(str(tool.get("namespace")), str(tool.get("name"))): name for name, tool in named.items()}
    plain = {**body, "tools": [_as_function(name, tool) for name, tool in named.items()]}
    if isinstance(body.get("input"), list):
        items = [item for item in records(body["input"]) if item.get("type") != "additional_tools"]
        plain["input"] = [_as_plain_call(item, names) for item in items]
    return plain


def _as_function(name: str, tool: JsonObject) -> JsonObject:
    function = {**tool, "type": "function", "name": name}
    if tool["type"] == "custom":
        function["parameters"] = INPUT
        form = record(tool.get("format"))
        if form.get("definition"):
            rules = f"The input follows this grammar ({form.get('syntax')}):\n{form['definition']}"
            function["description"] = f"{tool.get('description') or ''}\n\n{rules}".strip()
    return function


def _as_plain_call(item: JsonObject, names: Mapping[tuple[str, str], str]) -> JsonObject:
    if item.get("type") not in ("function_call", "custom_tool_call"):
        return item
    name = names.get((str(item.get("namespace")), str(item.get("name"))), item.get("name"))
    if item["type"] == "function_call":
        return {**item, "name": name}
    arguments = json.dumps({"input": item.get("input")}, ensure_ascii=False)
    return {"type": "function_call", "call_id": item.get("call_id"), "name": name, "arguments": arguments}
