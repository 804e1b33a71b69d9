"""The host's own questions to a model, and the typed answers.

An answer is a pydantic class, which makes the JSON schema for providers with structured output and reads the reply.
Prose, fences and thinking around the JSON are skipped. Damaged JSON is repaired only where the repair explains every
character of it; any other answer is asked for again, with its fault and the form that is wanted. An answer that its
length limit cut off is continued, and never taken as it is.
"""

import json
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice
from typing import Annotated, Any, Protocol, TypeVar

import json_repair
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from dgm.errors import AgentFault
from dgm.messages import CONTEXT_LENGTH, AnswerForm, Message, Reply, Request, RequestRefused, Role, Stop

MAX_CHARS = 4_000_000
"""Maximum characters of an answer that are examined: as many as an agent may have of source."""
CONTINUE = (
    "Your answer was cut off at the limit of its length. Go on exactly where it ends, without repeating anything and"
    " without a word before."
)
_CONTINUATIONS = 2
"""Maximum number of continuations of cut answers to one question."""
_OVERLAP = 200
"""Maximum characters that a continuation may repeat of the part before."""
_QUOTED_CHARS = 4_000
"""Characters of an answer that are shown again to the model that gave it."""
_LEAST_CHARS = 4_000
"""Characters of evidence below which a question that is too long is not shortened any more."""
_MAX_OBJECTS = 500
"""Maximum number of beginnings of an object that are tried in one answer."""
_MAX_REPAIRED = 100_000
"""Maximum characters of damaged JSON: its repair is slow."""
_BEGIN = re.compile(r"\{\s*(?:[\"'`\u201c]([^\"'`\u201d\n:]{0,80})|([A-Za-z_][\w-]{0,80})\s{0,20}:)")
_KEY = re.compile(r"[\"'`\u201c]([^\"'`\u201d\n:]{1,80})[\"'`\u201d]\s{0,20}:")
_LAST_BRACE = re.compile(r"\}(?=[.;]?\s*(?:\n|```|~~~))")
_TAGS = "think|thinking|thought|reasoning|analysis|scratchpad|reflection"
_OPENS = re.compile(rf"<({_TAGS})>", re.I)
_THOUGHT = re.compile(rf"^[^\n\"{{}}]*</(?:{_TAGS})>", re.I | re.M)
_FLAG = re.compile(r"\W*(true|false|yes|no)\W*(?:$|[,.;:(\u2013-])", re.I)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.S)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_SPACE = r"(?:\s|//[^\n]*\n|#[^\n]*\n|/\*.*?\*/)*+"
_COMMA = rf"(?:{_SPACE}(?:,{_SPACE})+|[ \t\r]*\n{_SPACE})"
_QUOTES = ('""', "''", "``", "\u201c\u201d")
_SWALLOWED = re.compile(
    r"[\"'\u201d]\s*,\s*[\"'\u201c]?[^\"'\n]{1,40}[\"'\u201d]{1,2}\s*:|[\"']\s*\+\s*[\"']"
)
"""Pattern of a key inside a string, and of two strings that are joined."""
_ESCAPED_QUOTES = {'"': "\ue000", "'": "\ue001", "`": "\ue002"}
_KEY_NAME = re.compile(r"[\w/.-][\w /.-]*")

T = TypeVar("T")
Q = TypeVar("Q")


class MalformedAnswer(ValueError):
    """The error for an answer in the wrong form; the message is one line for the model."""


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


def join_lines(value: object, end: str = "") -> object:
    """Return a list of lines as one string; anything else as it is."""
    if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
        return "\n".join(line.removesuffix("\n") for line in value) + end
    return value


def _check_text(text: str) -> str:
    if not text.strip(" \t\r\n.\u2026"):
        raise ValueError("must be a string that is not empty")
    return text.strip()


def _read_flag(value: object) -> object:
    word = _FLAG.match(value) if isinstance(value, str) else None
    return word[1].lower() in ("true", "yes") if word else value


Text = Annotated[str, BeforeValidator(join_lines), AfterValidator(_check_text)]
"""More than white space and dots, stripped."""
Lines = Annotated[str, BeforeValidator(join_lines)]
"""Any text, as it is."""
Flag = Annotated[bool, Field(strict=True), BeforeValidator(_read_flag)]
"""A boolean, or the word for it, with a reason behind it."""


