"""Who answers, and where the answers are kept."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from dgm.domain import ActionId, Usage
from dgm.messages import (
    BegunCall,
    CutCall,
    Exchange,
    PaidCall,
    Reply,
    Request,
    WireProtocol,
    WireReply,
    WireRequest,
)

Sleep = Callable[[float], Awaitable[None]]


class Model(Protocol):
    """Answers requests in dgm's own form: built-in models and plug-ins. One instance serves a whole run."""

    name: str
    """As users type it: ``offline``, or a plug-in's."""

    async def reply(self, request: Request) -> Reply:
        """Return one answer; its usage is in tokens, and what that costs is left to the gateway.

        Raises:
            RequestRefused: this request can never be answered (context length, malformed): the agent is told.
            ProviderRefuses: the provider takes nothing from us any more (wrong key, no credit).
            Infrastructure: the provider failed after all retries.
        """
        ...

    async def check(self) -> None:
        """Ask the provider, at no cost, whether it would answer now.

        Raises:
            UserError: it never will: the key is wrong, there is no such model.
            Infrastructure: not now.
        """
        ...

    async def close(self) -> None:
        """End its connections."""
        ...


class Delivery(Protocol):
    """One call on its way to a provider and back, as a ``WireModel`` tells of it."""

    def waiting(self) -> AbstractContextManager[None]:
        """Return a context in which the call waits: nothing can be billed, and the time is not the agent's."""
        ...

    async def sending(self) -> None:
        """Note that a try goes out now and may be billed; returns when that is durable."""
        ...

    def pass_on(self, data: bytes) -> None:
        """Hand bytes of the answer to the agent, as they come."""
        ...

    def take_back(self, wasted: Usage) -> None:
        """Break off what was handed on: the answer broke, and the next try gives another.

        Args:
            wasted: an estimate of what the broken try is billed.
        """
        ...


class ModelListener(Protocol):
    """Hears what a model learns and when it waits; the journal of a run is one."""

    def learned(
        self, model: str, abilities: Mapping[str, Any], words: str, usage: Usage | None = None
    ) -> None:
        """Note what is known of a model's abilities from now on; ``usage`` is a check's, with its price."""
        ...

    def waits(self, model: str, words: str, until: float) -> None:
        """Note that calls of a model wait until a Unix time, and why."""
        ...

    def overran(self, model: str, asked: int, billed: int) -> None:
        """Note that a model billed more output tokens than it was asked for."""
        ...


@dataclass(frozen=True, slots=True)
class Checked:
    """What the check of a model gave."""

    model: str
    abilities: Mapping[str, Any]
    """All that is known of them, as ``dgm.models.abilities`` writes it."""
    words: tuple[str, ...] = ()
    """What a person should know: what was learned, and whether the model calls tools."""
    usage: Usage = field(default_factory=Usage)
    """In tokens; what they cost is for whoever knows prices."""


@runtime_checkable
class WireModel(Protocol):
    """A model behind a provider that is asked in the provider's own protocol. One instance serves a whole run."""

    name: str
    """As users type it: ``openai/gpt-5.2`` …"""
    own_name: str
    """The provider's name for it."""
    protocol: WireProtocol

    async def send(self, request: WireRequest, delivery: Delivery) -> WireReply:
        """Return the whole answer; its bytes were handed on by ``delivery.pass_on`` up to its last records.

        Args:
            request: as it is to be sent, but for the model's name and what its abilities forbid.
            delivery: hears of every step.

        Raises:
            RequestRefused: this request is refused.
            ProviderRefuses: the provider takes nothing from us any more.
            Infrastructure: the provider failed after all retries, or asks for a long wait.
        """
        ...

    def adopt(self, listener: ModelListener, abilities: Mapping[str, Any] | None) -> None:
        """Tell the listener what is learned from now on, and begin with what was learned earlier.

        Args:
            listener: hears of abilities, waits and overruns.
            abilities: as an earlier session recorded them; None: nothing is known.
        """
        ...

    async def check(self) -> Checked:
        """Make one small real call with a tool, and learn the model's abilities by it.

        Raises:
            ProviderRefuses: a person must act.
            Infrastructure: it does not answer now.
        """
        ...

    async def count_tokens(self, request: WireRequest) -> int | None:
        """Return the input tokens of a request as the provider counts them, at no cost; None where it does not."""
        ...

    async def close(self) -> None:
        """End its connections."""
        ...


LentModel = Model | WireModel


class Journal(Protocol):
    """Where the gateway finds and leaves what was paid for."""

    def exchanges(self, action: ActionId) -> Sequence[Exchange]:
        """Return what the action was answered so far, in the order of its calls."""
        ...

    def cut_calls(self, action: ActionId) -> Sequence[CutCall]:
        """Return the action's calls that the death of a process cut off."""
        ...

    async def begin(self, call: BegunCall) -> None:
        """Make it durable that the call is about to be sent; returns only when it is on disk."""
        ...

    async def record(self, call: PaidCall, settles: Sequence[CutCall] = ()) -> None:
        """Make the exchange durable; returns only when it is on disk.

        Args:
            call: the answered call.
            settles: calls that were cut off and asked for the same, with what they are counted at from now on.
        """
        ...

    def book(self, action: ActionId, number: int, model: str, role: str, usage: Usage) -> None:
        """Note what a call that was begun and got no answer is counted at."""
        ...

    def lose(self, call: BegunCall) -> None:
        """Count a call that was cut off at its worst case, until it is answered; nothing if its answer is recorded."""
        ...

    def refuse(self, action: ActionId, role: str, status: int, code: str, message: str) -> None:
        """Note that the agent was refused something, and what."""
        ...

    def learned(
        self, model: str, abilities: Mapping[str, Any], words: str, usage: Usage | None = None
    ) -> None:
        """Note what is known of a model's abilities from now on; as ``ModelListener``."""
        ...
