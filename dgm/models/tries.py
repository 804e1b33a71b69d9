"""The state of one hosted call over its tries, and the exception between a try and the next."""

import json
from dataclasses import dataclass, field, replace

from tenacity import RetryCallState

from dgm.domain import Usage
from dgm.messages import JsonObject, WireRequest
from dgm.models.abilities import Abilities
from dgm.models.access import Retries
from dgm.models.fault_kinds import TemporaryFault
from dgm.models.receiving import AnswerReceiver
from dgm.protocols import Delivery
from dgm.wires import WIRES

CHARACTERS_PER_TOKEN = 4
LONGEST_BACKOFF_S = 60.0


@dataclass(slots=True)
class CallInProgress:
    """One call over all its tries."""

    request: WireRequest
    delivery: Delivery
    room: int | None = None
    """The output limit that the provider would accept now."""
    known: Abilities = field(default_factory=Abilities)
    """The known abilities of the model when the last try was sent."""
    unknown_path: bool = False
    """Whether the provider's last refusal was an unknown path."""
    proxy_failed: bool = False
    """Whether the last try failed at the proxy that the environment names."""
    samples: int = 0
    unreadable: int = 0
    refusal: tuple[int, bytes] = (400, b"")
    """Status and body of the last refusal."""

    def refused(self, status: int, content: bytes) -> None:
        """Keep the provider's refusal."""
        self.refusal = (status, content)

    def broke(self, receiving: AnswerReceiver, *, asked_at_least: bool = True) -> None:
        """Take back the bytes that were handed on, and count the received part as billed.

        Args:
            receiving: the received part of the answer.
            asked_at_least: whether the input counts if nothing arrived: the provider did not say that it failed.
        """
        reader = receiving.reader
        came = reader.whole() if reader is not None and reader.spoken else {}
        if not came and not asked_at_least:
            self.delivery.take_back(Usage())
            return
        usage = receiving.wire.usage(came, receiving.body)
        self.delivery.take_back(replace(usage, calls=0, output_tokens=usage.output_tokens if came else 0))


class RetrySignal(Exception):
    """The exception that carries a temporary fault through tenacity."""

    def __init__(self, fault: TemporaryFault) -> None:
        super().__init__(fault.reason)
        self.fault = fault


def was_never_sent(error: Exception) -> bool:
    """Return whether a request did not reach the provider, so that it cannot be billed."""
    import httpx2

    cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
    never = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
    return isinstance(cause, never)


def estimate_input(body: JsonObject) -> int:
    """Return the estimated input tokens of a request: a little over a quarter of its characters."""
    return len(json.dumps(body, ensure_ascii=False)) * 2 // 7


def estimate_tokens(body: JsonObject) -> int:
    """Return the estimated maximum tokens of a request: a quarter of its characters, and all its output."""
    wires = WIRES.values()
    output = next((limit for wire in wires if (limit := wire.output_limit(body)) is not None), 0)
    return len(json.dumps(body)) // CHARACTERS_PER_TOKEN + output


def fault_of(state: RetryCallState) -> TemporaryFault:
    """Return the temporary fault that a try ended with."""
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, RetrySignal):
        raise TypeError(f"retried without a passing fault: {error!r}")
    return error.fault


def wait_s(state: RetryCallState, retries: Retries) -> float:
    """Return the seconds until the next try: what the provider asks for, else a jittered exponential back-off.

    A provider that refuses again twice after the time that it asked for gets the back-off at least: a limit of a
    minute that asks for milliseconds must not use up all tries.
    """
    asked_s = fault_of(state).retry_after_s
    if asked_s is not None and state.attempt_number <= 2:
        return asked_s
    # The exponent is bounded so that no number of tries overflows a float.
    longest = min(LONGEST_BACKOFF_S, retries.backoff_s * 2.0 ** min(state.attempt_number - 1, 60))
    return max(longest * retries.rng.uniform(0.5, 1.0), asked_s or 0.0)


def read_count(status: int, content: bytes) -> int | None:
    """Return the input tokens in a provider's answer to the question for their number; None if it has none."""
    try:
        counted = json.loads(content).get("input_tokens") if status == 200 else None
    except (ValueError, AttributeError, RecursionError):
        return None
    return counted if isinstance(counted, int) else None
