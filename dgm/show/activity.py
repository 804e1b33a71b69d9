"""The present activity of a search as lines: steps under way, rates, the forecast, how near its ends are."""

from collections.abc import Mapping, Sequence
from typing import Any

from dgm.show.nodes import node_lines
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.status import fact_line
from dgm.show.times import duration_text, local_time_text
from dgm.show.words import count_text, operator_text, usd_text

SHOWN = 8
"""Maximum number of steps under way that are listed; more are only counted."""
QUIET_S = 600.0
"""Seconds without a sign of a step after which the step is marked."""
_BUDGETS = {"evaluations": "evaluations", "usd": "money", "tokens": "tokens", "seconds": "time"}


def activity_lines(record: Mapping[str, Any], *, living: bool) -> Sequence[Line]:
    """Return the lines that tell people an ``activity_record``.

    Args:
        record: of ``dgm.analysis.activity_record``.
        living: whether a process writes the run. Nobody works on the steps of any other run.
    """
    now = record["now_unix_s"]
    return [
        *_step_lines(record["under_way"], now, living=living),
        *_call_lines(record["model_calls"], now),
        *node_lines(record["nodes"]),
        *_rate_lines(record["rates"], living=living),
        *_forecast_lines(record["forecast"]),
        *_end_lines(record["ends"], now),
        *_time_lines(record),
    ]


def _step_lines(steps: Sequence[Mapping[str, Any]], now: float, *, living: bool) -> Sequence[Line]:
    lines = []
    for number, step in enumerate(steps[:SHOWN]):
        heading = ("under way" if living else "cut off") if number == 0 else ""
        quiet = living and step["last_event_age_s"] >= QUIET_S
        lines.append(
            make_line(
                Span(f"{heading:<13}", Tone.KEY),
                f"{step['action']:>4} {_action_text(step)}: ",
                Span(_age_text(step, now, living=living), Tone.WARN if quiet else Tone.DIM),
            )
        )
    if len(steps) > SHOWN:
        lines.append(fact_line("", f"and {len(steps) - SHOWN} more"))
    return lines


def _age_text(step: Mapping[str, Any], now: float, *, living: bool) -> str:
    since = f"since {local_time_text(step['since_unix_s'], now)}"
    age = f"{duration_text(step['age_s'])}, {since}" if living else since
    heard = (
        f", the last {duration_text(step['last_event_age_s'])} ago" if living and step["model_calls"] else ""
    )
    again = f"; try {step['tries']}" if step["tries"] > 1 else ""
    return f"{age}; {count_text(step['model_calls'], 'call')}{heard}{again}"


def _action_text(step: Mapping[str, Any]) -> str:
    if step["kind"] == "evaluate":
        attempt = f" (attempt {step['attempt'] + 1})" if step["attempt"] else ""
        return f"agent {step['agent']} on {one_line(step['task'], 36)}{attempt}"
    parents = " and ".join(map(str, step["parents"]))
    return f"a child of {parents} by {operator_text(step['operator'], step['aim'])}"


def _call_lines(calls: Mapping[str, Any] | None, now: float) -> Sequence[Line]:
    if calls is None or not (calls["under_way"] or calls["waiting"]):
        return []
    key, said = Span(f"{'model calls':<13}", Tone.KEY), f"{calls['under_way']:,} under way"
    if not calls["waiting"]:
        return [make_line(key, said)]
    since = local_time_text(calls["oldest_wait_unix_s"], now)
    wait = f"the oldest for {duration_text(calls['oldest_wait_s'])}, since {since}"
    many = f"{calls['waiting']:,} wait" if calls["waiting"] > 1 else "1 waits"
    tone = Tone.WARN if calls["oldest_wait_s"] >= QUIET_S else Tone.DIM
    return [make_line(key, f"{said}, {many} for a turn or the next try: ", Span(wait, tone))]


def _rate_lines(rates: Mapping[str, Any] | None, *, living: bool) -> Sequence[Line]:
    if rates is None:
        return [fact_line("rates", "not yet known", Tone.DIM)] if living else []
    where = f"the last {duration_text(rates['window_s'])}" if living else "the whole run"
    said = (
        f"{rates['events_per_hour']:,.0f} events/h, {rates['evaluations_per_hour']:,.1f} evaluations/h, "
        f"{rates['tokens_per_second']:,.0f} tokens/s, {rates['usd_per_hour']:,.4f} USD/h"
    )
    return [make_line(Span(f"{'rates':<13}", Tone.KEY), said, Span(f"  ({where})", Tone.DIM))]


def _forecast_lines(found: Mapping[str, Any] | None) -> Sequence[Line]:
    if found is None or not found["by_budget"]:
        return []
    lines = []
    for number, (name, end) in enumerate(found["by_budget"].items()):
        heading = "forecast" if number == 0 else ""
        binds = name == found["binding"]
        lines.append(
            make_line(
                Span(f"{heading:<13}", Tone.KEY),
                f"{_BUDGETS[name]:<11} {_used_text(name, end)}: ",
                Span(_left_text(end), Tone.STRONG if binds else Tone.PLAIN),
                Span("  ends the run first" + ("" if found["complete"] else ", of what is known"), Tone.MARK)
                if binds
                else "",
            )
        )
    return lines


def _used_text(name: str, end: Mapping[str, Any]) -> str:
    used, limit = end["used"], end["limit"]
    match name:
        case "usd":
            return f"{used:.4f} of {usd_text(limit)} USD"
        case "seconds":
            return f"{duration_text(used)} of {duration_text(limit)}"
        case _:
            return f"{used:,g} of {limit:,}"


def _left_text(end: Mapping[str, Any]) -> str:
    if end["left_s"] is None:
        return str(end["unknown"])
    if end["left_s"] == 0.0:
        return "spent"
    now = end["ends_unix_s"] - end["left_s"]
    left = duration_text(end["left_s"])
    far = left.startswith("more")
    return f"{left} left" if far else f"{left} left, until {local_time_text(end['ends_unix_s'], now)}"


def _end_lines(ends: Mapping[str, Any], now: float) -> Sequence[Line]:
    lines = []
    if score := ends.get("until_score"):
        who = "" if score["agent"] is None else f" (agent {score['agent']})"
        said = f"the best agent's lower bound is {score['lower_bound']:.3f} of {score['limit']:g}{who}"
        lines.append(fact_line("until score", said))
    if patience := ends.get("patience"):
        said = f"{patience['evaluations_without_better']} of {patience['limit']} evaluations without a better agent"
        left = patience["earliest_left_s"]
        soon = (
            ""
            if left is None
            else f"; at the earliest out in {duration_text(left)}, {local_time_text(now + left, now)}"
        )
        lines.append(fact_line("patience", said + soon))
    return lines


def _time_lines(record: Mapping[str, Any]) -> Sequence[Line]:
    now, last = record["now_unix_s"], record["last_event"]
    if last is None:
        return []
    began = record["began_unix_s"]
    times = [f"{local_time_text(last['at_unix_s'], now)}, {duration_text(last['age_s'])} ago"]
    if began is not None:
        times.append(f"the run began {local_time_text(began, now)}")
    session = record["session_began_unix_s"]
    if session is not None and (began is None or session - began > 60.0):
        times.append(f"this session {local_time_text(session, now)}")
    return [fact_line("last event", "; ".join([*times, f"now {local_time_text(now, now)}"]))]
