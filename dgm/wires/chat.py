"""OpenAI's Chat Completions, in the dialects of OpenAI itself and of the many compatible servers."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dgm.domain import Usage
from dgm.messages import (
    AnswerForm,
    JsonObject,
    Message,
    Native,
    Reply,
    Request,
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
    Growing,
    Ids,
    arguments_text,
    characters,
    is_json,
    mend_arguments,
    mend_each,
    mend_halves,
    merge,
    openai_usage,
    record,
    records,
    texts,
)
from dgm.wires.wire import DONE, ErrorInAnswer, Event, Key, Sent, UnusableReply, Wire, WireAnswer, status_of

VENDOR = "openai-chat"
LIMITS = ("max_completion_tokens", "max_tokens")
REASONING = ("reasoning_content", "reasoning", "reasoning_details")
"""Keys under which compatible servers put reasoning: DeepSeek and vLLM, vLLM and OpenRouter, OpenRouter."""
FINISH = {
    Stop.END: "stop",
    Stop.TOOL_CALLS: "tool_calls",
    Stop.LENGTH: "length",
    Stop.REFUSAL: "content_filter",
}
_CALLED = ("tool_calls", "function_call")
"""Finish reasons that promise a call."""
_CUT_OFF = ("length", "max_tokens", "model_length", "MAX_TOKENS")
_WITHHELD = ("content_filter", "refusal", "sensitive", "SAFETY")
_WENT_WRONG = ("error", "abort", "insufficient_system_resource", "network_error")
"""Finish reasons that signal a failure of the provider (OpenRouter, vLLM, DeepSeek, Zhipu)."""
_MALFORMED = "malformed_function_call"
"""Part of Gemini's finish reason if its model wrote an unreadable call."""
_SAID = ("content", "refusal", *REASONING, "function_call", "audio")
_PLAIN_CALL = ("id", "type", "function", "index")
_ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "assistant": Role.ASSISTANT}


@dataclass(slots=True)
class _Call:
    at: int
    kind: str
    """``function`` or ``custom``: the key that holds its name and its text."""
    given: str
    """The first id from the server."""
    id: str
    """The id that is sent."""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    """Pieces of the arguments."""
    more: Growing = field(default_factory=Growing)
    """Further fields of the call, such as a thought's signature."""
    inner: Growing = field(default_factory=Growing)
    """Further fields beside the name."""

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    @property
    def is_whole(self) -> bool:
        text = self.arguments
        return bool(self.name) and (self.kind == "custom" or not text.strip() or is_json(text))

    def entry(self) -> JsonObject:
        text = self.arguments
        said = {"input": text} if self.kind == "custom" else {"arguments": text if text.strip() else "{}"}
        inner = {**self.inner.fields(), "name": self.name, **said}
        return {**self.more.fields(), "id": self.id, "type": self.kind, self.kind: inner}


class _Choice:
    def __init__(self) -> None:
        self.finish = ""
        self.calls: list[_Call] = []
        self.message = Growing()
        self.more: dict[str, Any] = {}
        self.slots: dict[int, _Call] = {}
        self.given: dict[str, _Call] = {}

    @property
    def end(self) -> str:
        """The finish reason, or the one that follows from the content."""
        return self.finish or ("tool_calls" if self.calls else "stop")

    def find(self, slot: int | None, given: str, name: str) -> _Call | None:
        """Return the call that a piece continues: by its id, else its index, else the last one; None: a new call.

        A name begins a new call if that one has another id or name, or may be complete: some servers give every call
        the same index, the same id, or none.
        """
        last = self.calls[-1] if self.calls else None
        if name and slot is not None and slot not in self.slots:
            return None
        call = self.given.get(given)
        if call is None:
            call = self.slots.get(slot, None if given or name else last) if slot is not None else last
        if call is None or not (name and call.name):
            return call
        other = (given and call.given and given != call.given) or name != call.name
        return None if other or is_json(call.arguments) else call

    def repeats(self, slot: int | None, given: str, name: str, text: str) -> bool:
        """Return whether a piece is a call that was told already, as some servers do at the end."""
        call = self.given.get(given)
        same = call is not None and call.name == name and call.arguments == text
        return same and bool(text.strip()) and (slot is None or slot in self.slots)

    def whole(self, index: int) -> JsonObject:
        message = {"role": "assistant", "content": None, **self.message.fields()}
        if self.calls:
            message["tool_calls"] = [call.entry() for call in self.calls]
        return {"index": index, "message": message, "finish_reason": self.finish or None, **self.more}


