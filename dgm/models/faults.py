"""Assignment of blame for a refusal by ``dgm.models.fault_table``: retry, tell the agent, or call a person.

``judge_refusal`` is pure: it examines the refusal and the request as it was sent.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dgm.messages import NO_TOOLS, JsonObject, WireProtocol
from dgm.models import lessons
from dgm.models.abilities import Change
from dgm.models.fault_kinds import (
    AccountFault,
    AgentRequestFault,
    ContentRefused,
    Fault,
    MalformedOutput,
    TemporaryFault,
    UnsupportedPart,
    UnsupportedRequest,
    one_line,
)
from dgm.models.fault_table import STATUS_OF_WORD, FaultRow, RefusalMeaning, matching_rows
from dgm.models.parameters import BlameMeaning, find_blame
from dgm.models.refusals import ProviderRefusal
from dgm.models.sizes import read_sizes
from dgm.models.waits import requested_wait

_OVERLOAD = frozenset((429, 503, 529))
_MISTOLD = frozenset((400, 403, 500))
_LIMIT_CODE = re.compile(r"^429$|throttling|^(user)?rate_?limit(ed|_?error|_?exceeded|_?reached\w*)?$")
_SHORTEST_QUOTE = 6
_NOT_BY_QUOTES = frozenset((RefusalMeaning.ACCOUNT, RefusalMeaning.SINGLE, RefusalMeaning.PASSING))
"""Meanings that a provider's echo of the agent's own words must not trigger."""


@dataclass(frozen=True, slots=True)
class _RefusalContext:
    refusal: ProviderRefusal
    status: int
    asked: JsonObject
    protocol: WireProtocol
    wait_s: float | None
    sent: Mapping[str, str] | None
    form_optional: bool


def judge_refusal(
    refusal: ProviderRefusal,
    asked: JsonObject,
    protocol: WireProtocol,
    *,
    sent: Mapping[str, str] | None = None,
    secrets: Iterable[str] = (),
    form_optional: bool = False,
) -> Fault:
    """Return the meaning of a refusal; messages are one line of at most 600 characters, without keys.

    Args:
        refusal: as ``read_refusal`` gives it.
        asked: the body as it was sent, with all changes that are known already.
        protocol: the protocol of that body.
        sent: headers that were passed on; None: not known.
        secrets: cut out of messages.
        form_optional: whether the body holds a form of the answer that may be left out.
    """
    status = _effective_status(refusal)
    case = _RefusalContext(refusal, status, asked, protocol, requested_wait(refusal), sent, form_optional)
    said, without_quotes = refusal.message, _remove_quotes(refusal.message, asked)
    for row in matching_rows(status, refusal.words, said):
        if (row.meaning in _NOT_BY_QUOTES or row.code == NO_TOOLS) and not row.fits(
            status, refusal.words, without_quotes
        ):
            continue
        if (fault := _fault_of_row(row, case, secrets)) is not None:
            return fault
    return AccountFault(one_line(_prefix_status(status, said), secrets))


def _fault_of_row(row: FaultRow, case: _RefusalContext, secrets: Iterable[str]) -> Fault | None:
    """Return the fault of a row; None if the row's test fails."""
    said = case.refusal.message
    change, limit = _lesson_of_test(row.test, case)
    if row.meaning is RefusalMeaning.ABILITY:
        return UnsupportedPart(change, one_line(said, secrets), limit) if change is not None else None
    if not _test_holds(row.test, case):
        return None
    numbered = _prefix_status(case.status, said)
    match row.meaning:
        case RefusalMeaning.PASSING:
            overload = row.overload or case.status in _OVERLOAD
            return TemporaryFault(one_line(numbered, secrets), case.wait_s, overload)
        case RefusalMeaning.SAMPLED:
            return MalformedOutput(one_line(numbered, secrets))
        case RefusalMeaning.ACCOUNT:
            hint = f" ({row.hint})" if row.hint else ""
            return AccountFault(one_line(numbered, secrets, hint), row.key or case.status == 401)
        case RefusalMeaning.SINGLE:
            return ContentRefused(row.code or row.id, one_line(said, secrets))
        case RefusalMeaning.UNABLE:
            return UnsupportedRequest(row.code or _error_code(case.refusal, row), one_line(said, secrets))
        case RefusalMeaning.ASKED:
            return AgentRequestFault(_error_code(case.refusal, row), one_line(said, secrets))