class Answer(BaseModel):
    """The base of answers, and of records in them.

    Keys may differ from the fields in case, separators and numbering. Further keys are ignored, unless they may be
    meant for an optional field.
    """

    model_config = ConfigDict(frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _name_keys(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        names = cls.names()
        named = _name_fields(value, names)
        optional = [name for name, is_required in names.items() if not is_required]
        for key in named.keys() - names.keys() if optional else ():
            if isinstance(named[key], dict | list) or get_close_matches(key, optional, 1, 0.8):
                raise ValueError(f"there is no key {key[:100]!r}; there are {', '.join(names)}")
        return named

    @classmethod
    def names(cls) -> Mapping[str, bool]:
        """Return key → whether it must be there."""
        return {field.alias or name: field.is_required() for name, field in cls.model_fields.items()}

    @classmethod
    def form(cls) -> AnswerForm:
        """Return the schema in the form that all providers take strictly: closed objects, every key required."""
        schema = cls.model_json_schema()
        return AnswerForm(cls.__name__.lower(), _close_schema(schema, schema.get("$defs", {})))


def _close_schema(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" in schema:
        return _close_schema(defs[schema["$ref"].rpartition("/")[2]], defs)
    match schema["type"]:
        case "object":
            fields = {name: _close_schema(field, defs) for name, field in schema["properties"].items()}
            return {
                "type": "object",
                "properties": fields,
                "required": list(fields),
                "additionalProperties": False,
            }
        case "array":
            return {"type": "array", "items": _close_schema(schema["items"], defs)}
        case plain:
            return {"type": plain}


A = TypeVar("A", bound=Answer)


def read_answer(kind: type[A], text: str) -> A:
    """Return the last answer of a kind in a text.

    Raises:
        MalformedAnswer: there is none; or the last one is cut off, has a key twice, or cannot be repaired without a
            guess; or a value in it is not as its field wants it.
    """
    if len(text) > MAX_CHARS:
        raise MalformedAnswer(f"the answer has {len(text)} characters; {MAX_CHARS} are allowed")
    if not text.strip():
        raise MalformedAnswer("the answer is empty")
    body = drop_thinking(text.lstrip("\ufeff"))
    if not body.strip():
        raise MalformedAnswer("the answer ends with its thinking; what was asked for does not follow")
    try:
        value = _find_object(body, kind)
        json.dumps(value, ensure_ascii=False).encode()
        return kind.model_validate(value)
    except UnicodeEncodeError as error:
        raise MalformedAnswer("a string holds half a surrogate pair") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise MalformedAnswer(f"{key!r}: {first['msg'].removeprefix('Value error, ')}") from error
    except RecursionError as error:
        raise MalformedAnswer("the JSON is nested too deep") from error


def drop_thinking(text: str) -> str:
    """Return a text without the blocks of thinking before its answer; empty if it is nothing but thinking."""
    parts, at = [], 0
    while (opened := _OPENS.search(text, at)) and text.find("{", at, opened.start()) < 0:
        parts.append(text[at : opened.start()])
        closed = re.compile(rf"</{opened[1]}>", re.I).search(text, opened.end())
        at = closed.end() if closed else len(text)
    text = "".join(parts) + text[at:]
    closings = [closing.end() for closing in _THOUGHT.finditer(text[:200_000])]
    return text[closings[-1] :] if closings else text


def _find_object(text: str, kind: type[Answer]) -> object:
    """Return the last object in a text that has at least half of the required keys.

    Where there is none, the first one may hold the answer as its only member, or as the arguments of a call.
    """
    fields = kind.names()
    required = {name for name, is_required in fields.items() if is_required}
    answer: object = None
    wrapped: object = None
    fault = f"there is no JSON object in it, with its keys in double quotes; it begins {text.strip()[:60]!r}"
    for begin, value in _iter_objects(text, {_plain(name) for name in fields}):
        missing = required - _name_fields(value, fields).keys()
        if missing:
            fault = f"the JSON object has no {', '.join(map(repr, sorted(missing)))}"
        if 2 * len(missing) <= len(required):
            answer = value
        elif "{" not in text[:begin] and ("name" in value or len(value) == 1):
            inner = value.get("arguments") if "name" in value else next(iter(value.values()))
            if isinstance(inner, dict) and not required - _name_fields(inner, fields).keys():
                wrapped = inner
    if answer is None and wrapped is None:
        raise MalformedAnswer(fault)
    return wrapped if answer is None else answer


def _iter_objects(text: str, names: Collection[str]) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield position and value of each JSON object in a text; what is broken in another way than JSON is prose.

    Raises:
        MalformedAnswer: an object with one of ``names`` cannot be read, or lies in one that cannot, or one is cut off.
    """
    at, broken, fault = 0, -1, "the JSON after the last object is wrong"
    for _ in range(_MAX_OBJECTS):
        begin = _BEGIN.search(text, at)
        if begin is None:
            break
        at = begin.start()
        try:
            value, end = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            fault = f"the JSON is wrong: {error.msg} (line {error.lineno} column {error.colno})"
            if error.msg.startswith("Unterminated") or not text[error.pos :].strip():
                raise MalformedAnswer(
                    f"the object is not closed: the answer ends before it does; {fault}"
                ) from error
            if _plain(begin[1] or begin[2] or "") not in names:
                broken, at = at, at + 1
                continue
            value, end = _repair(text, at, names, fault)
        if broken >= 0 and text.count("{", broken, at) > text.count("}", broken, at):
            raise MalformedAnswer(fault)
        yield at, value
        at, broken = end, -1
    if any(_plain(key) in names for key in _KEY.findall(text, at if broken < 0 else broken)):
        raise MalformedAnswer(fault)


def _reject_duplicate_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise MalformedAnswer("the JSON has a key twice in one object")
    return members


# Integers of thousands of digits are an error of Python, and no field is a number.
_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_reject_duplicate_keys, parse_int=float)


def _repair(text: str, at: int, names: Collection[str], fault: str) -> tuple[dict[str, object], int]:
    """Return the damaged object at a brace, and the position after it.

    Raises:
        MalformedAnswer: there is none, or its repair may be a guess; ``fault`` is what JSON says.
    """
    last = text.rfind("}", at, at + _MAX_REPAIRED) + 1
    for end in dict.fromkeys(
        [last, *(brace.end() for brace in islice(_LAST_BRACE.finditer(text, at, last), 3))]
    ):
        value = json_repair.loads(text[at:end], skip_json_loads=True) if end else None
        if isinstance(value, dict) and _explains(value, text[at:end], names):
            return value, end
    raise MalformedAnswer(fault)


def _explains(value: dict[str, object], text: str, names: Collection[str]) -> bool:
    """Return whether a repair changed nothing but notation: quotes, commas, comments, escapes and white space.

    The ends of strings with quotes in them stay a guess where a key may lie inside of one.
    """
    strings = _iter_strings(value)
    if any(_plain(key) not in names for key in value) or any(map(_SWALLOWED.search, strings)):
        return False
    return re.fullmatch(_pattern(value), _ESCAPE.sub(_unescape, text)) is not None


def _pattern(value: object) -> str:
    """Return a regular expression for the notations of a value that leave no doubt about it."""
    if isinstance(value, dict) and all(map(_KEY_NAME.fullmatch, value)):
        members = (
            f"(?:{_pattern(key)}|{re.escape(key)}){_SPACE}:{_SPACE}{_pattern(value[key])}" for key in value
        )
        return rf"\{{{_SPACE}{_COMMA.join(members)}{_SPACE}(?:,{_SPACE})*\}}"
    if isinstance(value, list):
        return rf"\[{_SPACE}{_COMMA.join(map(_pattern, value))}{_SPACE}(?:,{_SPACE})*\]"
    if isinstance(value, str):
        literal = re.escape(value)
        for quote, escaped in _ESCAPED_QUOTES.items():
            literal = literal.replace(quote, f"[{quote}{escaped}]")
        return "(?:" + "|".join(literal.join(quotes) for quotes in _QUOTES) + ")"
    return "null|None" if value is None else f"(?i:{re.escape(json.dumps(value))})"


def _iter_strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _iter_strings(item)


def _unescape(escape: re.Match[str]) -> str:
    """Return the character of an escape of JSON; an unknown one stays as it is."""
    if escape[1]:
        return chr(int(escape[1], 16))
    if escape[2] in _ESCAPED_QUOTES:
        return _ESCAPED_QUOTES[escape[2]]
    return escape[2] if escape[2] in "/\\" else _ESCAPES.get(escape[2], escape[0])


def _name_fields(value: Mapping[str, object], names: Collection[str]) -> dict[str, object]:
    """Return an object under the names that its keys differ from in case, numbering or separators only."""
    plain = {_plain(name): name for name in names}
    named: dict[str, object] = {}
    for key, content in value.items():
        name = plain.get(_plain(key), key)
        if name in named:
            raise MalformedAnswer(f"the JSON has the key {name[:100]!r} twice in one object")
        named[name] = content
    return named


def _plain(key: str) -> str:
    return re.sub(r"^[\d.) ]+|[\s_-]+", "", key).lower()


async def ask_shortened(build: Callable[[int], Q], chars: int, ask: Callable[[Q], Awaitable[T]]) -> T:
    """Ask a question, with half of its evidence again and again while it is too long for the model.

    Args:
        build: makes the question with about so many characters of evidence.
        chars: characters at first.
        ask: sends it, and returns the result.

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
    continuations, fault = _CONTINUATIONS, ""
    messages = tuple(request.messages)
    seen: set[tuple[object, ...]] = set()
    for number in range(1, retries + 2):
        asked = replace(request, messages=messages)
        reply = await _ask(bench, asked, role)
        text, last = reply.text, ""
        while reply.stop is Stop.LENGTH and reply.text.strip() and not reply.calls and continuations:
            continuations -= 1
            more = (Message(Role.ASSISTANT, _make_plain(text)), Message(Role.USER, CONTINUE))
            # A schema would make the model begin the answer anew.
            reply = await _ask(bench, replace(asked, messages=(*messages, *more), form=None), role)
            last = reply.text
            text = _join(text, last)
        try:
            return _read_reply(read, text, last, reply)
        except MalformedAnswer as error:
            fault = _describe_fault(reply, error)
        answer = (text.strip(), *((call.name, call.arguments) for call in reply.calls))
        if answer in seen:
            raise AgentFault("answer", f"the same unusable answer again at try {number}: {fault}")
        seen.add(answer)
        # Omit the reply's calls: a provider wants each one answered, and no such tool exists.
        quoted = _make_plain(text)
        quoted = quoted if len(quoted) <= _QUOTED_CHARS else quoted[:_QUOTED_CHARS] + "\n[...]"
        wanted = f"in this form:\n\n{skeleton}" if skeleton else "in the form that was asked for."
        shorter = " and shorter" if reply.stop is Stop.LENGTH else ""
        complaint = f"That cannot be used: {fault}. Answer again, in full{shorter}, {wanted}"
        messages = (*messages, Message(Role.ASSISTANT, quoted or "(nothing)"), Message(Role.USER, complaint))
    raise AgentFault("answer", f"no usable answer in {retries + 1} tries: {fault}")


async def _ask(bench: CanAsk, request: Request, role: str) -> Reply:
    try:
        reply = await bench.ask(request, role)
    except RequestRefused as error:
        raise _refusal(error.code, str(error)) from error
    if reply.error:
        raise _refusal(reply.error, reply.text)
    return reply


def _refusal(code: str, message: str) -> AgentFault:
    kind = QuestionTooLong if code == CONTEXT_LENGTH else AgentFault
    return kind("answer", f"the model was refused the question: {code}: {message}")


def _read_reply(read: Callable[[str], T], text: str, last: str, reply: Reply) -> T:
    """Read a complete answer: the last continuation alone, where the model began anew, else all parts as one."""
    if reply.stop is Stop.LENGTH:
        raise MalformedAnswer("it is not complete")
    if last.strip():
        with suppress(MalformedAnswer):
            return read(last)
    return read(text)


def _join(text: str, more: str) -> str:
    """Return a cut text and its continuation as one, without a repeated part or a fence that is opened again."""
    if "```" in text and more.lstrip().startswith("```"):
        more = more.lstrip().partition("\n")[2]
    longest = min(_OVERLAP, len(text), len(more))
    repeated = next((size for size in range(longest, 7, -1) if text.endswith(more[:size])), 0)
    return text + more[repeated:]


def _describe_fault(reply: Reply, error: MalformedAnswer) -> str:
    """Return the message to the model: the probable cause, if it is visible, and then the fault."""
    if reply.calls:
        return f"there is no tool {reply.calls[0].name[:100]!r}, answer in text ({error})"
    if reply.stop is Stop.LENGTH:
        return f"the answer was cut off at the limit of its length ({error})"
    if reply.stop is Stop.REFUSAL:
        return f"the question was declined ({error})"
    return str(error)


def _make_plain(text: str) -> str:
    """Return a text that can be sent: without half surrogate pairs."""
    return text.encode(errors="replace").decode()
