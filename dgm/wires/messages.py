"""Anthropic's Messages, in the dialects of Anthropic itself and of compatible servers.

The effort of a request is one word:

- ``output_config.effort`` if it is given
- ``high`` for adaptive thinking, because that is its default
- for enabled thinking, by budget: below 4,000 tokens ``low``, below 16,000 ``medium``, else ``high``
- ``none`` for disabled thinking
- the model's default if nothing is given

A translated reply's reasoning becomes a thinking block where the request asked for thinking. Its signature is a
placeholder: the gateway keeps the real one, and puts the vendor's own turn back whenever the agent repeats this one.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dgm.domain import Usage
from dgm.messages import (
    CONTEXT_LENGTH,
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
from dgm.wires.neutral import text_of_parts, whole_number
from dgm.wires.values import (
    INVALID_JSON,
    Ids,
    arguments_of,
    arguments_text,
    characters,
    count_of,
    count_request_chars,
    estimate,
    is_json,
    mend_each,
    mend_halves,
    record,
    records,
    texts,
)
from dgm.wires.wire import ErrorInAnswer, Event, Key, Sent, UnusableReply, Wire, WireAnswer, status_of

VENDOR = "anthropic"
SIGNATURE = "kept-by-the-gateway"
NO_THREADS = "thread_unsupported_request"
"""The one code that Anthropic's client looks for: the provider cannot keep this conversation."""
TOO_LONG = "prompt is too long"
"""The words by which programs recognise this outcome: the protocol has no code for it."""
REASONS = {
    # Not every provider says whether a stop sequence ended the text, so no answer here does.
    Stop.END: "end_turn",
    Stop.TOOL_CALLS: "tool_use",
    Stop.LENGTH: "max_tokens",
    Stop.REFUSAL: "refusal",
}
_STOPS: Mapping[str, Stop] = {
    **{reason: stop for stop, reason in REASONS.items()},
    "model_context_window_exceeded": Stop.LENGTH,
}
_ERRORS = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_CALL = "tool_use"
_REASONING = frozenset(("thinking", "redacted_thinking"))
_GAP = "\n\n"
"""Separator between the texts of several blocks, which would else run together; not used in an assistant's turns."""
_BUDGETS = ((4_000, "low"), (16_000, "medium"))
_LEAST_THINKING = 1024
"""The smallest ``budget_tokens`` that the provider accepts."""
_OPENING = "(The conversation begins here.)"
_SILENT_FAILURE = "The tool failed and said nothing."
_EFFORTS = {"minimal": "low", **{word: word for word in ("low", "medium", "high", "xhigh", "max")}}
_OUTPUT_TOKENS = 8_192
"""Output limit for a request without one; the protocol requires it."""
_MARK: Mapping[str, str] = {"type": "ephemeral"}

_PIECES = {
    "text": ("text", "text_delta", "text"),
    "thinking": ("thinking", "thinking_delta", "thinking"),
    "tool_use": ("input", "input_json_delta", "partial_json"),
    "server_tool_use": ("input", "input_json_delta", "partial_json"),
}
"""Type of a block → its field, the type of its deltas, and their field."""
_DELTAS = {delta: (kind, field) for kind, (_, delta, field) in reversed(_PIECES.items())}
_KNOWN = (
    *("message_start", "content_block_start", "content_block_delta", "content_block_stop"),
    *("message_delta", "message_stop"),
)
_ENDS = ("stop_reason", "stop_sequence", "stop_details")

Block = dict[str, Any]
Turn = dict[str, Any]


class _Block:
    def __init__(self, at: int, block: JsonObject) -> None:
        self.at, self.stopped = at, False
        self.block: Block = dict(block)
        self.pieces: list[str] = []
        """Pieces of its text, its thinking or its input's JSON."""

    @property
    def kind(self) -> str:
        return str(self.block["type"])

    @property
    def is_whole(self) -> bool:
        text = "".join(self.pieces)
        return self.stopped or "input" not in self.block or not text.strip() or is_json(text)

    def final(self) -> JsonObject:
        text = "".join(self.pieces)
        if not text:
            return self.block
        if "input" in self.block:
            return {**self.block, "input": arguments_of(text)}
        return {**self.block, self.kind: str(self.block.get(self.kind) or "") + text}


