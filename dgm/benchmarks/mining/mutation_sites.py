"""Places in Python source where one small edit makes a fault that people make.

A site is an edit of the text: formatting and comments around it stay. Only code inside of functions has sites, because
a fault outside of them breaks the import of the module and with it every test. Texts, annotations, decorators,
defaults of parameters, assertions, errors that are raised, and conditions of ``while`` have none.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dgm.benchmarks.mining.mutation_expressions import find_expression_edits
from dgm.benchmarks.mining.mutation_kinds import Edit, SiteKind
from dgm.benchmarks.mining.mutation_statements import find_removals
from dgm.benchmarks.python_source import Function, SourceText
from dgm.syntax import parse

_BOM = "\ufeff"
_BLOCKS = ("body", "orelse", "finalbody")
_SKIPPED = frozenset({"decorator_list", "args", "annotation", "returns", "type_params"})
"""Fields of functions, classes and assignments that have no sites."""


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


@dataclass(frozen=True, slots=True)
class _Place:
    """A node, and what is known around it."""

    node: ast.AST
    scope: str = ""
    inside: bool = False
    """True inside of a function."""
    in_while: bool = False


def find_sites(path: str, source: str) -> tuple[Site, ...]:
    """Return the sites of a file in the order of the text; parse the file once and no mutant.

    Args:
        path: the file, as the sites will name it.
        source: its text, with the line ends that it has on disk.

    Raises:
        ValueError: it is no Python that this interpreter reads.
    """
    shift = source.startswith(_BOM)
    try:
        text = SourceText(source.removeprefix(_BOM).encode("utf-8"))
    except (SyntaxError, UnicodeEncodeError) as error:
        raise ValueError(f"{path}: no Python source: {error}") from error
    found = sorted(
        ((edit, place.scope) for place in _walk(text.tree) if place.inside for edit in _edits(text, place)),
        key=lambda each: (each[0].begin, each[0].end, each[0].kind),
    )
    offsets = _Offsets(text.data, int(shift))
    return tuple(
        Site(
            path, edit.kind, edit.line, offsets.of(edit.begin), offsets.of(edit.end), edit.replacement, scope
        )
        for edit, scope in found
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
        parse(changed.removeprefix(_BOM))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        place = f"{sites[0].path}:{sites[0].line}" if sites else "the text"
        raise ValueError(f"{place}: the result is no Python: {error}") from error
    return changed


def _edits(text: SourceText, place: _Place) -> Iterator[Edit]:
    node = place.node
    yield from find_expression_edits(text, node)
    for name in _BLOCKS:
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield from find_removals(text, block, in_while=place.in_while or isinstance(node, ast.While))


def _walk(tree: ast.Module) -> Iterator[_Place]:
    """Yield all nodes that may have sites; without recursion, for expressions may be nested deeply."""
    waiting = [_Place(tree)]
    while waiting:
        place = waiting.pop()
        yield place
        waiting += (_inner(place, child) for child in _children(place.node))


def _inner(place: _Place, node: ast.AST) -> _Place:
    in_while = place.in_while or isinstance(place.node, ast.While)
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return _Place(node, f"{place.scope}.{node.name}".lstrip("."), inside=True)
        case ast.ClassDef():
            return _Place(node, f"{place.scope}.{node.name}".lstrip("."), place.inside, in_while)
        case _:
            return _Place(node, place.scope, place.inside, in_while)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    # Offsets inside of f-strings are wrong before Python 3.12.
    if isinstance(node, ast.JoinedStr | ast.Assert | ast.Raise | ast.Constant):
        return
    for name, value in ast.iter_fields(node):
        skipped = name in _SKIPPED and isinstance(node, Function | ast.ClassDef | ast.AnnAssign | ast.Lambda)
        if skipped or (name == "test" and isinstance(node, ast.While)):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child


class _Offsets:
    """Offsets in characters for rising or falling offsets in bytes of one text."""

    def __init__(self, data: bytes, shift: int) -> None:
        self._data = data
        self._shift = shift
        self._ascii = data.isascii()
        self._at = self._characters = 0

    def of(self, offset: int) -> int:
        """Return the offset in characters."""
        if self._ascii:
            return offset + self._shift
        low, high = sorted((self._at, offset))
        between = len(self._data[low:high].decode("utf-8"))
        self._characters += between if offset >= self._at else -between
        self._at = offset
        return self._characters + self._shift