class _Fold:
    def __init__(self, request: JsonObject) -> None:
        self._request = request
        self._top: dict[str, Any] = {}
        self._usage: Mapping[str, Any] | None = None
        self._choices: dict[int, _Choice] = {}
        self._ids: Ids | None = None
        self.spoken, self.text = False, ""
        self.ending = self.stopped = self.complete = False

    @property
    def _wants_usage(self) -> bool:
        return bool(record(self._request.get("stream_options")).get("include_usage"))

    def take(self, event: JsonObject, name: str) -> bool:
        CHAT.raise_error(event, name)
        self.text = ""
        usage = event.get("usage")
        if isinstance(usage, dict) and usage:
            self._usage = usage
        for key, value in event.items():
            if value is not None and key not in ("choices", "usage"):
                self._top[key] = value
        choices = event.get("choices")
        if not isinstance(choices, list):
            return False
        self.ending = self.ending or (not choices and bool(usage))
        sound = [self._take_choice(choice, place) for place, choice in enumerate(choices)]
        if self.ending:
            ended = all(
                one.finish and all(call.pieces for call in one.calls) for one in self._choices.values()
            )
            counted = self._usage is not None or not self._wants_usage
            self.complete = bool(self._choices) and ended and counted
        return all(sound)

    def _take_choice(self, given: object, place: int) -> bool:
        if not isinstance(given, dict):
            return False
        index, delta, sound = given.get("index"), given.get("delta"), True
        if type(index) is not int:
            index, sound = place, False
        choice = self._choices.setdefault(index, _Choice())
        if not isinstance(delta, dict):
            # Some servers stream but send the whole message, or repeat it at the end.
            delta, sound = {} if self.spoken else record(given.get("message")), False
        if (reason := given.get("finish_reason")) and isinstance(reason, str):
            choice.finish = reason
            self.ending = self.stopped = True
        for key, value in given.items() if len(given) > 3 else ():
            if value is not None and key not in ("index", "delta", "message", "finish_reason"):
                # Probabilities and lists go on; others are said anew.
                goes_on = key in choice.more and (isinstance(value, list) or key == "logprobs")
                choice.more[key] = merge(choice.more[key], value) if goes_on else value
        calls = delta.get("tool_calls")
        choice.message.add(delta, ("tool_calls",))
        if calls is not None:
            sound = self._take_calls(choice, calls) and sound
        for key in _SAID:
            if said := delta.get(key):
                self.spoken = True
                self.text = said if isinstance(said, str) else ""
        return sound

    def _take_calls(self, choice: _Choice, given: object) -> bool:
        pieces = [given] if isinstance(given, dict) else given
        if not isinstance(pieces, list):
            return False
        sound = [isinstance(piece, dict) and self._take_call(choice, piece) for piece in pieces]
        self.spoken = self.spoken or bool(choice.calls)
        return pieces is given and all(sound)

    def _take_call(self, choice: _Choice, piece: JsonObject) -> bool:
        kind = "custom" if isinstance(piece.get("custom"), dict) else "function"
        key = "input" if kind == "custom" else "arguments"
        inner, index = record(piece.get(kind)), piece.get("index")
        given, name = (
            value if isinstance(value, str) else "" for value in (piece.get("id"), inner.get("name"))
        )
        said = inner.get(key)
        text = arguments_text(said) if said is not None else ""
        slot = index if type(index) is int else None
        known = choice.find(slot, given, name)
        if known is None and choice.repeats(slot, given, name, text):
            return False
        call = known
        if call is None:
            if self._ids is None:
                turns = records(self._request.get("messages"))
                self._ids = Ids(call.get("id") for turn in turns for call in records(turn.get("tool_calls")))
            call = _Call(len(choice.calls), kind, given, self._ids.take(given))
            choice.calls.append(call)
        if slot is not None:
            choice.slots[slot] = call
        if given:
            choice.given[given] = call
        call.name = call.name or name
        if said is not None:
            call.pieces.append(text)
        self.text = text
        call.more.add(piece, ("index", "id", "type", "function", "custom"))
        call.inner.add(inner, ("name", key))
        if slot != call.at or not isinstance(said, str | None) or not isinstance(piece.get(kind), dict):
            return False
        return not given and not name if known is not None else given == call.id and piece.get("type") == kind

    def finish(self, *, done: bool) -> None:
        choices = self._choices.values()
        if not choices:
            raise UnusableReply("the answer holds no choice")
        ended = all(choice.finish for choice in choices)
        if not ended and not self.spoken:
            raise UnusableReply("the stream ended before the model said anything")
        for choice in choices:
            if not all(call.name for call in choice.calls):
                raise UnusableReply("a tool call of the answer names no function")
            if not choice.finish and not all(call.is_whole for call in choice.calls):
                raise UnusableReply("the stream ended within the arguments of a tool call")
        lacking = any(
            choice.finish in _CALLED and not choice.calls and "function_call" not in choice.message
            for choice in choices
        )
        for choice in choices:
            choice.finish = choice.end
        if not ended and not done:
            raise UnusableReply("the stream ended without a finish_reason", self.whole())
        if lacking:
            raise UnusableReply("the answer ends in a call of a tool, but holds none", self.whole())
        if self._usage is None and self._wants_usage:
            used = CHAT.usage(self.whole(), self._request)
            counts = {"prompt_tokens": used.input_tokens, "completion_tokens": used.output_tokens}
            self._usage = {**counts, "total_tokens": used.tokens}

    def whole(self) -> JsonObject:
        choices = [choice.whole(index) for index, choice in sorted(self._choices.items())]
        whole = {**self._top, "object": "chat.completion", "choices": choices}
        return whole if self._usage is None else {**whole, "usage": self._usage}


