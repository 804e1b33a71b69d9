"""The search for the JSON object of an answer, in prose, fences, strings and blocks of thinking.

The form is read leniently, the content strictly: an answer that was cut off, that holds a key twice or that lacks a
required key is not read. ``lenient_json`` reads one object; this module decides which one is the answer.
"""

import html
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import NoReturn

from dgm.meta import lenient_json
from dgm.meta.lenient_json import MAX_DEPTH, NotReadable, describe_place

MAX_CHARS = 4_000_000
"""Maximum characters of an answer that are examined: as many as an agent may have of source."""
_TRIES = 3
"""Average number of times that a character is read again in the search for an object that parses."""
_PATIENCE = 1_000_000
"""Additional characters to read, so that a short text may contain any number of false starts."""
_SLOW = 300_000
"""Characters after which nothing is read leniently any more, because that takes ten times as long."""
_BEGINS = re.compile(r"\{\s*(?:[\"'`\u201c\u2018}]|//|/\*|#|[A-Za-z_][\w-]{0,80}\s{0,20}:)")
_TAGS = "think|thinking|thought|reasoning|analysis|scratchpad|reflection"
_THINKS = re.compile(rf"<({_TAGS})>", re.I)
_THOUGHT = re.compile(rf"^[^\n\"{{}}]*</(?:{_TAGS})>", re.I | re.M)
_CALLS = ("arguments", "parameters", "input", "args")
"""Names under which a call that is written as text has its arguments."""
_ESCAPED = re.compile(r'\{(?:\s|\\n)*\\"')
_LABEL = r"(?m)^[ \t>#*_\-\d.)`\"']*{}[*_`\"' \t]*[:\uff1a][*_ \t]*"
_HEADING = r"(?m)^[ \t]*(?:#{{1,6}}|\*\*|__)[ \t*_\d.)]*{}[ \t*_:#]*$"
_SWALLOWED = re.compile(r"[\"']\s*,\s*[\"']?([^\"'\n]{1,40})[\"']{1,2}\s*:")
"""Pattern of a key inside a string."""
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NUMBERED = re.compile(r"^\s*(?:\(?\d{1,2}[.):\s_-]+)")


class MalformedAnswer(ValueError):
    """The error for an answer in the wrong form; the message is one line for the model."""


def read_object(text: str, keys: Sequence[str], optional: Sequence[str] = ()) -> Mapping[str, object]:
    """Return the last JSON object in a text that has all of ``keys``, under these names.

    Prose, fences and thinking around it are skipped. Other case, spaces and numbers in its keys are allowed. It may be
    the only member of another object, a string that holds JSON, or, where there are no ``optional`` keys, a list of
    labels with text.

    Args:
        text: the answer.
        keys: required keys.
        optional: further keys that the form knows.

    Raises:
        MalformedAnswer: there is none; or it is nested deeper than ``MAX_DEPTH``, or holds ``NaN``, an infinite number,
            half a surrogate pair, or a key twice; or the last one is not closed; or the text is longer than
            ``MAX_CHARS``.
    """
    if len(text) > MAX_CHARS:
        raise MalformedAnswer(f"the answer has {len(text)} characters; {MAX_CHARS} are allowed")
    if not text.strip():
        raise MalformedAnswer("the answer is empty")
    said = drop_thinking(text.lstrip("\ufeff"))
    if not said.strip():
        raise MalformedAnswer("the answer ends with its thinking; what was asked for does not follow")
    if "&quot;" in said and '"' not in said:
        said = html.unescape(said)
    found = _Form(keys, optional).search(said)
    for one in _list_strings(found):
        _check_text(one)
    return found


def drop_thinking(text: str) -> str:
    """Return a text without the blocks of thinking before its answer; empty if it is nothing but thinking."""
    kept, at = [], 0
    while (opened := _THINKS.search(text, at)) and text.find("{", at, opened.start()) < 0:
        kept.append(text[at : opened.start()])
        closed = re.compile(rf"</{opened[1]}>", re.I).search(text, opened.end())
        if closed is None:
            return "".join(kept)
        at = closed.end()
    text = "".join(kept) + text[at:]
    closings = [closing.end() for closing in _THOUGHT.finditer(text[:200_000])]
    return text[closings[-1] :] if closings else text


@dataclass(frozen=True, slots=True)
class _Piece:
    """The result of parsing at one brace: an object, or the fault in it."""

    begin: int
    chars: int
    value: Mapping[str, object] | None
    fault: str = ""
    cut: bool = False
    keys: Collection[str] = ()
    """Keys that were read before the fault."""
    chose: bool = False
    """Whether quotation marks inside a string had to be told from its end."""


