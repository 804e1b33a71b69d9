"""Events of a run's log: as they are stored, with a sentence for those that a user wants to see."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Self

import msgspec

from dgm.archive.events import (
    ActionLost,
    AgentBorn,
    AgentNoted,
    AgentStillborn,
    CallBooked,
    CallRefused,
    ChildProposed,
    Event,
    ModelLearned,
    ModelNoted,
    NoteKind,
    PromotionDecided,
    PromotionStarted,
    Recorded,
    RunChanged,
    RunPaused,
    RunStarted,
    RunStopped,
    TaskGraded,
    TasksChanged,
    VerdictWithdrawn,
    action_of,
    kind_of,
)
from dgm.archive.run import Run, follow_log, format_assignments
from dgm.domain import Findings, Verdict
from dgm.views.values import View


class Level(StrEnum):
    """How an event is meant, for its colour."""

    GOOD = "good"
    BAD = "bad"
    WARNING = "warning"
    INFO = "info"
    DETAIL = "detail"
    """Frequent events without a sentence: starts and answered model calls."""


class EventView(View):
    """One event of the log."""

    seq: int
    """Its number, from 1."""
    at: float
    """Unix time."""
    kind: str
    """Such as ``task_graded``."""
    action: int | None
    body: dict[str, Any]
    """The stored JSON, with attempts at a task counted from 1."""
    level: Level
    message: str
    """What happened, in one sentence; empty for ``detail``. It can contain text of agents and models."""

    @classmethod
    def of(cls, recorded: Recorded) -> Self:
        """Return the view of an event."""
        level, message = describe(recorded.event, recorded.at)
        return cls(
            seq=recorded.seq,
            at=recorded.at,
            kind=kind_of(recorded.event),
            action=action_of(recorded.event),
            body=count_attempts_from_1(msgspec.to_builtins(recorded.event)),
            level=level,
            message=message,
        )


def count_attempts_from_1(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record of an event or an action with the attempts in it numbered as in all views."""
    return {
        key: value + 1
        if key == "attempt"
        else count_attempts_from_1(value)
        if isinstance(value, dict)
        else value
        for key, value in record.items()
    }


def read_events(run: Run, *, tail: int | None = None, follow: bool = False) -> Iterator[EventView]:
    """Yield the events of a run, oldest first.

    Args:
        run: open for reading.
        tail: only this many existing events, counted from the end.
        follow: go on with new events until no process writes the run.
    """
    after = 0 if tail is None else max(0, run.store.newest() - tail)
    events = follow_log(run.store, run.folder, after) if follow else run.store.read(after)
    return map(EventView.of, events)


def describe(event: Event, at: float = 0.0) -> tuple[Level, str]:
    """Return the level and the sentence of an event that happened at Unix time ``at``."""
    match event:
        case AgentBorn():
            child = event.outcome
            parents = f", child of {_list(child.parents)}" if child.parents else ""
            words = f"agent {event.id} was born{parents}: {child.rationale}"
            return Level.GOOD, words + _findings_text(child.findings)
        case AgentStillborn(_, dead):
            return Level.INFO, f"a child of {dead.parents[0]} was stillborn ({dead.stage}): {dead.reason}"
        case ChildProposed(action, child):
            return (
                Level.WARNING,
                f"child {action} of {_list(child.parents)} waits for approval: {child.rationale}",
            )
        case TaskGraded(_, graded):
            level = {Verdict.RESOLVED: Level.GOOD, Verdict.UNRESOLVED: Level.BAD}.get(
                graded.verdict, Level.WARNING
            )
            took = f"in {graded.cost.seconds:.1f} s"
            words = f"agent {graded.agent} {graded.verdict} {graded.task} {took}: {graded.reason}"
            return level, words + _findings_text(graded.findings)
        case VerdictWithdrawn(what=what, verdict=verdict, reason=reason):
            which = f"verdict {verdict} of agent {what.agent} on {what.task}"
            return Level.WARNING, f"{which} was withdrawn: {reason}"
        case ActionLost(action, reason):
            return Level.WARNING, f"action {action} was lost: {reason}"
        case CallRefused(action, _, status, code, message):
            request = f"a request of action {action} was " + (
                f"refused ({code})" if status >= 400 else "changed"
            )
            return Level.WARNING, f"{request}: {message}"
        case PromotionStarted(number, incumbent, candidates):
            return Level.INFO, f"round {number} of promotion: {_list(candidates)} against agent {incumbent}"
        case PromotionDecided(number, accepted):
            level = Level.INFO if accepted is None else Level.GOOD
            answer = "not yet" if accepted is None else f"agent {accepted} is promoted"
            return level, f"round {number} of promotion: {answer}"
        case _:
            return _describe_session(event, at)


def _describe_session(event: Event, at: float) -> tuple[Level, str]:
    match event:
        case AgentNoted(agent, text):
            return Level.INFO, f"a person said of agent {agent}: {text}"
        case RunStarted(resumed=resumed):
            return Level.INFO, "the run was resumed" if resumed else "the run started"
        case TasksChanged(drawn, solved, unsolved):
            left = [f"retired {', '.join(solved)} (all recent agents resolve it)"] if solved else []
            left += [f"put back {', '.join(unsolved)} (no recent agent resolves it)"] if unsolved else []
            return Level.INFO, "; ".join([f"tasks drawn: {', '.join(drawn)}", *left])
        case RunChanged(settings):
            return Level.WARNING, f"settings changed: {', '.join(format_assignments(settings))}"
        case RunPaused(reason):
            return Level.WARNING, f"paused until the provider answers again: {reason}"
        case RunStopped(reason):
            return Level.INFO, f"the run ended: {reason}"
        case ModelNoted(model, NoteKind.WAITS, words, until):
            return (
                Level.WARNING,
                f"model {model} waits {max(until - at, 0.0):.0f} s for its provider: {words}",
            )
        case ModelLearned(model, _, words) | ModelNoted(model, _, words) if words:
            return Level.WARNING, f"model {model}: {words}"
        case CallBooked(action, number, _, _, usage, True):
            return Level.WARNING, (
                f"call {number} of action {action} was cut off; its worst case of {usage.tokens:,} tokens is counted"
            )
        case _:
            return Level.DETAIL, ""


def _findings_text(findings: Findings) -> str:
    kinds = dict.fromkeys(finding.kind.value for finding in findings)
    return f" [misconduct: {', '.join(kinds)}]" if kinds else ""


def _list(agents: tuple[int, ...]) -> str:
    return " and ".join(map(str, agents))
