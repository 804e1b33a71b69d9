"""What a hosted model keeps of one call over its tries, and what passes between a try and the next."""

import json
from dataclasses import dataclass, field, replace

from tenacity import RetryCallState

from dgm.domain import Usage
from dgm.messages import JsonObject, WireRequest
from dgm.models.abilities import Abilities
from dgm.models.faults import Passing
from dgm.models.receiving import Receiving
from dgm.protocols import Delivery
from dgm.wires import WIRES

CHARACTERS_PER_TOKEN = 4


@dataclass(slots=True)
class Sending:
    """One call over all its tries."""

    request: WireRequest
    delivery: Delivery
    room: int | None = None
    """The limit of output that the provider has said it would take now."""
    known: Abilities = field(default_factory=Abilities)
    """What was known of the model when the last try was sent."""
    unknown_path: bool = False
    """Whether the provider's last refusal was that there is nothing at this path."""
    proxy_failed: bool = False
    """Whether the last try failed at the proxy that the environment names."""
    samples: int = 0
    unreadable: int = 0
    refusal: tuple[int, bytes] = (400, b"")
    """Status and body of the last refusal."""

    def refused(self, status: int, content: bytes) -> None:
        """Keep what the provider said."""
        self.refusal = (status, content)

    def broke(self, receiving: Receiving, *, asked_at_least: bool = True) -> None:
        """Break off what was handed on, and count what came of the answer as billed.

        Args:
            receiving: as far as the answer came.
            asked_at_least: whether the input counts where nothing came: the provider did not say that it failed.
        """
        reader = receiving.reader
        came = reader.whole() if reader is not None and reader.spoken else {}
        if not came and not asked_at_least:
            self.delivery.take_back(Usage())
            return
        usage = receiving.wire.usage(came, receiving.body)
        self.delivery.take_back(replace(usage, calls=0, output_tokens=usage.output_tokens if came else 0))


class Again(Exception):
    """Carries a passing fault through tenacity."""

    def __init__(self, fault: Passing) -> None:
        super().__init__(fault.reason)
        self.fault = fault


def never_sent(error: Exception) -> bool:
    """Return whether a request did not reach the provider, so that it cannot be billed."""
    import httpx2

    cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
    never = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
    return isinstance(cause, never)


def estimated_input(body: JsonObject) -> int:
    """Return the input tokens of a request, about: a quarter of its characters, and a little more."""
    return len(json.dumps(body, ensure_ascii=False)) * 2 // 7


def estimated_tokens(body: JsonObject) -> int:
    """Return the tokens that a request takes at most, about: a quarter of its characters, and all its output."""
    wires = WIRES.values()
    output = next((limit for wire in wires if (limit := wire.output_limit(body)) is not None), 0)
    return len(json.dumps(body)) // CHARACTERS_PER_TOKEN + output


def fault_of(state: RetryCallState) -> Passing:
    """Return the passing fault that a try ended with."""
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, Again):
        raise TypeError(f"retried without a passing fault: {error!r}")
    return error.fault
