"""Conditions on tasks as people write them: ``kind = bug and f2p < 5``.

A condition compares one field with one value; ``and``, ``or``, ``not`` and parentheses join them. Nothing in it is run
as code.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from dgm.benchmarks.task_facts import TaskFacts
from dgm.benchmarks.toml_table import suggestion
from dgm.errors import UserError

TEXTS: Mapping[str, Callable[[TaskFacts], Collection[str]]] = {
    "id": lambda facts: [facts.id],
    "kind": lambda facts: [facts.kind],
    "split": lambda facts: [facts.split.value],
    "difficulty": lambda facts: [facts.difficulty],
    "repo": lambda facts: [facts.repo],
    "tag": lambda facts: facts.tags,
    "module": lambda facts: facts.modules,
    "calibrated": lambda facts: [facts.calibrated],
    "date": lambda facts: [facts.day],
    "license": lambda facts: [facts.provenance.license if facts.provenance else ""],
}
"""Fields that are texts; of several, as tags, one that fits is enough."""
NUMBERS: Mapping[str, Callable[[TaskFacts], int]] = {
    "f2p": lambda facts: len(facts.fail_to_pass),
    "p2p": lambda facts: len(facts.pass_to_pass),
    "added": lambda facts: facts.added,
    "removed": lambda facts: facts.removed,
    "lines": lambda facts: facts.added + facts.removed,
    "files": lambda facts: len(facts.changes),
}
"""Fields that are whole numbers."""
FIELDS = (*TEXTS, *NUMBERS)
_TOKEN = re.compile(
    r"""\s*(?:(?P<symbol><=|>=|!=|==|=|<|>|~|\(|\))|(?P<quoted>"[^"]*"|'[^']*')|(?P<word>[^\s()<>=!~"']+))"""
)
_JOINS = frozenset({"and", "or", "not"})
_TEXT_SIGNS = ("=", "==", "!=", "~")
_ORDERED = ("<", "<=", ">", ">=")
_DATE = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?")
"""A day, a month or a year."""
_MOST_DEPTH = 50
Condition = Callable[[TaskFacts], bool]


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def parse_condition(text: str) -> Condition:
    """Return a condition on tasks.

    ``=`` and ``!=`` compare whole values, ``~`` looks for a part of a text. ``<``, ``<=``, ``>`` and ``>=`` compare
    numbers and dates; a date may be a month or a year, and stands for all its days. Values with blanks stand in quotes.

    Raises:
        UserError: it is not one; the message says where and what is expected.
    """
    parser = _Parser(text)
    condition = parser.read_either(0)
    parser.expect_end()
    return condition


