"""The outcome of a refusal or a broken connection: retry, tell the agent, or leave it to the user.

Status and wait come first, then about a dozen rows of words (``faults.toml``). ``judge_refusal`` is pure. Whether a
failing request or its model is at fault is not decided here: ``dgm.gateway.blame`` asks the model a neutral question.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from dgm.errors import DgmError
from dgm.messages import NO_TOOLS, JsonObject, WireProtocol
from dgm.models.abilities import Abilities
from dgm.models.keys import mask_secrets
from dgm.models.refusals import ProviderRefusal, requested_wait

SMALLEST_ROOM = 16
"""Minimum useful output tokens; with less, the prompt alone is too long."""
_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_HINT_KEYS = (
    *("client_metadata", "metadata", "context_management", "safety_identifier", "service_tier"),
    *("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "verbosity", "text.verbosity"),
)
"""Paths without which the question is the same; programs send them unasked."""
_MENTIONS = {
    **{name: re.escape(name) for name in _HINT_KEYS},
    "temperature": r"temperature",
    "top_p": r"top_p",
    "stream_options": r"stream[_ ]options|include_usage",
    "parallel_tool_calls": r"parallel[_ ]tool[_ ]calls",
    "tool_choice": r"tool[_ ]choice|forced? tool use",
    "reasoning_effort": r"reasoning_?effort|support (?:thinking|reasoning)|reasoning is not",
    "reasoning.effort": r"reasoning[_.]?effort|support (?:thinking|reasoning)|reasoning is not",
    "output_config.effort": r"effort",
    "store": r"store",
    **{name: name for name in _LIMITS},
}
"""Paths of a body that may be left out, and how messages name them."""
_NOT = r"(?:not|n[o'’]t|cannot|never) (?:\w+ )?(?:be )?"
_REFUSED = re.compile(
    r"unsupported|unknown|unrecogni[sz]ed|unexpected|deprecated|extra[_ ](?:input|forbidden)|extraneous"
    rf"|additional propert|{_NOT}(?:support|permit|allow|accept|recogni|available|enabled|used|set|specif|both)"
    r"|only (?:the )?(?:default|\S+ (?:is|are) (?:allowed|supported))|(?:may|can) only be|cannot find field"
    r"|strictly positive|no endpoints found|when tool_choice forces",
    re.IGNORECASE,
)
"""Words that refuse a parameter itself, not the value that the agent chose for it."""
_ADVICE = re.compile(
    r"instead|did you mean|expected one of|\bunless\b|, (?:please )?use "
    r"|(?<!un)(?:supported|allowed|permitted) (?:param|values|fields)",
    re.IGNORECASE,
)
"""Words after which a sentence says what would be accepted."""
_STREAM_REFUSED = re.compile(
    r"verified to stream\b|(?:not|n.t) support (?:tools? \w+ in )?stream(?:ing|ed)?\b(?![ _]options)|in streaming mode"
    r"|stream(?:ing)?(?: mode| with tools)? is not supported|unsupported parameter: .stream\b",
    re.IGNORECASE,
)
_STREAM_WANTED = re.compile(r"only supports? stream|must (?:have|set|use|be) stream", re.IGNORECASE)
_N = r"(\d[\d,]*)"
_LIMIT_NAMED = re.compile(
    r"max\w*[ _]tokens?\w*|max(?:imum)? (?:output|tokens)|completion tokens", re.IGNORECASE
)
_LIMIT_TOO_LARGE = re.compile(r"max\w*tokens\w*.{0,40}(?:too (?:large|high)|exceed)", re.IGNORECASE)
_MOST_OUTPUT = re.compile(
    r"(?:at most|limited to|limit of|<=|less than or equal to|lower than|(?<!\+ )\d > |\[\s*[01]\s*,"
    rf"|max(?:imum)? output[^.\d]{{0,30}})\s*`?\(?{_N}",
    re.IGNORECASE,
)
_CONTEXT = re.compile(
    rf"(?:context|token) (?:length|window|size|limit)s?(?: is| of|:)?(?: only)?\D{{0,3}}{_N}(?![\d,]* \+)"
    rf"|\d \+ \d+ > {_N}|limit is {_N}|must be <= {_N}",
    re.IGNORECASE,
)
_PROMPT = re.compile(
    rf"{_N} (?:tokens )?(?:in the messages|in your prompt|from the input|of text input|(?:input|prompt) tokens)"
    rf"|prompt \({_N}|{_N} \+ \d+ >|given: {_N}",
    re.IGNORECASE,
)
_OUTPUT_COUNTED = re.compile(r"requested|current length|completion|output", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ProposedRepair:
    """A change that the next try makes."""

    change: Abilities
    output_limit: int | None = None
    """Output tokens that fit this request."""


def find_repair(refusal: ProviderRefusal, asked: JsonObject, protocol: WireProtocol) -> ProposedRepair | None:
    """Return the repair that a refusal asks for; None: there is none."""
    if fitting := _find_room(refusal.message, asked):
        return fitting
    streams = bool(asked.get("stream"))
    if streams and _STREAM_REFUSED.search(refusal.message):
        return ProposedRepair(Abilities(settings={"stream": False}, dropped=frozenset(("stream_options",))))
    if not streams and _STREAM_WANTED.search(refusal.message):
        return ProposedRepair(Abilities(settings={"stream": True}))
    if (
        re.search(r"set reasoning_effort to .?none", refusal.message)
        and asked.get("reasoning_effort") != "none"
    ):
        return ProposedRepair(Abilities(settings={"reasoning_effort": "none"}))
    named = _named_paths(refusal, asked)
    if not named:
        return None
    if len(named) > 1 and re.search(r"\bboth\b|together|only one", refusal.message):
        named = named[1:]
    change = Abilities()
    for path in named:
        other = "max_tokens" if path == "max_completion_tokens" else "max_completion_tokens"
        if path in _LIMITS and protocol is WireProtocol.MESSAGES:
            continue  # Messages requires it
        if path in _LIMITS[:2] and protocol is WireProtocol.CHAT and other not in asked:
            change = change.learn(Abilities(renamed={path: other}))
        else:
            change = change.learn(Abilities(dropped=frozenset((path,))))
    return ProposedRepair(change) if change != Abilities() else None


def find_unsupported(refusal: ProviderRefusal, asked: JsonObject) -> str:
    """Return the key of the body that a refusal calls unsupported; empty: none."""
    sentence = _refusing_sentence(refusal)
    keys = [
        key for key in asked if key not in ("model", "messages", "input", "tools", "system", "instructions")
    ]
    named = [place for place in refusal.places if place in keys]
    quoted = [key for key in keys if _is_quoted(re.escape(key), sentence)]
    return next(iter((*named, *quoted)), "") if sentence else ""


def _is_quoted(key: str, sentence: str) -> bool:
    return re.search(rf"[`'\"]{key}[`'\"]|\b{key}$|^{key}:", sentence) is not None


def _named_paths(refusal: ProviderRefusal, asked: JsonObject) -> list[str]:
    """Return the repairable paths of the body that a refusal calls unsupported, in the order of the sentence."""
    sentence = _refusing_sentence(refusal)
    if not sentence:
        return []
    places = [path for path in _MENTIONS if path in refusal.places and _holds(asked, path)]
    if places:
        return places
    mentions = []
    for path, mention in _MENTIONS.items():
        if _holds(asked, path) and (
            match := re.search(rf"(?<![\w.])(?:{mention})(?!\w)", sentence, re.IGNORECASE)
        ):
            mentions.append((match.start(), path))
    return [path for _, path in sorted(mentions)]


def _refusing_sentence(refusal: ProviderRefusal) -> str:
    """Return the part of the message that refuses something, without advice; empty if nothing is refused."""
    for sentence in re.split(r"(?<=[.;!?])\s+|\n", refusal.message):
        refusing = _ADVICE.split(sentence)[0]
        if _REFUSED.search(refusing):
            return refusing
    sure = any(re.match(r"un(known|supported|recognized)_|extra_forbidden", code) for code in refusal.codes)
    return refusal.message if sure else ""


def _find_room(message: str, asked: JsonObject) -> ProposedRepair | None:
    """Return the output limit that fits, by the sizes that a refusal gives."""
    wished = next((asked[name] for name in _LIMITS if isinstance(asked.get(name), int)), None)
    if wished is None:
        return None
    context = _first_number(_CONTEXT, message)
    if context is None:
        most = _first_number(_MOST_OUTPUT, message) if _LIMIT_NAMED.search(message) else None
        if most is not None and SMALLEST_ROOM <= most < wished:
            return ProposedRepair(Abilities(max_output=most), most)
        if wished <= SMALLEST_ROOM or not _LIMIT_TOO_LARGE.search(message):
            return None
        return ProposedRepair(Abilities(max_output=wished // 2), wished // 2)
    stated = _first_number(_PROMPT, message)
    if stated is None and not _OUTPUT_COUNTED.search(message):
        return None  # the prompt alone is too long
    turns = [asked.get(name) for name in ("messages", "input", "system", "tools")]
    estimate = len(json.dumps(turns, default=str)) // 4
    prompt = stated if stated is not None and "at least" not in message else max(stated or 0, estimate)
    room = context - prompt - prompt // 50
    if room < SMALLEST_ROOM:
        return None
    return ProposedRepair(Abilities(context=context), room if room < wished else wished // 2)


def _first_number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return int(next(group for group in match.groups() if group).replace(",", "")) if match else None


def _holds(asked: JsonObject, path: str) -> bool:
    key, _, rest = path.partition(".")
    value = asked.get(key)
    return (isinstance(value, Mapping) and rest in value) if rest else key in asked


TABLE = Path(__file__).with_name("faults.toml")
MALFORMED = "model_output_invalid"
UNSUPPORTED = "unsupported_parameter"
_LONGEST_MESSAGE = 600
_SHORTEST_QUOTE = 6
_OVERLOAD = frozenset((429, 503, 529))
_TEMPORARY = frozenset((0, 408, 409, 425, 429, 499))
_STATUS_OF_CODE = {
    "invalid_request_error": 400, "invalid_prompt": 400, "badrequesterror": 400, "invalid_argument": 400,
    "authentication_error": 401, "billing_error": 402, "permission_error": 403, "not_found_error": 404,
    "request_too_large": 413, "rate_limit_error": 429, "rate_limit_exceeded": 429, "slow_down": 429,
    "api_error": 500, "server_error": 500, "server_is_overloaded": 503, "timeout_error": 504, "overloaded_error": 529,
}  # fmt: skip
"""Status of an error within an answer, as if the answer had not begun."""
_LIMIT_CODE = re.compile(r"^429$|throttling|^(user)?rate_?limit(ed|_?error|_?exceeded|_?reached\w*)?$")
"""Codes that mean 429 where a proxy reports a rate limit under another status."""
_FORM_STATUSES = frozenset((0, 400, 404, 405, 415, 422, 500, 501))
_FORM_NAMED = re.compile(
    r"response[ _]?format|schema|structured|text\.format|output_(config|format)|grammar|guided", re.IGNORECASE
)
_ADDRESS_HINT = " (is the path of base_url right? /v1 may be missing at its end)"
_PROXY_HINT = " (a proxy between dgm and the provider refuses: see HTTPS_PROXY, HTTP_PROXY and ALL_PROXY)"
_HINTS = {407: _PROXY_HINT, **dict.fromkeys((301, 302, 307, 308, 404, 405), _ADDRESS_HINT)}


@dataclass(frozen=True, slots=True)
class Retry:
    """The next try may succeed."""

    reason: str
    retry_after_s: float | None = None
    """Seconds to wait at the provider's request, without a bound."""
    overload: bool = False
    """Whether the provider says that it gets too many calls."""
    sampled: bool = False
    """Whether the model's own output was malformed: another sample may be valid; tried a few times, then told."""


