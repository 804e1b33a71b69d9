"""The one table that says whose fault a refusal is (``faults.toml``), and which of its rows a refusal fits."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

from dgm.toml_files import read_toml

TABLE = Path(__file__).with_name("faults.toml")


class Meaning(StrEnum):
    """What a refusal means."""

    PASSING = "passing"
    """The next try may do."""
    SAMPLED = "sampled"
    """The model's own malformed output: another sample may do."""
    ASKED = "asked"
    """The agent's own request is at fault."""
    SINGLE = "single"
    """This one request is refused for what it holds."""
    ABILITY = "ability"
    """The model does not take a part of the request that can be left out or changed."""
    UNABLE = "unable"
    """The model cannot do what is asked."""
    ACCOUNT = "account"
    """A person has to act."""


TESTS = frozenset(
    ("stream", "only stream", "no wait told", "no JSON", "sizes", "beta header", "setting", "images", "role",
     "flat content", "own value", "feature", "parameter", "structure named", "tool kind")
)  # fmt: skip
"""Further conditions that a row may name; they look at the request too."""

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
"""Status with which a provider would have answered, had its answer not begun already."""


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of refusal. Patterns are regular expressions; case does not matter."""

    id: str
    meaning: Meaning
    seen: str
    """What is seen."""
    happens: str
    """What happens."""
    reads: str
    """What the person reads."""
    statuses: tuple[int | str, ...] = ()
    """HTTP statuses (``"5xx"``: all of them; 0: none is known); empty: any."""
    words: tuple[str, ...] = ()
    """Patterns of codes and types."""
    says: tuple[str, ...] = ()
    """Patterns of the text."""
    unless: tuple[str, ...] = ()
    """Patterns of the text with which the row does not fit."""
    test: str = ""
    """One of ``TESTS``."""
    code: str = ""
    """How the agent is told."""
    hint: str = ""
    """Said to the person behind the provider's words."""
    key: bool = False
    """Of an account: it is the key that is refused."""
    overload: bool = False
    """Of what passes: the provider is asked too much."""

    def fits(self, status: int, words: frozenset[str], text: str) -> bool:
        """Return whether status, codes and text are those of this row; its test is not made here."""
        if self.statuses and status not in self.statuses and f"{status // 100}xx" not in self.statuses:
            return False
        if self.unless and _pattern(self.unless).search(text):
            return False
        if not self.words and not self.says:
            return True
        if self.words and any(_pattern(self.words).search(word) for word in words):
            return True
        return bool(self.says) and _pattern(self.says).search(text) is not None


@lru_cache(maxsize=1)
def rows() -> tuple[Row, ...]:
    """Return the table, in the order in which it decides."""
    table = read_toml(TABLE)
    return tuple(_row(entry) for entry in table["row"])


def rows_of(status: int, words: frozenset[str], text: str) -> Iterator[Row]:
    """Yield the rows that a refusal fits, the first first."""
    return (row for row in rows() if row.fits(status, words, text))


def _row(entry: Mapping[str, Any]) -> Row:
    values: dict[str, Any] = {
        name: tuple(one) if isinstance(one, list) else one for name, one in entry.items()
    }
    values["meaning"] = Meaning(entry["meaning"])
    return Row(**values)


@lru_cache(maxsize=256)
def _pattern(alternatives: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in alternatives), re.IGNORECASE)
