"""Conversion between events and rows of ``events.db``: the only module that knows the layout of the JSON column.

Optional keys without a value are omitted, which halves the size of a long run. Unknown keys are ignored, so that an
older dgm reads a run to which a compatible newer one has added something.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dgm.archive.config_shape import check_settings
from dgm.archive.event_fields import UnusableField, check_fields, parse_body, read_commit
from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    Body,
    CallBooked,
    CallRefused,
    CallStarted,
    ChildProposed,
    Control,
    Event,
    ModelCalled,
    ModelLearned,
    ModelNoted,
    RunChanged,
    RunPaused,
    RunStarted,
    RunStopped,
    TaskGraded,
    VerdictWithdrawn,
)
from dgm.domain import (
    Action,
    ActionId,
    Born,
    Budget,
    Cost,
    Evaluate,
    Evaluation,
    Expand,
    Outcome,
    Stillborn,
    Usage,
)

_COST = "seconds? usage? traces?"
_CALL = "number model role"
_CHILD = f"parents commit operator rationale syntax? {_COST}"
_ACTION = "agent task attempt parents operator evidence? shown? aim? case? probes?"
_LAYOUTS: Mapping[str, tuple[type[Event], str]] = {
    "model_called": (ModelCalled, f"{_CALL} request? reply? usage seconds"),
    "call_started": (CallStarted, f"{_CALL} request? most"),
    "call_booked": (CallBooked, f"{_CALL} usage open? request?"),
    "call_refused": (CallRefused, "role status code message"),
    "model_learned": (ModelLearned, "model abilities words usage"),
    "model_noted": (ModelNoted, "model kind words until?"),
    "task_graded": (TaskGraded, f"agent task attempt verdict reason score? {_COST} again?"),
    "verdict_withdrawn": (VerdictWithdrawn, "agent task attempt verdict graded reason calls?"),
    "action_started": (ActionStarted, f"{_ACTION} again?"),
    "run_paused": (RunPaused, "reason"),
    "child_proposed": (ChildProposed, _CHILD),
    "agent_born": (AgentBorn, f"id {_CHILD} decided?"),
    "agent_stillborn": (AgentStillborn, f"parents operator stage reason decided? cause? {_COST}"),
    "action_lost": (ActionLost, "reason final"),
    "run_started": (RunStarted, "budget tasks resumed flips? control? kernel? benchmark?"),
    "run_changed": (RunChanged, "settings"),
    "run_stopped": (RunStopped, "reason"),
}
"""Each kind's class and its keys in their order; ``?`` marks a key that is omitted without a value."""
_BUDGET = "evaluations agents usd tokens seconds expansion_cost? score? patience?"
KINDS = tuple(_LAYOUTS)
"""All kinds of events."""
_KIND_OF = {event: kind for kind, (event, _) in _LAYOUTS.items()}
_MERGED = (Born, Cost, Evaluate, Evaluation, Expand, Stillborn)
"""Values whose fields lie beside those of their owner."""
_NESTED = ("outcome", "cost", "what")
"""Fields whose values ``_MERGED`` holds; they are no keys of a body."""
_NO_USAGE = Usage()


def encode(event: Event) -> tuple[str, int | None, str]:
    """Return an event's ``kind``, ``action`` and ``body`` columns. The body is always ASCII."""
    kind = _KIND_OF[type(event)]
    values = _flatten(event)
    action = event.id if isinstance(event, ActionStarted) else values.get("action")
    body = _pick(values, _LAYOUTS[kind][1])
    if "seconds" in body:
        body["seconds"] = round(body["seconds"], 4)
    return kind, action, _dump(body)


def decode(kind: str, action: int | None, body: str) -> Event:
    """Return the event that ``encode`` turned into these columns.

    Raises:
        ValueError: the columns are not an event; the message says why.
    """
    if kind not in _LAYOUTS:
        raise ValueError(f"unknown kind of event {kind!r}")
    try:
        return _read(kind, ActionId(action or 0), parse_body(body))
    except (KeyError, TypeError, AttributeError, UnusableField) as error:
        raise ValueError(f"a {kind} event without a usable {error}") from error
    except ValidationError as error:
        raise ValueError(f"a {kind} event without a usable {_describe(error)}") from error


def action_of(body: Body) -> Action:
    """Return the action in the body of an ``action_started`` event.

    Raises:
        ValueError: the body is not of such an event.
    """
    check_fields(body)
    return _read_action(body)


def _read_action(body: Body) -> Action:
    return _action_reader("task" in body).validate_python(body)


def _read(kind: str, action: ActionId, body: dict[str, Any]) -> Event:
    body["action"] = action
    check_fields(body)
    if "commit" in body:
        body["commit"] = read_commit(body["commit"])
    if "usage" in body or kind in ("model_called", "call_booked"):
        body["usage"] = Usage(*body.get("usage", ()))
    if kind != "model_called":  # by far the commonest
        _nest(kind, body)
    return _reader(kind).validate_python(body)


def _nest(kind: str, body: dict[str, Any]) -> None:
    """Give a body the shape of its event."""
    match kind:
        case "action_started":
            body.update(id=body["action"], action=_read_action(body))
        case "task_graded" | "child_proposed" | "agent_born" | "agent_stillborn":
            body["outcome"] = {**body, "cost": body}
        case "verdict_withdrawn":
            body["what"] = {**body}
        case "run_changed":
            check_settings(body["settings"])
        case "call_started":
            body["most"] = Usage(*body["most"])
        case "run_started" if body.get("control"):
            body["control"] = Control(*body["control"])


@cache
def _reader(kind: str) -> TypeAdapter[Event]:
    return TypeAdapter(_LAYOUTS[kind][0])


@cache
def _action_reader(evaluates: bool) -> TypeAdapter[Action]:
    return TypeAdapter(Evaluate if evaluates else Expand)


def _describe(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    key = repr(".".join(str(part) for part in first["loc"] if part not in _NESTED))
    return key if first["type"] == "missing" else f"{key}: {first['msg']}"


def _flatten(value: Event | Action | Budget | Control | Cost | Outcome | Usage) -> dict[str, Any]:
    """Return the fields of a value and of the values that are merged into it."""
    found: dict[str, Any] = {}
    for name in type(value).__match_args__:
        part = getattr(value, name)
        if isinstance(part, _MERGED):
            found.update(_flatten(part))
        else:
            found[name] = part
    return found


def _pick(values: Mapping[str, Any], layout: str) -> dict[str, Any]:
    return {
        key: values[key]
        for key, optional in _keys(layout)
        if key in values and not (optional and (not values[key] or values[key] == _NO_USAGE))
    }


@cache
def _keys(layout: str) -> tuple[tuple[str, bool], ...]:
    return tuple((key.rstrip("?"), key.endswith("?")) for key in layout.split())


def _write_value(value: object) -> object:
    match value:
        case Usage():
            counts = list(_flatten(value).values())
            return counts if any(counts[4:]) else counts[:4]
        case Budget():
            return _pick(_flatten(value), _BUDGET)
        case Control():
            return list(_flatten(value).values())
        case Mapping():
            return dict(value)
        case _:
            raise TypeError(f"{value!r} has no form in the log")


_dump = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=_write_value).encode