class _Fold:
    def __init__(self, request: JsonObject) -> None:
        self._request = request
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: list[_Block] = []
        self._slots: dict[int, _Block] = {}
        self._ids: Ids | None = None
        self.spoken, self.text = False, ""
        self.ending = self.stopped = self.complete = False

    def take(self, event: JsonObject, name: str) -> bool:
        kind = event.get("type") or name
        MESSAGES.raise_error(event, str(kind))
        self.text = ""
        if kind not in _KNOWN:
            return True
        # The vendor's client skips events without a name.
        sound = kind == name == event.get("type")
        if not self._message and kind != "message_start":
            sound = self._start({}) and sound
        match kind:
            case "message_start":
                return self._start(record(event.get("message"))) and sound
            case "content_block_start":
                return self._block_start(event) and sound
            case "content_block_delta":
                return self._delta(event) and sound
            case "content_block_stop":
                block = self._find(event.get("index"))
                sound = sound and block is not None and not block.stopped and event.get("index") == block.at
                if block is not None:
                    block.stopped = True
                return sound
        self.ending = True
        stopped = all(block.stopped for block in self._blocks)
        if kind == "message_delta":
            return self._message_delta(event, stopped) and sound
        sound = sound and stopped and not self.complete and bool(self._message.get("stop_reason"))
        self.stopped = self.complete = True
        return sound

    def _start(self, message: JsonObject) -> bool:
        counts, content = message.get("usage"), message.get("content")
        self._count(counts)
        if self._message:
            return False
        needed = {
            "id": "msg_dgm_0",
            "type": "message",
            "role": "assistant",
            "model": self._request.get("model") or "",
        }
        missing = {name: value for name, value in needed.items() if not message.get(name)}
        self._message = {**message, **missing}
        for block in records(content):
            # Anthropic begins with whole blocks where a container continues.
            self._begin(block, len(self._blocks))[0].stopped = self.spoken = True
        return not missing and isinstance(content, list) and not _missing_counts(counts)

    def _count(self, counts: object) -> None:
        self._usage.update({name: value for name, value in record(counts).items() if value is not None})

    def _begin(self, given: JsonObject, index: object) -> tuple[_Block, bool]:
        """Add a block, and return whether it is as the vendor's client needs it."""
        if self._ids is None:
            turns = records(self._request.get("messages"))
            blocks = [block for turn in turns for block in records(turn.get("content"))]
            self._ids = Ids(block.get("id") for block in blocks if block.get("type") == _CALL)
        mended = _mend_block(given, self._ids)
        block = _Block(len(self._blocks), mended)
        self._blocks.append(block)
        if type(index) is int:
            self._slots[index] = block
        return block, mended is given and type(index) is int and index == block.at

    def _find(self, index: object) -> _Block | None:
        if type(index) is int:
            return self._slots.get(index)
        return self._blocks[-1] if self._blocks else None

    def _block_start(self, event: JsonObject) -> bool:
        given = event.get("content_block")
        block, sound = self._begin(record(given), event.get("index"))
        self.spoken = self.spoken or block.kind == _CALL or _count_chars([block.block]) > 0
        self.text = texts([block.block], "text", "thinking")
        return sound and isinstance(given, dict)

    def _delta(self, event: JsonObject) -> bool:
        delta, index = event.get("delta"), event.get("index")
        if not isinstance(delta, dict):
            return False
        kind = delta.get("type")
        if not isinstance(kind, str):
            kind = next((name for name, (_, key) in _DELTAS.items() if key in delta), "text_delta")
        wanted, key = _DELTAS.get(kind, ("", ""))
        block, last = self._find(index), self._blocks[-1] if self._blocks else None
        sound = kind == delta.get("type") and block is not None and block.at == index and type(index) is int
        if wanted == _CALL and (block is None or "input" not in block.block):
            block, sound = next((one for one in reversed(self._blocks) if one.kind == _CALL), None), False
        elif wanted and wanted != _CALL and (block is None or block.kind != wanted):
            # Some proxies number text and calls wrongly: the text would be lost in a block of another type.
            fits = last is not None and last.kind == wanted and not last.stopped
            block, sound = last if fits else self._begin({"type": wanted}, index)[0], False
        block = block or last
        if block is None:
            return False
        self.spoken = True
        if key:
            text = delta.get(key)
            self.text = text if isinstance(text, str) else "" if text is None else arguments_text(text)
            block.pieces.append(self.text)
            return sound and isinstance(text, str)
        if kind == "citations_delta":
            block.block["citations"] = [*(block.block.get("citations") or ()), delta.get("citation")]
        elif kind == "signature_delta":
            block.block["signature"] = texts([delta], "signature")
            sound = sound and isinstance(delta.get("signature"), str)
        return sound

    def _message_delta(self, event: JsonObject, stopped: bool) -> bool:
        delta = record(event.get("delta"))
        self._count(event.get("usage") or delta.get("usage"))
        self._message.update(
            {name: value for name, value in delta.items() if value is not None and name != "usage"}
        )
        self.stopped = bool(self._message.get("stop_reason"))
        # The vendor's client uses the last value, null included.
        lost = any(self._message.get(name) and not delta.get(name) for name in _ENDS)
        known = (
            isinstance(event.get("delta"), dict)
            and type(record(event.get("usage")).get("output_tokens")) is int
        )
        return known and not lost and (stopped or not delta.get("stop_reason"))

    def finish(self, *, done: bool) -> None:
        if not self._message:
            raise UnusableReply("the stream ended before it began")
        reason, blocks = self._message.get("stop_reason"), self._blocks
        names = [block.block.get("name") for block in blocks if block.kind == _CALL]
        if not all(isinstance(name, str) and name for name in names):
            raise UnusableReply("a tool call of the answer names no tool")
        if not (self.complete or reason):
            if not self.spoken:
                raise UnusableReply("the stream ended before the model said anything")
            if not all(block.is_whole for block in blocks):
                raise UnusableReply("the stream ended within the input of a tool call")
        called = bool(names)
        self._message["stop_reason"] = reason or ("tool_use" if called else "end_turn")
        if not (self.complete or reason or done):
            raise UnusableReply("the stream ended without a stop_reason", self.whole())
        if reason == "tool_use" and not called:
            raise UnusableReply("the answer ends in a call of a tool, but holds none", self.whole())
        if not blocks and MESSAGES.stop(self._message) not in (Stop.LENGTH, Stop.REFUSAL):
            raise UnusableReply("the answer is empty", self.whole())

    def whole(self) -> JsonObject:
        whole = {**self._message, "content": [block.final() for block in self._blocks], "usage": self._usage}
        if missing := _missing_counts(self._usage):
            used = MESSAGES.usage(whole, self._request)
            into = max(0, used.input_tokens - used.cached_tokens - used.written_tokens)
            said = {"input_tokens": into, "output_tokens": used.output_tokens}
            whole["usage"] = {**self._usage, **{name: said[name] for name in missing}}
        return whole


