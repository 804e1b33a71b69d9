"""The kinds of fault behind a refusal or a broken connection."""

from collections.abc import Iterable
from dataclasses import dataclass

from dgm.models.abilities import Change
from dgm.models.keys import mask_secrets

_LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class TemporaryFault:
    """A temporary fault: the next try may succeed."""

    reason: str
    retry_after_s: float | None = None
    """Seconds to wait at the provider's request, without a bound."""
    overload: bool = False
    """Whether the provider says that it is overloaded."""


@dataclass(frozen=True, slots=True)
class MalformedOutput:
    """The model's own malformed output, reported by its server as an error: retried a few times, then returned."""

    reason: str


@dataclass(frozen=True, slots=True)
class AgentRequestFault:
    """The agent's own faulty request: the agent is told, and it may reach a verdict."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ContentRefused:
    """A refusal of the contents of this one request: the agent is told, and is not at fault."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class UnsupportedPart:
    """A part of the request that the model does not accept: retried with the change, which is learned for the run.

    If ``abilities.learn(change)`` equals ``abilities``, a retry would change nothing: then the agent is told.
    """

    change: Change
    message: str
    output_limit: int | None = None
    """Output tokens that fit this request now."""


@dataclass(frozen=True, slots=True)
class UnsupportedRequest:
    """A request that the model cannot fulfil, without a possible change: the agent is told, and is not at fault."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class AccountFault:
    """A fault for a person: key, arrears, location, organisation, address, model, a server that accepts no tools."""

    message: str
    key: bool = False
    """Whether the key is refused."""


Fault = (
    TemporaryFault
    | MalformedOutput
    | AgentRequestFault
    | ContentRefused
    | UnsupportedPart
    | UnsupportedRequest
    | AccountFault
)


def one_line(text: str, secrets: Iterable[str], hint: str = "") -> str:
    """Return a message as one line of at most 300 characters without keys; a hint of ours is kept whole."""
    line = " ".join(mask_secrets(text, secrets).split())
    longest = _LONGEST_MESSAGE - len(hint)
    return (line if len(line) <= longest else line[: longest - 1] + "…") + hint
