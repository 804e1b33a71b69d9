"""Events of a log: as rows for ``log``, and as sentences for people who watch a search."""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from dgm.archive.changes import format_assignments
from dgm.archive.codec import encode
from dgm.archive.events import (
    ActionLost,
    AgentBorn,
    AgentStillborn,
    CallBooked,
    CallRefused,
    ChildProposed,
    Event,
    ModelLearned,
    ModelNoted,
    NoteKind,
    Recorded,
    RunChanged,
    RunPaused,
    TaskGraded,
    VerdictWithdrawn,
)
from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.words import VERDICT_TONES, clock_text, tally_text

_NAMES: Mapping[AgentId, str] = MappingProxyType({})


def log_line(recorded: Recorded) -> Line:
    """Return number, time in UTC, kind, action and the beginning of the body, as the log has it."""
    name, action, body = encode(recorded.event)
    number = "" if action is None else str(action)
    return make_line(
        Span(f"{recorded.seq:>7}", Tone.STRONG),
        Span(f"  {time_text(recorded.at)}  ", Tone.DIM),
        Span(f"{name:<15}", Tone.KEY),
        f" {number:>5}  {one_line(body, 120)}",
    )


def time_text(at: float) -> str:
    """Return Unix time as ``2026-01-31 12:00:00``, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def agent_name(agent: AgentId, names: Mapping[AgentId, str] = _NAMES) -> str:
    """Return ``agent 3``, or the agent's own name if it has one."""
    return one_line(names[agent], 60) if agent in names else f"agent {agent}"


def event_line(
    event: Event, tree: Tree | None, names: Mapping[AgentId, str] = _NAMES, at: float = 0.0
) -> Line:
    """Return an event as a sentence; empty for frequent events: a start, an answered model call.

    Args:
        event: the event.
        tree: the tree after the event, for tallies as they are now. None for an older event, to leave them out.
        names: names of the agents that are not called by their number.
        at: Unix time of the event, from which time left is computed.
    """
    match event:
        case AgentBorn():
            parents = f" of {', '.join(map(str, event.parents))}" if event.parents else ""
            return make_line(
                Span(f"agent {event.id} is born{parents}", Tone.GOOD), f": {one_line(event.rationale, 70)}"
            )
        case ChildProposed(action, child):
            parents = " and ".join(map(str, child.parents))
            return _warning_line(f"child {action} of {parents} waits for you", child.rationale, 60)
        case AgentStillborn(_, dead):
            died = f"a child of {dead.parents[0]} is stillborn ({one_line(dead.stage, 40)})"
            return make_line(Span(died, Tone.DIM), f": {one_line(dead.reason, 60)}")
        case TaskGraded(_, graded):
            tally = f" ({tally_text(tree.own(graded.agent))})" if tree is not None else ""
            return make_line(
                f"{agent_name(graded.agent, names)}{tally} ",
                Span(graded.verdict, VERDICT_TONES[graded.verdict]),
                f" {one_line(graded.task, 120)} in {graded.cost.seconds:.1f} s: {one_line(graded.reason, 60)}",
            )
        case VerdictWithdrawn(what=what, verdict=verdict, reason=reason):
            said = f"{agent_name(what.agent, names)}: the verdict {verdict} on {one_line(what.task, 120)} is withdrawn"
            return _warning_line(said, reason, 120)
        case RunChanged(settings):
            return _warning_line("settings are changed", ", ".join(format_assignments(settings)), 200)
        case ActionLost() | RunPaused():
            return _halted_line(event)
        case ModelLearned() | ModelNoted() | CallBooked():
            return _model_line(event, at)
        case CallRefused(action, _, status, code, message):
            refused = f"action {action} was refused {one_line(code, 30)}"
            return _warning_line(refused if status >= 400 else "left out of requests", message, 80)
        case _:
            return ()


def _warning_line(said: str, why: str, width: int) -> Line:
    """Return what happened, and why in at most ``width`` cells."""
    return make_line(Span(said, Tone.WARN), f": {one_line(why, width)}")


def _halted_line(event: ActionLost | RunPaused) -> Line:
    if isinstance(event, ActionLost):
        return _warning_line(f"action {event.action} is lost", event.reason, 80)
    return _warning_line("paused until the model's provider answers again", event.reason, 120)


def _model_line(event: ModelLearned | ModelNoted | CallBooked, at: float) -> Line:
    match event:
        case ModelLearned(model, _, words) if words:
            return _warning_line(f"model {one_line(model, 80)}", words, 200)
        case ModelNoted(model, NoteKind.WAITS, words, until):
            left = until - at if at else 0.0
            said = f"model {one_line(model, 80)} waits {clock_text(max(left, 0.0))} for its provider"
            return _warning_line(said, words, 160)
        case ModelNoted(model, _, words):
            return _warning_line(f"model {one_line(model, 80)}", words, 160)
        case CallBooked(action, number, model, _, usage, True):
            cut = f"call {number} of action {action} was cut off with its process"
            return make_line(Span(cut, Tone.WARN), f": counted at its worst case, {usage.tokens:,} tokens")
        case _:
            return ()
