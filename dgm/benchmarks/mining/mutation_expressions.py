"""Edits of one expression that make a fault: relations, conditions, calls, numbers."""

import ast
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from dgm.benchmarks.mining.mutation_kinds import Edit, SiteKind
from dgm.benchmarks.python_source import SourceText, called_name

_RELATIONS: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
_RELATION_TEXT = re.compile(rb"not\s+in\b|is\s+not\b|[<>=!]=|<|>|\bis\b|\bin\b")
_CONNECTIVE_TEXT = re.compile(rb"(?<=[\s)\\])(?:and|or)(?=[\s(\\])")
_PLAIN_CONNECTIVE = re.compile(rb"[\s\\]*(?:and|or)[\s\\]+")
_NOT = re.compile(rb"not[\s\\]*")
_COMMA = re.compile(rb"\s*,\s*")
_SIGN = re.compile(rb"[\s\\]*[+-][\s\\]*")
_PAIRS = (
    ("min", "max"), ("any", "all"), ("startswith", "endswith"), ("lstrip", "rstrip"), ("find", "rfind"),
    ("index", "rindex"), ("split", "rsplit"), ("partition", "rpartition"), ("lower", "upper"),
    ("ljust", "rjust"), ("removeprefix", "removesuffix"), ("union", "intersection"), ("keys", "values"),
    ("append", "extend"), ("match", "fullmatch"), ("floor", "ceil"), ("islower", "isupper"),
    ("issubset", "issuperset"), ("appendleft", "append"), ("popleft", "pop"), ("bisect_left", "bisect_right"),
    ("isdigit", "isalnum"), ("setdefault", "get"),
)  # fmt: skip
_SIBLINGS: Mapping[str, str] = {**{b: a for a, b in reversed(_PAIRS)}, **dict(_PAIRS)}
_FIXED_ORDER = frozenset({"isinstance", "issubclass", "getattr", "setattr", "hasattr", "delattr", "cast"})
"""Functions whose swapped arguments end in a TypeError wherever they are called."""


def find_expression_edits(source: SourceText, node: ast.AST) -> Iterator[Edit]:
    """Yield the edits of one node, not of those inside of it."""
    match node:
        case ast.Compare():
            yield from _relations(source, node)
            yield from _numbers(source, node.comparators)
        case ast.BoolOp():
            yield from _connectives(source, node)
        case ast.UnaryOp(op=ast.Not()):
            begin = source.span(node)[0]
            if found := _NOT.match(source.data, begin):
                yield Edit(SiteKind.NEGATION, node.lineno, begin, found.end(), "")
        case ast.If(test=test) | ast.IfExp(test=test):
            if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
                begin = source.span(test)[0]
                yield Edit(SiteKind.NEGATION, test.lineno, begin, begin, "not ")
        case ast.Call():
            yield from _calls(source, node)
        case ast.BinOp() | ast.AugAssign():
            yield from _arithmetic(source, node)
        case ast.Subscript(slice=ast.Slice(lower=lower, upper=upper)):
            yield from _numbers(source, [each for each in (lower, upper) if each])
        case ast.Subscript(slice=index):
            yield from _numbers(source, [index])
        case ast.Assign(value=value) | ast.Return(value=ast.expr() as value):
            yield from _flags(source, [value])


def _relations(source: SourceText, node: ast.Compare) -> Iterator[Edit]:
    left: ast.expr = node.left
    for operator, right in zip(node.ops, node.comparators, strict=True):
        begin, gap = _gap(source, left, right)
        found = _RELATION_TEXT.search(gap)
        if found and b"#" not in gap:
            yield Edit(
                SiteKind.COMPARISON,
                left.lineno,
                begin + found.start(),
                begin + found.end(),
                _RELATIONS[type(operator)],
            )
        left = right


def _connectives(source: SourceText, node: ast.BoolOp) -> Iterator[Edit]:
    other = "or" if isinstance(node.op, ast.And) else "and"
    for number, (first, second) in enumerate(pairwise(node.values)):
        begin, gap = _gap(source, first, second)
        found = _CONNECTIVE_TEXT.search(gap)
        if found and b"#" not in gap:
            yield Edit(SiteKind.CONNECTIVE, first.lineno, begin + found.start(), begin + found.end(), other)
        if _PLAIN_CONNECTIVE.fullmatch(gap):
            start, end = source.span(first)[0], source.span(second)[1]
            yield Edit(SiteKind.CONDITION_DROPPED, first.lineno, begin, end, "")
            if number == 0:
                yield Edit(SiteKind.CONDITION_DROPPED, first.lineno, start, begin + len(gap), "")