class _Messages(Wire):
    protocol, path, turns = WireProtocol.MESSAGES, "/messages", "messages"
    content, prefix = "content", "msg_"

    # Answers of a provider

    def fold(self, request: JsonObject) -> _Fold:
        return _Fold(request)

    def raise_error(self, event: JsonObject, kind: str) -> None:
        error, state = event.get("error"), record(event.get("base_resp"))
        if kind == "error" or event.get("type") == "error" or error:
            body = event if error else {"type": "error", "error": {**event, "type": "api_error"}}
            raise ErrorInAnswer(body, status_of(error))
        if state.get("status_code"):
            told = {"message": state.get("status_msg"), "code": state["status_code"], "type": "api_error"}
            raise ErrorInAnswer({"type": "error", "error": told})

    def split(self, whole: JsonObject, sent: Sent | None = None) -> Iterator[Event]:
        return (Event(event, event["type"]) for event in _split(whole, sent or Sent()))

    def pieces(self, event: JsonObject) -> Iterator[tuple[Key, str]]:
        kind, index, delta = event.get("type"), event.get("index"), record(event.get("delta"))
        if kind == "message_start":
            for at in range(len(records(record(event.get("message")).get("content")))):
                yield ("content_block_start", at), ""
                yield ("content_block_stop", at), ""
        if kind == "content_block_delta":
            _, key = _DELTAS.get(str(delta.get("type")), ("", ""))
            yield (delta.get("type"), index), texts([delta], key)
        else:
            yield (kind, index), ""
            for name in ("text", "thinking") if kind == "content_block_start" else ():
                yield (f"{name}_delta", index), texts([event.get("content_block")], name)

    def usage(self, whole: JsonObject, request: JsonObject) -> Usage:
        # The cache's read and written tokens are beside the input.
        given = record(whole.get("usage"))
        cached, kept = count_of(given, "cache_read_input_tokens"), record(given.get("cache_creation"))
        written = count_of(given, "cache_creation_input_tokens") or sum(count_of(kept, name) for name in kept)
        into = count_of(given, "input_tokens") + cached + written
        out = count_of(given, "output_tokens") or estimate(_count_chars(whole.get("content")))
        thought = count_of(given.get("output_tokens_details"), "thinking_tokens", "reasoning_tokens")
        return Usage(
            calls=1,
            input_tokens=into or estimate(count_request_chars(request)),
            output_tokens=out,
            cached_tokens=cached,
            written_tokens=written,
            reasoning_tokens=min(thought, out),
        )

    def stop(self, whole: JsonObject) -> Stop:
        # An unknown reason is replaced by the one that follows from the content.
        stopped = _STOPS.get(str(whole.get("stop_reason")), Stop.END)
        called = any(block.get("type") == _CALL for block in records(whole.get("content")))
        return Stop.TOOL_CALLS if called and stopped is Stop.END else stopped

    def read_reply(self, whole: JsonObject, request: JsonObject) -> Reply:
        content, stop, used = records(whole.get("content")), self.stop(whole), self.usage(whole, request)
        text = _text_of(content)
        if stop is Stop.REFUSAL:
            # Content before a refusal is not meant to be used, least of all its calls.
            why = record(whole.get("stop_details")).get("explanation")
            return Reply(text or str(why or "The model refuses to answer."), (), stop, used)
        thoughts = [str(block["thinking"]) for block in content if block.get("thinking")]
        return Reply(text, _read_calls(content), stop, used, "\n\n".join(thoughts), _native(content))

    # Requests

    def output_limit(self, body: JsonObject) -> int | None:
        return whole_number(body.get("max_tokens"))

    def limited(self, body: JsonObject, tokens: int) -> JsonObject:
        # A thinking budget must be below the limit.
        thinking = record(body.get("thinking"))
        budget = whole_number(thinking.get("budget_tokens"))
        if budget is None or budget < tokens:
            return {**body, "max_tokens": tokens}
        lower = {**thinking, "budget_tokens": max(_LEAST_THINKING, tokens - 1)}
        return {**body, "max_tokens": tokens, "thinking": lower}

    def mended_request(self, body: JsonObject) -> JsonObject:
        def mend(block: JsonObject) -> JsonObject:
            sound = block.get("type") != _CALL or isinstance(block.get("input"), dict)
            return block if sound else {**block, "input": arguments_of(block.get("input"))}

        return mend_each(mend_halves(body), "messages", lambda turn: mend_each(turn, "content", mend))

    def read_messages(self, body: JsonObject) -> list[Message]:
        system = text_of_parts(body.get("system"), _GAP)
        messages = [Message(Role.SYSTEM, system)] if system else []
        return messages + [message for turn in records(body.get("messages")) for message in _read_turn(turn)]

    def read_effort(self, body: JsonObject) -> str:
        effort, thinking = (
            str(record(body.get("output_config")).get("effort") or ""),
            record(body.get("thinking")),
        )
        match thinking.get("type"):
            case "disabled":
                return "none"
            case "adaptive":
                return effort or "high"
            case "enabled":
                budget = whole_number(thinking.get("budget_tokens")) or 0
                return effort or next((word for bound, word in _BUDGETS if budget < bound), "high")
            case _:
                return effort

    def write_request(self, request: Request, model: str) -> JsonObject:
        turns = _write_turns(request.messages)
        system = "\n\n".join(m.text for m in request.messages if m.role is Role.SYSTEM and m.text.strip())
        limit = request.max_output_tokens or _OUTPUT_TOKENS
        body: dict[str, Any] = {"model": model, "max_tokens": limit, "messages": turns}
        tools = [_write_tool(tool) for tool in request.tools]
        if system:
            body["system"] = [{"type": "text", "text": system, "cache_control": _MARK}]
        elif tools:
            # A mark covers everything before it, and tools precede the system's text.
            tools[-1]["cache_control"] = _MARK
        _mark_users(turns)
        wishes = {
            "tools": tools,
            "tool_choice": _write_choice(request) if tools else None,
            "stop_sequences": list(request.stop),
            "thinking": {"type": "disabled"} if request.effort == "none" else None,
            "output_config": _write_output(request),
        }
        body.update({name: value for name, value in wishes.items() if value})
        numbers = {"temperature": request.temperature, "top_p": request.top_p}
        return {**body, **{name: value for name, value in numbers.items() if value is not None}}

    # Answers to an agent

    def write_answer(self, answer: WireAnswer) -> JsonObject:
        used = answer.reply.usage
        usage: dict[str, Any] = {
            "input_tokens": max(0, used.input_tokens - used.cached_tokens - used.written_tokens),
            "cache_creation_input_tokens": used.written_tokens,
            "cache_read_input_tokens": used.cached_tokens,
            "output_tokens": used.output_tokens,
        }
        if used.output_tokens and used.reasoning_tokens:
            usage["output_tokens_details"] = {"thinking_tokens": used.reasoning_tokens}
        return {
            "id": answer.id,
            "type": "message",
            "role": "assistant",
            "model": answer.model,
            "content": _write_content(answer),
            "stop_reason": REASONS[answer.reply.stop],
            "stop_sequence": None,
            "usage": usage,
        }

    def render_error(self, status: int, code: str, message: str) -> bytes:
        kind = _ERRORS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        if code == CONTEXT_LENGTH and TOO_LONG not in message:
            message = f"{TOO_LONG}: {message}"
        error: dict[str, Any] = {"type": kind, "message": message}
        if code == NO_THREADS:
            error["details"] = {"error_code": code, "unsupported": ["thread"]}
        return json.dumps({"type": "error", "error": error}).encode()


