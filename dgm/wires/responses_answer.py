"""A whole response: its validation, its corrections, its usage, and its form as a stream."""

from collections.abc import Mapping, Sequence
from typing import Any

from dgm.domain import Usage
from dgm.messages import JsonObject, Stop
from dgm.wires.events import ErrorInAnswer, Event, UnusableReply, status_of
from dgm.wires.responses_items import CALLS, Item, Names, mend_item, new_part
from dgm.wires.values import characters, mend_halves, openai_usage, records, texts

_NOT_SAID = ("id", "type", "status", "role", "call_id", "encrypted_content")
_FAILED = ("failed", "cancelled")
_TOLD = ("message", "detail", "msg")
_PARTED = {"message": ("content", "content_index"), "reasoning": ("summary", "summary_index")}
"""Types of items that consist of parts → the field with the parts, and the events' field with a part's number."""


def error_of_event(event: JsonObject, kind: str) -> None:
    """Raise the error in an event, if there is one.

    Raises:
        ErrorInAnswer: the event is ``error`` or ``response.failed``, or holds an error.
    """
    if kind in ("response.failed", "response.cancelled"):
        response = event.get("response")
        raise_failure(
            {"status": "failed", **(response if isinstance(response, dict) else {}), "object": "response"},
            failed=True,
        )
    error = event.get("error")
    if kind in ("error", "response.error") or error:
        told = error or {name: event.get(name) for name in ("code", "message", "param")}
        raise ErrorInAnswer({"type": "error", "error": told}, status_of(told) or status_of(event))


def raise_failure(response: JsonObject, *, failed: bool = False) -> None:
    """Raise the error of a response that failed.

    Raises:
        ErrorInAnswer: its status says so, or it holds an error.
    """
    error = response.get("error")
    if not (failed or error or response.get("status") in _FAILED):
        return
    told = error or {"code": "", "message": f"the response {response.get('status') or 'failed'}"}
    raise ErrorInAnswer({"error": told, "status": response.get("status")}, status_of(told))


def check(whole: JsonObject) -> None:
    """Raise an error for an invalid whole answer; see ``Wire.check``.

    Raises:
        ErrorInAnswer: it is an error, or failed.
        Unreadable: it holds no output, or is not at its end.
    """
    if whole.get("type") == "error":
        error_of_event(whole, "error")
    raise_failure(whole)
    status, output = whole.get("status") or "completed", whole.get("output")
    if not isinstance(output, list):
        if any(isinstance(whole.get(name), str) and whole[name] for name in _TOLD):
            raise ErrorInAnswer(whole, status_of(whole))
        raise UnusableReply("the response holds no output")
    if status not in ("completed", "incomplete"):
        raise UnusableReply(f"the response is {status}")
    for item in records(output):
        if str(item.get("type")) in CALLS and not (isinstance(item.get("name"), str) and item["name"]):
            raise UnusableReply("a tool call of the response names no function")
    if not output and status == "completed":
        raise UnusableReply("the response holds no output", whole)


def mend_answer(whole: JsonObject, request: JsonObject) -> JsonObject:
    """Return the answer in a form that the vendor's client can read; see ``Wire.mended``."""
    whole = mend_halves(whole)
    output = whole.get("output")
    if not isinstance(output, list):
        return whole
    names = Names(request)
    names.reserve(records(output))
    seen: set[str] = set()
    read = [_mend_item(item, names, seen) for item in output]
    fixed: dict[str, Any] = {}
    if any(new is not old for new, old in zip(read, output, strict=True)):
        fixed["output"] = read
    if not whole.get("status"):
        fixed["status"] = "completed"
    return {**whole, **fixed} if fixed else whole


