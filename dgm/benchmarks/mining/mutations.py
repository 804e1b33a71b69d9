"""Places in Python source where one small edit makes a fault that people make, and the edit.

A site is an edit of the text: formatting and comments around it stay. Only code inside of functions has sites, because
a fault outside of them breaks the import of the module and with it every test. Texts, annotations, decorators,
defaults of parameters, assertions, errors that are raised, and conditions of ``while`` have none.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from dgm.benchmarks.python_source import SourceText
from dgm.bounded_reading import parse_python


class SiteKind(StrEnum):
    """A fault that one small edit makes."""

    GUARD_REMOVED = "guard-removed"
    """An ``if`` or ``elif`` without ``else`` is gone with its body."""
    COMPARISON = "comparison"
    NEGATION = "negation"
    """A ``not`` too many or too few."""
    CONDITION_DROPPED = "condition-dropped"
    """One part of an ``and`` or ``or`` is gone."""
    CONNECTIVE = "connective"
    """``and`` for ``or``, or the reverse."""
    FLAG = "flag"
    """``True`` for ``False``, or the reverse."""
    SIBLING_CALL = "sibling-call"
    """A function that is often confused with the right one, as ``min`` for ``max``."""
    KEYWORD_DROPPED = "keyword-dropped"
    STATEMENT_REMOVED = "statement-removed"
    """A call, an assignment to an attribute or item, a ``continue``, ``break`` or ``return`` is gone."""
    SWAPPED_ARGUMENTS = "swapped-arguments"
    ARITHMETIC = "arithmetic"
    OFF_BY_ONE = "off-by-one"
    """An index, a bound or a count is one too high, or its ``+ 1`` or ``- 1`` is gone."""


@dataclass(frozen=True, slots=True)
class Site:
    """One edit: a replacement of the characters from ``start`` to ``end``."""

    path: str
    kind: SiteKind
    line: int
    """The line on which the changed expression or statement begins, from 1: it runs if that line runs."""
    start: int
    end: int
    """Offsets in characters of the text, its line ends as they are in the file."""
    replacement: str
    scope: str
    """The function around it, such as ``Class.method``."""


Edit = tuple[SiteKind, int, int, int, str]
"""Kind, line, begin and end in bytes, replacement."""
_BOM = "\ufeff"
_BLOCKS = ("body", "orelse", "finalbody")
_SKIPPED = frozenset({"decorator_list", "args", "annotation", "returns", "type_params"})
"""Fields of functions, classes and assignments that have no sites."""
_RELATIONS: Mapping[type[ast.cmpop], tuple[bytes, str]] = {
    ast.Lt: (rb"<", "<="), ast.LtE: (rb"<=", "<"), ast.Gt: (rb">", ">="), ast.GtE: (rb">=", ">"),
    ast.Eq: (rb"==", "!="), ast.NotEq: (rb"!=", "=="), ast.Is: (rb"\bis\b", "is not"),
    ast.IsNot: (rb"\bis\s+not\b|\bis[\s\\]+not\b", "is"), ast.In: (rb"\bin\b", "not in"),
    ast.NotIn: (rb"\bnot\s+in\b", "in"),
}  # fmt: skip
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
_NOT = re.compile(rb"not[\s\\]*")
_CONNECTIVE = re.compile(rb"(?<=[\s)\\])(?:and|or)(?=[\s(\\])")
_PLAIN_CONNECTIVE = re.compile(rb"[\s\\]*(?:and|or)[\s\\]+")
_REST_OF_LINE = re.compile(rb"[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\n|\r|\Z)")


def _gap(text: SourceText, left: ast.expr, right: ast.expr) -> tuple[int, bytes]:
    """Return the bytes between two expressions, and where they begin."""
    begin, end = text.span(left)[1], text.span(right)[0]
    return begin, text.data[begin:end]


def find_sites(path: str, source: str) -> tuple[Site, ...]:
    """Return the sites of a file in the order of the text; parse the file once and no mutant.

    Args:
        path: the file, as the sites will name it.
        source: its text, with the line ends that it has on disk.

    Raises:
        ValueError: it is no Python that this interpreter reads.
    """
    shift = int(source.startswith(_BOM))
    try:
        text = SourceText(source.removeprefix(_BOM).encode())
    except (SyntaxError, UnicodeEncodeError) as error:
        raise ValueError(f"{path}: no Python source: {error}") from error
    edits = sorted(_find_edits(text), key=lambda each: (each[0][2], each[0][3], each[0][0]))
    bounds = sorted({bound for edit, _ in edits for bound in edit[2:4]})
    characters, at = dict[int, int](), 0
    count = shift
    for bound in bounds:
        count += len(text.data[at:bound].decode("utf-8"))
        characters[bound], at = count, bound
    return tuple(
        Site(path, kind, line, characters[begin], characters[end], replacement, scope)
        for (kind, line, begin, end, replacement), scope in edits
    )


def apply_sites(source: str, sites: Sequence[Site]) -> str:
    """Return the text with the edits of some sites of it.

    Raises:
        ValueError: two of them overlap, one lies outside of the text, or the result is no Python.
    """
    parts: list[str] = []
    at = 0
    for site in sorted(sites, key=lambda each: (each.start, each.end)):
        if not at <= site.start <= site.end <= len(source):
            raise ValueError(f"{site.path}:{site.line}: overlaps another edit, or lies outside of the text")
        parts += source[at : site.start], site.replacement
        at = site.end
    changed = "".join((*parts, source[at:]))
    try:
        parse_python(changed.removeprefix(_BOM))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f"{sites[0].path}:{sites[0].line}" if sites else "the text"
        raise ValueError(f"{where}: the result is no Python: {error}") from error
    return changed


def _find_edits(text: SourceText) -> Iterator[tuple[Edit, str]]:
    """Yield all edits with the function around; without recursion, for expressions may be nested deeply."""
    waiting: list[tuple[ast.AST, str, bool, bool]] = [(text.tree, "", False, False)]
    while waiting:
        node, scope, in_function, in_while = waiting.pop()
        loops = in_while or isinstance(node, ast.While)
        if in_function:
            for edit in _edits_of(text, node):
                yield edit, scope
            for block in (getattr(node, name, None) for name in _BLOCKS):
                if isinstance(block, list):
                    for edit in _removals(text, block, in_while=loops):
                        yield edit, scope
        for child in _children(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                waiting.append((child, f"{scope}.{child.name}".lstrip("."), True, False))
            else:
                inner = f"{scope}.{child.name}".lstrip(".") if isinstance(child, ast.ClassDef) else scope
                waiting.append((child, inner, in_function, loops))


def _children(node: ast.AST) -> Iterator[ast.AST]:
    # Offsets inside of f-strings are wrong before Python 3.12.
    if isinstance(node, ast.JoinedStr | ast.Assert | ast.Raise | ast.Constant):
        return
    defines = isinstance(
        node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.AnnAssign | ast.Lambda
    )
    for name, value in ast.iter_fields(node):
        if not (defines and name in _SKIPPED) and not (name == "test" and isinstance(node, ast.While)):
            yield from (
                child
                for child in (value if isinstance(value, list) else [value])
                if isinstance(child, ast.AST)
            )


def _edits_of(text: SourceText, node: ast.AST) -> Iterator[Edit]:
    """Yield the edits of one node, not of those inside of it."""
    match node:
        case ast.Compare():
            left: ast.expr = node.left
            for operator, right in zip(node.ops, node.comparators, strict=True):
                old, new = _RELATIONS[type(operator)]
                yield from _replace(text, SiteKind.COMPARISON, left, right, re.compile(old), new)
                left = right
            yield from _numbers(text, node.comparators)
        case ast.BoolOp():
            yield from _connectives(text, node)
        case ast.UnaryOp(op=ast.Not()):
            begin = text.span(node)[0]
            end = _NOT.match(text.data, begin).end()  # type: ignore[union-attr]
            yield SiteKind.NEGATION, node.lineno, begin, end, ""
        case ast.If(test=test) | ast.IfExp(test=test):
            if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
                begin = text.span(test)[0]
                yield SiteKind.NEGATION, test.lineno, begin, begin, "not "
        case ast.Call():
            yield from _calls(text, node)
        case ast.BinOp(left=left, right=right) | ast.AugAssign(target=left, value=right):
            yield from _arithmetic(text, node, left, right)
        case ast.Subscript(slice=ast.Slice(lower=lower, upper=upper)):
            yield from _numbers(text, [bound for bound in (lower, upper) if bound])
        case ast.Subscript(slice=index):
            yield from _numbers(text, [index])
        case ast.Assign(value=value) | ast.Return(value=ast.expr() as value):
            yield from _flags(text, [value])


def _replace(
    text: SourceText, kind: SiteKind, left: ast.expr, right: ast.expr, old: re.Pattern[bytes], new: str
) -> Iterator[Edit]:
    """Yield the replacement of the operator between two expressions, if no comment stands there."""
    begin, gap = _gap(text, left, right)
    words = [*old.finditer(gap)]
    if len(words) == 1 and b"#" not in gap:
        yield kind, left.lineno, begin + words[0].start(), begin + words[0].end(), new


def _connectives(text: SourceText, node: ast.BoolOp) -> Iterator[Edit]:
    other = "or" if isinstance(node.op, ast.And) else "and"
    for number, (first, second) in enumerate(pairwise(node.values)):
        yield from _replace(text, SiteKind.CONNECTIVE, first, second, _CONNECTIVE, other)
        begin, gap = _gap(text, first, second)
        if _PLAIN_CONNECTIVE.fullmatch(gap):
            start, end = text.span(first)[0], text.span(second)[1]
            yield SiteKind.CONDITION_DROPPED, first.lineno, begin, end, ""
            if number == 0:
                yield SiteKind.CONDITION_DROPPED, first.lineno, start, begin + len(gap), ""


def _calls(text: SourceText, node: ast.Call) -> Iterator[Edit]:
    function, arguments = node.func, node.args
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    end = text.span(function)[1]
    if name in _SIBLINGS and text.data[end - len(name) : end] == name.encode():
        line = function.end_lineno or node.lineno
        yield SiteKind.SIBLING_CALL, line, end - len(name), end, _SIBLINGS[name]
    if len(arguments) >= 2 and name not in _FIXED_ORDER:
        one, two = text.span(arguments[0]), text.span(arguments[1])
        swapped = [text.cut(*two), text.cut(one[1], two[0]), text.cut(*one)]
        if not any(isinstance(each, ast.Starred) for each in arguments[:2]) and swapped[0] != swapped[2]:
            yield SiteKind.SWAPPED_ARGUMENTS, arguments[0].lineno, one[0], two[1], "".join(swapped)
    items: list[ast.expr | ast.keyword] = [*arguments, *node.keywords]
    for before, item in pairwise(items):
        if isinstance(item, ast.keyword) and item.arg and not isinstance(before, ast.GeneratorExp):
            begin, (start, stop) = text.span(before)[1], text.span(item)
            if re.fullmatch(rb"\s*,\s*", text.data[begin:start]):
                yield SiteKind.KEYWORD_DROPPED, item.lineno, begin, stop, ""
    yield from _flags(text, [*arguments, *(word.value for word in node.keywords)])
    if name == "range":
        yield from _numbers(text, arguments)


def _flags(text: SourceText, values: Sequence[ast.expr]) -> Iterator[Edit]:
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            yield SiteKind.FLAG, value.lineno, *text.span(value), str(not value.value)


def _numbers(text: SourceText, values: Sequence[ast.expr]) -> Iterator[Edit]:
    for value in values:
        if isinstance(value, ast.Constant) and type(value.value) is int and value.value >= 0:
            begin, end = text.span(value)
            if text.cut(begin, end).isdecimal():
                yield SiteKind.OFF_BY_ONE, value.lineno, begin, end, str(value.value + 1)


def _arithmetic(
    text: SourceText, node: ast.BinOp | ast.AugAssign, left: ast.expr, right: ast.expr
) -> Iterator[Edit]:
    is_number = isinstance(right, ast.Constant) and type(right.value) in (int, float)
    begin, gap = _gap(text, left, right)
    is_one = isinstance(right, ast.Constant) and type(right.value) is int and right.value == 1
    if isinstance(node, ast.BinOp) and is_one and re.fullmatch(rb"[\s\\]*[+-][\s\\]*", gap):
        yield SiteKind.OFF_BY_ONE, left.lineno, begin, begin + len(gap) + 1, ""
    words: dict[type[ast.operator], tuple[bytes, str]] = {ast.Sub: (rb"-", "+")}
    words |= {ast.Add: (rb"\+", "-")} if is_number else {}
    words |= {} if isinstance(left, ast.Constant | ast.JoinedStr) else {ast.FloorDiv: (rb"//", "%")}
    if type(node.op) in words:
        old, new = words[type(node.op)]
        yield from _replace(text, SiteKind.ARITHMETIC, left, right, re.compile(old), new)


def _removals(text: SourceText, block: Sequence[ast.stmt], *, in_while: bool) -> Iterator[Edit]:
    """Yield the removals of statements of one block.

    A block keeps another statement. What a ``while`` may need to end stays. A statement under a comment stays, because
    the comment would tell what is missing.
    """
    for node in block:
        match node:
            case ast.If(orelse=[ast.If(orelse=[]) as branch]):
                begin = text.span(branch)[0]
                if text.data[begin : begin + 4] == b"elif":
                    yield from _remove(text, branch, SiteKind.GUARD_REMOVED)
    if sum(not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) for node in block) < 2:
        return
    for node in block:
        match node:
            case ast.If(orelse=[]):
                yield from _remove(text, node, SiteKind.GUARD_REMOVED)
            case ast.AugAssign() | ast.Break() | ast.Return() if in_while:
                pass
            case (
                ast.Expr(value=ast.Call() | ast.Await())
                | ast.Assign(targets=[ast.Attribute() | ast.Subscript()])
                | (ast.AugAssign() | ast.Delete() | ast.Continue() | ast.Break() | ast.Return())
            ):
                yield from _remove(text, node, SiteKind.STATEMENT_REMOVED)


def _remove(text: SourceText, node: ast.stmt, kind: SiteKind) -> Iterator[Edit]:
    """Yield the removal of a statement if its lines hold nothing else."""
    begin, (start, end) = text.offset(node.lineno, 0), text.span(node)
    rest = _REST_OF_LINE.match(text.data, end)
    before = text.data[text.offset(node.lineno - 1, 0) : begin] if node.lineno > 1 else b""
    if rest and not text.data[begin:start].strip() and not before.lstrip().startswith(b"#"):
        yield kind, node.lineno, begin, rest.end(), ""