MESSAGES: Wire = _Messages()


def _missing_counts(counts: object) -> list[str]:
    return [name for name in ("input_tokens", "output_tokens") if type(record(counts).get(name)) is not int]


def _mend_block(block: JsonObject, ids: Ids) -> JsonObject:
    """Return a block with the fields that the vendor's client requires; the same one if it has them."""
    fixed: dict[str, Any] = {}
    kind = block.get("type")
    if not isinstance(kind, str) or not kind:
        kind = fixed["type"] = _CALL if "input" in block else "thinking" if "thinking" in block else "text"
    if kind in ("text", "thinking") and not isinstance(block.get(kind), str):
        fixed[kind] = ""
    if kind == _CALL and (named := ids.take(block.get("id"))) != block.get("id"):
        fixed["id"] = named
    if kind in (_CALL, "server_tool_use") and not isinstance(block.get("input"), dict):
        fixed["input"] = arguments_of(block.get("input"))
    return {**block, **fixed} if fixed else block


def _count_chars(content: object) -> int:
    """Return the number of characters in a content."""
    if isinstance(content, str):
        return len(content)
    said = ("text", "thinking", "name", "input", "data")
    return sum(characters(block.get(name)) for block in records(content) for name in said)


def _split(whole: JsonObject, sent: Sent) -> Iterator[JsonObject]:
    counts, content = record(whole.get("usage")), whole.get("content")
    begun = {**whole, "content": [], "stop_reason": None, "stop_sequence": None}
    if counts:
        begun["usage"] = {**counts, "output_tokens": min(1, count_of(counts, "output_tokens"))}
    if sent.lacks(("message_start", None)):
        yield {"type": "message_start", "message": begun}
    blocks = [{"text": content}] if isinstance(content, str) else content if isinstance(content, list) else []
    for index, block in enumerate(blocks):
        if not sent.lacks(("content_block_stop", index)):
            continue
        field, kind, piece = _PIECES.get(str(record(block).get("type")), ("", "", ""))
        first, value = block, record(block).get(field)
        text = arguments_text(value) if field == "input" and isinstance(value, dict) else value
        deltas: list[JsonObject] = []
        if isinstance(text, str) and (field != "input" or isinstance(value, dict)):
            first = {**block, field: {} if field == "input" else ""}
            if text := sent.rest((kind, index), text):
                deltas.append({"type": kind, piece: text})
        if field == "thinking" and block.get("signature"):
            first = {**first, "signature": ""}
            if sent.lacks(("signature_delta", index)):
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
        if sent.lacks(("content_block_start", index)):
            yield {"type": "content_block_start", "index": index, "content_block": first}
        yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        yield {"type": "content_block_stop", "index": index}
    ended = {name: whole.get(name) for name in ("stop_reason", "stop_sequence")}
    ended |= {name: whole[name] for name in ("stop_details", "container") if whole.get(name)}
    yield {"type": "message_delta", "delta": ended, "usage": dict(counts)}
    yield {"type": "message_stop"}


