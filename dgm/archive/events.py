"""The events of a run, and their form in the log: everything else in a run is derived from them.

An event is one JSON object; its key ``event`` names its kind. A field at its default is left out, and an unknown field
is ignored. Adding a field with a default is compatible; anything else bumps ``SCHEMA_VERSION``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from dgm.domain import (
    Action,
    ActionId,
    ActionNumber,
    AgentNumber,
    Amount,
    Born,
    Budget,
    Count,
    Digest,
    Evaluate,
    Evaluation,
    Name,
    Objective,
    Stillborn,
    TaskName,
    Usage,
    Verdict,
)

SCHEMA_VERSION = 6
"""Version 6 put the traces into the log and nested the outcomes of actions in their events."""


class _Event(Struct, frozen=True, omit_defaults=True, tag_field="event"):
    """The base of all events."""


@dataclass(frozen=True, slots=True)
class Control:
    """The limits of an examination's control of equal spend: the search's total usage, and a bound on attempts."""

    usd: Amount
    tokens: Count
    seconds: Amount
    """Working time without waiting: the sum over the search's actions."""
    attempts: Count
    """Maximum number of attempts at each task."""


class RunStarted(_Event, frozen=True, tag="run_started"):
    """A process began to write: once at the creation of the run, and again at each resume (with its new budget)."""

    budget: Budget
    tasks: tuple[TaskName, ...]
    """The search split, in the suite's order."""
    resumed: bool = False
    flips: bool = False
    """Whether agents that lost more of their parents' resolved tasks than they gained may not have children."""
    control: Control | None = None
    """The control of an examination; None if this session has no control."""
    kernel: str = ""
    """Kernel release of the machine; empty if it is not recorded."""
    benchmark: str = ""
    """Version of the benchmark in this session; empty if it is the one in ``run.json``."""
    objective: Objective | None = None
    """The metrics of ``[objective]``, by which the session compares agents; None if only resolved tasks count."""


class RunChanged(_Event, frozen=True, tag="run_changed"):
    """A person changed settings at a resume; they hold from here on."""

    settings: Mapping[str, Any]
    """The changed settings only, nested as in ``run.json``; never a key."""


class TasksChanged(_Event, frozen=True, tag="tasks_changed"):
    """A curriculum changed the active tasks; the first event of this kind names those that a run begins with.

    The search tasks that were never drawn are the pool. Nothing else changes: verdicts and actions under way stay.
    """

    drawn: tuple[TaskName, ...]
    """Active from here on; they come from the pool."""
    solved: tuple[TaskName, ...] = ()
    """Retired for good: the recent agents all resolve them."""
    unsolved: tuple[TaskName, ...] = ()
    """Put back to the end of the pool: no recent agent resolves them."""


class ActionStarted(_Event, frozen=True, tag="action_started"):
    """An action is about to start; the intent is durable before any work is done."""

    id: ActionNumber
    action: Action
    again: bool = False
    """True when an action that was lost or invalid is performed again under its id."""


class ModelCalled(_Event, frozen=True, tag="model_called"):
    """One model call was answered and is paid; its exchange is in the table ``calls``."""

    action: ActionNumber
    number: Count
    model: Name
    role: Name
    """``solve``, ``improve``, ``diagnose`` or ``probe``."""
    usage: Usage = Usage()
    seconds: Amount = 0.0


class CallStarted(_Event, frozen=True, tag="call_started"):
    """A model call is about to be sent; its provider may bill it from here on."""

    action: ActionNumber
    number: Count
    model: Name
    role: Name
    most: Usage = Usage()
    """The worst-case usage."""


class CallBooked(_Event, frozen=True, tag="call_booked"):
    """Tokens and money counted for a call that was sent and has no answer; several bookings of one call add up."""

    action: ActionNumber
    number: Count
    model: Name
    role: Name
    usage: Usage
    """May be negative to correct an earlier booking."""
    open: bool = False
    """True if the call was cut off with its process: ``usage`` is its worst case until its repetition is answered."""


class ModelLearned(_Event, frozen=True, tag="model_learned"):
    """A model's abilities from here on, learned from a check or from a refusal."""

    model: Name
    abilities: Mapping[str, Any]
    """All known abilities and not only the new ones, in the form of ``Abilities.as_record``."""
    words: str
    """The new abilities as one line for people, such as 'leaves out temperature'."""
    usage: Usage = Usage()
    """Usage of the check that revealed them; zero if a refusal of an agent's call did."""


class NoteKind(StrEnum):
    """The reason why people are told something about a model."""

    WAITS = "waits"
    """Calls of the model wait, until ``until``."""
    OVERRUN = "overrun"
    """The model billed more output than requested."""
    NO_TOOLS = "no_tools"
    """The model answers a request for a tool call in text."""
    ANSWERS = "answers"
    """Agents' calls are answered otherwise than they ask."""


class ModelNoted(_Event, frozen=True, tag="model_noted"):
    """A fact about a model that a person should know."""

    model: Name
    kind: NoteKind
    words: str
    until: Annotated[float, Meta(ge=0, lt=1e11)] = 0.0
    """Unix time; 0 if it does not apply."""


class CallRefused(_Event, frozen=True, tag="call_refused"):
    """The gateway refused a request of an agent, or left out a part of it that is not needed (status 200)."""

    action: ActionNumber
    role: Name
    status: Count
    """HTTP status that the agent received."""
    code: Name
    message: str


