"""Which calls go wrong, and how: rules by number, by rhythm, by a seeded share, by path, by time."""

import hashlib
import threading
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.support.wire_server import errors
from tests.support.wire_server.errors import ANTHROPIC, Refused

CALLS = ("/v1/chat/completions", "/v1/responses", "/v1/messages")


class Kind(StrEnum):
    """What becomes of a call."""

    RATE_LIMIT = "rate_limit"
    """429; ``retry_after_s`` and ``retry_after_ms`` of the rule become headers."""
    ERROR_408 = "error_408"
    ERROR_409 = "error_409"
    ERROR_500 = "error_500"
    ERROR_502 = "error_502"
    ERROR_503 = "error_503"
    ERROR_504 = "error_504"
    ERROR_529 = "error_529"
    HANG = "hang"
    """Not a byte for ``seconds``; then the connection is reset."""
    HANG_MIDWAY = "hang_midway"
    """The first half, nothing for ``seconds``; then a reset."""
    RESET = "reset"
    """RST before the first byte."""
    RESET_MIDWAY = "reset_midway"
    """RST after the first half."""
    DROPPED = "dropped"
    """The connection ends (FIN) after the first half, though more was promised."""
    TRUNCATED = "truncated"
    """Half of the body, or of the events, as if that was all."""
    MALFORMED = "malformed"
    """A body, or an event, that is no JSON."""
    HTML = "html"
    """200 with a page in HTML."""
    EMPTY = "empty"
    """200 without choice, output or content."""
    ERROR_EVENT = "error_event"
    """An error in the midst of a stream; 500 for a call that does not stream."""
    REFUSAL = "refusal"
    CONTEXT_LENGTH = "context_length"
    WRONG_KEY = "wrong_key"
    FORBIDDEN = "forbidden"
    NO_CREDIT = "no_credit"
    DRIP = "drip"
    """The whole answer byte by byte, over ``seconds`` at least."""
    SPLIT_ARGUMENTS = "split_arguments"
    """The whole answer in deltas of one or two characters."""


ANSWERING = frozenset({Kind.DRIP, Kind.SPLIT_ARGUMENTS})
"""The client gets the whole answer."""
PERMANENT = frozenset({Kind.REFUSAL, Kind.CONTEXT_LENGTH, Kind.WRONG_KEY, Kind.FORBIDDEN, Kind.NO_CREDIT})
"""Trying again would not help."""
TRANSIENT = tuple(kind for kind in Kind if kind not in ANSWERING | PERMANENT)


@dataclass(frozen=True, slots=True)
class Rule:
    """Some calls and what they get. Of ``calls``, ``every`` and ``share`` at most one; none of them: every call."""

    kind: Kind | tuple[Kind, ...]
    """Several: each call draws one of them."""
    calls: tuple[int, ...] = ()
    """Of the calls that the rule looks at, from 1; dgm's check of a model is none of them."""
    every: int = 0
    """Every k-th of them; likewise."""
    share: float = 0.0
    """Of them, drawn anew for each try of the same request."""
    path: str = ""
    """The end of the path; empty: the three endpoints that ask a model."""
    model: str = ""
    """Only calls of this model."""
    streaming: bool | None = None
    """Only calls that stream, or only those that do not."""
    from_s: float | None = None
    """Only from then on, in seconds since the server began."""
    until_s: float | None = None
    seconds: float = 1.0
    """How long to hang or to drip."""
    retry_after_s: float | None = None
    retry_after_ms: float | None = None

    def __post_init__(self) -> None:
        if sum((bool(self.calls), bool(self.every), bool(self.share))) > 1:
            raise ValueError("a rule takes one of calls, every and share")

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What it may choose from."""
        return (self.kind,) if isinstance(self.kind, Kind) else self.kind


@dataclass(frozen=True, slots=True)
class Call:
    """What a rule may look at."""

    path: str
    digest: str
    model: str = ""
    streaming: bool = False
    age_s: float = 0.0
    """Since the server began."""
    check: bool = False
    """Whether dgm only checks the connection; rules that count calls do not see it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What one call gets."""

    kind: Kind
    rule: Rule

    def headers(self) -> Mapping[str, str]:
        """When to come back."""
        found = {}
        if self.rule.retry_after_s is not None:
            found["retry-after"] = f"{self.rule.retry_after_s:g}"
        if self.rule.retry_after_ms is not None:
            found["retry-after-ms"] = f"{self.rule.retry_after_ms:g}"
        return found

    def refused(self, vendor: str, path: str) -> Refused | None:
        """The provider's error that the call gets, if it gets one."""
        match self.kind:
            case Kind.RATE_LIMIT:
                return errors.rate_limited(vendor, self.headers())
            case Kind.CONTEXT_LENGTH:
                return errors.too_long(path, 208_310, 200_000)
            case Kind.WRONG_KEY:
                return errors.wrong_key(vendor, "sk-injected-fault-key")
            case Kind.FORBIDDEN:
                return errors.forbidden(vendor)
            case Kind.NO_CREDIT:
                return errors.no_credit(vendor)
            case kind if kind.startswith(("error_4", "error_5")):
                found = errors.failing(vendor, int(kind.removeprefix("error_")))
                found.headers = self.headers()
                return found
        return None

    def event(self, vendor: str) -> Refused:
        """The error within a stream."""
        return errors.failing(vendor, 529 if vendor == ANTHROPIC else 500)


