"""A whole chat completion: its validation, its corrections, its usage, and its form as a stream."""

from collections.abc import Mapping, Sequence
from typing import Any

from dgm.domain import Usage
from dgm.messages import JsonObject, Stop
from dgm.wires.events import DONE, ErrorInAnswer, Event, UnusableReply, status_of
from dgm.wires.values import Ids, arguments_text, characters, mend_halves, openai_usage, records

CALLED = ("tool_calls", "function_call")
"""Finish reasons that promise a call."""
_WENT_WRONG = ("error", "abort", "insufficient_system_resource", "network_error")
"""Finish reasons that signal a failure of the provider (OpenRouter, vLLM, DeepSeek, Zhipu)."""
_MALFORMED = "malformed_function_call"
"""Part of Gemini's finish reason if its model wrote an unreadable call."""

_CUT_OFF = ("length", "max_tokens", "model_length", "MAX_TOKENS")
_WITHHELD = ("content_filter", "refusal", "sensitive", "SAFETY")
_SAID = (
    "content",
    "refusal",
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "function_call",
    "audio",
)
_TOLD = ("message", "detail", "msg", "error_msg", "error_message")
"""Keys of error messages in answers that are neither a completion nor of OpenAI's form."""


def call_ids(request: JsonObject) -> Ids:
    """Return the ids of a conversation's calls."""
    turns = records(request.get("messages"))
    return Ids(call.get("id") for turn in turns for call in records(turn.get("tool_calls")))


def tool_names(request: JsonObject) -> frozenset[str]:
    """Return the names of the tools that a request offers."""
    tools = records(request.get("tools"))
    named = [tool.get(kind) for tool in tools for kind in ("function", "custom")]
    names = [tool.get("name") for tool in named if isinstance(tool, Mapping)]
    return frozenset(name for name in names if isinstance(name, str))


def count_message_chars(message: JsonObject) -> int:
    """Return the number of characters in a message or a delta, calls not counted."""
    return sum(_length(message[name]) for name in _SAID if name in message)


def error_of_chunk(event: JsonObject, name: str) -> None:
    """Raise the error in a chunk or a whole answer, if there is one.

    Raises:
        ErrorInAnswer: it holds an error: as ``error``, as vLLM's bare record, in a choice (OpenRouter), as MiniMax's
            status, or as a finish reason.
    """
    error = event.get("error")
    if error and not (isinstance(error, Mapping) and error.get("code") in (0, "0") and event.get("choices")):
        raise ErrorInAnswer(event, status_of(error) or status_of(event))
    if name == "error" or event.get("object") == "error" or event.get("type") == "error":
        raise ErrorInAnswer(event, status_of(event))
    choices = event.get("choices")
    if not choices:
        state = event.get("base_resp")
        if isinstance(state, Mapping) and state.get("status_code"):
            message = state.get("status_msg")
            raise ErrorInAnswer(
                {"error": {"message": message, "code": state["status_code"]}, "base_resp": state}
            )
        return
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and (choice.get("error") or _is_failure(choice.get("finish_reason"))):
            raise ErrorInAnswer(*_choice_error(choice))


def check(whole: JsonObject) -> None:
    """Raise an error for an invalid whole answer; see ``Wire.check``.

    Raises:
        ErrorInAnswer: it is an error.
        Unreadable: it holds no choice, a malformed one, or a call that is promised is missing.
    """
    error_of_chunk(whole, "")
    choices = whole.get("choices")
    if not isinstance(choices, list) or not choices:
        if any(isinstance(whole.get(name), str) and whole[name] for name in _TOLD):
            raise ErrorInAnswer(whole, status_of(whole))
        raise UnusableReply("the answer holds no choice")
    for choice in choices:
        message = _message_of(choice)
        if message is None:
            raise UnusableReply("a choice of the answer holds no message")
        calls = message.get("tool_calls") or []
        for call in calls if isinstance(calls, list) else [calls]:
            inner = (call.get("function") or call.get("custom")) if isinstance(call, dict) else None
            if not isinstance(inner, dict) or not isinstance(inner.get("name"), str) or not inner["name"]:
                raise UnusableReply("a tool call of the answer names no function")
        if choice.get("finish_reason") in CALLED and not calls and not message.get("function_call"):
            raise UnusableReply("the answer ends in a call of a tool, but holds none", whole)


def mend_answer(whole: JsonObject, request: JsonObject) -> JsonObject:
    """Return the answer in a form that the vendor's client can read; see ``Wire.mended``."""
    whole = mend_halves(whole)
    choices = whole.get("choices")
    if not isinstance(choices, list):
        return whole
    ids = call_ids(request)
    read = [_mend_choice(choice, place, ids) for place, choice in enumerate(choices)]
    if all(new is old for new, old in zip(read, choices, strict=True)):
        return whole
    return {**whole, "choices": read}


