"""A parser of one JSON object as language models write it: with the slips that leave no doubt about what is meant.

It reads single, typographic, back-quoted and triple quotes, keys without quotes, quotation marks inside a string,
line breaks and unknown escapes in strings, comments, missing and surplus commas, joined strings, and the constants of
Python. It guesses nothing: an object that is not closed is no object, and neither is one with a key twice.
"""

import json
import math
import re
from collections.abc import Collection

MAX_DEPTH = 100
"""Maximum nesting depth of objects and lists."""
_CLOSING = {'"': '"', "'": "'", "`": "`", "\u201c": '\u201d"', "\u2018": "\u2019'", "\u201d": '\u201d"'}
_TRIPLE = ('"""', "'''")
_WORDS = {"true": True, "false": False, "yes": True, "no": False, "none": None, "null": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\"}
_COMMENT = re.compile(r"(?://|#)[^\n]*|/\*.{0,2000}?\*/|\s+", re.S)
_REST_IS_BLANK = re.compile(r"\s*+\Z")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?=[\s,\]}/#]|$)")
_WORD = re.compile(r"[A-Za-z]+(?=[\s,\]}/#.]|$)")
_BARE_KEY = re.compile(r"[A-Za-z_][\w-]{0,80}(?=\s{0,20}:)")
_ASIDE = r"(?:\s|(?://|#)[^\n]{0,200}\n|/\*(?:[^*]|\*(?!/)){0,200}\*/)*+"
_KEY_NEXT = r"(?:[\"'`\u201c\u2018][^\"'`\n\u201d]{1,200}[\"'`\u201d\u2019]|[A-Za-z_][\w-]{0,80})\s{0,20}:"
_AFTER_KEY = re.compile(r"\s*+:")
_AFTER_MEMBER = re.compile(
    rf"{_ASIDE}(?:(?:,{_ASIDE})+(?:{_KEY_NEXT}|\}})|\+\s*[\"'])|[ \t\r]*\n\s*{_KEY_NEXT}"
)
_ITEM_NEXT = r"(?:[\"'`\u201c\u2018{\[\]\d-]|true|false|null|None|True|False)"
_AFTER_ITEM = re.compile(rf"{_ASIDE}(?:,{_ASIDE}{_ITEM_NEXT}|\+\s*[\"'])|[ \t\r]*\n\s*+[\"']")
_CLOSES_INNER = re.compile(rf"{_ASIDE}[}}\]]{_ASIDE}(?:[,}}\]]|$|[\"'{{])")
_CLOSES_OUTER = re.compile(rf"{_ASIDE}\}}(?:\s|$|[`<*]|[\"'](?:\s|$))")
_SHOWN = 60


class NotReadable(ValueError):
    """The error for a place at which no object can be read.

    Attributes:
        at: position of the fault in the text.
        cut: whether the text ends before the object does.
        keys: the outermost object's keys up to the fault.
    """

    def __init__(self, why: str, at: int, *, cut: bool = False) -> None:
        super().__init__(why)
        self.at = at
        self.cut = cut
        self.keys: Collection[str] = ()


def read_lenient(text: str, at: int) -> tuple[dict[str, object], int, bool]:
    """Return the object that begins at a brace, the position after it, and whether the end of a string was chosen.

    A string's end is chosen where quotation marks stand inside of it: the first one counts after which the object goes
    on as one does.

    Raises:
        NotReadable: there is no object.
    """
    parser = _Parser(text, at)
    try:
        value = parser.read_object(1)
    except NotReadable as error:
        error.keys = tuple(parser.outermost)
        raise
    return value, parser.at, parser.chose


def describe_place(text: str, at: int) -> str:
    """Return line and column, both from 1, and the text that stands there."""
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    shown = text[at : at + _SHOWN].partition("\n")[0].strip()
    there = f", at {shown!r}" if shown else ", where the line ends" if text[at:].strip() else ""
    return f"line {line} column {column}{there}"


def read_whole_number(digits: str) -> int:
    """Return an integer.

    Raises:
        ValueError: it has more digits than Python reads.
    """
    try:
        return int(digits)
    except ValueError:
        raise ValueError(f"the JSON holds a number of {len(digits)} digits") from None


def read_fraction(digits: str) -> float:
    """Return a finite number.

    Raises:
        ValueError: it is infinite.
    """
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the JSON holds {digits[:40]}, which is no finite number")
    return value


