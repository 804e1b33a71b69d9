"""Conversion between JSON bodies and events about models and their calls; ``codec`` handles the other events."""

from collections.abc import Callable, Mapping
from typing import Any

from dgm.archive.events import (
    Body,
    CallBooked,
    CallRefused,
    CallStarted,
    Event,
    ModelCalled,
    ModelLearned,
    ModelNoted,
    NoteKind,
)
from dgm.domain import ActionId, Digest, Usage


def encode_call(event: ModelCalled | CallStarted | CallBooked | CallRefused) -> tuple[str, dict[str, Any]]:
    """Return the kind and the body of an event of one call."""
    match event:
        case ModelCalled():
            return "model_called", _call_body(event)
        case CallStarted():
            return "call_started", _begun_body(event)
        case CallBooked():
            return "call_booked", _booked_body(event)
        case CallRefused(_, role, status, code, message):
            return "call_refused", {"role": role, "status": status, "code": code, "message": message}


def encode_model(event: ModelLearned | ModelNoted) -> tuple[str, dict[str, Any]]:
    """Return the kind and the body of an event of one model."""
    match event:
        case ModelLearned(model, abilities, words, usage):
            body = {"model": model, "abilities": dict(abilities), "words": words}
            return "model_learned", {**body, "usage": usage_body(usage)}
        case ModelNoted(model, kind, words, until):
            noted: dict[str, Any] = {"model": model, "kind": kind.value, "words": words}
            return "model_noted", {**noted, **({"until": until} if until else {})}


def usage_body(usage: Usage) -> list[float]:
    """Return a usage as a list, with the finer counts only if some are not zero."""
    body = [usage.calls, usage.input_tokens, usage.output_tokens, usage.usd]
    finer = [usage.cached_tokens, usage.written_tokens, usage.reasoning_tokens]
    return [*body, *finer] if any(finer) else body


def usage_of(body: Body) -> Usage:
    """Return the usage in a body; zero if the body has none."""
    return Usage(*body["usage"]) if "usage" in body else Usage()


def _call_body(event: ModelCalled) -> dict[str, Any]:
    return {
        "number": event.number,
        "model": event.model,
        "role": event.role,
        "request": event.request,
        "reply": event.reply,
        "usage": usage_body(event.usage),
        "seconds": round(event.seconds, 4),
    }


def _read_called(action: ActionId, body: Body) -> Event:
    return ModelCalled(
        action,
        body["number"],
        body["model"],
        body["role"],
        Digest(body["request"]),
        Digest(body["reply"]),
        usage_of(body),
        body.get("seconds", 0.0),
    )


def _begun_body(event: CallStarted) -> dict[str, Any]:
    return {
        "number": event.number,
        "model": event.model,
        "role": event.role,
        "request": event.request,
        "most": usage_body(event.most),
    }


def _read_begun(action: ActionId, body: Body) -> Event:
    return CallStarted(
        action, body["number"], body["model"], body["role"], Digest(body["request"]), Usage(*body["most"])
    )


def _booked_body(event: CallBooked) -> dict[str, Any]:
    body = {
        "number": event.number,
        "model": event.model,
        "role": event.role,
        "usage": usage_body(event.usage),
    }
    return {**body, **({"open": True, "request": event.request} if event.open else {})}


def _read_booked(action: ActionId, body: Body) -> Event:
    return CallBooked(
        action,
        body["number"],
        body["model"],
        body["role"],
        usage_of(body),
        body.get("open", False),
        body.get("request", ""),
    )


def _read_learned(_action: ActionId, body: Body) -> Event:
    return ModelLearned(body["model"], body["abilities"], body["words"], usage_of(body))


def _read_noted(_action: ActionId, body: Body) -> Event:
    return ModelNoted(body["model"], NoteKind(body["kind"]), body["words"], body.get("until", 0.0))


def _read_refused(action: ActionId, body: Body) -> Event:
    return CallRefused(action, body["role"], body["status"], body["code"], body["message"])


READERS: Mapping[str, Callable[[ActionId, Body], Event]] = {
    "model_called": _read_called,
    "call_started": _read_begun,
    "call_booked": _read_booked,
    "call_refused": _read_refused,
    "model_learned": _read_learned,
    "model_noted": _read_noted,
}