def _read_turn(turn: JsonObject) -> list[Message]:
    content = turn.get("content")
    if turn.get("role") == "assistant":
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else records(content)
        return [Message(Role.ASSISTANT, _text_of(blocks), _read_calls(blocks), native=_native(blocks))]
    role = Role.SYSTEM if turn.get("role") == "system" else Role.USER
    results = [block for block in records(content) if block.get("type") == "tool_result"]
    messages = [_read_result(block) for block in results]
    rest = [part for part in content if part not in results] if isinstance(content, list) else content
    text = text_of_parts(rest, _GAP)
    return [*messages, Message(role, text)] if text or (not messages and role is Role.USER) else messages


def _read_result(block: JsonObject) -> Message:
    name, failed = str(block.get("tool_use_id") or ""), block.get("is_error") is True
    return Message(Role.TOOL, text_of_parts(block.get("content"), _GAP), call_id=name, failed=failed)


def _text_of(content: Iterable[JsonObject]) -> str:
    return texts([block for block in content if block.get("type") == "text"], "text")


def _read_calls(content: Sequence[JsonObject]) -> tuple[ToolCall, ...]:
    calls = [block for block in content if block.get("type") == _CALL]
    return tuple(
        ToolCall(str(call.get("id") or ""), str(call.get("name") or ""), _read_input(call.get("input")))
        for call in calls
    )


