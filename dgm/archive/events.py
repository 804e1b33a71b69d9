"""The events of a run: the append-only vocabulary from which everything else is derived.

Each event is a frozen value; ``codec`` turns it into the JSON column of ``events.db`` and back. Adding an
optional field with a default is compatible; anything else bumps ``SCHEMA_VERSION``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dgm.domain import (
    Action,
    ActionId,
    AgentId,
    Born,
    Budget,
    Digest,
    Evaluate,
    Evaluation,
    Stillborn,
    TaskId,
    Usage,
    Verdict,
)

SCHEMA_VERSION = 5
"""Version 2 added ``CallRefused`` and ``RunPaused``, 3 ``ChildProposed``, 4 ``CallStarted``, ``CallBooked``,
``ModelLearned``, ``ModelNoted``, ``RunChanged`` and ``VerdictWithdrawn``, 5 the table ``calls``. Until 4, events named
the traces of a call's request and reply; later ones leave these fields empty."""

NO_TRACE = Digest("")


@dataclass(frozen=True, slots=True)
class Control:
    """The limits of an examination's control of equal spend: the search's total usage, and a bound on attempts."""

    usd: float
    tokens: int
    seconds: float
    """Working time without waiting: the sum over the search's actions."""
    attempts: int
    """Maximum number of attempts at each task."""


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A process began to write: once at the creation of the run, and again at each resume (with its new budget)."""

    budget: Budget
    tasks: tuple[TaskId, ...]
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


@dataclass(frozen=True, slots=True)
class RunChanged:
    """A person changed settings at a resume; they hold from here on."""

    settings: Mapping[str, Any]
    """The changed settings only, nested as in ``run.json``; never a key."""


@dataclass(frozen=True, slots=True)
class ActionStarted:
    """An action is about to start; the intent is durable before any work is done."""

    id: ActionId
    action: Action
    again: bool = False
    """True when an action that was lost or invalid is performed again under its id."""


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """One model call was answered and is paid; its exchange is in the table ``calls``."""

    action: ActionId
    number: int
    model: str
    role: str
    """``solve``, ``improve``, ``diagnose`` or ``probe``."""
    request: Digest = NO_TRACE
    reply: Digest = NO_TRACE
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A model call is about to be sent; its provider may bill it from here on."""

    action: ActionId
    number: int
    model: str
    role: str
    request: Digest = NO_TRACE
    most: Usage = field(default_factory=Usage)
    """The worst-case usage."""


@dataclass(frozen=True, slots=True)
class CallBooked:
    """Tokens and money counted for a call that was sent and has no answer; several bookings of one call add up."""

    action: ActionId
    number: int
    model: str
    role: str
    usage: Usage
    """May be negative to correct an earlier booking."""
    open: bool = False
    """True if the call was cut off with its process: ``usage`` is its worst case until its repetition is answered."""
    request: str = ""


@dataclass(frozen=True, slots=True)
class ModelLearned:
    """A model's abilities from here on, learned from a check or from a refusal."""

    model: str
    abilities: Mapping[str, Any]
    """All known abilities and not only the new ones, in the form of ``Abilities.as_record``."""
    words: str
    """The new abilities as one line for people, such as 'leaves out temperature'."""
    usage: Usage = field(default_factory=Usage)
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


@dataclass(frozen=True, slots=True)
class ModelNoted:
    """A fact about a model that a person should know."""

    model: str
    kind: NoteKind
    words: str
    until: float = 0.0
    """Unix time; 0 if it does not apply."""


@dataclass(frozen=True, slots=True)
class CallRefused:
    """The gateway refused a request of an agent, or left out a part of it that is not needed (status 200)."""

    action: ActionId
    role: str
    status: int
    """HTTP status that the agent received."""
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class RunPaused:
    """Nothing new is started until the provider of the models answers again; the next event of another kind ends it."""

    reason: str


@dataclass(frozen=True, slots=True)
class ChildProposed:
    """A child is vetted and committed; a person decides whether it is born.

    The ``AgentBorn`` or ``AgentStillborn`` of the same action ends the wait.
    """

    action: ActionId
    outcome: Born


@dataclass(frozen=True, slots=True)
class AgentBorn:
    """A new member of the archive; agent ids follow the order of these events."""

    action: ActionId
    id: AgentId
    outcome: Born
    decided: str = ""
    """Same as in ``Stillborn``."""


@dataclass(frozen=True, slots=True)
class AgentStillborn:
    """An expansion gave no usable child."""

    action: ActionId
    outcome: Stillborn


@dataclass(frozen=True, slots=True)
class TaskGraded:
    """An evaluation ended with a verdict, possibly ``invalid``."""

    action: ActionId
    outcome: Evaluation
    again: int = 0
    """Number of withdrawn earlier verdicts on this action."""


@dataclass(frozen=True, slots=True)
class VerdictWithdrawn:
    """A verdict no longer counts; its evaluation is to be repeated under its id."""

    action: ActionId
    graded: int
    """Number of the ``TaskGraded`` event."""
    what: Evaluate
    verdict: Verdict
    """The verdict that no longer counts: resolved or unresolved."""
    reason: str
    calls: tuple[int, ...] = ()
    """Numbers of model calls whose recorded answers are not served to the action again."""


@dataclass(frozen=True, slots=True)
class ActionLost:
    """A started action ended without an outcome: its process died, or the infrastructure failed."""

    action: ActionId
    reason: str
    final: bool = False
    """True if the action is given up and will not be repeated."""


@dataclass(frozen=True, slots=True)
class RunStopped:
    """The writing process ended in good order because of ``reason``: ``budget``, ``interrupted`` …."""

    reason: str


Event = (
    RunStarted
    | RunChanged
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
    | RunStopped
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with its place in the log."""

    seq: int
    at: float
    """Unix time."""
    event: Event


Body = Mapping[str, Any]
"""The JSON object in the ``body`` column."""