class _Parser:
    """One condition, read from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[_Token] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise self._fail(at + len(text[at:]) - len(text[at:].lstrip()), "this cannot be read")
            kind = found.lastgroup or ""
            self._tokens.append(_Token(kind, found[kind], found.start(kind)))
            at = found.end()
        self._tokens.append(_Token("end", "", len(text)))
        self._next = 0

    def read_either(self, depth: int) -> Condition:
        """Read conditions that ``or`` joins."""
        if depth > _MOST_DEPTH:
            raise self._fail(self._peek().at, "the parentheses are nested too deep")
        parts = [self._read_all(depth)]
        while self._take_word("or"):
            parts.append(self._read_all(depth))
        return parts[0] if len(parts) == 1 else lambda facts: any(part(facts) for part in parts)

    def expect_end(self) -> None:
        """Refuse what follows a whole condition."""
        token = self._peek()
        if token.kind != "end":
            raise self._fail(token.at, "expected 'and', 'or' or the end")

    def _read_all(self, depth: int) -> Condition:
        parts = [self._read_one(depth)]
        while self._take_word("and"):
            parts.append(self._read_one(depth))
        return parts[0] if len(parts) == 1 else lambda facts: all(part(facts) for part in parts)

    def _read_one(self, depth: int) -> Condition:
        if self._take_word("not"):
            denied = self._read_one(depth + 1) if depth <= _MOST_DEPTH else self.read_either(depth)
            return lambda facts: not denied(facts)
        if self._peek().text == "(" and self._peek().kind == "symbol":
            self._next += 1
            inner = self.read_either(depth + 1)
            token = self._take()
            if token.text != ")":
                raise self._fail(token.at, "expected ')'")
            return inner
        return self._read_comparison()

    def _read_comparison(self) -> Condition:
        name, sign, value = self._take(), self._take(), self._take()
        field = name.text.lower()
        if name.kind != "word" or field in _JOINS:
            raise self._fail(name.at, f"expected a field ({', '.join(FIELDS)})")
        if field not in FIELDS:
            raise self._fail(name.at, f"unknown field {name.text!r}{suggestion(field, FIELDS)}")
        if sign.text not in (*_TEXT_SIGNS, *_ORDERED):
            raise self._fail(sign.at, f"expected one of = != ~ < <= > >= after {name.text!r}")
        if value.kind not in ("word", "quoted") or (value.kind == "word" and value.text in _JOINS):
            raise self._fail(value.at, f"expected a value after {sign.text!r}")
        wanted = value.text[1:-1] if value.kind == "quoted" else value.text
        if field in NUMBERS:
            return self._compare_numbers(field, sign, _Token(value.kind, wanted, value.at))
        if sign.text in _ORDERED and field != "date":
            raise self._fail(sign.at, f"{field} is a text; compare it with =, != or ~")
        if field != "date" or sign.text == "~":
            return _compare_texts(TEXTS[field], sign.text, wanted)
        if not _DATE.fullmatch(wanted):
            raise self._fail(value.at, f"date is compared with a day such as 2024-01-31, not {wanted!r}")
        return _compare_dates(sign.text, wanted)

    def _compare_numbers(self, field: str, sign: _Token, value: _Token) -> Condition:
        if sign.text == "~":
            raise self._fail(sign.at, f"{field} is a number; compare it with = != < <= > >=")
        if not re.fullmatch(r"\d{1,9}", value.text):
            raise self._fail(value.at, f"{field} is compared with a whole number, not {value.text!r}")
        read, number, holds = NUMBERS[field], int(value.text), _HOLDS[sign.text]
        return lambda facts: holds(_sign_of(read(facts), number))

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _take_word(self, word: str) -> bool:
        token = self._peek()
        found = token.kind == "word" and token.text.lower() == word
        self._next += found
        return found

    def _fail(self, at: int, problem: str) -> UserError:
        here = self._text[at : at + 20]
        return UserError(
            f"--where: {problem}, at character {at + 1}" + (f" ({here!r})" if here.strip() else "")
        )


def _compare_texts(read: Callable[[TaskFacts], Collection[str]], sign: str, wanted: str) -> Condition:
    match sign:
        case "=" | "==":
            return lambda facts: wanted in read(facts)
        case "!=":
            return lambda facts: wanted not in read(facts)
        case _:
            return lambda facts: any(wanted.lower() in value.lower() for value in read(facts))


def _compare_dates(sign: str, wanted: str) -> Callable[[TaskFacts], bool]:
    """Compare days, months or years, which are ordered as texts; a task without a date is before and after none."""
    holds = _HOLDS[sign]
    return lambda facts: holds(_sign_of(facts.day[: len(wanted)], wanted)) if facts.day else sign == "!="


def _sign_of(one: int | str, other: int | str) -> int:
    """Return -1, 0 or 1 for less, equal or more; both are of one type."""
    if isinstance(one, int) and isinstance(other, int):
        return (one > other) - (one < other)
    return (str(one) > str(other)) - (str(one) < str(other))


_HOLDS: Mapping[str, Callable[[int], bool]] = {
    "=": lambda order: order == 0,
    "==": lambda order: order == 0,
    "!=": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}