def _read_input(value: object) -> str:
    """Return the text of a call's arguments, as the model wrote it."""
    arguments = arguments_of(value)
    raw = arguments.get(INVALID_JSON)
    return raw if len(arguments) == 1 and isinstance(raw, str) else json.dumps(arguments, ensure_ascii=False)


def _native(content: Sequence[JsonObject]) -> Native | None:
    if not any(block.get("type") in _REASONING for block in content):
        return None
    return Native(VENDOR, json.dumps(list(content), ensure_ascii=False))


def _write_output(request: Request) -> JsonObject:
    output: dict[str, Any] = {}
    if request.effort and request.effort != "none":
        if request.effort not in _EFFORTS:
            known = ", ".join(("none", *_EFFORTS))
            raise RequestRefused("invalid_request", f"effort '{request.effort}' is none of {known}")
        output["effort"] = _EFFORTS[request.effort]
    if request.form:
        output["format"] = {"type": "json_schema", "schema": request.form.schema}
    return output


def _write_choice(request: Request) -> JsonObject | None:
    kind, _, name = request.tool_choice.partition(":")
    if kind == "none":
        return {"type": "none"}
    if kind == "auto" and request.parallel:
        return None
    choice: dict[str, Any] = {"type": {"required": "any", "tool": "tool"}.get(kind, "auto")}
    named = {"name": name} if kind == "tool" else {}
    return {**choice, **named, **({} if request.parallel else {"disable_parallel_tool_use": True})}


