"""The host's own questions to a model, and the fields of its answers.

An answer is read leniently in form and strictly in content (``answer_objects``). One that cannot be read is asked for
again, with the place of the fault and the form that is wanted. One that its length limit cut off is continued, and
never taken as it is. The meaning of the keys is left to the caller.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from dgm.errors import AgentFault
from dgm.messages import CONTEXT_LENGTH, Message, Reply, Request, RequestRefused, Role, Stop
from dgm.meta.answer_objects import MAX_CHARS, MalformedAnswer, match_fields, read_object
from dgm.meta.lenient_json import MAX_DEPTH

__all__ = [
    "MAX_CHARS",
    "MAX_DEPTH",
    "CanAsk",
    "MalformedAnswer",
    "QuestionTooLong",
    "ask_shortened",
    "ask_until_readable",
    "read_flag",
    "read_object",
    "read_records",
    "read_text",
    "read_texts",
]

CONTINUE = (
    "Your answer was cut off at the limit of its length. Go on exactly where it ends, without repeating anything and"
    " without a word before."
)
_CONTINUATIONS = 2
"""Maximum number of continuations of cut answers to one question."""
_OVERLAP = 200
"""Maximum characters that a continuation may repeat of the part before."""
_QUOTED = 4_000
"""Characters of an answer that are shown again to the model that gave it."""
_SHOWN = 60
"""Characters that are shown of a value in a message."""
_FLAG = re.compile(r"\W*(true|false|yes|no)\W*(?:$|[,.;:(\u2013-])", re.I)

_LEAST_CHARS = 4_000
"""Characters of evidence below which a question that is too long is not shortened any more."""

T = TypeVar("T")
Q = TypeVar("Q")


class QuestionTooLong(AgentFault):
    """A question that does not fit into the model's context."""


class CanAsk(Protocol):
    """The interface for a single question to a model, such as a workbench."""

    async def ask(self, request: Request, role: str) -> Reply:
        """Return one reply.

        Raises:
            RequestRefused: this request can never be answered, or nothing more may be spent on it.
            Infrastructure: the model failed.
        """
        ...


async def ask_shortened(build: Callable[[int], Q], chars: int, ask: Callable[[Q], Awaitable[T]]) -> T:
    """Ask a question, with half of its evidence again and again while it is too long for the model.

    Args:
        build: makes the question with about so many characters of evidence.
        chars: characters at first.
        ask: sends it, and returns what came of it.

    Raises:
        QuestionTooLong: it is too long with little evidence, too.
        AgentFault, Infrastructure: as ``ask`` raises.
    """
    question = build(chars)
    while True:
        try:
            return await ask(question)
        except QuestionTooLong:
            refused = question
            while question == refused:
                chars //= 2
                if chars < _LEAST_CHARS:
                    raise
                question = build(chars)


async def ask_until_readable(
    bench: CanAsk, request: Request, read: Callable[[str], T], retries: int, role: str, skeleton: str = ""
) -> T:
    """Ask until ``read`` accepts the answer; each new question says what was wrong before.

    Args:
        bench: sends the question.
        request: the question; it offers no tools.
        read: converts the reply's text to the result, or raises ``MalformedAnswer``.
        retries: further questions after the first, 0 or more.
        role: the role that is charged, as ``Workbench.ask`` knows it.
        skeleton: the wanted form, shown to a model whose answer cannot be read.

    Raises:
        QuestionTooLong: stage ``answer``: the request was refused for its length.
        AgentFault: stage ``answer``: no answer was readable, the same one came twice, or the request was refused.
        Infrastructure: the model failed.
    """
    asking = _Asking(bench, role)
    messages, fault = tuple(request.messages), ""
    seen: set[tuple[object, ...]] = set()
    for number in range(1, retries + 2):
        reply, texts = await asking.ask_whole(replace(request, messages=messages))
        try:
            return _read_first(read, texts, reply)
        except MalformedAnswer as error:
            fault = _describe_fault(reply, error)
        answer = (reply.text.strip(), *((call.name, call.arguments) for call in reply.calls))
        if answer in seen:
            raise AgentFault("answer", f"the same unusable answer again at try {number}: {fault}")
        seen.add(answer)
        # Omit the reply's calls: a provider wants each one answered, and no such tool exists.
        said = Message(Role.ASSISTANT, _shorten(reply.text) or "(nothing)")
        wanted = f"in this form:\n\n{skeleton}" if skeleton else "in the form that was asked for."
        shorter = " and shorter" if reply.stop is Stop.LENGTH else ""
        complaint = f"That cannot be used: {fault}. Answer again, in full{shorter}, {wanted}"
        messages = (*messages, said, Message(Role.USER, complaint))
    raise AgentFault("answer", f"no usable answer in {retries + 1} tries: {fault}")