class _Parser:
    """One pass over a text from a brace on.

    Attributes:
        at: the present position.
        chose: whether a quotation mark was taken as a part of its string.
        outermost: the members of the outermost object so far.
    """

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at, self.begin = text, at, at
        self.chose = False
        self.outermost: dict[str, object] = {}

    def fail(self, why: str) -> NotReadable:
        """Return the error for the present position."""
        if _REST_IS_BLANK.match(self.text, self.at):
            return NotReadable("the object is not closed: the answer ends before it does", self.at, cut=True)
        return NotReadable(why, self.at)

    def peek(self) -> str:
        """Return the next character after white space and comments; empty at the end."""
        while found := _COMMENT.match(self.text, self.at):
            self.at = found.end()
        return self.text[self.at : self.at + 1]

    def read_object(self, depth: int) -> dict[str, object]:
        """Return the object at the present brace."""
        found: dict[str, object] = self.outermost if depth == 1 else {}
        self.at += 1
        while (char := self.peek()) != "}":
            if char == ",":
                self.at += 1
                continue
            at = self.at
            key = self.read_key()
            if key in found:
                raise NotReadable(f"the JSON has the key {key[:100]!r} twice in one object", at)
            if self.peek() != ":":
                raise self.fail(f"a colon is missing after the key {key[:100]!r}")
            self.at += 1
            found[key] = ""
            found[key] = self.read_value(depth, in_list=False)
            if self.peek() not in (",", "}") and not _starts_key(self.text, self.at):
                raise self.fail(f"a comma or a brace is missing after the value of {key[:100]!r}")
        self.at += 1
        return found

    def read_list(self, depth: int) -> list[object]:
        """Return the list at the present bracket."""
        found: list[object] = []
        self.at += 1
        while (char := self.peek()) != "]":
            if char == ",":
                self.at += 1
                continue
            found.append(self.read_value(depth, in_list=True))
            if self.peek() not in (",", "]") and self.peek() not in _CLOSING and self.peek() != "{":
                raise self.fail("a comma or a bracket is missing in the list")
        self.at += 1
        return found

    def read_key(self) -> str:
        """Return the key at the present position."""
        if self.peek() in _CLOSING:
            quote = self.text[self.at]
            end = self.at + 1
            while end < len(self.text) and self.text[end] not in _CLOSING[quote] + "\n":
                end += 2 if self.text[end] == "\\" else 1
            key, after = self.text[self.at + 1 : end], end + 1
            if self.text[end : end + 1] == "\n" or not _AFTER_KEY.match(self.text, after):
                if end >= len(self.text) - 1:
                    self.at = len(self.text)
                raise self.fail("there is no key with a colon after it")
            self.at = after
            return _unescape(key)
        bare = _BARE_KEY.match(self.text, self.at)
        if bare is None:
            raise self.fail("there is no key in quotes")
        self.at = bare.end()
        return bare[0]

    def read_value(self, depth: int, *, in_list: bool) -> object:
        """Return the value at the present position."""
        char = self.peek()
        if char and char in "{[":
            if depth >= MAX_DEPTH:
                raise NotReadable(f"the JSON is nested deeper than {MAX_DEPTH}", self.at)
            return self.read_object(depth + 1) if char == "{" else self.read_list(depth + 1)
        if char and char in _CLOSING:
            return self._read_strings(depth, in_list)
        if number := _NUMBER.match(self.text, self.at):
            self.at = number.end()
            return self._number(number[0])
        word = _WORD.match(self.text, self.at)
        if word is None or word[0].lower() not in _WORDS:
            raise self.fail("there is no value")
        self.at = word.end()
        return _WORDS[word[0].lower()]

    def _number(self, digits: str) -> object:
        try:
            return read_whole_number(digits) if digits.lstrip("-").isdigit() else read_fraction(digits)
        except ValueError as error:
            raise NotReadable(str(error), self.at) from None

    def _read_strings(self, depth: int, in_list: bool) -> str:
        parts = [self._read_string(depth, in_list)]
        while self.peek() == "+":
            self.at += 1
            if self.peek() not in ('"', "'"):
                raise self.fail("there is no string after '+'")
            parts.append(self._read_string(depth, in_list))
        return "".join(parts)

    def _read_string(self, depth: int, in_list: bool) -> str:
        text, begin = self.text, self.at
        triple = text[begin : begin + 3]
        if triple in _TRIPLE and text.find(triple, begin + 3) > 0:
            end = text.find(triple, begin + 3)
            self.at = end + 3
            return _unescape(text[begin + 3 : end])
        closing = _CLOSING[text[begin]]
        marks = re.compile(f"[{closing}\\\\]")
        at = begin + 1
        while found := marks.search(text, at):
            if found[0] == "\\":
                at = found.end() + 1
                continue
            if self._ends(found.end(), depth, in_list):
                self.at = found.end()
                return _unescape(text[begin + 1 : found.start()])
            self.chose = True
            at = found.end()
        raise NotReadable("a string is not closed: the answer ends before it does", begin, cut=True)

    def _ends(self, at: int, depth: int, in_list: bool) -> bool:
        """Return whether what follows a quotation mark is what follows a string in an object or a list."""
        if (_AFTER_ITEM if in_list else _AFTER_MEMBER).match(self.text, at):
            return True
        closes = _CLOSES_OUTER if depth == 1 and not in_list else _CLOSES_INNER
        return bool(closes.match(self.text, at))


def _starts_key(text: str, at: int) -> bool:
    return bool(re.compile(_KEY_NEXT).match(text, at))


def _unescape(text: str) -> str:
    """Return a string without its escapes; an unknown one stays as it is."""
    if "\\" not in text:
        return text
    return re.sub(r"(?:\\u[0-9a-fA-F]{4})+|\\(.)", _escaped, text, flags=re.S)


def _escaped(found: re.Match[str]) -> str:
    if found[1] is None:
        return str(json.loads(f'"{found[0]}"'))
    if found[1] in "\"'`":
        return found[1]
    return _ESCAPES.get(found[1], found[0])