@dataclass(frozen=True, slots=True)
class _Form:
    """The keys of an answer."""

    keys: Sequence[str]
    optional: Sequence[str]

    def search(self, text: str) -> Mapping[str, object]:
        """Return the answer in a text.

        Raises:
            MalformedAnswer: there is none.
        """
        pieces = list(_pieces(text))
        attempts = [piece for piece in pieces if self._is_attempt(piece)]
        if attempts and attempts[-1].value is not None:
            found = self.name_keys(attempts[-1].value)
            if not self._lacking(found):
                self._check_choice(attempts[-1], found)
                return found
        if not attempts:
            outer = next((one for one in pieces if "{" not in text[: one.begin] and one.value), None)
            inner = self._unwrap(outer.value) if outer and outer.value else None
            if inner is None:
                inner = self._search_escaped(text) or self._search_unopened(text)
            if inner is None and not self.optional and not any(map(self._has_some, pieces)):
                inner = self._search_labels(text)
            if inner is not None:
                return inner
        raise MalformedAnswer(self._explain(text, attempts or pieces))

    def name_keys(self, value: Mapping[str, object]) -> Mapping[str, object]:
        """Return an object with the form's own names for the keys that are recognised."""
        return match_fields(value, (*self.keys, *self.optional))

    def _is_attempt(self, piece: _Piece) -> bool:
        """Return whether an object, or the beginning of one, is meant as the answer."""
        if piece.value is None:
            return self._has_some(piece)
        return bool(piece.value) and 2 * len(self._lacking(self.name_keys(piece.value))) <= len(self.keys)

    def _has_some(self, piece: _Piece) -> bool:
        """Return whether a piece has any of the required keys."""
        found = piece.keys if piece.value is None else piece.value
        return bool({_plain(key) for key in found} & {_plain(key) for key in self.keys})

    def _lacking(self, value: Mapping[str, object]) -> list[str]:
        return [key for key in self.keys if key not in value]

    def _check_choice(self, piece: _Piece, found: Mapping[str, object]) -> None:
        """Refuse an object that a quotation mark inside a string may have cut into pieces."""
        if not piece.chose:
            return
        own = re.compile(rf",\s*[\"']({'|'.join(map(re.escape, (*self.keys, *self.optional)))})\b")
        hits = (_SWALLOWED.search(text) or own.search(text) for text in _list_strings(found))
        swallowed = (hit[1] for hit in hits if hit)
        foreign = (key for key in found if key not in (*self.keys, *self.optional))
        unclear = next(chain(foreign, swallowed), "")
        if unclear:
            raise MalformedAnswer(
                f"it is not clear where a string ends, before {unclear[:100]!r}: write quotation marks inside a"
                ' string as \\"'
            )

    def _unwrap(self, value: Mapping[str, object]) -> Mapping[str, object] | None:
        """Return the answer in an object whose only member it is, or in a call, as an object or a string."""
        calls = [value[name] for name in _CALLS if name in value and "name" in value]
        inner = next(iter(calls or value.values())) if calls or len(value) == 1 else None
        if isinstance(inner, str) and "{" in inner:
            try:
                return self.search(inner)
            except MalformedAnswer:
                return None
        if isinstance(inner, dict) and not self._lacking(named := self.name_keys(inner)):
            return named
        return None

    def _search_escaped(self, text: str) -> Mapping[str, object] | None:
        """Return the answer in JSON whose quotation marks are escaped, as inside a string."""
        begin = _ESCAPED.search(text)
        if begin is None or "{" in text[: begin.start()]:
            return None
        whole = text[begin.start() : text.rfind("}") + 1]
        try:
            return self.search(json.loads(f'"{whole}"', strict=False))
        except ValueError:
            return None

    def _search_unopened(self, text: str) -> Mapping[str, object] | None:
        """Return the answer in an object without its first brace, as a server leaves it that has begun the answer."""
        begin = re.match(
            r"\s*(?:```\w*\s*)?(?=[\"'](?:" + "|".join(map(re.escape, self.keys)) + r")[\"']\s*:)", text
        )
        if begin is None:
            return None
        try:
            return self.search("{" + text[begin.end() :])
        except MalformedAnswer:
            return None

    def _search_labels(self, text: str) -> Mapping[str, object] | None:
        """Return the answer in a text that names each key once, as a tag, a label or a heading, with text after it."""
        if all(text.count(f"<{key}>") == text.count(f"</{key}>") == 1 for key in self.keys):
            return {key: text.partition(f"<{key}>")[2].partition(f"</{key}>")[0].strip() for key in self.keys}
        places: list[tuple[int, int, str]] = []
        for key in self.keys:
            name = re.escape(key).replace("_", r"[ _-]?")
            found = [*re.finditer(_LABEL.format(name), text, re.I)]
            found = found or [*re.finditer(_HEADING.format(name), text, re.I)]
            if len(found) != 1:
                return None
            places.append((found[0].start(), found[0].end(), key))
        places.sort()
        ends = [begin for begin, _, _ in places[1:]] + [len(text)]
        parts = {key: _strip_text(text[at:end]) for (_, at, key), end in zip(places, ends, strict=True)}
        return parts if all(parts.values()) else None

    def _explain(self, text: str, pieces: Sequence[_Piece]) -> str:
        """Return the fault of the piece that comes closest to an answer."""
        if not pieces:
            begin = text.strip()[:60]
            return f"there is no JSON object in it, with its keys in double quotes; it begins {begin!r}"
        best = pieces[-1] if pieces[-1].cut else max(pieces, key=lambda piece: piece.chars)
        if best.value is None:
            return best.fault
        missing = ", ".join(repr(key) for key in self._lacking(self.name_keys(best.value)))
        return f"the JSON object has no {missing} ({describe_place(text, best.begin)})"


