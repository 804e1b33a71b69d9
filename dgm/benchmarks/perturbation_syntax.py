"""A Python test file as bytes with a syntax tree, and the literals in it."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dgm.syntax import parse

EQUALITIES = frozenset(
    f"assert{kind}"
    for kind in (
        "Equal", "Equals", "Is", "ListEqual", "TupleEqual", "SetEqual", "DictEqual", "SequenceEqual", "CountEqual",
        "MultiLineEqual",
    )
)  # fmt: skip
CLOSE = frozenset({"assertAlmostEqual", "assertAlmostEquals"})
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Site:
    """One place that can be changed."""

    test: str
    """``Class.method`` or ``function`` around it; empty outside of a test."""
    begin: int
    end: int
    """Offsets in bytes."""
    whole: tuple[int, int]
    """Offsets of the comparand around a literal."""
    choices: tuple[str, ...] = ()
    """Texts that may stand there instead; none for a literal, which becomes another value."""
    tolerance: float = 0.0
    certain: bool = True

    def line(self, source: "SourceText") -> int:
        """Return the line in which it begins, from 0."""
        return source.data.count(b"\n", 0, self.begin)


class SourceText:
    """A file's bytes and its syntax tree.

    Raises:
        SyntaxError: the file is no Python that this interpreter reads, or not in UTF-8.
    """

    def __init__(self, source: bytes) -> None:
        try:
            self.text = source.decode("utf-8")
            self.tree = parse(self.text)
        except (ValueError, RecursionError, MemoryError) as error:
            raise SyntaxError(str(error)) from error
        self.data = source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        """Return the offset in bytes of a line (from 1) and a column (from 0)."""
        return self._lines[line - 1] + column

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Return the offsets of a node."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = self.offset(node.lineno, node.col_offset)
        return begin, self.offset(node.end_lineno, node.end_col_offset)

    def cut(self, begin: int, end: int) -> str:
        """Return the text between two offsets."""
        return self.data[begin:end].decode("utf-8")


def is_literal(node: ast.AST) -> bool:
    """Return whether a node is one number, text, truth value or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
        return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value != 0
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str, bytes, type(None)))


def literal_leaves(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the literals in a comparand of which each, when changed, makes another value of it."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=inner) if is_literal(node):
            yield inner
        case ast.Constant() if is_literal(node):
            yield node
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            yield node
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            if not any(isinstance(each, ast.Starred) for each in elements):
                for each in elements:
                    yield from literal_leaves(each)
        case ast.Set(elts=elements) if _are_different(elements):
            for each in elements:
                yield from literal_leaves(each)
        case ast.Dict(keys=keys, values=values) if _are_different(keys):
            for each in values:
                yield from literal_leaves(each)


def _are_different(nodes: Sequence[ast.expr | None]) -> bool:
    literals = [node for node in nodes if node is not None and is_literal(node)]
    return len(literals) == len(nodes) == len({ast.literal_eval(node) for node in literals})


def called_name(node: ast.expr) -> str:
    """Return the last part of the name that a call, or a decorator, names; empty if it is no name."""
    func = node.func if isinstance(node, ast.Call) else node
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def compared_sides(node: ast.AST) -> Sequence[ast.expr]:
    """Return what a node compares by equality."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [left, *others]
            if any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides):
                return []
            pairs = zip(pairwise(sides), ops, strict=True)
            return [
                side for pair, op in pairs if isinstance(op, (ast.Eq, ast.NotEq, ast.Is)) for side in pair
            ]
        case ast.Call(args=[first, second, *_]) if called_name(node) in EQUALITIES | CLOSE:
            return [first, second]
        case _:
            return []
