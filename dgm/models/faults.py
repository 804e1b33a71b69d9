"""What a failed try means: try again, tell the agent, or call a person.

The errors of both vendors' packages, and what escapes them while an answer streams in, become one small union. A
package's classes are looked at only after it has raised something, so that nothing is imported for it here.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from dgm.errors import DgmError
from dgm.messages import CONTEXT_LENGTH, RequestRefused
from dgm.models.dialect import Broken
from dgm.models.keys import masked

LONGEST_WAIT_S = 300.0
"""More than this of ``Retry-After`` is not waited: the next try may fail, and asks again."""
_LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class Transient:
    """The next try may do."""

    reason: str
    retry_after_s: float | None = None
    overload: bool = False
    """The provider says that it is asked too much."""


@dataclass(frozen=True, slots=True)
class Refused:
    """This request can never be answered: the agent is told."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Permanent:
    """The provider takes nothing from us, or nothing for this model: a person has to act."""

    message: str
    key: bool = False
    """It is the key that is refused."""


Fault = Transient | Refused | Permanent

_TOO_LONG = re.compile(
    r"maximum context length|context[ _]length[ _]exceeded|exceed\w*( the)?( available| model'?s?)? context"
    r"|context (window|length|size|limit)|prompt is too long|input (is|was) too long|input length .*exceed"
    r"|input tokens exceed|too many (input |prompt )?tokens|request too large|request_too_large",
    re.IGNORECASE,
)
_NO_MONEY = re.compile(
    r"credit balance|insufficient[ _](quota|credit|balance|fund)|usage limits?\b", re.IGNORECASE
)
_NO_MONEY_SENTENCE = re.compile(r"your credit balance|you have reached your", re.IGNORECASE)
"""How a 400 that is about money begins; further on it may quote what an agent sent."""
_TOO_LARGE_FOR_RATE = re.compile(r"request too large", re.IGNORECASE)
_SAYS_TOO_LONG = frozenset((400, 422, 500))
_FILTERED = re.compile(r"content[ _](filter|policy|management)|moderation|flagged", re.IGNORECASE)
_KEY_WORDS = frozenset(("invalid_api_key", "authentication_error", "permission_error"))
_CALL_A_PERSON = _KEY_WORDS | {
    "account_deactivated",
    "billing_error",
    "billing_hard_limit_reached",
    "billing_not_active",
    "insufficient_quota",
    "model_not_found",
    "not_found_error",
}
_TRANSIENT = frozenset((408, 409, 425, 429, 499))
_OVERLOAD = frozenset((429, 503, 529))
_IN_A_STREAM: Mapping[str, int] = {
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "too_many_requests": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Status that a provider would have answered with, had its answer not begun already."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An error as a provider gives it; ``status`` 0 or 200: in the middle of an answer."""

    status: int
    words: frozenset[str]
    """Its codes and types."""
    message: str
    retry_after_s: float | None = None


def fault_of(error: Exception, secrets: Iterable[str] = ()) -> Fault | None:
    """What the error of a try means; its message is one line of at most 300 characters without keys.

    None: the error is not the provider's: it says itself what it means, or it is a mistake in this program.
    """
    match _kind(error):
        case Transient() as fault:
            return Transient(_line(fault.reason, secrets), fault.retry_after_s, fault.overload)
        case Refused() as fault:
            return Refused(fault.code, _line(fault.message, secrets))
        case Permanent() as fault:
            return Permanent(_line(fault.message, secrets), fault.key)
        case None:
            return None


def judged(answer: Answer) -> Fault:
    """What an error means that a provider puts into words."""
    status, text = answer.status, f"{answer.status} {answer.message}"
    if status in (0, 200):
        known = next((_IN_A_STREAM[word] for word in sorted(answer.words) if word in _IN_A_STREAM), None)
        status, text = known or 500, f"{known} {answer.message}" if known else answer.message
    called = answer.words & _CALL_A_PERSON
    if status in (401, 402) or called or _no_money(status, answer.message):
        return Permanent(text, status == 401 or bool(called & _KEY_WORDS))
    if status == 403:
        refused = _FILTERED.search(answer.message)
        return Refused("content_filter", answer.message) if refused else Permanent(text, key=True)
    if status == 413 or CONTEXT_LENGTH in answer.words or _too_long(status, answer.message):
        return Refused(CONTEXT_LENGTH, answer.message)
    if status in (400, 422):
        filtered = any(_FILTERED.search(word) for word in answer.words)
        return Refused("content_filter" if filtered else "invalid_request", answer.message)
    if status in _TRANSIENT or status >= 500:
        return Transient(text, answer.retry_after_s, status in _OVERLOAD)
    return Permanent(text)


def _no_money(status: int, message: str) -> bool:
    if status == 400:
        return _NO_MONEY_SENTENCE.match(message.lstrip()) is not None
    return status == 429 and _NO_MONEY.search(message) is not None


def _too_long(status: int, message: str) -> bool:
    """Whether the request is too long for ever; a rate limit and an overload use the same words for other things."""
    if status == 429:
        return _TOO_LARGE_FOR_RATE.search(message) is not None
    return status in _SAYS_TOO_LONG and _TOO_LONG.search(message) is not None


def waiting_time(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that ``retry-after-ms`` or ``Retry-After`` (seconds, or a date) asks for, 0 to 300; None without one."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) * unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return min(max(seconds, 0.0), LONGEST_WAIT_S)
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return min(max((date - (now or datetime.now(UTC))).total_seconds(), 0.0), LONGEST_WAIT_S)


def _kind(error: Exception) -> Fault | None:
    if isinstance(error, DgmError):
        return None
    if isinstance(error, RequestRefused):
        return Refused(error.code, str(error))
    if isinstance(error, Broken):
        return Transient(str(error))
    packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    if "openai" in packages:
        return _openai(error)
    if "anthropic" in packages:
        return _anthropic(error)
    if "httpx2" in packages:
        return _transport(error)
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError) or "pydantic_core" in packages:
        return Transient(f"the provider's answer cannot be read: {error}")
    if isinstance(error, OSError | EOFError):
        return Transient(_named(error))
    return None


def _openai(error: Exception) -> Fault | None:
    import openai

    match error:
        case openai.APITimeoutError() | openai.APIConnectionError():
            return _unconnected(error)
        case openai.APIResponseValidationError():
            return Transient(f"the provider's answer cannot be read: {error.message}")
        case openai.APIStatusError():
            return judged(_answer(error.status_code, error.body, error.message, error.response.headers))
        case openai.APIError():
            return judged(_answer(0, error.body, error.message, {}))
    return None


def _anthropic(error: Exception) -> Fault | None:
    import anthropic

    match error:
        case anthropic.APITimeoutError() | anthropic.APIConnectionError():
            return _unconnected(error)
        case anthropic.APIResponseValidationError():
            return Transient(f"the provider's answer cannot be read: {error.message}")
        case anthropic.APIStatusError():
            return judged(_answer(error.status_code, error.body, error.message, error.response.headers))
    return None


def _unconnected(error: Exception) -> Fault:
    """The packages call every error of the transport the same; the cause tells them apart."""
    cause = error.__cause__
    if isinstance(cause, Exception):
        return _transport(cause)
    return Transient(_named(error))


def _transport(error: Exception) -> Fault:
    import httpx2

    if isinstance(error, httpx2.UnsupportedProtocol | httpx2.InvalidURL | httpx2.LocalProtocolError):
        return Permanent(f"the provider's address or a header cannot be used: {_named(error)}")
    if isinstance(error, httpx2.TooManyRedirects):
        return Permanent(f"the provider's address leads nowhere: {_named(error)}")
    return Transient(_named(error))


def _answer(status: int, body: object, message: str, headers: Mapping[str, str]) -> Answer:
    inner: Any = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(inner, Mapping):
        return Answer(status, frozenset(), str(inner or message), waiting_time(headers))
    # Compatible servers give the status that it would have been as the code of an error within an answer.
    code = str(inner.get("code"))
    if status in (0, 200) and re.fullmatch(r"[45]\d\d", code):
        status = int(code)
    said = inner.get("message") or inner.get("detail") or message
    return Answer(status, frozenset(_words(inner)), str(said), waiting_time(headers))


def _words(body: Mapping[str, Any]) -> Iterator[str]:
    inner = body.get("innererror")
    for place in (body, inner if isinstance(inner, Mapping) else {}):
        for name in ("code", "type"):
            word = place.get(name)
            if isinstance(word, str):
                yield word


def _named(error: BaseException) -> str:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
    return f"{name}: {error}" if str(error) else name


def _line(text: str, secrets: Iterable[str]) -> str:
    line = " ".join(masked(text, secrets).split())
    return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 1] + "…"
