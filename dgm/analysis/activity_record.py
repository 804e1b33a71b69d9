"""The activity of a search as a plain JSON document: field names hold the units, times are Unix time."""

from dataclasses import asdict
from typing import Any

from dgm.analysis.activity import Activity, RunningStep
from dgm.analysis.best import BestAgent
from dgm.analysis.forecast import BudgetEnd, Forecast
from dgm.analysis.goals import Standstill
from dgm.archive.live_calls import LiveCalls
from dgm.archive.run import Run
from dgm.domain import Evaluate


def activity_record(
    run: Run, activity: Activity, best: BestAgent | None, standstill: Standstill | None
) -> dict[str, Any]:
    """Return the fields that ``dgm status --json`` adds to the summary of a run.

    Args:
        run: the run.
        activity: of this moment.
        best: its best agent; None if it has no agent yet.
        standstill: the count of evaluations without a better agent; None if the run has no ``patience``.
    """
    tree, now = run.tree, activity.now
    return {
        "now_unix_s": round(now, 3),
        "began_unix_s": run.config.get("created"),
        "session_began_unix_s": tree.session_began or None,
        "last_event": {
            "seq": tree.seq,
            "at_unix_s": round(tree.last_at, 3),
            "age_s": round(max(0.0, now - tree.last_at), 1),
        }
        if tree.seq
        else None,
        "under_way": [_step_record(step, now) for step in activity.under_way],
        "model_calls": _calls_record(activity.calls, now) if activity.calls else None,
        "nodes": [asdict(node) for node in activity.nodes],
        "rates": {name: round(value, 6) for name, value in asdict(activity.rates).items()}
        if activity.rates
        else None,
        "forecast": _forecast_record(activity.forecast, now) if activity.forecast else None,
        "ends": _ends_record(run, activity, best, standstill),
    }


def _step_record(step: RunningStep, now: float) -> dict[str, Any]:
    what = step.action
    told: dict[str, Any] = (
        {"kind": "evaluate", "agent": what.agent, "task": what.task, "attempt": what.attempt}
        if isinstance(what, Evaluate)
        else {"kind": "expand", "parents": list(what.parents), "operator": what.operator, "aim": what.aim}
    )
    return {
        "action": step.id,
        **told,
        "since_unix_s": round(step.since, 3),
        "age_s": round(max(0.0, now - step.since), 1),
        "tries": step.tries,
        "model_calls": step.calls,
        "last_event_age_s": round(max(0.0, now - step.last_at), 1),
    }


def _calls_record(calls: LiveCalls, now: float) -> dict[str, Any]:
    since = calls.oldest_wait
    return {
        "under_way": calls.under_way,
        "waiting": calls.waiting,
        "oldest_wait_unix_s": None if since is None else round(since, 3),
        "oldest_wait_s": None if since is None else round(max(0.0, now - since), 1),
    }


def _forecast_record(found: Forecast, now: float) -> dict[str, Any]:
    return {
        "binding": None if found.binding is None else found.binding.budget,
        "complete": found.complete,
        "left_s": None if found.binding is None else _round_seconds(found.binding.left_s),
        "ends_unix_s": None if found.binding is None else _moment_of_end(found.binding, now),
        "by_budget": {
            end.budget: {
                "used": round(end.use.used, 6),
                "limit": end.use.limit,
                "left_s": _round_seconds(end.left_s),
                "ends_unix_s": _moment_of_end(end, now),
                "unknown": None if end.unknown is None else end.unknown.value,
            }
            for end in found.ends
        },
    }


def _ends_record(
    run: Run, activity: Activity, best: BestAgent | None, standstill: Standstill | None
) -> dict[str, Any]:
    budget, found = run.tree.budget, {}
    if budget.score is not None:
        bound = 0.0 if best is None else best.lower_bound
        agent = None if best is None else best.agent
        found["until_score"] = {"lower_bound": round(bound, 6), "limit": budget.score, "agent": agent}
    if budget.patience is not None and standstill is not None:
        left = max(0, budget.patience - standstill.without_better)
        found["patience"] = {
            "evaluations_without_better": standstill.without_better,
            "limit": budget.patience,
            "earliest_left_s": _round_seconds(earliest_s(activity, left)),
        }
    return found


def earliest_s(activity: Activity, evaluations: int) -> float | None:
    """Return the seconds that this many evaluations take at the present rate; None if not known."""
    rates = activity.rates
    if not activity.living or activity.paused or rates is None or rates.evaluations_per_hour <= 0.0:
        return None
    return evaluations / rates.evaluations_per_hour * 3600.0


def _round_seconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def _moment_of_end(end: BudgetEnd, now: float) -> float | None:
    return None if end.left_s is None else round(now + end.left_s, 1)