class _Chat(Wire):
    protocol, path, turns = WireProtocol.CHAT, "/chat/completions", "messages"
    content, prefix = "choices", "chatcmpl-"

    # Answers of a provider

    def fold(self, request: JsonObject) -> _Fold:
        return _Fold(request)

    def raise_error(self, event: JsonObject, kind: str) -> None:
        # As ``error``, vLLM's bare record, in a choice (OpenRouter), as MiniMax's status, or as a finish reason.
        error, choices = event.get("error"), event.get("choices")
        if error and not (isinstance(error, dict) and error.get("code") in (0, "0") and choices):
            raise ErrorInAnswer(event, status_of(error) or status_of(event))
        if kind == "error" or event.get("object") == "error" or event.get("type") == "error":
            raise ErrorInAnswer(event, status_of(event))
        if not choices and (code := record(state := event.get("base_resp")).get("status_code")):
            told = {"message": record(state).get("status_msg"), "code": code}
            raise ErrorInAnswer({"error": told, "base_resp": state})
        for choice in records(choices):
            error, reason = choice.get("error"), choice.get("finish_reason")
            if isinstance(error, dict) and error:
                raise ErrorInAnswer({"error": error}, status_of(error))
            failed = isinstance(reason, str) and (reason in _WENT_WRONG or _MALFORMED in reason.lower())
            if error or failed:
                message = str(error) if error else f"the provider gave up ({reason}); it says no more"
                raise ErrorInAnswer({"error": {"message": message, "code": reason}})

    def split(self, whole: JsonObject, sent: Sent | None = None) -> Iterator[Event]:
        # The usage is in the last chunk with a choice: not every client expects one without.
        sent = sent or Sent()
        top = {key: value for key, value in whole.items() if key not in ("choices", "usage", "object")}
        top["object"] = "chat.completion.chunk"
        choices = whole["choices"] if isinstance(whole.get("choices"), list) else []
        for place, choice in enumerate(choices):
            if not isinstance(choice, dict):
                yield Event({**top, "choices": [choice]})
                continue
            index, message = choice.get("index"), choice.get("message") or choice.get("delta")
            known = index if type(index) is int else place
            chunk = {"index": index, "delta": message, "finish_reason": None}
            if isinstance(message, dict):
                chunk["delta"] = _rest_of_message(message, known, sent)
            if sent.lacks((known, "more")):
                chunk |= {key: value for key, value in choice.items() if key not in ("message", *chunk)}
            if chunk["delta"] or len(chunk) > 3:
                yield Event({**top, "choices": [chunk]})
            if calls := _rest_of_calls(record(message).get("tool_calls"), known, sent):
                delta = {"tool_calls": calls}
                yield Event({**top, "choices": [{"index": index, "delta": delta, "finish_reason": None}]})
            last: JsonObject = {"index": index, "delta": {}, "finish_reason": choice.get("finish_reason")}
            counted = {"usage": whole["usage"]} if choice is choices[-1] and whole.get("usage") else {}
            yield Event({**top, "choices": [last], **counted})
        yield Event(DONE)

    def pieces(self, event: JsonObject) -> Iterator[tuple[Key, str]]:
        for choice in records(event.get("choices")):
            index = choice.get("index")
            if len(choice) > 3:
                yield (index, "more"), ""
            for name, value in record(choice.get("delta")).items():
                if name != "tool_calls" and value is not None:
                    yield (index, name), value if isinstance(value, str) else ""
                for call in records(value) if name == "tool_calls" else ():
                    inner = record(call.get("function") or call.get("custom"))
                    yield (index, "call", call.get("index")), texts([inner], "arguments", "input")

    def usage(self, whole: JsonObject, request: JsonObject) -> Usage:
        messages = [record(choice.get("message")) for choice in records(whole.get("choices"))]
        said = sum(
            len(value) if isinstance(value, str) else characters(value)
            for message in messages
            for value in (message.get(name) for name in (*_SAID, "tool_calls"))
        )
        return openai_usage(whole, request, said, "prompt", "completion")

    def stop(self, whole: JsonObject) -> Stop:
        # Calls outweigh the reason, as many servers say ``stop`` beside them.
        choice: JsonObject = next(iter(records(whole.get("choices"))), {})
        message, reason = record(choice.get("message")), choice.get("finish_reason")
        if reason in _CUT_OFF:
            return Stop.LENGTH
        if message.get("refusal") or reason in _WITHHELD:
            return Stop.REFUSAL
        return Stop.TOOL_CALLS if message.get("tool_calls") or message.get("function_call") else Stop.END

    def read_reply(self, whole: JsonObject, request: JsonObject) -> Reply:
        message = record(next(iter(records(whole.get("choices"))), {}).get("message"))
        given = [message[key] for key in REASONING[:2] if message.get(key) and isinstance(message[key], str)]
        reasoning = given[0] if given else texts(message.get("reasoning_details"), "text", "summary")
        return Reply(
            _text(message),
            _read_calls(message),
            self.stop(whole),
            self.usage(whole, request),
            reasoning,
            _native(message),
        )

    # Requests

    def output_limit(self, body: JsonObject) -> int | None:
        asked = [number for name in LIMITS if (number := whole_number(body.get(name))) is not None]
        return max(asked, default=None)

    def limited(self, body: JsonObject, tokens: int) -> JsonObject:
        # ``max_tokens`` is the usual name, because no server ignores it.
        names = [name for name in LIMITS if body.get(name) is not None] or ["max_tokens"]
        return {**body, **dict.fromkeys(names, tokens)}

    def choices(self, body: JsonObject) -> int:
        return max(1, whole_number(body.get("n")) or 1)

    def mended_request(self, body: JsonObject) -> JsonObject:
        return mend_each(
            mend_halves(body), "messages", lambda turn: mend_each(turn, "tool_calls", _mend_call)
        )

    def read_messages(self, body: JsonObject) -> list[Message]:
        return [_read_turn(turn) for turn in records(body.get("messages"))]

    def read_effort(self, body: JsonObject) -> str:
        return str(body.get("reasoning_effort") or "")

    def write_request(self, request: Request, model: str) -> JsonObject:
        fields = openai_fields(
            request,
            _write_tool,
            lambda name: {"type": "function", "function": {"name": name}},
            max_tokens=request.max_output_tokens,
            stop=list(request.stop) or None,
            reasoning_effort=request.effort or None,
            response_format=_format(request.form),
        )
        return {"model": model, "messages": [_write_turn(message) for message in request.messages], **fields}

    # Answers to an agent

    def write_answer(self, answer: WireAnswer) -> JsonObject:
        reply, used = answer.reply, answer.reply.usage
        message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
        if reply.reasoning:
            message["reasoning_content"] = reply.reasoning
        if reply.calls:
            message["content"] = reply.text or None
            message["tool_calls"] = [_write_call(call) for call in reply.calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": FINISH[reply.stop]}
        return {
            "id": answer.id,
            "object": "chat.completion",
            "created": answer.created,
            "model": answer.model,
            "choices": [choice],
            "usage": {
                "prompt_tokens": used.input_tokens,
                "completion_tokens": used.output_tokens,
                "total_tokens": used.tokens,
                "prompt_tokens_details": {"cached_tokens": used.cached_tokens},
                "completion_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
            },
        }


CHAT = _Chat()


def _rest_of_message(message: JsonObject, index: int, sent: Sent) -> dict[str, Any]:
    delta: dict[str, Any] = {}
    for name, value in {"role": "assistant", **message}.items():
        if name == "tool_calls" and (value is None or isinstance(value, list)):
            continue
        key = (index, name)
        rest = sent.rest(key, value) if isinstance(value, str) else ""
        if rest or sent.lacks(key):
            delta[name] = rest if isinstance(value, str) else value
    return delta


def _rest_of_calls(calls: object, index: int, sent: Sent) -> list[Any]:
    rest: list[Any] = []
    for number, call in enumerate(calls if isinstance(calls, list) else ()):
        key = (index, "call", number)
        if sent.lacks(key):
            rest.append({"index": number, **call} if isinstance(call, dict) else call)
            continue
        kind, name = ("custom", "input") if "custom" in call else ("function", "arguments")
        if text := sent.rest(key, call[kind][name]):
            rest.append({"index": number, kind: {name: text}})
    return rest


def _format(form: AnswerForm | None) -> JsonObject | None:
    if form is None:
        return None
    named = {"name": form.name, "schema": form.schema, "strict": True}
    return {"type": "json_schema", "json_schema": named}


def _mend_call(call: JsonObject) -> JsonObject:
    function = call.get("function")
    if not isinstance(function, dict):
        return call
    arguments = mend_arguments(function.get("arguments"))
    same = arguments is function.get("arguments")
    return call if same else {**call, "function": {**function, "arguments": arguments}}


def _read_turn(turn: JsonObject) -> Message:
    role = turn.get("role")
    if role in ("tool", "function"):
        text, name = text_of_parts(turn.get("content")), turn.get("tool_call_id") or turn.get("name") or ""
        failed = text.startswith(FAILED)
        return Message(Role.TOOL, text.removeprefix(FAILED), call_id=str(name), failed=failed)
    native = _native(turn) if role == "assistant" else None
    return Message(_ROLES.get(str(role), Role.USER), _text(turn), _read_calls(turn), native=native)


def _read_calls(message: JsonObject) -> tuple[ToolCall, ...]:
    given = records(message.get("tool_calls"))
    if not given and isinstance(message.get("function_call"), dict):
        given = [{"id": "", "function": message["function_call"]}]
    return tuple(_read_call(call) for call in given)


def _read_call(call: JsonObject) -> ToolCall:
    inner = record(call.get("function") or call.get("custom"))
    text = arguments_text(inner.get("arguments", inner.get("input")))
    return ToolCall(str(call.get("id") or ""), str(inner.get("name") or ""), text if text.strip() else "{}")


def _text(message: JsonObject) -> str:
    refusal = message.get("refusal")
    return text_of_parts(message.get("content")) + (refusal if isinstance(refusal, str) else "")


def _native(message: JsonObject) -> Native | None:
    """Return the turn to send back, with only fields that servers accept; None if the neutral form loses nothing."""
    kept = {name: message[name] for name in REASONING if message.get(name)}
    calls = [
        {name: call[name] for name in call if name != "index"} for call in records(message.get("tool_calls"))
    ]
    if not kept and not any(set(call) - set(_PLAIN_CALL) for call in calls):
        return None
    turn: dict[str, Any] = {"role": "assistant", "content": message.get("content"), **kept}
    if message.get("refusal"):
        turn["refusal"] = message["refusal"]
    if calls:
        turn["tool_calls"] = calls
    return Native(VENDOR, json.dumps(turn))


def _write_turn(message: Message) -> JsonObject:
    match message.role:
        case Role.ASSISTANT:
            return _write_assistant(message)
        case Role.TOOL:
            text = FAILED + message.text if message.failed else message.text
            return {"role": "tool", "tool_call_id": message.call_id, "content": text}
        case role:
            return {"role": role.value, "content": message.text}


def _write_assistant(message: Message) -> JsonObject:
    ours: dict[str, Any] = {"role": "assistant", "content": message.text or (None if message.calls else "")}
    if message.calls:
        ours["tool_calls"] = [_write_call(call) for call in message.calls]
    if message.native is None or message.native.vendor != VENDOR:
        return ours
    theirs: dict[str, Any] = json.loads(message.native.data)
    if same_turn(message, _text(theirs), _read_calls(theirs)):
        return theirs
    return {**ours, **{name: theirs[name] for name in REASONING if name in theirs}}


def _write_call(call: ToolCall) -> JsonObject:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _write_tool(tool: Tool) -> JsonObject:
    function = {"name": tool.name, "description": tool.description, "parameters": schema_of(tool)}
    return {"type": "function", "function": function}
