"""Who answers, and where the answers are kept."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from dgm.domain import ActionId
from dgm.messages import Exchange, PaidCall, Reply, Request

Sleep = Callable[[float], Awaitable[None]]


class Model(Protocol):
    """Answers requests. One instance serves a whole run, concurrently."""

    name: str
    """As users type it: ``openai/gpt-5.2``, ``offline`` …"""

    async def reply(self, request: Request) -> Reply:
        """One answer; its usage is in tokens, and what that costs is left to the gateway.

        Raises:
            RequestRefused: this request can never be answered (context length, malformed): the agent is told.
            ProviderRefuses: the provider takes nothing from us any more (wrong key, no credit).
            Infrastructure: the provider failed after all retries.
        """
        ...

    async def check(self) -> None:
        """Asks the provider, at no cost, whether it would answer now.

        Raises:
            UserError: it never will: the key is wrong, there is no such model.
            Infrastructure: not now.
        """
        ...

    async def close(self) -> None:
        """Ends its connections."""
        ...


class Journal(Protocol):
    """Where the gateway finds and leaves what was paid for."""

    def exchanges(self, action: ActionId) -> Sequence[Exchange]:
        """What the action was answered so far, in the order of its calls."""
        ...

    async def record(self, call: PaidCall) -> None:
        """Makes the exchange durable; returns only when it is on disk."""
        ...

    def refuse(self, action: ActionId, role: str, status: int, code: str, message: str) -> None:
        """Notes that the agent was refused something, and what."""
        ...
