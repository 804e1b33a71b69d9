"""MLflow: a run of the experiment ``dgm`` in a database or on a server, found again by a tag with the run's id.

MLflow is asked for the last step of each metric, and gets what follows.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

from dgm.archive.events import Recorded
from dgm.sinks.feed import Feed, Point, best_patch, read_parameters, summarise
from dgm.sinks.sink import SinkContext

T = TypeVar("T")
ID_TAG = "dgm.id"
BATCH, PARAMETERS = 1_000, 100
"""Largest numbers of metrics and of parameters in a request."""
_DEFAULTS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
"""Variables of the library, unless the user sets them; a server that is away is tried again by the companion."""


class MlflowSink:
    """The rest of the address is a tracking URI; empty: ``MLFLOW_TRACKING_URI``, else ``mlflow.db`` here."""

    def __init__(self, context: SinkContext) -> None:
        for name, value in _DEFAULTS.items():
            os.environ.setdefault(name, value)
        for name in ("alembic", "mlflow"):
            logging.getLogger(name).setLevel(logging.WARNING)
        from mlflow.tracking import MlflowClient

        self._context = context
        self._client: Any = MlflowClient(context.rest or None)
        self._id = self._open_run()
        self._points: list[Point] = []
        self._last = self._read_last()
        """Metric → its last step on the other side."""
        # A metric may be new in the very point whose other metrics were sent before a kill.
        self._done = max(0, min(self._last.values(), default=0) - 1)

    def observe(self, recorded: Recorded, feed: Feed) -> None:
        """Keep the point of an event, unless MLflow has it."""
        del recorded
        if feed.step > self._done and (point := feed.point()):
            self._points.append(point)

    def deliver(self) -> int:
        """Send the metrics that MLflow does not have."""
        from mlflow.entities import Metric

        metrics = [Metric(*values) for values in self._list_metrics()]
        for part in _batched(metrics, BATCH):
            self._client.log_batch(self._id, metrics=part)
        self._points.clear()
        return len({metric.step for metric in metrics})

    def finish(self, feed: Feed) -> None:
        """Send the run's end as tags, and the best agent's changes as an artifact."""
        for name, value in summarise(self._context.run, feed).items():
            self._client.set_tag(self._id, name, str(value))
        with best_patch(self._context.run, feed) as path:
            if path:
                self._client.log_artifact(self._id, str(path), "best")
        self._client.set_terminated(self._id, "FINISHED" if feed.tree.stop_reason else "KILLED")

    def close(self) -> None:
        """Do nothing: a client holds no connection."""

    def _list_metrics(self) -> Iterator[tuple[str, float, int, int]]:
        for point in self._points:
            for name, value in point.values.items():
                if point.step > self._last.get(name, 0):
                    yield name, value, round(point.at * 1000), point.step

    def _open_run(self) -> str:
        client, parameters = self._client, read_parameters(self._context.run)
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "dgm")
        experiment = client.get_experiment_by_name(name)
        experiment_id = experiment.experiment_id if experiment else client.create_experiment(name)
        runs = client.search_runs([experiment_id], f"tags.`{ID_TAG}` = '{parameters.id}'", max_results=1)
        if runs:
            run = runs[0]
            client.update_run(run.info.run_id, status="RUNNING")
        else:
            run = client.create_run(experiment_id, tags={ID_TAG: parameters.id}, run_name=parameters.run)
        self._send_parameters(run, parameters.values)
        return str(run.info.run_id)

    def _send_parameters(self, run: Any, values: Mapping[str, str]) -> None:  # noqa: ANN401
        """Send the parameters that MLflow does not have; it refuses changes of the others."""
        from mlflow.entities import Param

        missing = [Param(name, value) for name, value in values.items() if name not in run.data.params]
        for part in _batched(missing, PARAMETERS):
            self._client.log_batch(run.info.run_id, params=part)

    def _read_last(self) -> dict[str, int]:
        names = self._client.get_run(self._id).data.metrics
        return {
            name: max(metric.step for metric in self._client.get_metric_history(self._id, name))
            for name in names
        }


def _batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of at most ``size``."""
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part
