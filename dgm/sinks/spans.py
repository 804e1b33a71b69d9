"""A run's log as spans: sessions, their actions, and the model calls of these.

A span is a function of the log, and so are its ids: one that is sent again is known to be the same. Model calls follow
the semantic conventions for generative AI (https://opentelemetry.io/docs/specs/semconv/gen-ai/).
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
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
from dgm.archive.run import Run
from dgm.domain import Action, ActionId, Evaluate, Verdict

SESSION = "session"
Id = tuple[str, int, str]
"""Id of the run, number of the session, and the span's name in it."""


@dataclass(frozen=True, slots=True)
class RunSpan:
    """Something that took time, and has ended."""

    seq: int
    """Number of the event that ended it."""
    id: Id
    parent: Id | None
    name: str
    began: float
    """Unix time."""
    ended: float
    attributes: Mapping[str, Any]
    error: str = ""
    """Why it failed; empty if it did not."""


def trace_id(span: Id) -> int:
    """Return the 128 bits that all spans of a session share."""
    return int.from_bytes(_digest(*span[:2])[:16])


def span_id(span: Id) -> int:
    """Return the 64 bits of a span."""
    return int.from_bytes(_digest(*span)[:8])


def _digest(*parts: object) -> bytes:
    return hashlib.sha256("/".join(map(str, parts)).encode()).digest()


@dataclass(frozen=True, slots=True)
class _Started:
    at: float
    what: Action
    id: Id


class SpanFold:
    """A fold of a run's events that yields each span when it ends."""

    def __init__(self, run: Run) -> None:
        self._run, self._id = run, str(run.config["id"])
        self._session = 0
        self._began = self._last_at = 0.0
        self._actions: dict[ActionId, _Started] = {}

    def fold(self, recorded: Recorded) -> Iterator[RunSpan]:
        """Yield the spans that an event ends."""
        match recorded.event:
            case RunStarted():
                yield from self.interrupt(recorded.seq)
                self._session, self._began = self._session + 1, recorded.at
            case RunStopped(reason):
                yield from self._end_session(recorded.seq, recorded.at, reason)
            case ActionStarted(action, what):
                self._actions[action] = _Started(recorded.at, what, self._name(f"action {recorded.seq}"))
            case ModelCalled() | CallBooked() as call:
                yield self._call(recorded, call)
            case TaskGraded() | AgentBorn() | AgentStillborn() | ChildProposed() | ActionLost():
                started = self._actions.pop(action_of(recorded.event) or ActionId(0), None)
                if started:
                    yield self._action(recorded, started)
            case _:
                pass
        self._last_at = recorded.at

    def interrupt(self, seq: int) -> Iterator[RunSpan]:
        """Yield the span of a session that ended with its process, after the last event."""
        yield from self._end_session(seq, self._last_at, "interrupted")

    def _end_session(self, seq: int, at: float, reason: str) -> Iterator[RunSpan]:
        if self._began:
            attributes = {"dgm.run": self._run.name, "dgm.end": reason}
            yield RunSpan(seq, self._name(SESSION), None, "dgm session", self._began, at, attributes)
        self._began = 0.0

    def _action(self, recorded: Recorded, started: _Started) -> RunSpan:
        what = started.what
        agent = what.agent if isinstance(what, Evaluate) else what.parents[0]
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.id": f"{self._id}/{agent}",
            "gen_ai.agent.name": f"agent {agent}",
            "dgm.action": action_of(recorded.event),
            "dgm.sandbox": self._run.sandbox(),
        }
        attributes |= (
            {"dgm.task": what.task} if isinstance(what, Evaluate) else {"dgm.operator": what.operator}
        )
        span = RunSpan(
            recorded.seq,
            started.id,
            self._name(SESSION),
            f"invoke_agent agent {agent}",
            started.at,
            recorded.at,
            attributes,
        )
        match recorded.event:
            case TaskGraded(outcome=outcome):
                attributes["dgm.verdict"] = outcome.verdict.value
                return replace(span, error=outcome.reason if outcome.verdict is Verdict.INVALID else "")
            case AgentBorn(id=child):
                attributes["dgm.child"] = child
            case AgentStillborn(outcome=dead):
                attributes["dgm.stillborn"] = dead.stage
            case ActionLost(_, reason):
                return replace(span, error=reason)
        return span

    def _call(self, recorded: Recorded, call: ModelCalled | CallBooked) -> RunSpan:
        provider, _, model = call.model.rpartition("/")
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider or call.model,
            "gen_ai.request.model": model,
            "gen_ai.usage.input_tokens": call.usage.input_tokens,
            "gen_ai.usage.output_tokens": call.usage.output_tokens,
            "dgm.role": call.role,
            "dgm.usd": call.usage.usd,
            "dgm.action": call.action,
        }
        started = self._actions.get(ActionId(call.action))
        seconds = call.seconds if isinstance(call, ModelCalled) else 0.0
        return RunSpan(
            recorded.seq,
            self._name(f"call {recorded.seq}"),
            started.id if started else self._name(SESSION),
            f"chat {model}",
            recorded.at - seconds,
            recorded.at,
            attributes,
            "" if isinstance(call, ModelCalled) else "the call has no answer",
        )

    def _name(self, name: str) -> Id:
        return self._id, self._session, name