def _lesson_of_test(test: str, case: _RefusalContext) -> tuple[Change | None, int | None]:
    """Return the lesson of a refusal by the test of a row, and the output limit that fits now."""
    refusal, asked, protocol = case.refusal, case.asked, case.protocol
    match test:
        case "sizes":
            sizes = read_sizes(refusal, asked, case.status)
            if sizes is not None:
                return Change(context=sizes.context, max_output=sizes.max_output), sizes.fits
        case "parameter":
            blame = find_blame(refusal, asked, protocol)
            return (blame.change if blame is not None and blame.fate is BlameMeaning.CHANGE else None), None
        case "stream":
            return lessons.learn_no_stream(refusal, asked), None
        case "only stream":
            return lessons.learn_only_stream(refusal, asked), None
        case "beta header":
            return lessons.learn_no_beta(asked, case.sent), None
        case "setting":
            return lessons.learn_setting(refusal, asked), None
        case "role":
            return lessons.learn_role(refusal, asked, protocol), None
        case "answer form":
            return (Change(forms=False) if case.form_optional else None), None
        case "flat content":
            return lessons.learn_flat_content(asked, protocol), None
    return None, None


def _test_holds(test: str, case: _RefusalContext) -> bool:
    """Return whether a test without a lesson holds."""
    match test:
        case "wait told":
            return case.wait_s is not None
        case "no wait told":
            return case.wait_s is None
        case "no JSON":
            return case.refusal.page or case.refusal.plain
        case "images":
            return lessons.refuses_images(case.refusal, case.asked)
        case "structure named":
            return lessons.names_structure(case.refusal)
        case "tool kind":
            return lessons.names_tool_kind(case.refusal)
        case "own value" | "feature":
            blame = find_blame(case.refusal, case.asked, case.protocol)
            return blame is not None and blame.fate is (
                BlameMeaning.OWN if test == "own value" else BlameMeaning.UNABLE
            )
    return not test


def _effective_status(refusal: ProviderRefusal) -> int:
    """Return the effective status; 0 if an error within an answer does not give it.

    A code that names a rate limit makes it 429, where a proxy tells that as a bad request or as its own failure.
    """
    words = sorted(word.lower() for word in refusal.words)
    if refusal.status not in (0, 200):
        limited = refusal.status in _MISTOLD and any(_LIMIT_CODE.search(word) for word in words)
        return 429 if limited else refusal.status
    known = [int(word) for word in words if re.fullmatch(r"[45]\d\d", word)]
    known += [STATUS_OF_WORD[word] for word in words if word in STATUS_OF_WORD]
    return known[0] if known else 0


def _remove_quotes(message: str, asked: JsonObject) -> str:
    """Return the message without texts of the request: an agent's words say nothing about an account."""
    for text in sorted(set(_iter_texts(asked)), key=len, reverse=True):
        if text in message:
            message = message.replace(text, "…")
    return message


def _iter_texts(node: object) -> Iterator[str]:
    if isinstance(node, str):
        if len(node) >= _SHORTEST_QUOTE:
            yield node
    elif isinstance(node, Mapping):
        for key, one in node.items():
            if key not in ("type", "role", "model") or (isinstance(one, str) and " " in one):
                yield from _iter_texts(one)
    elif isinstance(node, list | tuple):
        for one in node:
            yield from _iter_texts(one)


def _error_code(refusal: ProviderRefusal, row: FaultRow) -> str:
    if row.code:
        return row.code
    body = refusal.body.get("error", refusal.body) if isinstance(refusal.body, Mapping) else None
    own = body.get("code") if isinstance(body, Mapping) else None
    return own if isinstance(own, str) and re.fullmatch(r"[a-z][\w.\-]{2,60}", own) else "invalid_request"


def _prefix_status(status: int, said: str) -> str:
    return f"{status} {said}" if status and not said.startswith(f"{status} ") else said
