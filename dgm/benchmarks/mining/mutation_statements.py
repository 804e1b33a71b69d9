"""Edits that remove a statement with its lines, so that only something missing tells of the fault."""

import ast
import re
from collections.abc import Iterator, Sequence

from dgm.benchmarks.mining.mutation_kinds import Edit, SiteKind
from dgm.benchmarks.python_source import SourceText

_REST_OF_LINE = re.compile(rb"[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\n|\r|\Z)")


def find_removals(source: SourceText, block: Sequence[ast.stmt], *, in_while: bool) -> Iterator[Edit]:
    """Yield the removals of statements of one block.

    A block keeps another statement. What a ``while`` may need to end stays. A statement under a comment
    stays, because the comment would tell what is missing.
    """
    for node in block:
        if isinstance(node, ast.If):
            yield from _remove_elif(source, node)
    if sum(not _is_text(node) for node in block) < 2:
        return
    for node in block:
        if isinstance(node, ast.If) and not node.orelse:
            yield from _remove(source, node, SiteKind.GUARD_REMOVED)
        elif _is_removable(node) and not (
            in_while and isinstance(node, ast.AugAssign | ast.Break | ast.Return)
        ):
            yield from _remove(source, node, SiteKind.STATEMENT_REMOVED)


def _remove_elif(source: SourceText, node: ast.If) -> Iterator[Edit]:
    match node.orelse:
        case [ast.If(orelse=[]) as branch]:
            begin = source.span(branch)[0]
            if source.data[begin : begin + 4] == b"elif":
                yield from _remove(source, branch, SiteKind.GUARD_REMOVED)


def _is_removable(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Call() | ast.Await()):
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
        case ast.AugAssign() | ast.Delete() | ast.Continue() | ast.Break() | ast.Return():
            return True
        case _:
            return False


def _remove(source: SourceText, node: ast.stmt, kind: SiteKind) -> Iterator[Edit]:
    """Yield the removal of a statement if its lines hold nothing else."""
    begin = source.offset(node.lineno, 0)
    start, end = source.span(node)
    rest = _REST_OF_LINE.match(source.data, end)
    if rest and not source.data[begin:start].strip() and not _is_under_comment(source, node.lineno):
        yield Edit(kind, node.lineno, begin, rest.end(), "")


def _is_under_comment(source: SourceText, line: int) -> bool:
    """Return whether the line before this one is a comment."""
    return line > 1 and source.data[source.offset(line - 1, 0) : source.offset(line, 0)].lstrip().startswith(
        b"#"
    )


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
