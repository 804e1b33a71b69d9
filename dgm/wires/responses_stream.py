"""Read a streamed response as it passes, and correct what the vendor's own client could not read."""

from collections.abc import Sequence
from typing import Any

from dgm.messages import JsonObject
from dgm.wires.events import Event, UnusableReply
from dgm.wires.responses_answer import error_of_event, make_initial_response, raise_failure, usage_record
from dgm.wires.responses_items import CALLS, Item, new_part, part_text
from dgm.wires.responses_output import Output
from dgm.wires.values import REPLACEMENT, SurrogateBuffer, arguments_text, has_half, mend_halves

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
_DELTAS = {f"{name}.delta": texts for name, texts in _TEXTS.items()}
_DONES = {f"{name}.done": texts for name, texts in _TEXTS.items()}


class ResponsesReader:
    """A reader of one answer; see ``StreamReader``."""

    def __init__(self, request: JsonObject) -> None:
        """Take the request's body."""
        self._request = request
        self._response: dict[str, Any] = {}
        self._out = Output(request)
        self._ended = ""
        self._spoken = False
        self._sequence = 0
        self._halves = SurrogateBuffer()
        self._last: dict[tuple[object, ...], JsonObject] = {}
        """Text with a held half surrogate pair → its last event."""

    def take(self, event: JsonObject, name: str, *, plain: bool = False) -> Sequence[Event] | None:
        """Take the next event; see ``StreamReader.take``."""
        kind = event.get("type")
        if not isinstance(kind, str) or not kind:
            kind = name
        error_of_event(event, kind)
        sequence = event.get("sequence_number")
        if type(sequence) is int:
            self._sequence = sequence
        before = (
            []
            if self._response or kind in _BEGINS or not kind.startswith("response.")
            else self._begin(event)
        )
        if kind in _DELTAS:
            read: JsonObject | None = self._take_delta(event, kind, before, plain)
        else:
            before += self._flush_halves() if self._halves and kind.endswith((".done", *_ENDS)) else []
            taken = self._take(event, kind, before)
            read = taken if plain or taken is None else mend_halves(taken)
        if kind != event.get("type") and read is not None:
            read = {**read, "type": kind}
        if read is event and not before:
            return None
        return [*before, *([Event(read, str(read.get("type")))] if read is not None else [])]

    def finish(self, *, done: bool) -> Sequence[Event]:
        """Return the missing last events; see ``StreamReader.finish``."""
        if self._ended:
            if not self._output() and self._ended != "response.incomplete":
                raise UnusableReply("the response holds no output", self.whole())
            return []
        if not self._out.items:
            raise UnusableReply("the stream ended before the model said anything")
        for item in self._out.items:
            if item.kind in CALLS and not item.item.get("name"):
                raise UnusableReply("a tool call of the response names no function")
            if not item.is_whole:
                raise UnusableReply("the stream ended within the arguments of a tool call")
        ended = {**self._response, "status": "completed", "output": self._output()}
        # A call may be missing after a completed text, and the agent would take the text as its last word.
        called = self._out.items[-1].kind in CALLS and all(item.done for item in self._out.items)
        if not (done or called):
            raise UnusableReply("the stream ended without a final response", ended)
        events: list[Event] = self._flush_halves()
        event = {"type": "response.completed", "response": ended, "sequence_number": self._sequence}
        read = self._take(event, "response.completed", events)
        return [*events, Event(mend_halves(read), "response.completed")]

    @property
    def spoken(self) -> bool:
        """Whether content has arrived."""
        return self._spoken or self._out.spoken

    def whole(self) -> JsonObject:
        """Return the response so far."""
        mended: JsonObject = mend_halves({"object": "response", **self._response, "output": self._output()})
        return mended

    def _output(self) -> list[JsonObject]:
        given = self._response.get("output")
        return given if self._ended and given else [item.final() for item in self._out.items]

    def _begin(self, event: JsonObject) -> list[Event]:
        """Return the beginning that a stream lacks: without it the vendor's client reads nothing."""
        self._response = make_initial_response(event.get("response"), self._request)
        return [self._event("response.created", {"response": self._response})]

    def _take(self, event: JsonObject, kind: str, before: list[Event]) -> JsonObject | None:
        match kind:
            case "response.output_item.added":
                return self._take_item_added(event)
            case "response.output_item.done":
                return self._item_done(event)
            case "response.content_part.added" | "response.content_part.done":
                return self._part(event, kind, before)
            case "response.output_text.annotation.added":
                item = self._out.find(event, "message")
                if item is not None:
                    index = _number(event.get("content_index"))
                    item.annotations.setdefault(index, []).append(event.get("annotation"))
                return event if item is None else self._fix_place(event, item)
            case _ if kind in _DONES:
                return self._text_done(event, kind, before)
            case _ if kind in _BEGINS:
                return self._lifecycle(event)
            case _ if kind in _ENDS:
                return self._end(event, kind, before)
            case _:
                item = self._out.at(event.get("output_index"))
                return event if item is None or "item_id" not in event else self._fix_place(event, item)

    def _lifecycle(self, event: JsonObject) -> JsonObject:
        given = event.get("response")
        response = given if isinstance(given, dict) else {}
        fixed = self._identity(response)
        self._response = {**self._response, **response, **fixed}
        return event if given is response and not fixed else {**event, "response": {**response, **fixed}}

    def _identity(self, response: JsonObject) -> dict[str, Any]:
        """Return the required id of a response: the first one, because some proxies change it later."""
        known = self._response.get("id") or response.get("id") or "resp_dgm_0"
        return {} if response.get("id") == known else {"id": known}

    def _take_item_added(self, event: JsonObject) -> JsonObject | None:
        given = event.get("item")
        if not isinstance(given, dict):
            return event
        index = event.get("output_index")
        known = self._out.at(index)
        if known is not None and not known.done and given.get("id") and given["id"] == known.given_id:
            return None
        item = self._out.new(given, index)
        if item.item is given and index == item.at:
            return event
        return {**event, "output_index": item.at, "item": item.item}

    def _found(self, event: JsonObject, kind: str, before: list[Event]) -> Item:
        """Return the item of an event; announce one that was never announced."""
        item = self._out.find(event, kind)
        if item is None:
            given = {"type": kind, "id": event.get("item_id"), "status": "in_progress"}
            for name in ("name", "call_id"):
                if event.get(name):
                    given[name] = event[name]
            if kind == "reasoning":
                del given["status"]
            item = self._out.new(given, event.get("output_index"))
            begun = {"output_index": item.at, "item": item.item}
            before.append(self._event("response.output_item.added", begun))
        return item

    def _fix_place(self, event: JsonObject, item: Item, **more: object) -> JsonObject:
        fixed: dict[str, Any] = {name: value for name, value in more.items() if event.get(name) != value}
        if event.get("output_index") != item.at:
            fixed["output_index"] = item.at
        if event.get("item_id") != item.item.get("id") and item.item.get("id"):
            fixed["item_id"] = item.item["id"]
        return {**event, **fixed} if fixed else event

    def _open_part(self, item: Item, part: str, index: int, before: list[Event]) -> None:
        """Announce a part of a message that was never announced."""
        if item.kind != "message" or (part, index) in item.parts:
            return
        item.parts[part, index] = []
        place = {"item_id": item.item["id"], "output_index": item.at, "content_index": index}
        before.append(self._event("response.content_part.added", {**place, "part": new_part(part)}))

    def _take_delta(self, event: JsonObject, kind: str, before: list[Event], plain: bool) -> JsonObject:
        item_kind, part, index_name, _ = _DELTAS[kind]
        item = self._found(event, item_kind, before)
        index = _number(event.get(index_name)) if index_name else 0
        self._open_part(item, part, index, before)
        given = event.get("delta")
        delta = given if isinstance(given, str) else "" if given is None else arguments_text(given)
        item.extend(part, index, delta)
        self._spoken = self._spoken or bool(delta)
        more: dict[str, object] = {index_name: index} if index_name else {}
        if self._halves or (not plain and has_half(event)):
            key = (kind, item.at, index)
            delta = self._halves.join(key, delta)
            read = {**mend_halves(self._fix_place(event, item, **more)), "delta": delta}
            self._last[key] = read
            return read
        return self._fix_place(event, item, delta=delta, **more)

    def _text_done(self, event: JsonObject, kind: str, before: list[Event]) -> JsonObject:
        item_kind, part, index_name, whole = _DONES[kind]
        item = self._found(event, item_kind, before)
        index = _number(event.get(index_name)) if index_name else 0
        self._open_part(item, part, index, before)
        more: dict[str, object] = {index_name: index} if index_name else {}
        text = event.get(whole)
        if text is None:
            text = item.text(part, index)
        text = arguments_text(text)
        if text and not item.text(part, index):
            # Send the text as a delta, because nothing told it before: agents that read only deltas would miss it.
            place = self._fix_place({**more, "delta": text}, item)
            before.append(self._event(kind.removesuffix(".done") + ".delta", place))
        if text:
            item.parts[part, index] = [text]
            self._spoken = True
        return self._fix_place(event, item, **{whole: text}, **more)

    def _part(self, event: JsonObject, kind: str, before: list[Event]) -> JsonObject:
        given = event.get("part")
        part: JsonObject = given if isinstance(given, dict) else {}
        if part.get("type") == "reasoning_text":
            item = self._found(event, "reasoning", before)
            return self._fix_place(event, item)
        item = self._found(event, "message", before)
        index, name = _number(event.get("content_index")), str(part.get("type") or "output_text")
        read = part if part.get("type") and part_text([part]) is not None else {**new_part(name), **part}
        if name == "output_text" and not isinstance(part.get("text"), str):
            read = {**read, "text": item.text(name, index) if kind.endswith("done") else ""}
        if kind.endswith("added"):
            item.parts.setdefault((name, index), [text] if (text := part_text(part)) else [])
        else:
            self._open_part(item, name, index, before)
            if text := part_text(part):
                item.parts[name, index] = [text]
        return self._fix_place(event, item, content_index=index, part=read)

    def _item_done(self, event: JsonObject) -> JsonObject:
        given = event.get("item")
        if not isinstance(given, dict):
            return event
        item = self._out.of_done(event, given)
        if item is None:
            item = self._out.new(given, event.get("output_index"))
        item.item = item.mended(given)
        item.item, item.done = item.final(), True
        self._out.is_said(item.item)
        if item.item is given and event.get("output_index") == item.at:
            return event
        return {**event, "output_index": item.at, "item": item.item}

    def _end(self, event: JsonObject, kind: str, before: list[Event]) -> JsonObject:
        given = event.get("response")
        response: JsonObject = given if isinstance(given, dict) else {}
        raise_failure(response)
        fixed = self._identity(response)
        self._ended = "response.completed" if kind == "response.done" else kind
        status = self._ended.removeprefix("response.")
        if response.get("status") != status and (kind != "response.done" or not response.get("status")):
            fixed["status"] = status
        before += self._closed()
        output = self._out.final(response.get("output"))
        if output is not response.get("output"):
            fixed["output"] = output
        known = {} if response.get("id") else self._response
        self._response = {**known, **response, **fixed}
        if not isinstance(response.get("usage"), dict):
            fixed["usage"] = self._response["usage"] = usage_record(self._response, self._request)
        if not fixed and given is response and kind == self._ended:
            return event
        return {**event, "type": self._ended, "response": self._response}

    def _closed(self) -> list[Event]:
        """Return the missing ends of items: some agents read items only from their ends."""
        events = []
        for item in self._out.items:
            if not item.done and self._ended == "response.completed":
                item.done, item.item = True, item.final()
                events.append(
                    self._event("response.output_item.done", {"output_index": item.at, "item": item.item})
                )
        return events

    def _flush_halves(self) -> list[Event]:
        """Return the ends of texts whose trailing half surrogate pair was never completed."""
        keys = self._halves.left()
        return [Event({**self._last[key], "delta": REPLACEMENT}, str(key[0])) for key in keys]

    def _event(self, kind: str, fields: JsonObject) -> Event:
        return Event({"type": kind, "sequence_number": self._sequence, **fields}, kind)


def _number(value: object) -> int:
    return value if type(value) is int and value >= 0 else 0
