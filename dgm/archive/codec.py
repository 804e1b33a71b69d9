"""Conversion between events and rows of ``events.db``: the only module that knows the layout of the JSON column.

Keys whose value is the default are omitted, which halves the size of a long run. Unknown keys are ignored, so that an
older dgm reads a run to which a compatible newer one has added something.
"""

import json
from collections.abc import Callable
from dataclasses import astuple
from typing import Any

from dgm.archive.codec_models import READERS, encode_call, encode_model, usage_body, usage_of
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
    NO_ACTION,
    Action,
    ActionId,
    AgentId,
    Born,
    Budget,
    CommitId,
    Cost,
    Evaluate,
    Evaluation,
    Expand,
    Stillborn,
    TaskId,
    Usage,
    Verdict,
)

_dump = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


def encode(event: Event) -> tuple[str, int | None, str]:
    """Return an event's ``kind``, ``action`` and ``body`` columns. The body is always ASCII."""
    match event:
        case TaskGraded(action, outcome, times):
            more = {"again": times} if times else {}
            return "task_graded", action, _dump({**_evaluation_body(outcome), **more})
        case ActionStarted(action, what, again):
            return (
                "action_started",
                action,
                _dump({**_action_body(what), **({"again": True} if again else {})}),
            )
        case ModelCalled() | CallStarted() | CallBooked() | CallRefused():
            kind, body = encode_call(event)
            return kind, event.action, _dump(body)
        case ModelLearned() | ModelNoted():
            kind, body = encode_model(event)
            return kind, None, _dump(body)
        case ChildProposed(action, outcome):
            return "child_proposed", action, _dump(_child_body(outcome))
        case AgentBorn():
            return "agent_born", event.action, _dump(_born_body(event))
        case AgentStillborn(action, outcome):
            return "agent_stillborn", action, _dump(_stillborn_body(outcome))
        case ActionLost(action, reason, final):
            return "action_lost", action, _dump({"reason": reason, "final": final})
        case VerdictWithdrawn():
            return "verdict_withdrawn", event.action, _dump(_withdrawn_body(event))
        case RunStarted() | RunChanged() | RunPaused() | RunStopped():
            kind, body = _run_columns(event)
            return kind, None, _dump(body)


def _run_columns(event: RunStarted | RunChanged | RunPaused | RunStopped) -> tuple[str, dict[str, Any]]:
    match event:
        case RunStarted():
            return "run_started", _run_body(event)
        case RunChanged(settings):
            return "run_changed", {"settings": settings}
        case RunPaused(reason):
            return "run_paused", {"reason": reason}
        case RunStopped(reason):
            return "run_stopped", {"reason": reason}


def decode(kind: str, action: int | None, body: str) -> Event:
    """Return the event that ``encode`` turned into these columns.

    Raises:
        ValueError: the columns are not an event; the message says why.
    """
    reader = _READERS.get(kind)
    if reader is None:
        raise ValueError(f"unknown kind of event {kind!r}")
    try:
        return reader(ActionId(action or 0), json.loads(body))
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"a {kind} event without a usable {error}") from error


def action_of(body: Body) -> Action:
    """Return the action in the body of an ``action_started`` event."""
    if "task" in body:
        return Evaluate(body["agent"], body["task"], body.get("attempt", 0))
    return Expand(
        tuple(body["parents"]),
        body["operator"],
        tuple(body.get("evidence", ())),
        tuple(body.get("shown", ())),
        body.get("aim", ""),
        body.get("case", NO_ACTION),
        tuple(body.get("probes", ())),
    )


def _action_body(action: Action) -> dict[str, Any]:
    match action:
        case Evaluate(agent, task, attempt):
            return {"agent": agent, "task": task, "attempt": attempt}
        case Expand(parents, operator):
            chosen = {
                "evidence": action.evidence,
                "shown": action.shown,
                "aim": action.aim,
                "case": action.case,
                "probes": action.probes,
            }
            given = {name: value for name, value in chosen.items() if value}
            return {"parents": parents, "operator": operator, **given}


def _cost_body(cost: Cost) -> dict[str, Any]:
    body: dict[str, Any] = {"seconds": round(cost.seconds, 4)} if cost.seconds else {}
    if cost.usage != Usage():
        body["usage"] = usage_body(cost.usage)
    if cost.traces:
        body["traces"] = dict(cost.traces)
    return body


def _read_cost(body: Body) -> Cost:
    return Cost(usage_of(body), body.get("seconds", 0.0), body.get("traces", {}))


def _evaluation_body(outcome: Evaluation) -> dict[str, Any]:
    return {
        "agent": outcome.agent,
        "task": outcome.task,
        "attempt": outcome.attempt,
        "verdict": outcome.verdict.value,
        "reason": outcome.reason,
        **({"score": outcome.score} if outcome.score else {}),
        **_cost_body(outcome.cost),
    }


