"""A Python file as bytes with a syntax tree."""

import ast

from dgm.bounded_reading import parse_python

Function = ast.FunctionDef | ast.AsyncFunctionDef


class SourceText:
    """A file's bytes and its syntax tree.

    Raises:
        SyntaxError: the file is no Python that this interpreter reads, or not in UTF-8.
    """

    def __init__(self, source: bytes) -> None:
        try:
            self.text = source.decode("utf-8")
            self.tree = parse_python(self.text)
        except (ValueError, RecursionError, MemoryError) as error:
            raise SyntaxError(str(error)) from error
        self.data = source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        """Return the offset in bytes of a line (from 1) and a column (from 0)."""
        return self._lines[line - 1] + column

    def span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        """Return the offsets of a node."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = self.offset(node.lineno, node.col_offset)
        return begin, self.offset(node.end_lineno, node.end_col_offset)

    def cut(self, begin: int, end: int) -> str:
        """Return the text between two offsets."""
        return self.data[begin:end].decode("utf-8")


def called_name(node: ast.expr) -> str:
    """Return the last part of the name that a call, or a decorator, names; empty if it is no name."""
    func = node.func if isinstance(node, ast.Call) else node
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
