"""The objective of a run: from the settings and the suite's metrics to what the log records."""

from collections.abc import Mapping
from typing import Any

from msgspec import ValidationError, convert, to_builtins

from dgm.archive.measures import BUILT_IN
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import Metric, Objective
from dgm.errors import ArchiveCorrupt, UserError
from dgm.meta.rubric import METRIC, RUBRIC
from dgm.protocols import Benchmark, HasMetrics

METRICS = "metrics"
"""Key of a run's configuration: name → metric of its suite."""
_UNITS = {"usd": "USD", "seconds": "s"}


def metrics_of(benchmark: Benchmark, settings: Settings) -> Mapping[str, Metric]:
    """Return the metrics of a benchmark, if it has any of its own, and the rubric if it is measured."""
    metrics = benchmark.metrics() if isinstance(benchmark, HasMetrics) else {}
    return {**metrics, RUBRIC: METRIC} if settings.objective.rubric else metrics


def record_metrics(metrics: Mapping[str, Metric]) -> Mapping[str, Any]:
    """Return metrics in the form of ``run.json``."""
    return {name: to_builtins(metric) for name, metric in metrics.items()}


def read_metrics(run: Run) -> Mapping[str, Metric]:
    """Return all metrics of a run, the built-in ones first.

    Raises:
        ArchiveCorrupt: ``run.json`` does not hold what dgm wrote.
    """
    built_in = {name: Metric(sign > 0, _UNITS.get(name, "")) for name, sign in BUILT_IN.items()}
    try:
        return built_in | convert(dict(run.config.get(METRICS, {})), dict[str, Metric])
    except (ValidationError, ValueError) as error:
        raise ArchiveCorrupt(
            f"{run.folder / 'run.json'}: {METRICS}: {error}; restore it from a copy"
        ) from error


def objective_of(settings: Settings, metrics: Mapping[str, Metric]) -> Objective | None:
    """Return the objective for the log; None if agents are compared by resolved tasks alone.

    Args:
        settings: of the run.
        metrics: of the suite.

    Raises:
        UserError: the settings name a metric that the suite has not, or do not fit together.
    """
    front, weights, reward = settings.objective.front, settings.objective.weights, settings.policy.reward
    signs = {**BUILT_IN, **{name: 1 if metric.higher else -1 for name, metric in metrics.items()}}
    for key, names in (("objective.front", front), ("objective.weights", weights)):
        if unknown := next((name for name in names if name not in signs), None):
            raise UserError(f"{key}: {unknown!r} is no metric of this suite; it has {', '.join(signs)}")
    if front and (len(front) < 2 or len({*front}) < len(front)):
        raise UserError(f"objective.front = {list(front)}: name two different metrics or more")
    if reward == "objective" and not weights:
        raise UserError("policy.reward = 'objective': nothing is weighed; set objective.weights too")
    if reward == "objective" and RUBRIC in weights:
        raise UserError(
            "policy.reward = 'objective': the rubric can be no part of a reward, because evaluations before the first"
            " note have none, and agents can flatter it; leave it out of objective.weights"
        )
    rewards = {"resolved": {}, "score": {"score": 1.0}, "objective": dict(weights)}
    objective = Objective({name: signs[name] for name in front}, rewards[reward])
    return None if objective == Objective() else objective
