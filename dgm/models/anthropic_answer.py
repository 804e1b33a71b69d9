"""Anthropic's answers, whole or in events, as neutral replies; an answer that is none is ``Broken``."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dgm.domain import Usage
from dgm.messages import Native, Reply, Stop, ToolCall
from dgm.models.anthropic_turns import REASONING, VENDOR, parsed, text_of
from dgm.models.dialect import Broken

_STOPS: Mapping[str, Stop] = {
    "end_turn": Stop.END,
    "stop_sequence": Stop.END,
    "tool_use": Stop.TOOL_CALLS,
    "max_tokens": Stop.LENGTH,
    "model_context_window_exceeded": Stop.LENGTH,
    "refusal": Stop.REFUSAL,
}
_UNREADABLE = (AttributeError, KeyError, IndexError, TypeError, ValueError)
"""What reading a record of another shape raises."""

JsonObject = Mapping[str, Any]


@dataclass(slots=True)
class Stream:
    """Puts the events of a stream together to the message that they tell."""

    message: dict[str, Any] = field(default_factory=dict)
    arguments: dict[int, str] = field(default_factory=dict)
    """Place of a call in the content → its arguments as the model wrote them."""
    stopped: bool = False

    def add(self, event: object) -> None:
        """Takes the next event.

        Raises:
            Broken: it is none, or not one that may come now.
        """
        try:
            self._add(event)
        except _UNREADABLE as error:
            raise Broken(f"an event of the stream cannot be read ({error!r}): {str(event)[:80]}") from error

    def reply(self) -> Reply:
        """The whole reply.

        Raises:
            Broken: the stream ended too early.
        """
        if not self.stopped:
            begun = "after its beginning" if self.message else "before it began"
            raise Broken(f"the stream ended {begun}, without message_stop")
        return reply_of(self.message, self.arguments)

    def _add(self, event: Any) -> None:  # noqa: ANN401  (any JSON)
        match event["type"]:
            case "message_start":
                self.message = {**event["message"], "content": []}
            case "content_block_start":
                if event["index"] != len(self._content):
                    raise ValueError("a block is missing")
                self._content.append(dict(event["content_block"]))
            case "content_block_delta":
                self._extend(event["index"], event["delta"])
            case "content_block_stop":
                self._finish(event["index"])
            case "message_delta":
                self.message.update(event["delta"])
                told = {
                    name: count for name, count in (event.get("usage") or {}).items() if count is not None
                }
                self.message["usage"] = {**(self.message.get("usage") or {}), **told}
            case "message_stop":
                self.stopped = bool(self.message)

    @property
    def _content(self) -> list[dict[str, Any]]:
        content: list[dict[str, Any]] = self.message["content"]
        return content

    def _extend(self, index: int, delta: JsonObject) -> None:
        block = self._content[index]
        match delta["type"]:
            case "text_delta":
                block["text"] += delta["text"]
            case "thinking_delta":
                block["thinking"] += delta["thinking"]
            case "signature_delta":
                block["signature"] = delta["signature"]
            case "input_json_delta":
                self.arguments[index] = self.arguments.get(index, "") + delta["partial_json"]

    def _finish(self, index: int) -> None:
        block = self._content[index]
        if block["type"] == "tool_use" and self.arguments.get(index):
            block["input"] = parsed(self.arguments[index])


def reply_of(message: object, arguments: Mapping[int, str]) -> Reply:
    """A message as a reply; ``arguments`` are the texts of calls that were streamed, by their place.

    Raises:
        Broken: it is no message, it does not say why it stopped, or it holds nothing.
    """
    try:
        return _reply(message, arguments)
    except _UNREADABLE as error:
        raise Broken(f"the answer cannot be read ({error!r}): {str(message)[:80]}") from error


def _reply(message: Any, arguments: Mapping[int, str]) -> Reply:  # noqa: ANN401  (any JSON)
    content: Sequence[dict[str, Any]] = message["content"]
    calls = tuple(
        ToolCall(
            block["id"], block["name"], arguments.get(place) or json.dumps(block["input"], ensure_ascii=False)
        )
        for place, block in enumerate(content)
        if block["type"] == "tool_use"
    )
    stop = _stop(message["stop_reason"], calls)
    text = text_of(content)
    usage = _usage(message["usage"])
    if stop is Stop.REFUSAL:
        # What was said before a refusal is not meant to be used, calls least of all.
        why = (message.get("stop_details") or {}).get("explanation") or "The model refuses to answer."
        return Reply(text or why, (), stop, usage)
    thoughts = [block for block in content if block["type"] in REASONING]
    reply = Reply(
        text=text,
        calls=calls,
        stop=stop,
        usage=usage,
        reasoning="\n\n".join(block["thinking"] for block in thoughts if block.get("thinking")),
        native=Native(VENDOR, json.dumps(content, ensure_ascii=False)) if thoughts else None,
    )
    if not content and stop is not Stop.LENGTH:
        raise Broken(f"the answer is empty, and its end is {message['stop_reason']}", reply)
    return reply


def _stop(reason: object, calls: Sequence[ToolCall]) -> Stop:
    if not isinstance(reason, str) or not reason:
        raise ValueError("no stop_reason")
    if reason == "pause_turn":
        raise Broken("the model paused for tools of the provider's own, which it was not given")
    if reason == "tool_use" and not calls:
        raise Broken("the answer ends in a call of a tool, but holds none")
    # A reason that this version does not know is taken for the one that its content shows.
    stop = _STOPS.get(reason, Stop.END)
    return Stop.TOOL_CALLS if calls and stop is Stop.END else stop


def _usage(counts: JsonObject) -> Usage:
    cached = counts.get("cache_read_input_tokens") or 0
    written = counts.get("cache_creation_input_tokens") or 0
    return Usage(
        calls=1,
        input_tokens=counts["input_tokens"] + cached + written,
        output_tokens=counts["output_tokens"],
        cached_tokens=cached,
        written_tokens=written,
        reasoning_tokens=(counts.get("output_tokens_details") or {}).get("thinking_tokens") or 0,
    )