def split(whole: JsonObject) -> Sequence[Event]:
    """Return the answer as the events of a stream."""
    events: list[Event] = []

    def add(kind: str, **fields: object) -> None:
        events.append(Event({"type": kind, "sequence_number": len(events), **fields}, kind))

    unknown = dict.fromkeys(("completed_at", "incomplete_details", "usage"))
    begun = {**whole, **unknown, "status": "in_progress", "output": []}
    add("response.created", response=begun)
    add("response.in_progress", response=begun)
    for index, item in enumerate(records(whole.get("output"))):
        kind, place = str(item.get("type")), {"item_id": item.get("id"), "output_index": index}
        first: dict[str, Any] = {**item, "status": "in_progress"} if "status" in item else dict(item)
        parts, counted = _PARTED.get(kind, ("", ""))
        if parts:
            first[parts] = []
        if kind in CALLS:
            first[CALLS[kind]] = ""
        add("response.output_item.added", output_index=index, item=first)
        for number, part in enumerate(records(item.get(parts))):
            _split_part(add, {**place, counted: number}, part)
        if kind in CALLS:
            name = "function_call_arguments" if kind == "function_call" else "custom_tool_call_input"
            add(f"response.{name}.delta", **place, delta=item.get(CALLS[kind]))
            add(
                f"response.{name}.done",
                **place,
                **{CALLS[kind]: item.get(CALLS[kind]), "name": item.get("name")},
            )
        add("response.output_item.done", output_index=index, item=item)
    ended = "response.incomplete" if whole.get("status") == "incomplete" else "response.completed"
    add(ended, response=whole)
    return events


def make_initial_response(given: object, request: JsonObject) -> dict[str, Any]:
    """Return the response at the beginning of a stream, made from its last form if the first is missing."""
    known: JsonObject = given if isinstance(given, dict) else {}
    return {
        "id": known.get("id") or "resp_dgm_0",
        "object": "response",
        "created_at": known.get("created_at") or 0,
        "status": "in_progress",
        "model": known.get("model") or request.get("model") or "",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def usage(whole: JsonObject, request: JsonObject) -> Usage:
    """Return the usage of the call; see ``Wire.usage``."""
    return openai_usage(whole, request, count_item_chars(records(whole.get("output"))), "input", "output")


def usage_record(whole: JsonObject, request: JsonObject) -> Mapping[str, Any]:
    """Return the usage in the protocol's own form, estimated if it is missing."""
    used = usage(whole, request)
    return {
        "input_tokens": used.input_tokens,
        "input_tokens_details": {"cached_tokens": used.cached_tokens},
        "output_tokens": used.output_tokens,
        "output_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
        "total_tokens": used.tokens,
    }


def count_item_chars(items: Sequence[JsonObject]) -> int:
    """Return the number of characters in the items."""
    said = [value for item in items for name, value in item.items() if name not in _NOT_SAID]
    return sum(len(value) if isinstance(value, str) else _length(value) for value in said)


def stop(whole: JsonObject) -> Stop:
    """Return why the response stopped."""
    details = whole.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    if whole.get("status") == "incomplete":
        return Stop.REFUSAL if reason == "content_filter" else Stop.LENGTH
    items = records(whole.get("output"))
    if any(part.get("type") == "refusal" for item in items for part in records(item.get("content"))):
        return Stop.REFUSAL
    called = any(str(item.get("type")).endswith("_call") and item.get("call_id") for item in items)
    return Stop.TOOL_CALLS if called else Stop.END


def _length(value: object) -> int:
    """Return the length of the texts of an item's parts, or of an action's command."""
    if isinstance(value, Mapping):
        return characters(list(value.values()))
    return len(texts(value, "text", "refusal"))


def _mend_item(item: object, names: Names, seen: set[str]) -> object:
    if not isinstance(item, dict):
        return item
    own = item.get("id")
    item_id = own if isinstance(own, str) and own and own not in seen else names.item_id(item.get("type"))
    seen.add(item_id)
    read = mend_item(item, item_id, names.call_id)
    return Item(0, read, own).final() if read.get("type") == "function_call" else read


def _split_part(add: Any, place: JsonObject, part: JsonObject) -> None:  # noqa: ANN401  (a local function)
    if "summary_index" in place:
        whole, name, empty = "reasoning_summary_part", "reasoning_summary_text", {**part, "text": ""}
    else:
        whole, name = "content_part", "refusal" if part.get("type") == "refusal" else "output_text"
        empty = new_part(name)
    field = "refusal" if name == "refusal" else "text"
    logged: dict[str, object] = {"logprobs": []} if name == "output_text" else {}
    add(f"response.{whole}.added", **place, part=empty)
    add(f"response.{name}.delta", **place, delta=part.get(field), **logged)
    add(f"response.{name}.done", **place, **{field: part.get(field)}, **logged)
    add(f"response.{whole}.done", **place, part=part)