def _read_graded(action: ActionId, body: Body) -> Event:
    outcome = Evaluation(
        AgentId(body["agent"]),
        TaskId(body["task"]),
        body["attempt"],
        Verdict(body["verdict"]),
        body["reason"],
        body.get("score", 0.0),
        _read_cost(body),
    )
    return TaskGraded(action, outcome, body.get("again", 0))


def _withdrawn_body(event: VerdictWithdrawn) -> dict[str, Any]:
    return {
        **_action_body(event.what),
        "verdict": event.verdict.value,
        "graded": event.graded,
        "reason": event.reason,
        **({"calls": event.calls} if event.calls else {}),
    }


def _read_withdrawn(action: ActionId, body: Body) -> Event:
    return VerdictWithdrawn(
        action,
        body["graded"],
        Evaluate(AgentId(body["agent"]), TaskId(body["task"]), body["attempt"]),
        Verdict(body["verdict"]),
        body["reason"],
        tuple(body.get("calls", ())),
    )


def _read_changed(_action: ActionId, body: Body) -> Event:
    return RunChanged(dict(body["settings"]))


def _read_started(action: ActionId, body: Body) -> Event:
    return ActionStarted(action, action_of(body), body.get("again", False))


def _child_body(child: Born | AgentBorn) -> dict[str, Any]:
    return {
        "parents": child.parents,
        "commit": child.commit,
        "operator": child.operator,
        "rationale": child.rationale,
        **({"syntax": child.syntax} if child.syntax else {}),
        **_cost_body(child.cost),
    }


def _read_proposed(action: ActionId, body: Body) -> Event:
    outcome = Born(
        tuple(body["parents"]),
        body["operator"],
        CommitId(body["commit"]),
        body["rationale"],
        _read_cost(body),
        body.get("syntax", ""),
    )
    return ChildProposed(action, outcome)


def _born_body(event: AgentBorn) -> dict[str, Any]:
    return {"id": event.id, **_child_body(event), **_decided_body(event.decided)}


def _decided_body(decided: str) -> dict[str, str]:
    return {"decided": decided} if decided else {}


def _read_born(action: ActionId, body: Body) -> Event:
    parents = tuple(body["parents"])
    return AgentBorn(
        action,
        AgentId(body["id"]),
        parents,
        body["commit"],
        body["operator"],
        body["rationale"],
        _read_cost(body),
        body.get("syntax", ""),
        body.get("decided", ""),
    )


def _stillborn_body(outcome: Stillborn) -> dict[str, Any]:
    return {
        "parents": outcome.parents,
        "operator": outcome.operator,
        "stage": outcome.stage,
        "reason": outcome.reason,
        **_decided_body(outcome.decided),
        **_cost_body(outcome.cost),
    }


def _read_stillborn(action: ActionId, body: Body) -> Event:
    outcome = Stillborn(
        tuple(body["parents"]),
        body["operator"],
        body["stage"],
        body["reason"],
        _read_cost(body),
        body.get("decided", ""),
    )
    return AgentStillborn(action, outcome)


def _read_lost(action: ActionId, body: Body) -> Event:
    return ActionLost(action, body["reason"], body["final"])


def _run_body(event: RunStarted) -> dict[str, Any]:
    limits = event.budget
    budget = {
        "evaluations": limits.evaluations,
        "agents": limits.agents,
        "usd": limits.usd,
        "tokens": limits.tokens,
        "seconds": limits.seconds,
        **({"expansion_cost": limits.expansion_cost} if limits.expansion_cost else {}),
        **({} if limits.score is None else {"score": limits.score}),
        **({} if limits.patience is None else {"patience": limits.patience}),
    }
    flips = {"flips": True} if event.flips else {}
    control = {"control": astuple(event.control)} if event.control else {}
    return {"budget": budget, "tasks": event.tasks, "resumed": event.resumed, **flips, **control}


def _read_run(_action: ActionId, body: Body) -> Event:
    budget = body["budget"]
    limits = Budget(
        budget.get("evaluations"),
        budget.get("agents"),
        budget.get("usd"),
        budget.get("tokens"),
        budget.get("seconds"),
        budget.get("expansion_cost", 0.0),
        budget.get("score"),
        budget.get("patience"),
    )
    control = Control(*body["control"]) if body.get("control") else None
    return RunStarted(
        limits, tuple(body["tasks"]), body.get("resumed", False), body.get("flips", False), control
    )


def _read_paused(_action: ActionId, body: Body) -> Event:
    return RunPaused(body["reason"])


def _read_stopped(_action: ActionId, body: Body) -> Event:
    return RunStopped(body["reason"])


_READERS: dict[str, Callable[[ActionId, Body], Event]] = {
    **READERS,
    "task_graded": _read_graded,
    "verdict_withdrawn": _read_withdrawn,
    "action_started": _read_started,
    "run_paused": _read_paused,
    "child_proposed": _read_proposed,
    "agent_born": _read_born,
    "agent_stillborn": _read_stillborn,
    "action_lost": _read_lost,
    "run_started": _read_run,
    "run_changed": _read_changed,
    "run_stopped": _read_stopped,
}
KINDS = tuple(_READERS)
"""All kinds of events."""