def match_fields(value: Mapping[str, object], names: Sequence[str]) -> Mapping[str, object]:
    """Return an object under the given names where its keys differ from them in case, numbering or separators only."""
    plain = {_plain(name): name for name in names}
    named: dict[str, object] = {}
    for key, content in value.items():
        name = key if key in names else plain.get(_plain(key), key)
        if name in named or (name != key and name in value):
            name = key
        named[name] = content
    return named


@lru_cache(maxsize=1_000)
def _plain(key: str) -> str:
    """Return a key without case, numbering and separators."""
    return re.sub(r"[\W_]+", "", _CAMEL.sub("_", _NUMBERED.sub("", key))).lower()


def _strip_text(text: str) -> str:
    plain = re.sub(r"^\s*[|>][-+]?[ \t]*\n", "", text)
    lines = [line.strip() for line in plain.strip().strip("*_`\"' \t,").splitlines()]
    while lines and re.fullmatch(r"[\s`#*_\-}{]*", lines[-1]):
        lines.pop()
    return "\n".join(lines).strip()


def _pieces(text: str) -> Iterator[_Piece]:
    """Yield the top-level pieces of a text within a bounded effort, because a hostile text may be slow to parse.

    Nothing is looked for inside an object that the text's end cuts off: it would be a part of an unfinished answer.
    """
    left = _PATIENCE + _TRIES * len(text)
    slow = _SLOW
    begin = _BEGINS.search(text)
    while begin and left > 0:
        at = begin.start()
        piece = _read_strictly(text, at)
        if piece.value is None and slow > 0:
            left -= piece.chars
            piece = _read_leniently(text, at, piece)
            slow -= piece.chars + at // 20
        yield piece
        if piece.cut:
            return
        if piece.value is None:
            # Python counts the lines before a fault, from the beginning of the text.
            left -= piece.chars + at // 20
        begin = _BEGINS.search(text, at + (1 if piece.value is None else piece.chars))


def _read_strictly(text: str, at: int) -> _Piece:
    rest = len(text) - at
    try:
        value, end = _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        # For a string without an end, Python reports the position of its beginning.
        chars = rest if error.msg.startswith("Unterminated") else error.pos - at
        return _Piece(at, chars, None)
    except MalformedAnswer as error:
        return _Piece(at, rest, None, str(error))
    except RecursionError:
        raise MalformedAnswer(f"the JSON is nested deeper than {MAX_DEPTH}") from None
    return _Piece(at, end - at, value)


def _read_leniently(text: str, at: int, strict: _Piece) -> _Piece:
    try:
        value, end, chose = lenient_json.read_lenient(text, at)
    except NotReadable as error:
        place = describe_place(text, at if error.cut else error.at)
        fault = strict.fault or f"the JSON is wrong: {error} ({'it begins in ' if error.cut else ''}{place})"
        return _Piece(at, max(strict.chars, error.at - at), None, fault, error.cut, error.keys)
    return _Piece(at, end - at, value, chose=chose)


def _reject_duplicate_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made: dict[str, object] = {}
    for key, value in pairs:
        if key in made:
            raise MalformedAnswer(f"the JSON has the key {key[:100]!r} twice in one object")
        made[key] = value
    return made


def _integer(digits: str) -> int:
    try:
        return lenient_json.read_whole_number(digits)
    except ValueError as error:
        raise MalformedAnswer(str(error)) from None


def _number(digits: str) -> float:
    try:
        return lenient_json.read_fraction(digits)
    except ValueError as error:
        raise MalformedAnswer(str(error)) from None


def _reject_constant(word: str) -> NoReturn:
    raise MalformedAnswer(f"the JSON holds {word}, which JSON does not know")


_DECODER = json.JSONDecoder(
    strict=False,
    object_pairs_hook=_reject_duplicate_keys,
    parse_int=_integer,
    parse_float=_number,
    parse_constant=_reject_constant,
)


def _list_strings(answer: Mapping[str, object]) -> Iterator[str]:
    """Yield all keys and strings of an answer.

    Raises:
        MalformedAnswer: it is nested too deep.
    """
    waiting: list[tuple[object, int]] = [(answer, 1)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            if depth > MAX_DEPTH:
                raise MalformedAnswer(f"the JSON is nested deeper than {MAX_DEPTH}")
            inside = [*value, *value.values()] if isinstance(value, dict) else value
            waiting += [(item, depth + 1) for item in inside]


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise MalformedAnswer(
            f"a string holds half a surrogate pair (\\u{ord(text[error.start]):04x})"
        ) from error
