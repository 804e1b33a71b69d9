"""Whose fault a refusal is, by the table of ``dgm.models.fault_table``: ask again, tell the agent, or call a person.

``judge`` is pure: it looks at the refusal and at the request as it was sent.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from dgm.messages import JsonObject, WireProtocol
from dgm.models import lessons
from dgm.models.abilities import Change
from dgm.models.fault_table import STATUS_OF_WORD, Meaning, Row, rows_of
from dgm.models.keys import masked
from dgm.models.parameters import Fate, find_blame
from dgm.models.refusals import Refusal, read_refusal
from dgm.models.sizes import read_sizes

__all__ = [
    "Ability", "Account", "Asked", "Fault", "Passing", "Refusal", "Sampled", "Single", "Unable", "judge",
    "judge_transport", "read_refusal", "waiting_time",
]  # fmt: skip

_LONGEST_MESSAGE = 300
_OVERLOAD = frozenset((429, 503, 529))
_SHORTEST_QUOTE = 6
_NOT_BY_QUOTES = frozenset((Meaning.ACCOUNT, Meaning.SINGLE, Meaning.PASSING))
"""Meanings that no words of the agent may bring about, which a provider repeats."""
_TOLD = re.compile(
    r"(?:retry|try again|available again|resets?|wait)(?: after| in| for)?:?\s+(?:about )?"
    r"(?:(?P<h>\d+)\s*h(?:ours?)?\s*)?(?:(?P<m>\d+)\s*m(?:in(?:ute)?s?)?(?![a-z])\s*)?(?:(?P<s>\d+(?:\.\d+)?)\s*(?P<unit>ms|s)\w*)?",
    re.IGNORECASE,
)
_GOOGLE_DELAY = re.compile(r"retryDelay\\*\"?'?\s*:\s*\\*[\"'](\d+(?:\.\d+)?)s")


@dataclass(frozen=True, slots=True)
class Passing:
    """The next try may do."""

    reason: str
    retry_after_s: float | None = None
    """As the provider asks for it, without a bound."""
    overload: bool = False
    """The provider says that it is asked too much."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """The model's own malformed output, which its server reports as an error: asked again a few times, then told."""

    reason: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The agent's own request is at fault: told; it may reach a verdict."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Single:
    """This one request is refused for what it holds: told, and not the agent's fault."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Ability:
    """The model does not take a part of the request: asked again with the change, which is learned for the run.

    Where ``abilities.learn(change)`` is equal to ``abilities``, asking again would change nothing: then it is told.
    """

    change: Change
    message: str
    output_limit: int | None = None
    """Output tokens that fit this request now."""


@dataclass(frozen=True, slots=True)
class Unable:
    """The model cannot do what was asked, and there is nothing to change: told, and not the agent's fault."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Account:
    """A person has to act: key, arrears, location, organisation, address, model, a server that takes no tools."""

    message: str
    key: bool = False
    """It is the key that is refused."""


Fault = Passing | Sampled | Asked | Single | Ability | Unable | Account


@dataclass(frozen=True, slots=True)
class _Case:
    refusal: Refusal
    status: int
    asked: JsonObject
    protocol: WireProtocol
    wait_s: float | None
    sent: Mapping[str, str] | None


def judge(
    refusal: Refusal,
    asked: JsonObject,
    protocol: WireProtocol,
    *,
    sent: Mapping[str, str] | None = None,
    secrets: Iterable[str] = (),
) -> Fault:
    """Return what a refusal means; messages are one line of at most 300 characters, without keys.

    Args:
        refusal: as ``read_refusal`` gives it.
        asked: the body as it was sent, with all changes that are known already.
        protocol: the protocol of that body.
        sent: headers that were passed on; None: not known.
        secrets: cut out of messages.
    """
    status = _status(refusal)
    case = _Case(refusal, status, asked, protocol, _told_wait(refusal), sent)
    said, without_quotes = refusal.message, _without_quotes(refusal.message, asked)
    for row in rows_of(status, refusal.words, said):
        if row.meaning in _NOT_BY_QUOTES and not row.fits(status, refusal.words, without_quotes):
            continue
        if (fault := _fault(row, case, secrets)) is not None:
            return fault
    return Account(_line(_numbered(status, said), secrets))


