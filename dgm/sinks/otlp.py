"""OpenTelemetry over OTLP/HTTP: sessions, actions and model calls as spans, the gauges of ``/metrics`` as metrics.

The ids of a span are a function of run and action, so that a span that is sent again is known to be the same. Model
calls follow the semantic conventions for generative AI (https://opentelemetry.io/docs/specs/semconv/gen-ai/).
"""

import hashlib
import logging
import time
from typing import Any

from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    CallBooked,
    ChildProposed,
    ModelCalled,
    Recorded,
    RunStarted,
    RunStopped,
    TaskGraded,
    action_of,
)
from dgm.domain import Action, Evaluate, Usage, Verdict
from dgm.errors import Infrastructure
from dgm.sinks.cursor import Cursor
from dgm.sinks.feed import Feed, read_parameters
from dgm.sinks.sink import SinkContext
from dgm.views.gauges import GAUGES
from dgm.views.run import RunReader

DEFAULT = "http://localhost:4318"
BATCH = 500
"""Largest number of spans in a request."""
METRICS_EVERY_S, TIMEOUT_S = 15.0, 10.0
_ENDS = (TaskGraded, AgentBorn, AgentStillborn, ChildProposed, ActionLost)


class OtlpSink:
    """The rest of the address is the base URL of a collector; headers come from ``OTEL_EXPORTER_OTLP_HEADERS``."""

    def __init__(self, context: SinkContext) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # it would log addresses
        url = (context.rest or DEFAULT).rstrip("/")
        self._run, parameters = context.run, read_parameters(context.run)
        self._id, self._cursor = parameters.id, Cursor(context.run.folder, f"otlp:{url}")
        self._spans_to: Any = OTLPSpanExporter(f"{url}/v1/traces", timeout=TIMEOUT_S)
        self._metrics_to: Any = OTLPMetricExporter(f"{url}/v1/metrics", timeout=TIMEOUT_S)
        self._resource: Any = Resource(
            {"service.name": "dgm", "dgm.run": parameters.run, "dgm.run.id": parameters.id}
        )
        self._scope: Any = InstrumentationScope("dgm")
        self._reader, self._metrics_at = RunReader(context.run), 0.0
        self._session, self._began, self._last_at = 0, 0.0, 0.0
        self._actions: dict[int, tuple[float, Action, int]] = {}
        """Action → time of its last start, the action, and the number of its event."""
        self._spans: list[tuple[int, Any]] = []
        """Ended spans, with the number of the event that ended each."""

    def observe(self, recorded: Recorded, feed: Feed) -> None:
        """Note the spans that an event ends."""
        del feed
        match recorded.event:
            case RunStarted():
                self._end_session(recorded.seq, self._last_at, "interrupted")
                self._session, self._began = self._session + 1, recorded.at
            case RunStopped(reason):
                self._end_session(recorded.seq, recorded.at, reason)
            case ActionStarted(action, what):
                self._actions[action] = recorded.at, what, recorded.seq
            case ModelCalled() | CallBooked() as call:
                self._end_call(recorded, call)
            case event if isinstance(event, _ENDS):
                self._end_action(recorded)
        self._last_at = recorded.at

    def deliver(self) -> int:
        """Send the spans, and now and then the metrics; raises ``Infrastructure`` if they are not taken."""
        count = len(self._spans)
        while self._spans:
            part = self._spans[:BATCH]
            if self._spans_to.export([span for _, span in part]).value != 0:
                raise Infrastructure("the collector did not take the spans")
            self._cursor.move(part[-1][0])
            del self._spans[: len(part)]
        if time.monotonic() - self._metrics_at > METRICS_EVERY_S:
            self._send_metrics()
            self._metrics_at = time.monotonic()
        return count

    def finish(self, feed: Feed) -> None:
        """Send what is left, with the span of a session that was interrupted, and the last metrics."""
        self._end_session(feed.tree.seq + 1, self._last_at, "interrupted")
        self._metrics_at = 0.0
        self.deliver()

    def close(self) -> None:
        """End the connections."""
        self._spans_to.shutdown()
        self._metrics_to.shutdown()

    def _end_session(self, seq: int, at: float, reason: str) -> None:
        if self._began:
            self._add(
                seq,
                "run",
                ("session",),
                (),
                (self._began, at),
                {"dgm.run": self._run.name, "dgm.end": reason},
            )
        self._began = 0.0

    def _end_action(self, recorded: Recorded) -> None:
        event = recorded.event
        began, what, start = self._actions.pop(action_of(event) or 0, (0.0, None, 0))
        if what is None:
            return
        evaluates = isinstance(what, Evaluate)
        agent = what.agent if isinstance(what, Evaluate) else what.parents[0]
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.id": f"{self._id}/{agent}",
            "gen_ai.agent.name": f"agent {agent}",
            "dgm.action": action_of(event) or 0,
            "dgm.kind": "evaluate" if evaluates else "expand",
            "dgm.sandbox": self._run.sandbox(),
        }
        attributes |= (
            {"dgm.task": what.task} if isinstance(what, Evaluate) else {"dgm.operator": what.operator}
        )
        error = ""
        match event:
            case TaskGraded(outcome=outcome):
                attributes["dgm.verdict"] = outcome.verdict.value
                error = outcome.reason if outcome.verdict is Verdict.INVALID else ""
            case AgentBorn(id=child):
                attributes["dgm.child"] = child
            case AgentStillborn(outcome=dead):
                attributes["dgm.stillborn"] = dead.stage
            case ActionLost(_, reason):
                error = reason
        name = f"invoke_agent agent {agent}"
        self._add(
            recorded.seq, name, ("action", start), ("session",), (began, recorded.at), attributes, error
        )

    def _end_call(self, recorded: Recorded, call: ModelCalled | CallBooked) -> None:
        seconds = call.seconds if isinstance(call, ModelCalled) else 0.0
        usage: Usage = call.usage
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": call.model.partition("/")[0],
            "gen_ai.request.model": call.model.partition("/")[2] or call.model,
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
            "dgm.role": call.role,
            "dgm.usd": usage.usd,
            "dgm.action": call.action,
        }
        started = self._actions.get(call.action)
        parent = ("action", started[2]) if started else ("session",)
        error = "" if isinstance(call, ModelCalled) else "the call has no answer"
        name = f"chat {attributes['gen_ai.request.model']}"
        times = recorded.at - seconds, recorded.at
        self._add(recorded.seq, name, ("call", recorded.seq), parent, times, attributes, error)

    def _add(  # noqa: PLR0913
        self,
        seq: int,
        name: str,
        key: tuple[object, ...],
        parent: tuple[object, ...],
        times: tuple[float, float],
        attributes: dict[str, Any],
        error: str = "",
    ) -> None:
        """Note an ended span, unless the collector has it; ``key`` and ``parent`` name spans of the session."""
        if seq <= self._cursor.seq:
            return
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import SpanKind, Status, StatusCode

        began, ended = (round(at * 1e9) for at in times)
        span = ReadableSpan(
            name,
            context=self._context(key),
            parent=self._context(parent) if parent else None,
            resource=self._resource,
            attributes=attributes,
            kind=SpanKind.CLIENT if key[0] == "call" else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, error) if error else Status(),
            start_time=min(began, ended),
            end_time=ended,
            instrumentation_scope=self._scope,
        )
        self._spans.append((seq, span))

    def _context(self, key: tuple[object, ...]) -> Any:  # noqa: ANN401  (of OpenTelemetry)
        from opentelemetry.trace import SpanContext, TraceFlags

        trace, span = (
            hashlib.sha256("/".join(map(str, parts)).encode()).digest()
            for parts in ((self._id, self._session), (self._id, self._session, *key))
        )
        flags = TraceFlags(TraceFlags.SAMPLED)
        return SpanContext(
            int.from_bytes(trace[:16]), int.from_bytes(span[:8]), is_remote=False, trace_flags=flags
        )

    def _send_metrics(self) -> None:
        from opentelemetry.sdk.metrics.export import (
            Gauge,
            Metric,
            MetricsData,
            NumberDataPoint,
            ResourceMetrics,
            ScopeMetrics,
        )

        self._reader.follow()
        view, now = self._reader.view(), time.time_ns()
        metrics = [
            Metric(
                gauge.name,
                gauge.description,
                "",
                Gauge([NumberDataPoint(sample.labels, 0, now, sample.value) for sample in gauge.read(view)]),
            )
            for gauge in GAUGES
        ]
        scoped = ScopeMetrics(self._scope, metrics, "")
        if self._metrics_to.export(MetricsData([ResourceMetrics(self._resource, [scoped], "")])).value != 0:
            raise Infrastructure("the collector did not take the metrics")
