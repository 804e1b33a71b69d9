"""Read a streamed chat completion as it passes, and correct what the vendor's own client could not read."""

from collections.abc import Mapping, Sequence
from typing import Any

from dgm.messages import JsonObject
from dgm.wires.chat_answer import call_ids, count_message_chars, error_of_chunk, tool_names, usage_record
from dgm.wires.chat_calls import Calls
from dgm.wires.events import Event, UnusableReply
from dgm.wires.gather import MessageFields, merge_values
from dgm.wires.values import REPLACEMENT, Ids, SurrogateBuffer, has_half, mend_halves

_ONCE = ("role", "id", "type", "name", "object", "finish_reason")
"""String fields that the next delta does not continue."""


class ChatReader:
    """A reader of one answer; see ``StreamReader``."""

    def __init__(self, request: JsonObject) -> None:
        """Take the request's body."""
        self._request = request
        self._top: dict[str, Any] = {}
        self._usage: Mapping[str, Any] | None = None
        self._choices: dict[int, _Choice] = {}
        self._halves = SurrogateBuffer()
        self._made: Ids | None = None
        self._names = tool_names(request)

    def take(self, event: JsonObject, name: str, *, plain: bool = False) -> Sequence[Event] | None:
        """Take the next chunk; see ``StreamReader.take``."""
        error_of_chunk(event, name)
        read = self._take(event)
        if self._halves or (not plain and has_half(event)):
            read = self._whole_characters(read)
        return None if read is event else [Event(read)]

    def finish(self, *, done: bool) -> Sequence[Event]:
        """Return the missing last chunks; see ``StreamReader.finish``."""
        self._check_end(done)
        events: list[Event] = []
        for index, choice in self._choices.items():
            delta: dict[str, Any] = {}
            for key in self._halves.left(index):
                delta = _append_text(delta, key[1:], REPLACEMENT)
            reason = "" if choice.finish else choice.end()
            if reason:
                choice.finish = reason
            if delta or reason:
                events.append(
                    self._chunk([{"index": index, "delta": delta, "finish_reason": reason or None}])
                )
        options = self._request.get("stream_options")
        if self._usage is None and isinstance(options, Mapping) and options.get("include_usage"):
            self._usage = usage_record(self.whole(), self._request)
            events.append(self._chunk([], usage=self._usage))
        return events

    @property
    def spoken(self) -> bool:
        """Whether content has arrived."""
        return any(choice.is_spoken for choice in self._choices.values())

    def whole(self) -> JsonObject:
        """Return the completion so far."""
        choices = [choice.whole(index) for index, choice in sorted(self._choices.items())]
        whole = {**self._top, "object": "chat.completion", "choices": choices}
        mended: JsonObject = mend_halves(whole if self._usage is None else {**whole, "usage": self._usage})
        return mended

    def _take(self, event: JsonObject) -> JsonObject:
        """Return the chunk with its choices corrected; the same one if nothing changed."""
        given = event.get("choices")
        self._note(event)
        if not isinstance(given, list):
            return {**event, "choices": []}
        choices: list[JsonObject | None] = given
        for place, choice in enumerate(given):
            read = self._take_choice(choice, place)
            if read is choice:
                continue
            if choices is given:
                choices = list(given)
            choices[place] = read
        return (
            event if choices is given else {**event, "choices": [one for one in choices if one is not None]}
        )

    def _note(self, event: JsonObject) -> None:
        usage = event.get("usage")
        if usage is None and isinstance(groq := event.get("x_groq"), Mapping):
            usage = groq.get("usage")
        if isinstance(usage, Mapping) and usage:
            self._usage = usage
        for name, value in event.items():
            if value is not None and name not in ("choices", "usage"):
                self._top[name] = value

    def _take_choice(self, choice: object, place: int) -> JsonObject | None:
        if not isinstance(choice, dict):
            return None
        mended: JsonObject = choice
        index = choice.get("index")
        if type(index) is not int:
            index = place
            mended = {**choice, "index": index}
        known = self._choices.get(index)
        if known is None:
            known = self._choices[index] = _Choice(Calls(self._ids, self._names))
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            # Some servers stream but send the whole message.
            delta = choice.get("message")
            delta = delta if isinstance(delta, dict) and not known.is_spoken else {}
            mended = {name: value for name, value in mended.items() if name != "message"} | {"delta": delta}
        read = known.take(choice, delta)
        return mended if read is delta else {**mended, "delta": read}

    def _ids(self) -> Ids:
        if self._made is None:
            self._made = call_ids(self._request)
        return self._made

    def _check_end(self, done: bool) -> None:
        if not self._choices:
            raise UnusableReply("the stream holds no choice")
        ended = all(choice.finish for choice in self._choices.values())
        if not ended and not self.spoken:
            raise UnusableReply("the stream ended before the model said anything")
        for choice in self._choices.values():
            if not all(call.name for call in choice.calls.calls):
                raise UnusableReply("a tool call of the answer names no function")
            if not choice.finish and not all(call.is_whole for call in choice.calls.calls):
                raise UnusableReply("the stream ended within the arguments of a tool call")
        if not ended and not done:
            raise UnusableReply("the stream ended without a finish_reason", self._fill_finish_reasons())
        if any(choice.lacks_calls for choice in self._choices.values()):
            raise UnusableReply(
                "the answer ends in a call of a tool, but holds none", self._fill_finish_reasons()
            )

    def _fill_finish_reasons(self) -> JsonObject:
        whole = self.whole()
        for entry in whole["choices"]:
            choice = self._choices[entry["index"]]
            entry["finish_reason"] = choice.finish or choice.end()
        return whole

    def _chunk(self, choices: list[JsonObject], **more: object) -> Event:
        kept = ("id", "created", "model", "system_fingerprint")
        top = {name: self._top[name] for name in kept if name in self._top}
        return Event({**top, "object": "chat.completion.chunk", "choices": choices, **more})

    def _whole_characters(self, event: JsonObject) -> JsonObject:
        """Return the chunk without half surrogate pairs; hold back a first half at the end of a field."""
        choices = event.get("choices")
        rest = mend_halves({name: value for name, value in event.items() if name != "choices"})
        if not isinstance(choices, list):
            return {**event, **rest}
        read = []
        for place, choice in enumerate(choices):
            if not isinstance(choice, dict) or not isinstance(choice.get("delta"), dict):
                read.append(mend_halves(choice))
                continue
            index = choice["index"] if type(choice.get("index")) is int else place
            delta = self._join_halves((index,), choice["delta"])
            if choice.get("finish_reason"):
                for key in self._halves.left(index):
                    delta = _append_text(delta, key[1:], REPLACEMENT)
            read.append({**mend_halves({**choice, "delta": None}), "delta": delta})
        return {**event, **rest, "choices": read}

    def _join_halves(self, key: tuple[object, ...], value: Any) -> Any:  # noqa: ANN401  (any JSON)
        match value:
            case str():
                return mend_halves(value) if key[-1] in _ONCE else self._halves.join(key, value)
            case dict():
                return {name: self._join_halves((*key, name), inner) for name, inner in value.items()}
            case list():
                return [self._join_halves((*key, _entry_key(one, at)), one) for at, one in enumerate(value)]
            case _:
                return value