def _write_tool(tool: Tool) -> Block:
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, "input_schema": {"type": "object", **tool.parameters}}


def _write_turns(messages: Iterable[Message]) -> list[Turn]:
    """Return alternating turns, the results of tools first in theirs."""
    turns: list[Turn] = []
    for message in messages:
        if message.role is Role.SYSTEM or not (blocks := _write_blocks(message)):
            continue
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    if not turns:
        raise RequestRefused("invalid_request", "the conversation holds no text to answer")
    if turns[0]["role"] != "user":
        turns.insert(0, {"role": "user", "content": _write_texts(_OPENING)})
    for turn in turns:
        if turn["role"] == "user":
            turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    last = turns[-1]
    if last["role"] == "assistant" and last["content"][-1]["type"] == "text":
        # A turn that the model is to continue must not end in a blank.
        last["content"][-1] = {"type": "text", "text": last["content"][-1]["text"].rstrip()}
    return turns


def _write_blocks(message: Message) -> list[Block]:
    match message.role:
        case Role.ASSISTANT:
            return _write_assistant(message)
        case Role.TOOL:
            text = message.text if message.text.strip() else _SILENT_FAILURE if message.failed else ""
            more = {**({"content": text} if text else {}), **({"is_error": True} if message.failed else {})}
            return [{"type": "tool_result", "tool_use_id": _id(message.call_id), **more}]
        case _:
            return _write_texts(message.text)


def _write_assistant(message: Message) -> list[Block]:
    native: list[Block] = []
    if message.native is not None and message.native.vendor == VENDOR:
        native = json.loads(message.native.data)
    calls = [(block["id"], block["name"], block["input"]) for block in native if block["type"] == _CALL]
    ours = [(call.id, call.name, arguments_of(call.arguments)) for call in message.calls]
    if native and message.text == _text_of(native) and ours == calls:
        blocks = [block for block in native if block["type"] != "text" or block["text"].strip()]
    else:
        blocks = [block for block in native if block["type"] in _REASONING] + _write_texts(message.text)
        blocks += [
            {"type": _CALL, "id": _id(name), "name": tool, "input": given} for name, tool, given in ours
        ]
    # Reasoning that was cut off has no signature yet, and a turn may not end in reasoning.
    while blocks and blocks[-1]["type"] in _REASONING:
        blocks.pop()
    return blocks


def _id(given: str) -> str:
    """Return an id that this protocol accepts; ids of other vendors' calls may have more characters."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", given)


def _write_texts(text: str) -> list[Block]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _mark_users(turns: Sequence[Turn]) -> None:
    """Mark the ends of the conversation's common prefix with the next call, and with the last one."""
    users = [turn for turn in turns if turn["role"] == "user"]
    for turn in users[-2:]:
        block = turn["content"][-1]
        if block["type"] == "text" or "content" in block:
            block["cache_control"] = _MARK


def _write_content(answer: WireAnswer) -> list[JsonObject]:
    reply, display = answer.reply, answer.echo.get("thinking")
    blocks: list[JsonObject] = []
    if reply.reasoning and display:
        shown = "" if display == "omitted" else reply.reasoning
        blocks.append({"type": "thinking", "thinking": shown, "signature": SIGNATURE})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    calls = [(call.id, call.name, arguments_of(call.arguments)) for call in reply.calls]
    return blocks + [{"type": _CALL, "id": name, "name": tool, "input": given} for name, tool, given in calls]