@dataclass(slots=True)
class _Asking:
    """The questions about one answer."""

    bench: CanAsk
    role: str
    continuations: int = _CONTINUATIONS
    """Number of continuations that may still be asked for."""

    async def ask_whole(self, request: Request) -> tuple[Reply, Sequence[str]]:
        """Return the reply, and the texts that may be the answer: the whole one, and before it a last part alone.

        A reply that is cut off is continued. Where it is cut in the end, ``stop`` of the reply is ``Stop.LENGTH``.

        Raises:
            AgentFault: stage ``answer``: the request was refused.
            Infrastructure: the model failed.
        """
        reply = await self._ask(request)
        text, last = reply.text, ""
        while reply.stop is Stop.LENGTH and reply.text.strip() and not reply.calls and self.continuations:
            self.continuations -= 1
            more = (Message(Role.ASSISTANT, _make_plain(text)), Message(Role.USER, CONTINUE))
            # A schema would make the model begin the answer anew.
            reply = await self._ask(replace(request, messages=(*request.messages, *more), form=None))
            last = reply.text
            text = _join(text, last)
        return replace(reply, text=text), [last, text] if last.strip() else [text]

    async def _ask(self, request: Request) -> Reply:
        try:
            reply = await self.bench.ask(request, self.role)
        except RequestRefused as error:
            raise _refusal(error.code, str(error)) from error
        if reply.error:
            raise _refusal(reply.error, reply.text)
        return reply


def _refusal(code: str, said: str) -> AgentFault:
    kind = QuestionTooLong if code == CONTEXT_LENGTH else AgentFault
    return kind("answer", f"the model was refused the question: {code}: {said}")


def _read_first(read: Callable[[str], T], texts: Sequence[str], reply: Reply) -> T:
    """Return the first of several texts that can be read; none that was cut off.

    Raises:
        MalformedAnswer: there is none; the fault is the last one's.
    """
    if reply.stop is Stop.LENGTH:
        raise MalformedAnswer("it is not complete")
    for text in texts[:-1]:
        try:
            return read(text)
        except MalformedAnswer:
            continue
    return read(texts[-1])


def _join(text: str, more: str) -> str:
    """Return a cut text and its continuation as one, without a repeated part or a fence that is opened again."""
    if "```" in text and more.lstrip().startswith("```"):
        more = more.lstrip().partition("\n")[2]
    most = min(_OVERLAP, len(text), len(more))
    repeated = next((size for size in range(most, 7, -1) if text.endswith(more[:size])), 0)
    return text + more[repeated:]


def read_text(answer: Mapping[str, object], key: str) -> str:
    """Return a string that is more than white space and dots, stripped; a list of lines becomes one string.

    Raises:
        MalformedAnswer: it is anything else, or missing.
    """
    value = _join_lines(answer.get(key))
    if not isinstance(value, str) or not value.strip(" \t\r\n.\u2026"):
        raise MalformedAnswer(f"{key!r} must be a string that is not empty{_name_given(answer, key)}")
    return value.strip()