@dataclass(frozen=True, slots=True)
class TellAgent:
    """Only this request is refused; its agent is told."""

    code: str
    message: str

    @property
    def own(self) -> bool:
        """Whether the agent is graded at once; after other refusals the neutral question is asked first."""
        return self.code in (MALFORMED, NO_TOOLS)

    @property
    def kept(self) -> bool:
        """Whether a repetition hears the same; a refused parameter may be left out by the settings meanwhile."""
        return self.code != UNSUPPORTED


@dataclass(frozen=True, slots=True)
class UserMustAct:
    """Every request is refused until the user corrects the key, the account, the model's name or the address."""

    message: str
    key: bool = False
    """Whether the key is refused."""


@dataclass(frozen=True, slots=True)
class Repair:
    """The request is sent again with a change, which is learned for the run."""

    change: Abilities
    message: str
    output_limit: int | None = None
    """Output tokens that fit this request."""


Fault = Retry | TellAgent | UserMustAct | Repair


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the table; see the comments there."""

    id: str
    outcome: str
    statuses: tuple[int, ...] = ()
    says: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None
    wait: bool = False
    page: bool = False
    sampled: bool = False
    overload: bool = False
    key: bool = False
    code: str = ""
    hint: str = ""

    def fits(self, status: int, lines: str, refusal: ProviderRefusal, wait_s: float | None) -> bool:
        if self.statuses and status not in self.statuses:
            return False
        if (self.wait and wait_s is None) or (self.page and not refusal.is_page):
            return False
        if self.unless and self.unless.search(lines):
            return False
        return self.says is None or self.says.search(lines) is not None


@lru_cache(maxsize=1)
def _rows() -> tuple[_Row, ...]:
    from dgm.config.toml_files import read_toml

    return tuple(_parse_row(row) for row in read_toml(TABLE)["row"])


def _parse_row(row: Mapping[str, Any]) -> _Row:
    values = dict(row)
    for name in ("says", "unless"):
        if name in values:
            values[name] = re.compile("|".join(values[name]), re.IGNORECASE | re.MULTILINE)
    values["statuses"] = tuple(values.get("statuses", ()))
    return _Row(**values)


def judge_refusal(
    refusal: ProviderRefusal,
    asked: JsonObject,
    protocol: WireProtocol,
    *,
    secrets: Iterable[str] = (),
    form_optional: bool = False,
) -> Fault:
    """Return the outcome of a refusal; messages are one line of at most 600 characters, without keys.

    Args:
        refusal: as ``read_refusal`` gives it.
        asked: the body as it was sent.
        protocol: the protocol of that body.
        secrets: cut out of messages.
        form_optional: whether the body holds a form of the answer that may be left out.
    """
    status, wait_s = _effective_status(refusal), requested_wait(refusal)
    message = one_line(refusal.message, secrets)
    prefix = f"{status} " if status and not refusal.message.startswith(f"{status} ") else ""
    numbered = one_line(prefix + refusal.message, secrets)
    if form_optional and status in _FORM_STATUSES and _FORM_NAMED.search(message):
        return Repair(Abilities(forms=False), message)
    # What a provider quotes of the agent's words says nothing about an account or a limit.
    lines = "\n".join((_remove_quotes(refusal.message, asked), *sorted(refusal.codes)))
    for row in _rows():
        if not row.fits(status, lines, refusal, wait_s):
            continue
        match row.outcome:
            case "retry":
                return Retry(numbered, wait_s, row.overload or status in _OVERLOAD, row.sampled)
            case "tell":
                return TellAgent(row.code, message)
            case "user":
                hint = f" ({row.hint})" if row.hint else ""
                return UserMustAct(one_line(prefix + refusal.message, secrets, hint), row.key)
        if repair := find_repair(refusal, asked, protocol):
            return Repair(repair.change, message, repair.output_limit)
    if status in (400, 415, 416, 422):
        if name := find_unsupported(refusal, asked):
            advice = f' (to leave it out for this model: drop = ["{name}"] under models.requests)'
            return TellAgent(UNSUPPORTED, one_line(refusal.message, secrets, advice))
        return TellAgent(_own_code(refusal), message)
    if status == 413:
        return TellAgent("request_too_large", message)
    used_up = status == 429 and wait_s is None and "quota" in lines and not re.search(r"later|wait", lines)
    if not used_up and (status in _TEMPORARY or status >= 500):
        return Retry(numbered, wait_s, status in _OVERLOAD)
    hint = _HINTS.get(status, "")
    return UserMustAct(one_line(prefix + refusal.message, secrets, hint), status in (401, 403))


def one_line(text: str, secrets: Iterable[str], hint: str = "") -> str:
    """Return a message as one line of at most 600 characters without keys; a hint of ours is kept whole."""
    line = " ".join(mask_secrets(text, secrets).split())
    longest = _LONGEST_MESSAGE - len(hint)
    return (line if len(line) <= longest else line[: longest - 1] + "…") + hint


_TRANSPORT_ERRORS = {"ClientError", "ProxyError", "ProxyConnectionError", "ProxyTimeoutError"}
"""Classes of aiohttp and aiohttp-socks, by name."""


def judge_transport(error: Exception, *, secrets: Iterable[str] = ()) -> Fault | None:
    """Return the outcome of a transport error; None: it is a mistake in this program, not the provider's.

    The HTTP client's classes are told apart by name, so that it is not imported.
    """
    if isinstance(error, DgmError):
        return None
    names = {kind.__name__ for kind in type(error).__mro__}
    text = _error_text(error)
    if names & {"InvalidURL", "NonHttpUrlClientError"}:
        return UserMustAct(one_line(f"the provider's address cannot be used: {text}", secrets))
    if "ClientHttpProxyError" in names:
        # Its own text holds the proxy's address, which may have a password.
        status, text = (
            getattr(error, "status", 0),
            f"{getattr(error, 'status', 0)} {getattr(error, 'message', '')}",
        )
        if status in (401, 403, 407):
            return UserMustAct(one_line(text, secrets, _PROXY_HINT))
    if isinstance(error, UnicodeDecodeError) or "JSONDecodeError" in names:
        return Retry(one_line(f"the provider's answer cannot be read: {error}", secrets))
    of_transport = bool(names & _TRANSPORT_ERRORS) or isinstance(error, OSError | EOFError)
    return Retry(one_line(text, secrets)) if of_transport else None


def _error_text(error: BaseException) -> str:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
    return f"{name}: {error}" if str(error) else name


def _effective_status(refusal: ProviderRefusal) -> int:
    """Return the status that the refusal means; 0 if an error within an answer does not give it."""
    codes = sorted(code.lower() for code in refusal.codes)
    if refusal.status not in (0, 200):
        limited = refusal.status in (400, 403, 500) and any(_LIMIT_CODE.search(code) for code in codes)
        return 429 if limited else refusal.status
    known = [int(code) for code in codes if re.fullmatch(r"[45]\d\d", code)]
    known += [_STATUS_OF_CODE[code] for code in codes if code in _STATUS_OF_CODE]
    return known[0] if known else 0


def _own_code(refusal: ProviderRefusal) -> str:
    body = refusal.body.get("error", refusal.body) if isinstance(refusal.body, Mapping) else None
    code = body.get("code") if isinstance(body, Mapping) else None
    return code if isinstance(code, str) and re.fullmatch(r"[a-z][\w.\-]{2,60}", code) else "invalid_request"


def _remove_quotes(message: str, asked: JsonObject) -> str:
    for text in sorted(set(_iter_texts(asked)), key=len, reverse=True):
        message = message.replace(text, "…")
    return message


def _iter_texts(node: object) -> Iterator[str]:
    if isinstance(node, str):
        if len(node) >= _SHORTEST_QUOTE:
            yield node
    elif isinstance(node, Mapping):
        for key, value in node.items():
            if key not in ("type", "role", "model") or (isinstance(value, str) and " " in value):
                yield from _iter_texts(value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from _iter_texts(value)