def judge_transport(error: Exception, *, secrets: Iterable[str] = ()) -> Fault | None:
    """Return what an error of the transport means; None: it is not the provider's, but a mistake in this program.

    The vendors' packages call every error of the transport the same: their cause tells it apart.
    """
    packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    cause = error.__cause__
    if packages & {"openai", "anthropic"}:
        if type(error).__name__ == "APIResponseValidationError":
            return Passing(_line(f"the provider's answer cannot be read: {error}", secrets))
        if isinstance(cause, Exception) and (fault := judge_transport(cause, secrets=secrets)) is not None:
            return fault
        return Passing(_line(_named(error), secrets)) if "Connection" in _names(error) else None
    if "httpx2" in packages or "httpx" in packages:
        return _of_transport(error, secrets)
    if (
        isinstance(error, UnicodeDecodeError)
        or "JSONDecodeError" in _names(error)
        or "pydantic_core" in packages
    ):
        return Passing(_line(f"the provider's answer cannot be read: {error}", secrets))
    return Passing(_line(_named(error), secrets)) if isinstance(error, OSError | EOFError) else None


def waiting_time(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds that ``retry-after-ms`` or ``Retry-After`` (seconds, or a date) asks for; None without one.

    Not below 0 and without a bound: how long is waited is the caller's to decide.
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


def _fault(row: Row, case: _Case, secrets: Iterable[str]) -> Fault | None:
    """Return the fault of a row; None where its test says that the row does not fit."""
    said = case.refusal.message
    change, limit = _lesson(row.test, case)
    if row.meaning is Meaning.ABILITY:
        return Ability(change, _line(said, secrets), limit) if change is not None else None
    if not _holds(row.test, case):
        return None
    numbered = _numbered(case.status, said)
    match row.meaning:
        case Meaning.PASSING:
            overload = row.overload or case.status in _OVERLOAD
            return Passing(_line(numbered, secrets), case.wait_s, overload)
        case Meaning.SAMPLED:
            return Sampled(_line(numbered, secrets))
        case Meaning.ACCOUNT:
            hint = f" ({row.hint})" if row.hint else ""
            return Account(_line(numbered, secrets, hint), row.key or case.status == 401)
        case Meaning.SINGLE:
            return Single(row.code or row.id, _line(said, secrets))
        case Meaning.UNABLE:
            return Unable(row.code or _code(case.refusal, row), _line(said, secrets))
        case Meaning.ASKED:
            return Asked(_code(case.refusal, row), _line(said, secrets))


def _lesson(test: str, case: _Case) -> tuple[Change | None, int | None]:
    """Return what a refusal teaches by the test of a row, and the output limit that fits now."""
    refusal, asked, protocol = case.refusal, case.asked, case.protocol
    match test:
        case "sizes":
            sizes = read_sizes(refusal, asked, case.status)
            if sizes is not None:
                return Change(context=sizes.context, max_output=sizes.max_output), sizes.fits
        case "parameter":
            blame = find_blame(refusal, asked, protocol)
            return (blame.change if blame is not None and blame.fate is Fate.CHANGE else None), None
        case "stream":
            return lessons.stream(refusal, asked), None
        case "only stream":
            return lessons.only_stream(refusal, asked), None
        case "beta header":
            return lessons.beta_header(asked, case.sent), None
        case "setting":
            return lessons.setting(refusal, asked), None
        case "role":
            return lessons.role(refusal, asked, protocol), None
        case "flat content":
            return lessons.flat_content(asked, protocol), None
    return None, None


def _holds(test: str, case: _Case) -> bool:
    """Return whether the test of a row holds that teaches nothing."""
    match test:
        case "no wait told":
            return case.wait_s is None
        case "no JSON":
            return case.refusal.page or case.refusal.plain
        case "images":
            return lessons.images_refused(case.refusal, case.asked)
        case "structure named":
            return lessons.names_structure(case.refusal)
        case "tool kind":
            return any(place[:1] == ("tools",) and place[-1] == "type" for place in case.refusal.places)
        case "own value" | "feature":
            blame = find_blame(case.refusal, case.asked, case.protocol)
            return blame is not None and blame.fate is (Fate.OWN if test == "own value" else Fate.UNABLE)
    return not test


def _status(refusal: Refusal) -> int:
    """Return the status that it would have been; 0 where an error within an answer says nothing of it."""
    if refusal.status not in (0, 200):
        return refusal.status
    words = sorted(word.lower() for word in refusal.words)
    known = [int(word) for word in words if re.fullmatch(r"[45]\d\d", word)]
    known += [STATUS_OF_WORD[word] for word in words if word in STATUS_OF_WORD]
    return known[0] if known else 0


def _told_wait(refusal: Refusal) -> float | None:
    """Return the seconds that headers, fields or the text ask to wait."""
    if (seconds := waiting_time(refusal.headers)) is not None:
        return seconds
    if said := _GOOGLE_DELAY.search(refusal.text):
        return float(said[1])
    for said in _TOLD.finditer(refusal.message):
        if said["h"] or said["m"] or said["s"]:
            small = float(said["s"] or 0) * (0.001 if (said["unit"] or "").lower() == "ms" else 1.0)
            return int(said["h"] or 0) * 3600.0 + int(said["m"] or 0) * 60.0 + small
    return None


def _without_quotes(message: str, asked: JsonObject) -> str:
    """Return the message without texts of the request that it repeats: an agent's words are no word about an account."""
    for text in sorted(set(_texts(asked)), key=len, reverse=True):
        if text in message:
            message = message.replace(text, "…")
    return message


def _texts(node: object) -> Iterator[str]:
    if isinstance(node, str):
        if len(node) >= _SHORTEST_QUOTE:
            yield node
    elif isinstance(node, Mapping):
        for key, one in node.items():
            if key not in ("type", "role", "model") or (isinstance(one, str) and " " in one):
                yield from _texts(one)
    elif isinstance(node, list | tuple):
        for one in node:
            yield from _texts(one)


def _code(refusal: Refusal, row: Row) -> str:
    if row.code:
        return row.code
    body = refusal.body.get("error", refusal.body) if isinstance(refusal.body, Mapping) else None
    own = body.get("code") if isinstance(body, Mapping) else None
    return own if isinstance(own, str) and re.fullmatch(r"[a-z][\w.\-]{2,60}", own) else "invalid_request"


def _of_transport(error: Exception, secrets: Iterable[str]) -> Fault:
    names = _names(error)
    if names & {"UnsupportedProtocol", "InvalidURL", "LocalProtocolError"}:
        said = f"the provider's address or a header cannot be used: {_named(error)}"
        return Account(_line(said, secrets))
    if "TooManyRedirects" in names:
        return Account(_line(f"the provider's address leads nowhere: {_named(error)}", secrets))
    if "ProxyError" in names and re.search(r"\b40[137]\b|auth", str(error), re.IGNORECASE):
        hint = " (a proxy refuses: see HTTPS_PROXY, HTTP_PROXY and ALL_PROXY)"
        return Account(_line(_named(error), secrets, hint))
    return Passing(_line(_named(error), secrets))


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__} | (
        {"Connection"} if "Connection" in type(error).__name__ else set()
    )


def _named(error: BaseException) -> str:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
    return f"{name}: {error}" if str(error) else name


def _numbered(status: int, said: str) -> str:
    return f"{status} {said}" if status and not said.startswith(f"{status} ") else said


def _line(text: str, secrets: Iterable[str], hint: str = "") -> str:
    line = " ".join(masked(text, secrets).split())
    longest = _LONGEST_MESSAGE - len(hint)
    return (line if len(line) <= longest else line[: longest - 1] + "…") + hint
