"""The kinds of fault behind a refusal or a broken connection, and the kind of a connection error.

The packages' classes of errors are distinguished by name, so that none is imported.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dgm.errors import DgmError
from dgm.models.abilities import Change
from dgm.models.keys import mask_secrets

_LONGEST_MESSAGE = 600


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
    """Return a message as one line of at most 600 characters without keys; a hint of ours is kept whole."""
    line = " ".join(mask_secrets(text, secrets).split())
    longest = _LONGEST_MESSAGE - len(hint)
    return (line if len(line) <= longest else line[: longest - 1] + "…") + hint


def judge_transport(error: Exception, *, secrets: Iterable[str] = ()) -> Fault | None:
    """Return the meaning of a transport error; None: it is a mistake in this program, not the provider's.

    The vendors' packages use one class for every error of the transport: the cause distinguishes them.
    """
    if isinstance(error, DgmError):
        return None
    packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    cause = error.__cause__
    if packages & {"openai", "anthropic"}:
        if type(error).__name__ == "APIResponseValidationError":
            return TemporaryFault(one_line(f"the provider's answer cannot be read: {error}", secrets))
        if isinstance(cause, Exception) and (fault := judge_transport(cause, secrets=secrets)) is not None:
            return fault
        return (
            TemporaryFault(one_line(_error_text(error), secrets))
            if _class_names(error) & {"APIConnectionError", "APITimeoutError"}
            else None
        )
    if "httpx2" in packages or "httpx" in packages:
        return _judge_error(error, secrets)
    if (
        isinstance(error, UnicodeDecodeError)
        or "JSONDecodeError" in _class_names(error)
        or "pydantic_core" in packages
    ):
        return TemporaryFault(one_line(f"the provider's answer cannot be read: {error}", secrets))
    return (
        TemporaryFault(one_line(_error_text(error), secrets))
        if isinstance(error, OSError | EOFError)
        else None
    )


def _judge_error(error: Exception, secrets: Iterable[str]) -> Fault:
    names = _class_names(error)
    if names & {"UnsupportedProtocol", "InvalidURL", "LocalProtocolError"}:
        said = f"the provider's address or a header cannot be used: {_error_text(error)}"
        return AccountFault(one_line(said, secrets))
    if "TooManyRedirects" in names:
        return AccountFault(one_line(f"the provider's address leads nowhere: {_error_text(error)}", secrets))
    if "ProxyError" in names and re.search(r"\b40[137]\b|auth", str(error), re.IGNORECASE):
        hint = " (a proxy refuses: see HTTPS_PROXY, HTTP_PROXY and ALL_PROXY)"
        return AccountFault(one_line(_error_text(error), secrets, hint))
    return TemporaryFault(one_line(_error_text(error), secrets))


def _class_names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _error_text(error: BaseException) -> str:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
    return f"{name}: {error}" if str(error) else name
