"""The literals of any Python file whose change *likely* makes its tests fail.

Callers calibrate with the reference fix.
"""

import ast
import builtins
from collections.abc import Iterator, Sequence

from dgm.benchmarks.perturbation_syntax import (
    Site,
    SourceText,
    called_name,
    compared_sides,
    literal_leaves,
)


def likely_sites(source: SourceText) -> Iterator[Site]:
    """Yield every literal that is compared by equality, or that a table of cases holds, wherever it stands."""
    seen: set[tuple[int, int]] = set()
    for node in ast.walk(source.tree):
        for comparand in _compared(node):
            for leaf in _inner_leaves(comparand):
                span = source.span(leaf)
                if span not in seen:
                    seen.add(span)
                    yield Site("", *span, span, certain=False)


def compared_leaves(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the literals that a node compares by equality."""
    for side in compared_sides(node):
        yield from _inner_leaves(side)


def _compared(node: ast.AST) -> Sequence[ast.expr]:
    match node:
        case ast.Call(args=[_, table, *_]) if called_name(node) == "parametrize":
            return [table]
        case ast.For(iter=table) | ast.comprehension(iter=table) if isinstance(
            table, (ast.List, ast.Tuple, ast.Set)
        ):
            return [table]
        case ast.Assign(value=ast.List() | ast.Tuple() | ast.Dict() as table):
            return [table]
        case _:
            return compared_sides(node)


def _inner_leaves(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the literals below a comparand, without the arguments of functions that are not Python's own."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=arguments) if hasattr(builtins, name):
            for each in arguments:
                yield from _inner_leaves(each)
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements) if elements:
            for each in elements:
                yield from _inner_leaves(each)
        case ast.Dict(values=values) if values:
            for each in values:
                yield from _inner_leaves(each)
        case ast.BinOp(left=left, right=right):
            yield from _inner_leaves(left)
            yield from _inner_leaves(right)
        case _:
            yield from literal_leaves(node)