def read_flag(answer: Mapping[str, object], key: str) -> bool:
    """Return a boolean; the word for it may be in quotes, with a reason behind it.

    Raises:
        MalformedAnswer: it is anything else, or missing.
    """
    value = answer.get(key)
    if isinstance(value, str) and (said := _FLAG.match(value)):
        value = said[1].lower() in ("true", "yes")
    if not isinstance(value, bool):
        raise MalformedAnswer(f"{key!r} must be true or false{_name_given(answer, key)}")
    return value


def read_texts(answer: Mapping[str, object], key: str) -> dict[str, str]:
    """Return an object whose values are all strings, such as files by path; ``{}`` if the key is missing or null.

    A list of objects with ``path`` and ``text`` (or ``content``) is read, too.

    Raises:
        MalformedAnswer: it is anything else.
    """
    value = answer.get(key)
    if value is None:
        return {}
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        rows = [match_fields(row, ("path", "text", "content")) for row in value]
        value = {row.get("path"): row.get("text", row.get("content")) for row in rows}
        if len(value) != len(rows) or not all(isinstance(path, str) for path in value):
            raise MalformedAnswer(f"{key!r} must be an object from path to text")
    if not isinstance(value, dict):
        if value == []:
            return {}
        raise MalformedAnswer(f"{key!r} must be an object")
    return _strings(value, f"in {key!r}", ends="\n")


def read_records(answer: Mapping[str, object], key: str, fields: Sequence[str]) -> list[dict[str, str]]:
    """Return a list of objects that each have the named fields, all strings; ``[]`` if the key is missing or null.

    One object is read as a list of one.

    Raises:
        MalformedAnswer: it is anything else.
    """
    value = answer.get(key)
    if value is None or value == {}:
        return []
    if isinstance(value, dict) and not _lacking(match_fields(value, fields), fields):
        value = [value]
    if not isinstance(value, list):
        raise MalformedAnswer(f"{key!r} must be a list")
    rows = []
    for n, row in enumerate(value, 1):
        place = f"in number {n} of {key!r}"
        if not isinstance(row, dict):
            raise MalformedAnswer(f"number {n} of {key!r} must be an object")
        named = match_fields(row, fields)
        if lacking := _lacking(named, fields):
            raise MalformedAnswer(f"{place}, {lacking[0]!r} is missing")
        rows.append(_strings({field: named[field] for field in fields}, place))
    return rows


def _name_given(answer: Mapping[str, object], key: str) -> str:
    """Return the beginning of the value that was given, for a message; empty if there is none."""
    return f", not {_shorten_value(answer[key])}" if key in answer else ""


def _shorten_value(value: object) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."


def _lacking(row: Mapping[str, object], fields: Sequence[str]) -> list[str]:
    return [field for field in fields if field not in row]


def _join_lines(value: object, ends: str = "") -> object:
    """Return a list of lines as one string; anything else as it is."""
    if not isinstance(value, list) or not value or not all(isinstance(line, str) for line in value):
        return value
    lines = [line.removesuffix("\n") for line in value]
    return "\n".join(lines) + ends


def _strings(value: Mapping[str, object], place: str, ends: str = "") -> dict[str, str]:
    strings = {}
    for key, given in value.items():
        text = _join_lines(given, ends)
        if not isinstance(text, str):
            raise MalformedAnswer(f"{place}, {key[:100]!r} must be a string")
        strings[key] = text
    return strings


def _describe_fault(reply: Reply, error: MalformedAnswer) -> str:
    """Return the message to the model: the probable cause, if it is visible, and then the fault."""
    if reply.calls:
        return f"there is no tool {reply.calls[0].name[:100]!r}, answer in text ({error})"
    if reply.stop is Stop.LENGTH:
        return f"the answer was cut off at the limit of its length ({error})"
    if reply.stop is Stop.REFUSAL:
        return f"the question was declined ({error})"
    return str(error)


def _shorten(text: str) -> str:
    plain = _make_plain(text)
    return plain if len(plain) <= _QUOTED else plain[:_QUOTED] + "\n[...]"


def _make_plain(text: str) -> str:
    """Return a text that can be sent: without half surrogate pairs."""
    return text.encode(errors="replace").decode()
