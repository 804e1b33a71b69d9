"""OpenTelemetry over OTLP/HTTP: the spans of a run, and the gauges of ``/metrics`` as metrics.

A collector cannot be asked what it has, so a file beside the run says it. A process that is killed between a request
and its note sends those spans again, under the same ids.
"""

import logging
import time
from typing import Any

from dgm.archive.events import Recorded
from dgm.errors import Infrastructure
from dgm.sinks.cursor import Cursor
from dgm.sinks.feed import Feed
from dgm.sinks.sink import SinkContext
from dgm.sinks.spans import RunSpan, SpanFold, span_id, trace_id
from dgm.views.gauges import GAUGES
from dgm.views.run import RunReader

DEFAULT = "http://localhost:4318"
BATCH = 500
"""Largest number of spans in a request."""
METRICS_EVERY_S, TIMEOUT_S = 15.0, 10.0


class OtlpSink:
    """The rest of the address is the URL of a collector; headers are in ``OTEL_EXPORTER_OTLP_HEADERS``."""

    def __init__(self, context: SinkContext) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # it would log addresses
        run, url = context.run, (context.rest or DEFAULT).rstrip("/")
        self._fold, self._cursor = SpanFold(run), Cursor(run.folder, f"otlp:{url}")
        self._span_exporter: Any = OTLPSpanExporter(f"{url}/v1/traces", timeout=TIMEOUT_S)
        self._metric_exporter: Any = OTLPMetricExporter(f"{url}/v1/metrics", timeout=TIMEOUT_S)
        names = {"service.name": "dgm", "dgm.run": run.name, "dgm.run.id": str(run.config["id"])}
        self._resource: Any = Resource(names)
        self._scope: Any = InstrumentationScope("dgm")
        self._reader, self._metrics_at = RunReader(run), 0.0
        self._spans: list[RunSpan] = []

    def observe(self, recorded: Recorded, feed: Feed) -> None:
        """Keep the spans that an event ends, unless they were sent."""
        del feed
        self._spans += [span for span in self._fold.fold(recorded) if span.seq > self._cursor.seq]

    def deliver(self) -> int:
        """Send the spans, and now and then the metrics; raises ``Infrastructure`` if they are not taken."""
        count = len(self._spans)
        while self._spans:
            part = self._spans[:BATCH]
            _require(self._span_exporter.export([self._encode(span) for span in part]), "spans")
            self._cursor.move(part[-1].seq)
            del self._spans[: len(part)]
        if time.monotonic() > self._metrics_at:
            began = time.monotonic()
            self._send_metrics()
            ended = time.monotonic()
            # A run of very many agents takes long to look at.
            self._metrics_at = ended + max(METRICS_EVERY_S, 10 * (ended - began))
        return count

    def finish(self, feed: Feed) -> None:
        """Send the span of a session that was interrupted, and the last metrics."""
        last = feed.tree.seq + 1
        self._spans += [span for span in self._fold.interrupt(last) if last > self._cursor.seq]
        self._metrics_at = float("-inf")
        self.deliver()

    def close(self) -> None:
        """End the connections."""
        self._span_exporter.shutdown()
        self._metric_exporter.shutdown()

    def _encode(self, span: RunSpan) -> Any:  # noqa: ANN401  (of OpenTelemetry)
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

        context, parent = (
            SpanContext(
                trace_id(name), span_id(name), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)
            )
            if name
            else None
            for name in (span.id, span.parent)
        )
        return ReadableSpan(
            span.name,
            context=context,
            parent=parent,
            resource=self._resource,
            attributes=span.attributes,
            kind=SpanKind.CLIENT if span.name.startswith("chat") else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(),
            start_time=round(span.began * 1e9),
            end_time=round(span.ended * 1e9),
            instrumentation_scope=self._scope,
        )

    def _send_metrics(self) -> None:
        from opentelemetry.sdk.metrics import export as sdk

        self._reader.follow()
        view, now = self._reader.view(), time.time_ns()
        metrics = []
        for gauge in GAUGES:
            samples = [sdk.NumberDataPoint(labels, 0, now, value) for value, labels in gauge.read(view)]
            metrics.append(sdk.Metric(gauge.name, gauge.description, "", sdk.Gauge(samples)))
        scoped = sdk.ScopeMetrics(self._scope, metrics, "")
        data = sdk.MetricsData([sdk.ResourceMetrics(self._resource, [scoped], "")])
        _require(self._metric_exporter.export(data), "metrics")


def _require(result: Any, name: str) -> None:  # noqa: ANN401
    if result.value != 0:
        raise Infrastructure(f"otlp: the collector cannot be reached, or refused the {name}")