def _calls(source: SourceText, node: ast.Call) -> Iterator[Edit]:
    name = called_name(node)
    arguments = node.args
    if name in _SIBLINGS and (begin := _name_offset(source, node, name)) is not None:
        yield Edit(
            SiteKind.SIBLING_CALL,
            node.func.end_lineno or node.lineno,
            begin,
            begin + len(name),
            _SIBLINGS[name],
        )
    if len(arguments) >= 2 and name not in _FIXED_ORDER:
        yield from _swap(source, arguments[0], arguments[1])
    items: list[ast.expr | ast.keyword] = [*arguments, *node.keywords]
    for before, item in pairwise(items):
        if isinstance(item, ast.keyword) and item.arg and not isinstance(before, ast.GeneratorExp):
            begin, start = _end(source, before), source.offset(item.lineno, item.col_offset)
            if _COMMA.fullmatch(source.data[begin:start]):
                yield Edit(SiteKind.KEYWORD_DROPPED, item.lineno, begin, _end(source, item), "")
    yield from _flags(source, [*arguments, *(each.value for each in node.keywords)])
    if name == "range":
        yield from _numbers(source, arguments)


def _name_offset(source: SourceText, node: ast.Call, name: str) -> int | None:
    """Return where the called name begins; None if it cannot be told."""
    end = source.span(node.func)[1]
    begin = end - len(name.encode())
    return begin if source.data[begin:end] == name.encode() else None


def _swap(source: SourceText, first: ast.expr, second: ast.expr) -> Iterator[Edit]:
    one, two = source.span(first), source.span(second)
    texts = source.cut(*one), source.cut(*two)
    if not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred) and texts[0] != texts[1]:
        between = source.cut(one[1], two[0])
        yield Edit(SiteKind.SWAPPED_ARGUMENTS, first.lineno, one[0], two[1], f"{texts[1]}{between}{texts[0]}")


def _flags(source: SourceText, values: list[ast.expr]) -> Iterator[Edit]:
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            yield Edit(SiteKind.FLAG, value.lineno, *source.span(value), str(not value.value))


def _numbers(source: SourceText, values: list[ast.expr]) -> Iterator[Edit]:
    for value in values:
        if isinstance(value, ast.Constant) and type(value.value) is int and value.value >= 0:
            begin, end = source.span(value)
            if source.cut(begin, end).isdecimal():
                yield Edit(SiteKind.OFF_BY_ONE, value.lineno, begin, end, str(value.value + 1))


def _arithmetic(source: SourceText, node: ast.BinOp | ast.AugAssign) -> Iterator[Edit]:
    left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
    begin, gap = _gap(source, left, right)
    number = isinstance(right, ast.Constant) and type(right.value) in (int, float)
    if isinstance(node, ast.BinOp) and number and _SIGN.fullmatch(gap) and _is_one(right):
        yield Edit(SiteKind.OFF_BY_ONE, left.lineno, begin, begin + len(gap) + 1, "")
    words: dict[type[ast.operator], tuple[bytes, str]] = {ast.Sub: (b"-", "+")}
    if number:
        words[ast.Add] = (b"+", "-")
    if not isinstance(left, ast.Constant | ast.JoinedStr):
        words[ast.FloorDiv] = (b"//", "%")
    old, new = words.get(type(node.op), (b"", ""))
    if old and gap.count(old) == 1 and b"#" not in gap:
        at = begin + gap.index(old)
        yield Edit(SiteKind.ARITHMETIC, left.lineno, at, at + len(old), new)


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 1


def _gap(source: SourceText, left: ast.expr, right: ast.expr) -> tuple[int, bytes]:
    """Return the bytes between two expressions, and where they begin."""
    begin, end = source.span(left)[1], source.span(right)[0]
    return begin, source.data[begin:end]


def _end(source: SourceText, node: ast.expr | ast.keyword) -> int:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return source.offset(node.end_lineno, node.end_col_offset)
