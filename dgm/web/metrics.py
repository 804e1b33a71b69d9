"""Prometheus text at ``/metrics``: the gauges of every run."""

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dgm.render.safe import one_line
from dgm.views.gauges import GAUGES, Readings

LABEL_CELLS = 200


def render_metrics(runs: Sequence[tuple[str, Readings]]) -> bytes:
    """Return the text for the runs, each with its name in addresses."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_RunCollector(runs))
    return generate_latest(registry)


class _RunCollector(Collector):
    def __init__(self, runs: Sequence[tuple[str, Readings]]) -> None:
        self._runs = runs

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for number, gauge in enumerate(GAUGES):
            family = GaugeMetricFamily(gauge.name, gauge.description, labels=("run", *gauge.labels))
            for run, readings in self._runs:
                for value, labels in readings[number]:
                    texts = [run, *(labels[name] for name in gauge.labels)]
                    family.add_metric([one_line(text, LABEL_CELLS) for text in texts], value)
            yield family
