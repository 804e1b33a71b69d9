"""Read a streamed message of Anthropic's as it passes, and correct what the vendor's own client could not read."""

from collections.abc import Sequence
from typing import Any

from dgm.messages import JsonObject, Stop
from dgm.wires.events import Event, UnusableReply
from dgm.wires.messages_answer import (
    CALL,
    call_ids,
    count_content_chars,
    end_of,
    mend_counts,
    raise_error,
    stop,
    usage,
)
from dgm.wires.messages_blocks import GROWING, JSON_DELTA, Block, Blocks
from dgm.wires.values import (
    REPLACEMENT,
    SurrogateBuffer,
    arguments_text,
    count_of,
    estimate,
    has_half,
    mend_halves,
)

_KNOWN = (
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
)
_ENDS = ("stop_reason", "stop_sequence", "stop_details")


class MessagesReader:
    """A reader of one answer; see ``StreamReader``."""

    def __init__(self, request: JsonObject) -> None:
        """Take the request's body."""
        self._request = request
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._out = Blocks(lambda: call_ids(request))
        self._halves = SurrogateBuffer()
        self._stopped = False
        self._spoken = False

    def take(self, event: JsonObject, name: str, *, plain: bool = False) -> Sequence[Event] | None:
        """Take the next event; see ``StreamReader.take``."""
        kind = event.get("type")
        if not isinstance(kind, str) or not kind:
            kind = name
        raise_error(event, kind)
        before: list[Event] = []
        if not self._message and kind != "message_start" and (kind in _KNOWN or kind == "message_stop"):
            before.append(self._begin())
        read = self._take(event, kind, before)
        if read is None:
            return before
        if kind != event.get("type"):
            read = {**read, "type": kind}
        if (not plain and has_half(read)) or (self._halves and kind == "content_block_delta"):
            read = self._whole_characters(read, kind)
        if read is event and not before and name:
            return None
        # The vendor's client skips events without a name.
        return [*before, Event(read, name or kind)]

    def finish(self, *, done: bool) -> Sequence[Event]:
        """Return the missing last events; see ``StreamReader.finish``."""
        if not self._message:
            raise UnusableReply("the stream ended before it began")
        reason, blocks = self._message.get("stop_reason"), self._out.blocks
        if not all(block.block.get("name") for block in blocks if block.kind == CALL):
            raise UnusableReply("a tool call of the answer names no tool")
        if not (self._stopped or reason):
            if not self._spoken:
                raise UnusableReply("the stream ended before the model said anything")
            if not all(block.is_whole for block in blocks):
                raise UnusableReply("the stream ended within the input of a tool call")
            if not done:
                accepted = {**self.whole(), "stop_reason": end_of(self._out.content)}
                raise UnusableReply("the stream ended without a stop_reason", accepted)
        if reason == "tool_use" and not any(block.kind == CALL for block in blocks):
            raise UnusableReply("the answer ends in a call of a tool, but holds none", self.whole())
        if not blocks and stop(self._message) not in (Stop.LENGTH, Stop.REFUSAL):
            raise UnusableReply("the answer is empty", self.whole())
        if self._stopped:
            return []
        events: list[Event] = []
        self._close(events)
        self._stopped = True
        return [*events, _event({"type": "message_stop"})]

    @property
    def spoken(self) -> bool:
        """Whether content has arrived."""
        return self._spoken

    def whole(self) -> JsonObject:
        """Return the message so far."""
        whole = {**self._message, "content": self._out.content, "usage": self._usage}
        mended: JsonObject = mend_halves({**whole, "usage": mend_counts(whole, self._request)})
        return mended

    def _take(self, event: JsonObject, kind: str, before: list[Event]) -> JsonObject | None:
        match kind:
            case "content_block_delta":
                return self._delta(event, before)
            case "content_block_start":
                return self._block_start(event)
            case "content_block_stop":
                return self._block_stop(event, before)
            case "message_start":
                return self._start(event)
            case "message_delta":
                return self._message_delta(event, before)
            case "message_stop":
                if self._stopped:
                    return None
                self._close(before)
                self._stopped = True
                return event
            case _:
                return event

    def _begin(self) -> Event:
        """Return the beginning that the stream lacks."""
        event = self._start({"type": "message_start"})
        return _event(event or {})

    def _start(self, event: JsonObject) -> JsonObject | None:
        given = event.get("message")
        message: JsonObject = given if isinstance(given, dict) else {}
        if self._message:
            self._count(message.get("usage"))
            return None
        self._count(message.get("usage"))
        usual = {
            "id": "msg_dgm_0",
            "type": "message",
            "role": "assistant",
            "model": self._request.get("model") or "",
        }
        fixed: dict[str, Any] = {name: value for name, value in usual.items() if not message.get(name)}
        content = message.get("content")
        if not isinstance(content, list):
            fixed["content"] = []
        for block in content if isinstance(content, list) else ():
            # Anthropic begins with whole blocks where a container continues.
            self._out.begin(block, len(self._out.blocks)).stopped = True
            self._spoken = True
        counts = message.get("usage")
        if not isinstance(counts, dict) or type(counts.get("input_tokens")) is not int:
            into = estimate(usage({}, self._request).input_tokens * 4)
            fixed["usage"] = {"output_tokens": 0, **self._usage, "input_tokens": into}
        elif type(counts.get("output_tokens")) is not int:
            fixed["usage"] = {**counts, "output_tokens": 0}
        self._message = {**message, **fixed}
        return {**event, "message": self._message} if fixed or given is not message else event

    def _block_start(self, event: JsonObject) -> JsonObject:
        given, index = event.get("content_block"), event.get("index")
        block = self._out.begin(given, index)
        self._spoken = self._spoken or block.kind == CALL or count_content_chars([block.block]) > 0
        if index == block.at and type(index) is int and block.block == given:
            return event
        return {**event, "index": block.at, "content_block": dict(block.block)}

    def _delta(self, event: JsonObject, before: list[Event]) -> JsonObject | None:
        given, index = event.get("delta"), event.get("index")
        if not isinstance(given, dict):
            return None
        kind = given.get("type")
        if not isinstance(kind, str):
            kind = (
                JSON_DELTA
                if "partial_json" in given
                else "thinking_delta"
                if "thinking" in given
                else "text_delta"
            )
        block = self._out.find_for_delta(index, kind)
        if block is None:
            begun = {"type": GROWING[kind][0] if kind in GROWING else "text"}
            block = self._out.begin(begun, index)
            first = {"index": block.at, "content_block": dict(block.block)}
            before.append(_event({"type": "content_block_start", **first}))
        delta = _mend_delta(given, kind)
        block.extend(delta)
        self._spoken = True
        if delta is given and index == block.at and type(index) is int:
            return event
        return {**event, "index": block.at, "delta": delta}

    def _block_stop(self, event: JsonObject, before: list[Event]) -> JsonObject | None:
        block = self._out.find(event.get("index"))
        if block is None or block.stopped:
            return None
        block.stopped = True
        before += self._flush_halves(block)
        return event if event.get("index") == block.at else {**event, "index": block.at}

    def _message_delta(self, event: JsonObject, before: list[Event]) -> JsonObject:
        given = event.get("delta")
        delta: JsonObject = given if isinstance(given, dict) else {}
        counts = event.get("usage") or delta.get("usage")
        self._count(counts)
        if delta.get("stop_reason"):
            self._stop_blocks(before)
            self._message.update({name: delta.get(name) for name in _ENDS if name in delta})
            if delta["stop_reason"] == "tool_use" and delta.get("stop_sequence") is None:
                self._message["stop_sequence"] = None
        self._message.update(
            {name: value for name, value in delta.items() if value is not None and name != "usage"}
        )
        # The vendor's client uses the last value, null included.
        lost = {
            name: self._message[name] for name in _ENDS if self._message.get(name) and not delta.get(name)
        }
        fixed: dict[str, Any] = {"delta": {**delta, **lost}} if lost or given is not delta else {}
        if not isinstance(event.get("usage"), dict) or type(event["usage"].get("output_tokens")) is not int:
            known = counts if isinstance(counts, dict) else {}
            fixed["usage"] = {**known, "output_tokens": self._output_tokens()}
        return {**event, **fixed} if fixed else event

    def _output_tokens(self) -> int:
        told = count_of(self._usage, "output_tokens")
        return told or estimate(count_content_chars(self._out.content))

    def _count(self, counts: object) -> None:
        if isinstance(counts, dict):
            self._usage.update({name: value for name, value in counts.items() if value is not None})

    def _stop_blocks(self, events: list[Event]) -> None:
        for block in self._out.blocks:
            if not block.stopped:
                block.stopped = True
                events += self._flush_halves(block)
                events.append(_event({"type": "content_block_stop", "index": block.at}))

    def _close(self, events: list[Event]) -> None:
        """Add the events that must precede the end: stops of blocks, and a stop reason."""
        self._stop_blocks(events)
        if not self._message.get("stop_reason"):
            self._message["stop_reason"] = end_of(self._out.content)
            delta = {"stop_reason": self._message["stop_reason"], "stop_sequence": None}
            counts = {"output_tokens": self._output_tokens()}
            events.append(_event({"type": "message_delta", "delta": delta, "usage": counts}))

    def _whole_characters(self, event: JsonObject, kind: str) -> JsonObject:
        delta = event.get("delta")
        if kind != "content_block_delta" or not isinstance(delta, dict):
            mended: JsonObject = mend_halves(event)
            return mended
        name = _field(str(delta.get("type")))
        if not isinstance(delta.get(name), str):
            return {**event, "delta": mend_halves(delta)}
        text = self._halves.join((event["index"], delta["type"]), delta[name])
        return {**event, "delta": {**mend_halves({**delta, name: ""}), name: text}}

    def _flush_halves(self, block: Block) -> list[Event]:
        """Return the end of a text whose trailing half surrogate pair was never completed."""
        deltas = [{"type": kind, _field(str(kind)): REPLACEMENT} for _, kind in self._halves.left(block.at)]
        return [
            _event({"type": "content_block_delta", "index": block.at, "delta": delta}) for delta in deltas
        ]


def _mend_delta(delta: JsonObject, kind: str) -> JsonObject:
    name = _field(kind)
    if not name or (isinstance(delta.get(name), str) and delta.get("type") == kind):
        return delta
    given = delta.get(name)
    text = "" if given is None else arguments_text(given)
    return {**delta, "type": kind, name: text}


def _field(kind: str) -> str:
    return "partial_json" if kind == JSON_DELTA else GROWING[kind][1] if kind in GROWING else ""


def _event(data: JsonObject) -> Event:
    return Event(data, str(data.get("type")))