def split(whole: JsonObject) -> Sequence[Event]:
    """Return the answer as the events of a stream, ``[DONE]`` included.

    The usage is in the last chunk with a choice: not every client expects a chunk without one.
    """
    kept = {name: value for name, value in whole.items() if name not in ("choices", "usage", "object")}
    top = {**kept, "object": "chat.completion.chunk"}
    events: list[Event] = []
    choices = records(whole.get("choices"))
    for place, choice in enumerate(choices):
        index, message = choice.get("index", place), dict(_message_of(choice) or {})
        calls = records(message.pop("tool_calls", None))
        more = {
            name: value for name, value in choice.items() if name not in ("index", "message", "finish_reason")
        }
        first = {"index": index, "delta": {"role": "assistant", **message}, "finish_reason": None, **more}
        events.append(Event({**top, "choices": [first]}))
        if calls:
            delta = {"tool_calls": [{"index": number, **call} for number, call in enumerate(calls)]}
            events.append(
                Event({**top, "choices": [{"index": index, "delta": delta, "finish_reason": None}]})
            )
        last = {"index": index, "delta": {}, "finish_reason": choice.get("finish_reason")}
        counted = {"usage": whole["usage"]} if place == len(choices) - 1 and whole.get("usage") else {}
        events.append(Event({**top, "choices": [last], **counted}))
    return [*events, Event(DONE)]


def usage(whole: JsonObject, request: JsonObject) -> Usage:
    """Return the usage of the call; see ``Wire.usage``."""
    messages = [choice.get("message") for choice in records(whole.get("choices"))]
    said = sum(
        count_message_chars(message) + characters(message.get("tool_calls"))
        for message in messages
        if isinstance(message, Mapping)
    )
    return openai_usage(whole, request, said, "prompt", "completion")


def usage_record(whole: JsonObject, request: JsonObject) -> Mapping[str, Any]:
    """Return the usage in the protocol's own form, estimated if it is missing."""
    used = usage(whole, request)
    return {
        "prompt_tokens": used.input_tokens,
        "completion_tokens": used.output_tokens,
        "total_tokens": used.tokens,
    }


def stop(whole: JsonObject) -> Stop:
    """Return why the first choice stopped; calls outweigh the reason, because many servers say ``stop`` beside them."""
    choices = records(whole.get("choices"))
    choice: JsonObject = choices[0] if choices else {}
    message = choice.get("message")
    message = message if isinstance(message, Mapping) else {}
    reason = choice.get("finish_reason")
    if reason in _CUT_OFF:
        return Stop.LENGTH
    if message.get("refusal") or reason in _WITHHELD:
        return Stop.REFUSAL
    return Stop.TOOL_CALLS if message.get("tool_calls") or message.get("function_call") else Stop.END


def _length(value: object) -> int:
    return len(value) if isinstance(value, str) else characters(value) if value else 0


def _is_failure(reason: object) -> bool:
    return isinstance(reason, str) and (reason in _WENT_WRONG or _MALFORMED in reason.lower())


def _choice_error(choice: JsonObject) -> tuple[JsonObject, int | None]:
    error = choice.get("error")
    if isinstance(error, Mapping):
        return {"error": error}, status_of(error)
    reason = choice.get("finish_reason")
    message = str(error) if error else f"the provider gave up ({reason}); it says no more"
    return {"error": {"message": message, "code": reason}}, None


def _message_of(choice: object) -> JsonObject | None:
    message = (choice.get("message") or choice.get("delta")) if isinstance(choice, dict) else None
    return message if isinstance(message, dict) else None


def _mend_choice(choice: Any, place: int, ids: Ids) -> Any:  # noqa: ANN401  (any JSON)
    message = _message_of(choice)
    if message is None:
        return choice
    read = _mend_message(message, ids)
    reason = choice.get("finish_reason")
    known = isinstance(reason, str) and reason
    if read is choice.get("message") and known and type(choice.get("index")) is int:
        return choice
    index = choice["index"] if type(choice.get("index")) is int else place
    end = reason if known else "tool_calls" if read.get("tool_calls") else "stop"
    rest = {name: value for name, value in choice.items() if name != "delta"}
    return {**rest, "index": index, "message": read, "finish_reason": end}


def _mend_message(message: JsonObject, ids: Ids) -> JsonObject:
    given = message.get("tool_calls")
    calls: Any = [given] if given and isinstance(given, dict) else given
    if calls is not None and not isinstance(calls, list):
        calls = None
    if calls:
        ids.reserve(
            call.get("id") for call in calls if isinstance(call, dict) and isinstance(call.get("id"), str)
        )
        read = [_mend_call(call, ids) for call in calls]
        if not isinstance(given, list) or any(new is not old for new, old in zip(read, given, strict=True)):
            calls = read
    if calls is given and message.get("role") and "content" in message:
        return message
    fixed = {"role": message.get("role") or "assistant", "content": message.get("content")}
    return {**message, **fixed, **({"tool_calls": calls} if given is not None else {})}


def _mend_call(call: Any, ids: Ids) -> Any:  # noqa: ANN401  (any JSON)
    if not isinstance(call, dict):
        return call
    kind = "custom" if isinstance(call.get("custom"), dict) else "function"
    key = "input" if kind == "custom" else "arguments"
    inner = call.get(kind)
    name = ids.take(call.get("id"))
    if not isinstance(inner, dict):
        return call
    text = arguments_text(inner.get(key))
    if name == call.get("id") and call.get("type") == kind and text == inner.get(key):
        return call
    return {**call, "id": name, "type": kind, kind: {**inner, key: text}}
