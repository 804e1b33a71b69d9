"""A fully seen function or statement as text and tree, and changes to it that keep all other text.

Positions are those of ``ast``: lines from 1 and columns in characters. Both count within the unit, without the
indentation that all its lines share.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dgm import syntax

Position = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Unit:
    """One outermost function, or one simple statement outside any, of which every line was seen."""

    path: str
    first: int
    """The number of its first line in the file, from 1."""
    lines: tuple[str, ...]
    indent: int
    name: str
    """The name of the function or of the assigned variable; empty for neither."""
    owner: str = ""
    """The class that contains it; empty for none."""


@dataclass(frozen=True, slots=True)
class NeighbourNames:
    """Names known around a unit, sorted, from the visible parts of its module."""

    functions: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    """``self.…`` of the same class."""
    exceptions: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    """Simple statements of sibling methods on ``self``, which a missing statement may resemble."""


@dataclass(frozen=True, slots=True)
class Change:
    """A replacement of the text from ``start`` to ``end`` with ``text``."""

    start: Position
    end: Position
    text: str
    operator: str
    prior: float
    at: int = 0
    """The line that the change is about, if it is not the first; 0 otherwise."""


@dataclass
class Code:
    """A parsed unit: the input of the operators."""

    unit: Unit
    around: NeighbourNames
    tree: ast.Module
    lines: list[str] = field(default_factory=list)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes in reading order, docstrings and annotations left out."""
        return list(_walk(self.tree))

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Each node's parent."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Parameters and variables of the unit, in order of first mention."""
        found: dict[str, None] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.arg):
                found.setdefault(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.setdefault(node.id)
        return tuple(found)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The parameters of the unit's function; empty if the unit is no function."""
        function = self.function
        if function is None:
            return ()
        spec = function.args
        return tuple(arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs))

    @property
    def function(self) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The unit as a function; ``None`` if it is none."""
        first = self.tree.body[0] if self.tree.body else None
        return first if isinstance(first, ast.FunctionDef | ast.AsyncFunctionDef) else None

    def start(self, node: ast.AST) -> Position:
        """Return the position of a node's beginning."""
        line, column = _at(node, "lineno", "col_offset")
        return line, self._characters(line, column)

    def end(self, node: ast.AST) -> Position:
        """Return the position of a node's end."""
        line, column = _at(node, "end_lineno", "end_col_offset")
        return line, self._characters(line, column)

    def text(self, node: ast.AST) -> str:
        """Return a node's own text."""
        return self.between(self.start(node), self.end(node))

    def between(self, start: Position, end: Position) -> str:
        """Return the text between two positions."""
        if start[0] == end[0]:
            return self.lines[start[0] - 1][start[1] : end[1]]
        rows = [self.lines[start[0] - 1][start[1] :], *self.lines[start[0] : end[0] - 1]]
        return "\n".join([*rows, self.lines[end[0] - 1][: end[1]]])

    def swap(self, node: ast.AST, text: str, operator: str, prior: float) -> Change:
        """Build a change of exactly one node."""
        return Change(self.start(node), self.end(node), text, operator, prior)

    def rows(
        self, first: int, last: int, new: Iterable[str], operator: str, prior: float, at: int = 0
    ) -> Change:
        """Build a change of whole lines ``first`` to ``last``; ``last`` = ``first`` - 1 inserts before ``first``."""
        text = "".join(row + "\n" for row in new)
        return Change((first, 0), (last + 1, 0), text, operator, prior, at or min(first, max(last, 1)))

    def margin(self, line: int) -> str:
        """Return the white space that a line begins with."""
        row = self.lines[line - 1]
        return row[: len(row) - len(row.lstrip())]

    def _characters(self, line: int, column: int) -> int:
        row = self.lines[line - 1] if line <= len(self.lines) else ""
        return column if row.isascii() else len(row.encode()[:column].decode("utf-8", "ignore"))


def parse(unit: Unit, around: NeighbourNames) -> Code | None:
    """Return a unit's code, or ``None`` if it is not Python."""
    lines = [line[unit.indent :] if not line[: unit.indent].strip() else line for line in unit.lines]
    try:
        tree = syntax.parse("\n".join(lines) + "\n")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return Code(unit, around, tree, lines)


def apply(code: Code, change: Change) -> tuple[int, int, tuple[str, ...]] | None:
    """Return a change as lines of the file: first and last (last < first inserts) and the new ones.

    ``None`` if the result is not Python or nothing changes.
    """
    start, end, text = change.start, change.end, change.text
    lines = [*code.lines, ""]
    new = lines[: start[0] - 1] + (
        lines[start[0] - 1][: start[1]] + text + lines[end[0] - 1][end[1] :]
    ).split("\n")
    new += lines[end[0] :]
    if new == lines:
        return None
    try:
        syntax.parse("\n".join(new) + "\n")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return _difference(code, lines, new)


def _difference(code: Code, old: list[str], new: list[str]) -> tuple[int, int, tuple[str, ...]]:
    low = 0
    while low < min(len(old), len(new)) and old[low] == new[low]:
        low += 1
    high = 0
    while high < min(len(old), len(new)) - low and old[-1 - high] == new[-1 - high]:
        high += 1
    pad = " " * code.unit.indent
    rows = tuple(pad + row if row.strip() else row for row in new[low : len(new) - high])
    return code.unit.first + low, code.unit.first + len(old) - high - 1, rows


def _at(node: ast.AST, line: str, column: str) -> Position:
    return node.__dict__[line], node.__dict__[column]


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_comment", "ctx", "op", "ops"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST):
                continue
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                continue
            if isinstance(child, ast.JoinedStr):
                continue
            if hasattr(child, "lineno"):
                yield child
            yield from _walk(child)
