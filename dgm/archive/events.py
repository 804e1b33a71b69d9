"""What happened in a run: the append-only vocabulary from which everything else is derived.

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
    Cost,
    Digest,
    Evaluate,
    Evaluation,
    Stillborn,
    TaskId,
    Usage,
    Verdict,
)

SCHEMA_VERSION = 4
"""2 added ``CallRefused`` and ``RunPaused``, 3 ``ChildProposed``, 4 ``CallStarted``, ``CallBooked``, ``ModelLearned``,
``ModelNoted``, ``RunChanged`` and ``VerdictWithdrawn``."""


@dataclass(frozen=True, slots=True)
class Control:
    """What an examination's control of equal spend goes by: all that the search took, and a bound."""

    usd: float
    tokens: int
    seconds: float
    """Of work, not of waiting: the sum over its actions."""
    attempts: int
    """At each task, at most."""


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A process began to write: once when the run is made, again at each resume (with its new budget)."""

    budget: Budget
    tasks: tuple[TaskId, ...]
    """The search split, in the suite's order."""
    resumed: bool = False
    flips: bool = False
    """Whether an agent that lost more of its parents' resolved tasks than it gained has no children."""
    control: Control | None = None
    """Of an examination: None where this session has no control."""


@dataclass(frozen=True, slots=True)
class RunChanged:
    """Settings hold from here on that are other than before; a person changed them at a resume."""

    settings: Mapping[str, Any]
    """Nested as in ``run.json``, only what changed; never a key."""


@dataclass(frozen=True, slots=True)
class ActionStarted:
    """The intent is durable before any work is done."""

    id: ActionId
    action: Action
    again: bool = False
    """True when an action that was lost or invalid is performed again under its id."""


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """One model call was answered (and is paid): its exchange is in the traces."""

    action: ActionId
    number: int
    model: str
    role: str
    """``solve``, ``improve``, ``diagnose`` or ``probe``."""
    request: Digest
    reply: Digest
    usage: Usage
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A model call is about to be sent; from here on its provider may bill it."""

    action: ActionId
    number: int
    model: str
    role: str
    request: Digest
    most: Usage
    """The worst case."""


@dataclass(frozen=True, slots=True)
class CallBooked:
    """Tokens and money counted for a call that was sent and has no answer; several bookings of one call add up."""

    action: ActionId
    number: int
    model: str
    role: str
    usage: Usage
    """A correction of an earlier booking may be negative."""
    open: bool = False
    """The call was cut off with its process: this is its worst case until its repetition is answered."""
    request: str = ""
    """Digest of the request, of an open booking only."""


@dataclass(frozen=True, slots=True)
class ModelLearned:
    """A model's abilities from now on, learned from a check or from a refusal."""

    model: str
    abilities: Mapping[str, Any]
    """All that is known and not only the news, in the form of ``Abilities.as_record``."""
    words: str
    """The news as one line for people, such as 'leaves out temperature'."""
    usage: Usage = field(default_factory=Usage)
    """Tokens and money of the check that found it out; zero where a refusal of an agent's call did."""


class NoteKind(StrEnum):
    """Why people are told something of a model."""

    WAITS = "waits"
    """Its calls wait, until ``until``."""
    OVERRUN = "overrun"
    """It billed more output than it was asked for."""
    NO_TOOLS = "no_tools"
    """It answers a request for a tool call in text."""


@dataclass(frozen=True, slots=True)
class ModelNoted:
    """Something that a person should know of a model."""

    model: str
    kind: NoteKind
    words: str
    until: float = 0.0
    """Unix time; 0 where it does not apply."""


@dataclass(frozen=True, slots=True)
class CallRefused:
    """An agent asked the gateway for something that it was not given."""

    action: ActionId
    role: str
    status: int
    """Of HTTP, as the agent got it."""
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class RunPaused:
    """Nothing new is started until the provider of the models answers again; the next event of another kind ends it."""

    reason: str


@dataclass(frozen=True, slots=True)
class ChildProposed:
    """A child is vetted and its commit is there; whether it is born is for a person to say.

    Its end is the ``AgentBorn`` or ``AgentStillborn`` of the same action.
    """

    action: ActionId
    outcome: Born


@dataclass(frozen=True, slots=True)
class AgentBorn:
    """A new member of the archive; agent ids are given in the order of these events."""

    action: ActionId
    id: AgentId
    parents: tuple[AgentId, ...]
    commit: str
    operator: str
    rationale: str
    cost: Cost = field(default_factory=Cost)
    syntax: str = ""
    """As in ``Born``."""
    decided: str = ""
    """As in ``Stillborn``."""


@dataclass(frozen=True, slots=True)
class AgentStillborn:
    """An expansion gave nothing usable."""

    action: ActionId
    outcome: Stillborn


@dataclass(frozen=True, slots=True)
class TaskGraded:
    """An evaluation ended with a verdict (``invalid`` included)."""

    action: ActionId
    outcome: Evaluation
    again: int = 0
    """Number of earlier verdicts on this action that were withdrawn."""


@dataclass(frozen=True, slots=True)
class VerdictWithdrawn:
    """A verdict counts no longer, and its evaluation is to be performed again under its id."""

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
    """A started action ended without an outcome (the process died, the infrastructure failed)."""

    action: ActionId
    reason: str
    final: bool = False
    """True when it is given up and will not be performed again."""


@dataclass(frozen=True, slots=True)
class RunStopped:
    """The writing process ended in good order, because of ``reason``: ``budget``, ``interrupted`` …."""

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
