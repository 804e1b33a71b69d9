"""Expressions inside outputs and tags: literals, dotted paths, filters and conditions."""

import re
from dataclasses import dataclass, field

from .errors import TemplateSyntaxError, UndefinedName
from .filters import find_filter

_WORD = re.compile(r"""\s*("[^"]*"|'[^']*'|==|!=|<=|>=|<|>|\||:|,|[^\s|:,=!<>"']+)""")
_NUMBER = re.compile(r"-?\d+(\.\d+)?$")
_CONSTANTS = {"true": True, "false": False, "none": None}
_COMPARE = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "in": lambda a, b: a in b,
}


def split_words(text, line=None):
    """Split the text of an expression into words; quoted strings stay whole."""
    words, position = [], 0
    text = text.rstrip()
    while position < len(text):
        match = _WORD.match(text, position)
        if match is None:
            raise TemplateSyntaxError(f"cannot read {text[position:]!r}", line)
        words.append(match.group(1))
        position = match.end()
    return words


@dataclass(frozen=True)
class Operand:
    """A literal or a dotted path, with the filters that its value passes through."""

    word: str
    filters: tuple = field(default=())

    def value(self, scope):
        result = resolve(self.word, scope)
        for name, words in self.filters:
            arguments = [resolve(word, scope) for word in words]
            result = find_filter(name)(result, *arguments)
        return result


@dataclass(frozen=True)
class Condition:
    """Comparisons joined by ``and`` and ``or``; ``and`` binds tighter."""

    alternatives: tuple

    def holds(self, scope):
        return any(all(test(scope) for test in tests) for tests in self.alternatives)


def resolve(word, scope):
    """Return the value of one literal or dotted path."""
    if word[0] in "\"'":
        return word[1:-1]
    if _NUMBER.match(word):
        return float(word) if "." in word else int(word)
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    first, *rest = word.split(".")
    value = scope.lookup(first)
    for part in rest:
        value = _member(value, part, word)
    return value


def _member(value, part, path):
    try:
        return value[part]
    except (TypeError, KeyError, IndexError):
        pass
    if part.isdigit():
        try:
            return value[int(part)]
        except (TypeError, KeyError, IndexError) as error:
            raise UndefinedName(f"{path!r} has no item {part}") from error
    if part.startswith("_") or not hasattr(value, part):
        raise UndefinedName(f"{path!r} has no member {part!r}")
    return getattr(value, part)


def parse_operand(words, line=None):
    """Read ``path|filter:arg,arg|filter`` from words."""
    if not words or words[0] in "|:,":
        raise TemplateSyntaxError("an expression is missing", line)
    filters, index = [], 1
    while index < len(words):
        if words[index] != "|" or index + 1 >= len(words):
            raise TemplateSyntaxError(f"unexpected {words[index]!r}", line)
        name, arguments = words[index + 1], []
        index += 2
        while index < len(words) and words[index] in (":", ","):
            arguments.append(words[index + 1])
            index += 2
        filters.append((name, tuple(arguments)))
    return Operand(words[0], tuple(filters))


def parse_condition(words, line=None):
    """Read a condition such as ``not a and b.size >= 3 or c``."""
    alternatives = []
    for group in _split_at(words, "or"):
        alternatives.append(tuple(_parse_test(part, line) for part in _split_at(group, "and")))
    return Condition(tuple(alternatives))


def _split_at(words, separator):
    groups = [[]]
    for word in words:
        if word == separator:
            groups.append([])
        else:
            groups[-1].append(word)
    return groups


def _parse_test(words, line):
    if words and words[0] == "not":
        inner = _parse_test(words[1:], line)
        return lambda scope: not inner(scope)
    for index, word in enumerate(words):
        if word in _COMPARE:
            left = parse_operand(words[:index], line)
            right = parse_operand(words[index + 1 :], line)
            return lambda scope: _COMPARE[word](left.value(scope), right.value(scope))
    operand = parse_operand(words, line)
    return lambda scope: bool(operand.value(scope))
