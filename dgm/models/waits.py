"""The wait that a provider asks for: in headers, in fields, or in its sentence."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from dgm.models.refusals import ProviderRefusal

_TOLD = re.compile(
    r"(?:retry|try again|available again|resets?|wait)(?: after| in| for)?:?\s+(?:about )?"
    r"(?:(?P<h>\d+)\s*h(?:ours?)?\s*)?(?:(?P<m>\d+)\s*m(?:in(?:ute)?s?)?(?![a-z])\s*)?(?:(?P<s>\d+(?:\.\d+)?)\s*(?P<unit>ms|s)\w*)?",
    re.IGNORECASE,
)
_GOOGLE_DELAY = re.compile(r"retryDelay\\*\"?'?\s*:\s*\\*[\"'](\d+(?:\.\d+)?)s")


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
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max((date - (now or datetime.now(UTC))).total_seconds(), 0.0)


def told_wait(refusal: ProviderRefusal) -> float | None:
    """Return the seconds to wait by the headers, the fields or the text."""
    if (seconds := waiting_time(refusal.headers)) is not None:
        return seconds
    if said := _GOOGLE_DELAY.search(refusal.text):
        return float(said[1])
    for said in _TOLD.finditer(refusal.message):
        if said["h"] or said["m"] or said["s"]:
            small = float(said["s"] or 0) * (0.001 if (said["unit"] or "").lower() == "ms" else 1.0)
            return int(said["h"] or 0) * 3600.0 + int(said["m"] or 0) * 60.0 + small
    return None