class _Choice:
    """One of the requested answers."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.finish = ""
        self.is_spoken = False
        self._message = MessageFields()
        self._more: dict[str, Any] = {}

    def take(self, choice: JsonObject, delta: JsonObject) -> JsonObject:
        """Take one chunk's choice and return its delta corrected, or the same one."""
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish = reason
        if len(choice) > 3:
            self._add_more(choice)
        return self.take_delta(delta)

    def take_delta(self, delta: JsonObject) -> JsonObject:
        """Take a delta and return it corrected, or the same one."""
        pieces = delta.get("tool_calls")
        if pieces is None:
            self._message.add(delta)
            self.is_spoken = self.is_spoken or count_message_chars(delta) > 0
            return delta
        self._message.add(delta, ("tool_calls",))
        calls = self.calls.take(pieces)
        self.is_spoken = self.is_spoken or bool(self.calls.calls) or count_message_chars(delta) > 0
        return delta if calls is None else {**delta, "tool_calls": calls}

    def _add_more(self, choice: JsonObject) -> None:
        """Keep fields beside the delta: extend probabilities and lists, and replace others."""
        for name, value in choice.items():
            if value is None or name in ("index", "delta", "message", "finish_reason"):
                continue
            goes_on = isinstance(value, list) or name == "logprobs"
            self._more[name] = (
                merge_values(self._more[name], value) if goes_on and name in self._more else value
            )

    @property
    def lacks_calls(self) -> bool:
        """Whether the finish reason promises a call that is missing."""
        called = self.finish in ("tool_calls", "function_call")
        return called and not self.calls.calls and "function_call" not in self._message.fields()

    def end(self) -> str:
        """Return the finish reason that follows from the content."""
        return "tool_calls" if self.calls.calls else "stop"

    def whole(self, index: int) -> dict[str, Any]:
        """Return the choice in the form of a whole answer."""
        message = {"role": "assistant", "content": None, **self._message.fields()}
        if self.calls.calls:
            message["tool_calls"] = [call.entry() for call in self.calls.calls]
        fields = {"index": index, "message": message, "finish_reason": self.finish or None}
        return {**fields, **self._more}


def _entry_key(entry: object, at: int) -> object:
    index = entry.get("index") if isinstance(entry, dict) else None
    return ("index", index) if type(index) is int else ("at", at)


def _append_text(delta: JsonObject, path: tuple[object, ...], text: str) -> dict[str, Any]:
    """Return the delta with a text added at the end of the field at ``path``."""
    name, *rest = path
    name = str(name)
    if not rest:
        return {**delta, name: (delta.get(name) or "") + text}
    if isinstance(rest[0], tuple):
        kind, at = rest[0]
        entries = list(delta.get(name) or [])
        number = next((n for n, entry in enumerate(entries) if _entry_key(entry, n) == rest[0]), len(entries))
        if number == len(entries):
            entries.append({"index": at} if kind == "index" else {})
        if len(rest) > 1:
            entries[number] = _append_text(entries[number], tuple(rest[1:]), text)
        return {**delta, name: entries}
    return {**delta, name: _append_text(delta.get(name) or {}, tuple(rest), text)}
