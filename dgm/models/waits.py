"""The wait that a provider asks for: in headers, in fields, or in its sentence."""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from dgm.models.refusals import ProviderRefusal

LONGEST_S = 366 * 86_400.0
"""Maximum wait in seconds; a longer one is a mistake, and no clock holds the longest."""
_UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = (
    r"(?:\d+(?:\.\d+)?\s*"
    r"(?:d(?:ays?)?|h(?:ours?|rs?)?|ms|milliseconds?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z]))"
)
_PARTS = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milli|[dhms])[a-z]*", re.IGNORECASE)
_DURATION = re.compile(rf"{_PART}(?:[\s,]*(?:and\s+)?{_PART})*", re.IGNORECASE)
_SENTENCE = re.compile(
    r"(?:retry|retrying|try again|available(?: again)?|resets?|reset time|wait)(?:\s+after|\s+in|\s+for)?:?\s+"
    rf"(?:about |another |at least )?(?P<duration>{_DURATION.pattern})",
    re.IGNORECASE,
)
_FIELD = re.compile(
    r"""(?:retryDelay|retry_?after)(?:_?(?:s|seconds|(?P<ms>ms)))?\\*["']\s*:\s*\\*["']?(?P<number>\d+(?:\.\d+)?)s?\b""",
    re.IGNORECASE,
)
"""Pattern of a field with the seconds: Google's ``retryDelay``, ``retry_after`` and the like."""
_RESET = re.compile(r"ratelimit-(?:[\w-]+-)?reset")
_EPOCH_S, _EPOCH_MS = 1e9, 1e12
"""Numbers from which a reset is a point in time, in seconds or milliseconds since 1970, and no duration."""


def waiting_time(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds that ``retry-after-ms`` or ``Retry-After`` (seconds, or a date) asks for; None without one.

    The result is not below 0 and has no upper bound: the caller decides how long to wait.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) * unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    date = _parse_date(headers.get("retry-after", ""))
    return None if date is None else max((date - (now or datetime.now(UTC))).total_seconds(), 0.0)


def reset_time(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds until the last limit of which nothing remains is free again; None if no header says so.

    These are ``x-ratelimit-reset-requests``, ``anthropic-ratelimit-tokens-reset`` and the like.
    """
    return max(_resets(headers, now or datetime.now(UTC)), default=None)


def requested_wait(refusal: ProviderRefusal) -> float | None:
    """Return the seconds to wait by the headers, the fields or the text, at most ``LONGEST_S``.

    A reset comes last: it tells when a limit is whole again, which may be long after the next call is taken.
    """
    seconds = _find_wait(refusal)
    return None if seconds is None else min(seconds, LONGEST_S)


def _find_wait(refusal: ProviderRefusal) -> float | None:
    embedded = _embedded_headers(refusal.body)
    for headers in (refusal.headers, embedded):
        if (seconds := waiting_time(headers)) is not None:
            return seconds
    if delay := _FIELD.search(refusal.text):
        return float(delay["number"]) * (0.001 if delay["ms"] else 1.0)
    if sentence := _SENTENCE.search(refusal.message):
        return _duration(sentence["duration"])
    return reset_time({**embedded, **refusal.headers})


def _resets(headers: Mapping[str, str], now: datetime) -> Iterator[float]:
    """Yield the seconds until each limit is free again of which the headers say that nothing remains."""
    for name, value in headers.items():
        if not _RESET.search(name):
            continue
        remaining = headers.get(name.replace("reset", "remaining"), "")
        if re.fullmatch(r"0+(\.0+)?", remaining) and (seconds := _until(value, now)) is not None:
            yield seconds


def _until(value: str, now: datetime) -> float | None:
    """Return the seconds until a reset: a duration (``6m0s``), seconds, a Unix time, or a date."""
    try:
        number = float(value)
    except ValueError:
        if _DURATION.fullmatch(value):
            return _duration(value)
        date = _parse_date(value)
        return None if date is None else max((date - now).total_seconds(), 0.0)
    if not math.isfinite(number):
        return None
    if number >= _EPOCH_S:
        number = number / (1000.0 if number >= _EPOCH_MS else 1.0) - now.timestamp()
    return max(number, 0.0)


def _duration(text: str) -> float:
    parts = _PARTS.findall(text.lower())
    return sum(float(number) * _UNITS[unit.replace("milli", "ms")] for number, unit in parts)


def _parse_date(text: str) -> datetime | None:
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            date = parse(text)
        except (ValueError, OverflowError):
            continue
        return date if date.tzinfo else date.replace(tzinfo=UTC)
    return None


def _embedded_headers(body: object) -> Mapping[str, str]:
    """Return the headers that a router (OpenRouter) repeats within the body of its refusal, in lower case."""
    node = body
    for key in ("error", "metadata", "headers"):
        node = node.get(key) if isinstance(node, Mapping) else None
    return (
        {str(name).lower(): str(value) for name, value in node.items()} if isinstance(node, Mapping) else {}
    )