@dataclass
class Script:
    """Rules, the first that applies wins. Safe to share between threads.

    Attributes:
        rules: see ``Rule``.
        seed: of the shares: the same seed, request and try get the same.
        most_in_a_row: faults by ``share`` that one request gets in a row at most, so that retries end.
    """

    rules: Sequence[Rule] = ()
    seed: int = 0
    most_in_a_row: int = 3
    _outage: Rule | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _seen: Counter[int] = field(default_factory=Counter)
    _tries: Counter[tuple[int, str]] = field(default_factory=Counter)
    _in_a_row: Counter[str] = field(default_factory=Counter)

    def outage(self, kind: Kind | None, seconds: float = 1.0) -> None:
        """From now on every call gets ``kind``; ``None`` ends it."""
        with self._lock:
            self._outage = None if kind is None else Rule(kind, seconds=seconds)

    def choose(self, call: Call) -> Fault | None:
        """What this call gets."""
        with self._lock:
            if self._outage is not None:
                return Fault(self._outage.kinds[0], self._outage)
            name = f"{call.path} {call.digest}"
            found = None
            for index, rule in enumerate(self.rules):
                if not _looks_at(rule, call):
                    continue
                self._seen[index] += 1
                if found is None:
                    found = self._applied(index, rule, name)
            self._in_a_row[name] = self._in_a_row[name] + 1 if found and found.rule.share else 0
            return found

    def _applied(self, index: int, rule: Rule, name: str) -> Fault | None:
        number = self._seen[index]
        self._tries[index, name] += 1
        chance, which = _draws(self.seed, index, name, self._tries[index, name])
        if rule.share:
            strikes = chance < rule.share and self._in_a_row[name] < self.most_in_a_row
        elif rule.calls:
            strikes = number in rule.calls
        else:
            strikes = not rule.every or number % rule.every == 0
        return Fault(rule.kinds[int(which * len(rule.kinds))], rule) if strikes else None


def mixed(share: float, *, seed: int = 0, seconds: float = 0.2, most_in_a_row: int = 3) -> Script:
    """A share of all calls goes wrong, each in one of all the ways that pass by themselves."""
    rule = Rule(TRANSIENT, share=share, seconds=seconds, retry_after_s=0.0)
    return Script((rule,), seed=seed, most_in_a_row=most_in_a_row)


def load(path: Path) -> Script:
    """A script in TOML: ``seed``, ``most_in_a_row`` and tables ``[[fault]]`` with the fields of ``Rule``.

    Raises:
        ValueError: it is none; says where.
    """
    with path.open("rb") as file:
        data = tomllib.load(file)
    unknown = set(data) - {"seed", "most_in_a_row", "fault"}
    if unknown:
        raise ValueError(
            f"{path}: unknown keys {', '.join(sorted(unknown))}; known: seed, most_in_a_row, fault"
        )
    rules = [_rule(record, f"{path}: fault {at}") for at, record in enumerate(data.get("fault", []), 1)]
    return Script(rules, data.get("seed", 0), data.get("most_in_a_row", 3))


def _rule(record: Mapping[str, Any], place: str) -> Rule:
    unknown = set(record) - {each.name for each in fields(Rule)}
    if unknown or "kind" not in record:
        raise ValueError(f"{place}: needs a kind, and does not know {sorted(unknown)}")
    given = record["kind"]
    try:
        kinds = tuple(Kind(word) for word in ([given] if isinstance(given, str) else given))
        calls = tuple(record.get("calls", ()))
        return Rule(**{**record, "kind": kinds, "calls": calls})
    except ValueError as error:
        raise ValueError(f"{place}: {error}; kinds: {', '.join(Kind)}") from error


def _looks_at(rule: Rule, call: Call) -> bool:
    if not (call.path.endswith(rule.path) if rule.path else call.path in CALLS):
        return False
    if call.check and (rule.calls or rule.every):
        return False
    if rule.model and rule.model != call.model:
        return False
    if rule.streaming is not None and rule.streaming is not call.streaming:
        return False
    if rule.from_s is not None and call.age_s < rule.from_s:
        return False
    return rule.until_s is None or call.age_s < rule.until_s


def _draws(seed: int, index: int, name: str, attempt: int) -> tuple[float, float]:
    """Two numbers from 0 to 1 that depend on nothing else: neither on threads nor on what else was asked."""
    drawn = hashlib.sha256(f"{seed}/{index}/{name}/{attempt}".encode()).digest()
    return int.from_bytes(drawn[:8]) / 2**64, int.from_bytes(drawn[8:16]) / 2**64
