"""What real providers answer at a limit, and a provider that answers so at first (``rate_limits.jsonl``)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from dgm.messages import Reply, Request, WireProtocol
from tests.support.wire_server import Refused

TABLE = Path(__file__).parents[2] / "unit" / "models" / "rate_limits.jsonl"
"""One answer a line; ``+30`` is a time in 30 s, and ``date+30`` the same as a date of HTTP."""


@dataclass(frozen=True, slots=True)
class LimitAnswer:
    """One answer of a provider."""

    vendor: str
    limit: str
    meaning: str
    """``passing`` or ``account``."""
    status: int
    wire: str
    wait_s: float | None
    """Seconds that it asks to wait."""
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def protocol(self) -> WireProtocol:
        """The protocol in which it comes."""
        return WireProtocol(self.wire)

    def refused(self, now: float) -> Refused:
        """The answer of a wire server."""
        body = _with_times(self.body, now)
        raw = body if isinstance(body, str) else json.dumps(body)
        return Refused(self.status, raw, headers=_with_times(dict(self.headers), now), raw=raw.encode())


@dataclass
class LimitedBrain:
    """Refuses the calls that ``refusing`` counts down, then answers.

    Attributes:
        refusing: how many calls are still refused.
    """

    answer_at_limit: LimitAnswer
    text: str
    now: Any
    """Returns the Unix time."""
    refusing: int = 1
    calls: int = 0

    async def answer(self, request: Request) -> Reply:
        """Refuse or answer one call."""
        self.calls += 1
        if self.refusing > 0:
            self.refusing -= 1
            raise self.answer_at_limit.refused(self.now())
        return Reply(self.text)


def read_limit_answers() -> list[LimitAnswer]:
    """Return the table."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return [LimitAnswer(**json.loads(line)) for line in lines]


def _with_times(value: Any, now: float) -> Any:
    if isinstance(value, dict):
        return {name: _with_times(one, now) for name, one in value.items()}
    if isinstance(value, list):
        return [_with_times(one, now) for one in value]
    if not isinstance(value, str):
        return value
    kind, plus, seconds = value.partition("+")
    if not plus or kind not in ("", "date") or not seconds.isdigit():
        return value
    at = datetime.fromtimestamp(now, UTC) + timedelta(seconds=int(seconds))
    return format_datetime(at, usegmt=True) if kind else at.isoformat()
