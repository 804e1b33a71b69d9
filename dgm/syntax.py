"""Python source as syntax trees, safe in a process of several threads."""

import ast
import threading

_one_at_a_time = threading.Lock()


def parse(source: str | bytes) -> ast.Module:
    """Call ``ast.parse`` under a lock, one call at a time.

    Until Python 3.11.8 and 3.12.2, two threads inside it corrupt each other's recursion count, and one of them gets a
    ``SystemError`` (https://github.com/python/cpython/issues/106905).

    :raises SyntaxError: the source is not Python; also ``ValueError``, ``RecursionError`` or ``MemoryError``.
    """
    with _one_at_a_time:
        return ast.parse(source)