class RunPaused(_Event, frozen=True, tag="run_paused"):
    """Nothing new is started until the provider of the models answers again; the next event of another kind ends it."""

    reason: str


class ChildProposed(_Event, frozen=True, tag="child_proposed"):
    """A child is vetted and committed; a person decides whether it is born.

    The ``AgentBorn`` or ``AgentStillborn`` of the same action ends the wait.
    """

    action: ActionNumber
    outcome: Born


class AgentBorn(_Event, frozen=True, tag="agent_born"):
    """A new member of the archive; agent ids follow the order of these events."""

    action: ActionNumber
    id: AgentNumber
    outcome: Born
    decided: str = ""
    """Same as in ``Stillborn``."""
    key: str = ""
    """Same as in ``Agent``."""


class AgentStillborn(_Event, frozen=True, tag="agent_stillborn"):
    """An expansion gave no usable child."""

    action: ActionNumber
    outcome: Stillborn


class TaskGraded(_Event, frozen=True, tag="task_graded"):
    """An evaluation ended with a verdict, possibly ``invalid``."""

    action: ActionNumber
    outcome: Evaluation
    again: Count = 0
    """Number of withdrawn earlier verdicts on this action."""


class VerdictWithdrawn(_Event, frozen=True, tag="verdict_withdrawn"):
    """A verdict no longer counts; its evaluation is to be repeated under its id."""

    action: ActionNumber
    graded: Count
    """Number of the ``TaskGraded`` event."""
    what: Evaluate
    verdict: Verdict
    """The verdict that no longer counts: resolved or unresolved."""
    reason: str
    calls: tuple[Count, ...] = ()
    """Numbers of model calls whose recorded answers are not served to the action again."""


class ActionLost(_Event, frozen=True, tag="action_lost"):
    """A started action ended without an outcome: its process died, or the infrastructure failed."""

    action: ActionNumber
    reason: str
    final: bool = False
    """True if the action is given up and will not be repeated."""


class PromotionStarted(_Event, frozen=True, tag="promotion_started"):
    """A round of promotion begins; it is finished before another one begins."""

    number: Count
    """From 1."""
    incumbent: AgentNumber
    """The agent that was promoted last, at first the seed."""
    candidates: tuple[AgentNumber, ...]
    alpha: Amount
    """Bound on the probability of any false promotion in the run."""
    limit: Count
    """Largest number of candidates in a round; the same in all rounds, like ``alpha``."""


class PromotionSpent(_Event, frozen=True, tag="promotion_spent"):
    """Usage of promotion evaluations since the last event of this kind; their log is in a folder of its own."""

    model: Name
    usage: Usage


class PromotionDecided(_Event, frozen=True, tag="promotion_decided"):
    """A round of promotion ended. Nothing else about its evaluations reaches the search."""

    number: Count
    accepted: AgentNumber | None = None
    """The promoted candidate; None: not yet."""


class AgentNoted(_Event, frozen=True, tag="agent_noted"):
    """A person said something about an agent, perhaps between sessions; editors of it and its descendants read it."""

    agent: AgentNumber
    text: Name
    """One line."""


class RunStopped(_Event, frozen=True, tag="run_stopped"):
    """The writing process ended in good order because of ``reason``: ``budget``, ``interrupted`` …."""

    reason: str


Event = (
    RunStarted
    | RunChanged
    | TasksChanged
    | ActionStarted
    | ModelCalled
    | CallStarted
    | CallBooked
    | ModelLearned
    | ModelNoted
    | CallRefused
    | RunPaused
    | ChildProposed
    | AgentBorn
    | AgentStillborn
    | TaskGraded
    | VerdictWithdrawn
    | ActionLost
    | PromotionStarted
    | PromotionSpent
    | PromotionDecided
    | AgentNoted
    | RunStopped
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with its place in the log."""

    seq: int
    at: float
    """Unix time."""
    event: Event


_encoder, _decoder = msgspec.json.Encoder(), msgspec.json.Decoder(Event)
decode = _decoder.decode
"""Return the event in a JSON text; raises ``ValueError`` or ``RecursionError`` if it holds none."""


def encode(event: Event) -> bytes:
    """Return the JSON of an event. Half surrogate pairs, which no UTF-8 holds, are written out in ASCII."""
    try:
        return _encoder.encode(event)
    except UnicodeEncodeError:
        return _encoder.encode(write_out_surrogates(msgspec.to_builtins(event)))


def write_out_surrogates(value: Any) -> Any:  # noqa: ANN401  (any JSON)
    """Return a JSON value with half surrogate pairs in its texts written out."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {write_out_surrogates(key): write_out_surrogates(inner) for key, inner in value.items()}
        case list() | tuple():
            return [write_out_surrogates(inner) for inner in value]
        case _:
            return value


def kind_of(event: Struct | type[Struct]) -> str:
    """Return the kind of an event or of its type, such as ``task_graded``."""
    return str(event.__struct_config__.tag)


def action_of(event: Event) -> ActionId | None:
    """Return the action that an event belongs to; None if it belongs to the run."""
    return event.id if isinstance(event, ActionStarted) else getattr(event, "action", None)


def traces_of(event: Event) -> Iterator[Digest]:
    """Yield the traces that an event names."""
    if isinstance(event, TaskGraded | ChildProposed | AgentBorn | AgentStillborn):
        yield from event.outcome.cost.traces.values()
