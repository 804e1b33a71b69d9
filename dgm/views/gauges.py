"""The numbers of a run that monitoring asks for: one table for Prometheus (``/metrics``) and OpenTelemetry."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dgm.domain import Verdict
from dgm.views.run import FailuresView, RunView


class Sample(NamedTuple):
    """One value of a gauge, with the labels that tell it from the others."""

    value: float
    labels: dict[str, str]


class Gauge(NamedTuple):
    """A number of a run at one moment."""

    name: str
    """In the form of Prometheus, with its unit."""
    description: str
    read: Callable[[RunView], Iterator[Sample]]
    labels: tuple[str, ...] = ()
    """Names of the labels of each sample."""


Readings = Sequence[Sequence[Sample]]
"""The samples of one run, by gauge."""


def read_gauges(view: RunView) -> Readings:
    """Return the samples of a run."""
    return [[*gauge.read(view)] for gauge in GAUGES]


def _number(name: str, description: str, value: Callable[[RunView], float | None]) -> Gauge:
    """Return a gauge of at most one sample; None is no sample."""

    def read(view: RunView) -> Iterator[Sample]:
        if (number := value(view)) is not None:
            yield Sample(float(number), {})

    return Gauge(name, description, read)


def _read_failures(view: RunView) -> Iterator[Sample]:
    for kind in FailuresView.model_fields:
        times = sum(count.times for count in getattr(view.failures, kind))
        yield Sample(float(times), {"kind": kind})


GAUGES = (
    _number("dgm_living", "1 while a process writes the run.", lambda view: view.living),
    _number("dgm_paused", "1 while the run waits for its provider.", lambda view: bool(view.paused)),
    _number("dgm_slots", "Maximum number of parallel actions.", lambda view: view.workers),
    _number(
        "dgm_slots_busy",
        "Actions that are under way.",
        lambda view: view.running if view.living else 0,
    ),
    _number(
        "dgm_model_calls_open",
        "Model calls that their model is working on.",
        lambda view: view.model_calls.under_way if view.model_calls else 0,
    ),
    _number(
        "dgm_model_calls_waiting",
        "Model calls that wait for budget, provider or the next try.",
        lambda view: view.model_calls.waiting if view.model_calls else 0,
    ),
    _number("dgm_children_waiting", "Children that wait for approval.", lambda view: view.waiting),
    _number("dgm_agents", "Agents of the archive.", lambda view: view.agents),
    _number("dgm_expansions", "Ended expansions.", lambda view: view.expansions),
    Gauge(
        "dgm_evaluations",
        "Evaluations by verdict.",
        lambda view: (
            Sample(float(getattr(view.evaluations, verdict)), {"verdict": verdict.value})
            for verdict in Verdict
        ),
        ("verdict",),
    ),
    Gauge("dgm_failures", "Failures by kind.", _read_failures, ("kind",)),
    Gauge(
        "dgm_spend_usd",
        "Money spent on model calls.",
        lambda view: (Sample(part.usd, {"role": part.role, "model": part.model}) for part in view.spend.by),
        ("role", "model"),
    ),
    Gauge(
        "dgm_spend_tokens",
        "Tokens of model calls.",
        lambda view: (
            Sample(float(part.tokens), {"role": part.role, "model": part.model}) for part in view.spend.by
        ),
        ("role", "model"),
    ),
    Gauge(
        "dgm_budget_used_ratio",
        "Used share of each limit.",
        lambda view: (Sample(use.share, {"limit": limit}) for limit, use in view.budget.items()),
        ("limit",),
    ),
    _number(
        "dgm_best_lower_bound",
        "Lower bound of the best agent's rate, 99 % sure.",
        lambda view: view.best.lower_bound if view.best else None,
    ),
    _number(
        "dgm_last_event_timestamp_seconds",
        "Unix time of the newest event.",
        lambda view: view.last_event.at_unix_s if view.last_event else None,
    ),
    _number("dgm_wall_seconds", "Wall time of all sessions.", lambda view: view.seconds),
)
