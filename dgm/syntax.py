"""Python source as syntax trees, safe in a process of several threads."""

import ast
import threading
from typing import Any

_one_at_a_time = threading.Lock()


def parse(source: str | bytes) -> ast.Module:
    """Call ``ast.parse`` under a lock, one call at a time.

    Until Python 3.11.8 and 3.12.2, two threads inside it corrupt each other's recursion count, and one of them gets a
    ``SystemError`` (https://github.com/python/cpython/issues/106905).

    :raises SyntaxError: the source is not Python; also ``ValueError``, ``RecursionError`` or ``MemoryError``.
    """
    with _one_at_a_time:
        return ast.parse(source)


def literal(source: str) -> Any:  # noqa: ANN401  (any literal)
    """Call ``ast.literal_eval``, with the parsing under the same lock.

    :raises SyntaxError, ValueError: the source is no literal; also as ``parse`` raises, or ``TypeError``.
    """
    with _one_at_a_time:
        tree = ast.parse(source.lstrip(" \t"), mode="eval")
    return ast.literal_eval(tree)
