"""Which calls go wrong, and how: rules by number, by rhythm or by a seeded share; and providers' errors in words."""

import hashlib
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tests.support.wire_server.protocol import ANTHROPIC, Refused

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
    """The complete answer byte by byte, over ``seconds`` at least."""
    SPLIT_ARGUMENTS = "split_arguments"
    """The complete answer in deltas of one or two characters."""


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
    seconds: float = 1.0
    """Time to hang or to drip."""
    retry_after_s: float | None = None
    retry_after_ms: float | None = None

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds to choose from."""
        return (self.kind,) if isinstance(self.kind, Kind) else self.kind

    def refused(self, vendor: str, path: str) -> Refused | None:
        """Return the provider's error that a call gets, if it gets one."""
        headers = {"retry-after": self.retry_after_s, "retry-after-ms": self.retry_after_ms}
        told = {name: f"{value:g}" for name, value in headers.items() if value is not None}
        match self.kind:
            case Kind.RATE_LIMIT:
                if vendor == ANTHROPIC:
                    message = (
                        "This request would exceed your organization's rate limit. Please try again later."
                    )
                    return Refused(429, message, headers=told)
                message = "Rate limit reached for requests. Please try again later."
                return Refused(429, message, "rate_limit_exceeded", headers=told)
            case Kind.CONTEXT_LENGTH:
                return too_long(path)
            case Kind.WRONG_KEY:
                return wrong_key(vendor, "sk-injected-fault-key")
            case Kind.FORBIDDEN if vendor == ANTHROPIC:
                return Refused(403, "Your API key does not have permission to use the specified resource.")
            case Kind.FORBIDDEN:
                message = "Project does not have access to this model."
                return Refused(403, message, "model_not_found", type="invalid_request_error")
            case Kind.NO_CREDIT if vendor == ANTHROPIC:
                message = "Your credit balance is too low to access the Anthropic API."
                return Refused(400, message, type="invalid_request_error")
            case Kind.NO_CREDIT:
                message = "You exceeded your current quota, please check your plan and billing details."
                return Refused(429, message, "insufficient_quota", type="insufficient_quota")
            case Kind() as kind if kind.startswith(("error_4", "error_5")):
                return Refused(int(kind.removeprefix("error_")), "The server had a problem.", headers=told)
        return None


@dataclass(frozen=True, slots=True)
class Call:
    """What a rule may look at."""

    path: str
    digest: str
    check: bool = False
    """Whether dgm only checks the connection; rules that count calls do not see it."""


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

    def choose(self, call: Call) -> Rule | None:
        """Return the rule of this call, with one kind."""
        with self._lock:
            if self._outage is not None:
                return self._outage
            name = f"{call.path} {call.digest}"
            chosen = None
            for index, rule in enumerate(self.rules):
                if not _looks_at(rule, call):
                    continue
                self._seen[index] += 1
                chosen = chosen or self._strike(index, rule, name)
            self._in_a_row[name] = self._in_a_row[name] + 1 if chosen and chosen.share else 0
            return chosen

    def _strike(self, index: int, rule: Rule, name: str) -> Rule | None:
        number = self._seen[index]
        self._tries[index, name] += 1
        drawn = hashlib.sha256(f"{self.seed}/{index}/{name}/{self._tries[index, name]}".encode()).digest()
        chance, which = int.from_bytes(drawn[:8]) / 2**64, int.from_bytes(drawn[8:16]) / 2**64
        if rule.share:
            strikes = chance < rule.share and self._in_a_row[name] < self.most_in_a_row
        else:
            strikes = number in rule.calls if rule.calls else not rule.every or number % rule.every == 0
        return replace(rule, kind=rule.kinds[int(which * len(rule.kinds))]) if strikes else None


def _looks_at(rule: Rule, call: Call) -> bool:
    if not (call.path.endswith(rule.path) if rule.path else call.path in CALLS):
        return False
    return not (call.check and (rule.calls or rule.every))


def wrong_key(vendor: str, given: str) -> Refused:
    """Return the error for a key that is none, or for no key at all."""
    if vendor == ANTHROPIC:
        return Refused(401, "invalid x-api-key" if given else "x-api-key header is required")
    if not given:
        return Refused(401, "You didn't provide an API key.", type="invalid_request_error")
    shown = given[:8] + "*" * 8 + given[-4:] if len(given) > 12 else "*" * len(given)
    message = f"Incorrect API key provided: {shown}."
    return Refused(401, message, "invalid_api_key", type="invalid_request_error")


def unknown_model(vendor: str, name: str) -> Refused:
    """Return the error for a model that this server does not offer."""
    if vendor == ANTHROPIC:
        return Refused(404, f"model: {name}")
    message = f"The model `{name}` does not exist or you do not have access to it."
    return Refused(404, message, "model_not_found", type="invalid_request_error")


def too_long(path: str, tokens: int = 208_310, limit: int = 200_000) -> Refused:
    """Return the error for more than the model's context holds, in the words of each endpoint."""
    if path.endswith("/messages"):
        return Refused(400, f"prompt is too long: {tokens} tokens > {limit} maximum")
    if path.endswith("/responses"):
        message = (
            "Your input exceeds the context window of this model. Please adjust your input and try again."
        )
    else:
        message = (
            f"This model's maximum context length is {limit} tokens. However, your messages resulted in "
        )
        message += f"{tokens} tokens. Please reduce the length of the messages."
    return Refused(400, message, "context_length_exceeded", "messages")
