"""The present activity of a search as lines: steps under way, rates, the forecast, how near its ends are."""

from collections.abc import Mapping, Sequence
from typing import Any

from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, line
from dgm.show.status import fact
from dgm.show.times import duration, local_time
from dgm.show.words import counted, operator_text, usd_text

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
        *_steps(record["under_way"], now, living=living),
        *_rates(record["rates"], living=living),
        *_forecast(record["forecast"]),
        *_ends(record["ends"], now),
        *_times(record),
    ]


def _steps(steps: Sequence[Mapping[str, Any]], now: float, *, living: bool) -> Sequence[Line]:
    lines = []
    for number, step in enumerate(steps[:SHOWN]):
        heading = ("under way" if living else "cut off") if number == 0 else ""
        quiet = living and step["last_event_age_s"] >= QUIET_S
        lines.append(
            line(
                Span(f"{heading:<13}", Tone.KEY),
                f"{step['action']:>4} {_what(step)}: ",
                Span(_age(step, now, living=living), Tone.WARN if quiet else Tone.DIM),
            )
        )
    if len(steps) > SHOWN:
        lines.append(fact("", f"and {len(steps) - SHOWN} more"))
    return lines


def _age(step: Mapping[str, Any], now: float, *, living: bool) -> str:
    since = f"since {local_time(step['since_unix_s'], now)}"
    age = f"{duration(step['age_s'])}, {since}" if living else since
    heard = f", the last {duration(step['last_event_age_s'])} ago" if living and step["model_calls"] else ""
    again = f"; try {step['tries']}" if step["tries"] > 1 else ""
    return f"{age}; {counted(step['model_calls'], 'call')}{heard}{again}"


def _what(step: Mapping[str, Any]) -> str:
    if step["kind"] == "evaluate":
        attempt = f" (attempt {step['attempt'] + 1})" if step["attempt"] else ""
        return f"agent {step['agent']} on {one_line(step['task'], 36)}{attempt}"
    parents = " and ".join(map(str, step["parents"]))
    return f"a child of {parents} by {operator_text(step['operator'], step['aim'])}"


def _rates(rates: Mapping[str, Any] | None, *, living: bool) -> Sequence[Line]:
    if rates is None:
        return [fact("rates", "not yet known", Tone.DIM)] if living else []
    where = f"the last {duration(rates['window_s'])}" if living else "the whole run"
    said = (
        f"{rates['events_per_hour']:,.0f} events/h, {rates['evaluations_per_hour']:,.1f} evaluations/h, "
        f"{rates['tokens_per_second']:,.0f} tokens/s, {rates['usd_per_hour']:,.4f} USD/h"
    )
    return [line(Span(f"{'rates':<13}", Tone.KEY), said, Span(f"  ({where})", Tone.DIM))]


def _forecast(found: Mapping[str, Any] | None) -> Sequence[Line]:
    if found is None or not found["by_budget"]:
        return []
    lines = []
    for number, (name, end) in enumerate(found["by_budget"].items()):
        heading = "forecast" if number == 0 else ""
        binds = name == found["binding"]
        lines.append(
            line(
                Span(f"{heading:<13}", Tone.KEY),
                f"{_BUDGETS[name]:<11} {_used(name, end)}: ",
                Span(_left(end), Tone.STRONG if binds else Tone.PLAIN),
                Span("  ends the run first" + ("" if found["complete"] else ", of what is known"), Tone.MARK)
                if binds
                else "",
            )
        )
    return lines


def _used(name: str, end: Mapping[str, Any]) -> str:
    used, limit = end["used"], end["limit"]
    match name:
        case "usd":
            return f"{used:.4f} of {usd_text(limit)} USD"
        case "seconds":
            return f"{duration(used)} of {duration(limit)}"
        case _:
            return f"{used:,g} of {limit:,}"


def _left(end: Mapping[str, Any]) -> str:
    if end["left_s"] is None:
        return str(end["unknown"])
    if end["left_s"] == 0.0:
        return "spent"
    now = end["ends_unix_s"] - end["left_s"]
    left = duration(end["left_s"])
    far = left.startswith("more")
    return f"{left} left" if far else f"{left} left, until {local_time(end['ends_unix_s'], now)}"


def _ends(ends: Mapping[str, Any], now: float) -> Sequence[Line]:
    lines = []
    if score := ends.get("until_score"):
        who = "" if score["agent"] is None else f" (agent {score['agent']})"
        said = f"the best agent's lower bound is {score['lower_bound']:.3f} of {score['limit']:g}{who}"
        lines.append(fact("until score", said))
    if patience := ends.get("patience"):
        said = f"{patience['evaluations_without_better']} of {patience['limit']} evaluations without a better agent"
        left = patience["earliest_left_s"]
        soon = (
            ""
            if left is None
            else f"; at the earliest out in {duration(left)}, {local_time(now + left, now)}"
        )
        lines.append(fact("patience", said + soon))
    return lines


def _times(record: Mapping[str, Any]) -> Sequence[Line]:
    now, last = record["now_unix_s"], record["last_event"]
    if last is None:
        return []
    began = record["began_unix_s"]
    times = [f"{local_time(last['at_unix_s'], now)}, {duration(last['age_s'])} ago"]
    if began is not None:
        times.append(f"the run began {local_time(began, now)}")
    session = record["session_began_unix_s"]
    if session is not None and (began is None or session - began > 60.0):
        times.append(f"this session {local_time(session, now)}")
    return [fact("last event", "; ".join([*times, f"now {local_time(now, now)}"]))]
