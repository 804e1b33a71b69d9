"""Models and the journal of their answers."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from dgm.archive.volatile_text import Conditions
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
    """A model that answers in dgm's own form: a built-in model or a plug-in. One instance serves a whole run."""

    name: str
    """The name that users type: ``offline``, or a plug-in's."""

    async def reply(self, request: Request) -> Reply:
        """Return one answer with its usage in tokens; the gateway computes the price.

        Raises:
            RequestRefused: this request can never be answered (context length, malformed); the agent is told.
            ProviderRefuses: the provider refuses all requests (wrong key, no credit).
            Infrastructure: the provider failed after all retries.
        """
        ...

    async def check(self) -> None:
        """Ask the provider, free of charge, whether it would answer now.

        Raises:
            UserError: it will never answer: the key is wrong, or the model does not exist.
            Infrastructure: it does not answer now.
        """
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


class Delivery(Protocol):
    """One call on its way to a provider and back; a ``WireModel`` reports its steps here."""

    def waiting(self) -> AbstractContextManager[None]:
        """Return a context in which the call waits: nothing is billed, and the time does not count for the agent."""
        ...

    async def begin(self) -> None:
        """Note that a try is about to be sent; return when that is durable."""
        ...

    def sending(self) -> None:
        """Note that the whole request is sent from now on, and may be billed; ``begin`` has returned."""
        ...

    def pass_on(self, data: bytes) -> None:
        """Hand bytes of the answer to the agent as they arrive."""
        ...

    def take_back(self, wasted: Usage) -> None:
        """Abort the answer that was handed on so far: it broke, and the next try gives another.

        Args:
            wasted: estimated usage that the provider bills for the broken try.
        """
        ...


class ModelListener(Protocol):
    """A receiver of what a model learns and when it waits; the journal of a run is one."""

    def learned(
        self, model: str, abilities: Mapping[str, Any], words: str, usage: Usage | None = None
    ) -> None:
        """Note all known abilities of a model from now on; ``usage`` is that of a check, with its price."""
        ...

    def waits(self, model: str, words: str, until: float) -> None:
        """Note that a model's calls wait until a Unix time, and why."""
        ...

    def overran(self, model: str, asked: int, billed: int) -> None:
        """Note that a model billed more output tokens than requested."""
        ...


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a model's check."""

    model: str
    abilities: Mapping[str, Any]
    """All known abilities, in the form that ``dgm.models.abilities`` writes."""
    words: tuple[str, ...] = ()
    """Messages for people: newly learned abilities, and whether the model calls tools."""
    usage: Usage = field(default_factory=Usage)
    """Usage in tokens, without a price; the caller adds it."""


@runtime_checkable
class WireModel(Protocol):
    """A model that is asked in its provider's own protocol. One instance serves a whole run."""

    name: str
    """The name that users type: ``openai/gpt-5.2`` …"""
    own_name: str
    """The provider's name for the model."""
    protocol: WireProtocol
    """The protocol of dgm's own questions, and of agents whose own protocol it does not speak."""
    protocols: Collection[WireProtocol]
    """All protocols that it speaks: an agent is passed through in its own."""

    @property
    def takes_tools(self) -> bool:
        """Whether the model is known to call tools, or nothing is known against it."""
        ...

    @property
    def takes_form(self) -> bool:
        """Requests may hold a form of the answer (``Request.form``), by settings and documents alone."""
        ...

    async def send(self, request: WireRequest, delivery: Delivery) -> WireReply:
        """Return the whole answer; ``delivery.pass_on`` has handed on its bytes except for its last records.

        Args:
            request: the request to send; the model replaces its name and removes what its abilities forbid.
            delivery: receives every step.

        Raises:
            RequestRefused: this request is refused.
            ProviderRefuses: the provider refuses all requests.
            Infrastructure: the provider failed after all retries, or asks for a long wait.
        """
        ...

    def adopt(self, listener: ModelListener, abilities: Mapping[str, Any] | None) -> None:
        """Start with previously learned abilities, and tell the listener what is learned from now on.

        Args:
            listener: receives abilities, waits and overruns.
            abilities: as recorded by an earlier session; None: nothing is known.
        """
        ...

    async def check(self) -> Checked:
        """Make one small real call with a tool to learn the model's abilities.

        Raises:
            ProviderRefuses: a person must act.
            Infrastructure: the model does not answer now.
        """
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


LentModel = Model | WireModel


class Journal(ModelListener, Protocol):
    """The gateway's store of paid calls."""

    def numbers(self, action: ActionId) -> tuple[int, Collection[int]]:
        """Return the highest number of the action's calls, or 0, and the numbers of those that are answered."""
        ...

    def recall(self, action: ActionId, numbers: Collection[int]) -> tuple[Sequence[Exchange], Conditions]:
        """Return answered calls of an action in order, and its calls' days and kernels; used in a thread."""
        ...

    def cut_calls(self, action: ActionId) -> Sequence[CutCall]:
        """Return the action's calls that the death of a process cut off."""
        ...

    async def begin(self, call: BegunCall) -> None:
        """Record durably that the call is about to be sent; return only when it is on disk."""
        ...

    async def record(self, call: PaidCall, settles: Sequence[CutCall] = ()) -> None:
        """Record the exchange durably; return only when it is on disk.

        Args:
            call: the answered call.
            settles: cut-off calls with the same request, with the usage that is counted for them from now on.
        """
        ...

    def book(self, action: ActionId, number: int, model: str, role: str, usage: Usage) -> None:
        """Note the usage that is counted for a call that was sent and got no answer."""
        ...

    def lose(self, call: BegunCall) -> None:
        """Count a cut-off call at its worst case until it is answered; do nothing if its answer is recorded."""
        ...

    def refuse(self, action: ActionId, role: str, status: int, code: str, message: str) -> None:
        """Note a refusal that the agent received, or, with the status 200, what was left out of its requests."""
        ...
