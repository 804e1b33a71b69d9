"""Python source as syntax trees, in a process of several threads."""

import ast
import threading

_one_at_a_time = threading.Lock()


def parse(source: str | bytes) -> ast.Module:
    """``ast.parse``, one call at a time.

    Until Python 3.11.8 and 3.12.2 two threads inside it confuse each other's recursion count and one of
    them dies of a ``SystemError`` (https://github.com/python/cpython/issues/106905).

    :raises SyntaxError: for what is not Python; also ``ValueError``, ``RecursionError`` or ``MemoryError``.
    """
    with _one_at_a_time:
        return ast.parse(source)
