"""The table that assigns blame for a refusal (``faults.toml``), and the lookup of matching rows."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

from dgm.toml_files import read_toml

TABLE = Path(__file__).with_name("faults.toml")


class RefusalMeaning(StrEnum):
    """The meaning of a refusal."""

    PASSING = "passing"
    """The next try may succeed."""
    SAMPLED = "sampled"
    """The model's own malformed output: another sample may be valid."""
    ASKED = "asked"
    """The agent's own request is at fault."""
    SINGLE = "single"
    """The contents of this one request are refused."""
    ABILITY = "ability"
    """The model does not accept a part of the request that can be left out or changed."""
    UNABLE = "unable"
    """The model cannot fulfil the request."""
    ACCOUNT = "account"
    """A person has to act."""


TESTS = frozenset(
    ("stream", "only stream", "wait told", "no wait told", "no JSON", "sizes", "beta header", "setting", "images",
     "role", "flat content", "own value", "answer form", "feature", "parameter", "structure named", "tool kind")
)  # fmt: skip
"""Further conditions that a row may name; they also examine the request."""

STATUS_OF_WORD: Mapping[str, int] = {
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "badrequesterror": 400,
    "invalid_argument": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "too_many_requests": 429,
    "slow_down": 429,
    "api_error": 500,
    "server_error": 500,
    "internalservererror": 500,
    "server_is_overloaded": 503,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Status of an error within an answer, as if the answer had not begun yet."""


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One kind of refusal. Patterns are regular expressions; case does not matter."""

    id: str
    meaning: RefusalMeaning
    seen: str
    """Visible symptoms."""
    happens: str
    """Reaction of dgm."""
    reads: str
    """Message that the person reads."""
    statuses: tuple[int | str, ...] = ()
    """HTTP statuses (``"5xx"``: all of them; 0: none is known); empty: any."""
    words: tuple[str, ...] = ()
    """Patterns of codes and types."""
    says: tuple[str, ...] = ()
    """Patterns of the text."""
    unless: tuple[str, ...] = ()
    """Patterns of the text that exclude the row."""
    test: str = ""
    """One of ``TESTS``."""
    code: str = ""
    """Error code for the agent."""
    hint: str = ""
    """Advice to the person after the provider's words."""
    key: bool = False
    """For accounts: whether the key is refused."""
    overload: bool = False
    """For temporary faults: whether the provider is overloaded."""

    def fits(self, status: int, words: frozenset[str], text: str) -> bool:
        """Return whether status, codes and text match this row; its test is not evaluated here."""
        if self.statuses and status not in self.statuses and f"{status // 100}xx" not in self.statuses:
            return False
        if self.unless and _compile_pattern(self.unless).search(text):
            return False
        if not self.words and not self.says:
            return True
        if self.words and any(_compile_pattern(self.words).search(word) for word in words):
            return True
        return bool(self.says) and _compile_pattern(self.says).search(text) is not None


@lru_cache(maxsize=1)
def read_fault_rows() -> tuple[FaultRow, ...]:
    """Return the table, in order of precedence."""
    table = read_toml(TABLE)
    return tuple(_parse_row(entry) for entry in table["row"])


def matching_rows(status: int, words: frozenset[str], text: str) -> Iterator[FaultRow]:
    """Yield the rows that a refusal matches, in order of precedence."""
    return (row for row in read_fault_rows() if row.fits(status, words, text))


def _parse_row(entry: Mapping[str, Any]) -> FaultRow:
    values: dict[str, Any] = {
        name: tuple(one) if isinstance(one, list) else one for name, one in entry.items()
    }
    values["meaning"] = RefusalMeaning(entry["meaning"])
    return FaultRow(**values)


@lru_cache(maxsize=256)
def _compile_pattern(alternatives: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in alternatives), re.IGNORECASE)
