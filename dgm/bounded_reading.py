"""Input that a stranger may have made, read with bounds: on size, nesting and values, and through no link.

Files, JSON, Python source, and requirements of packages.
"""

import ast
import json
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from dgm.errors import ArchiveCorrupt, DgmError

MAX_BYTES = 64_000_000
"""Maximum size of a file, or of a JSON text, in bytes."""
MAX_VALUES = 2_000_000
"""Maximum number of commas and brackets of a JSON text, which bounds its values."""
MAX_DEPTH = 100
"""Maximum nesting of a JSON text. Every recursive function of dgm gets as deep without exceeding Python's limit."""
_PLAIN = re.compile(r"""[\w.\[\],<>=!~*+;'"() -]+""", re.ASCII)
"""A requirement without anything that an installer could take for an address, a path or a variable."""
_parsing = threading.Lock()
_TOKENS = re.compile(r'[\[{]+|[\]}]+|"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


def parse_json(
    data: bytes | str,
    *,
    most_bytes: int = MAX_BYTES,
    most_values: int = MAX_VALUES,
    parse_int: Callable[[str], object] | None = None,
    parse_float: Callable[[str], object] | None = None,
) -> Any:  # noqa: ANN401  (any JSON)
    """Return the value of a JSON text.

    Args:
        data: the text, or its UTF-8.
        most_bytes: maximum length of ``data``.
        most_values: maximum number of its commas and brackets.
        parse_int: as for ``json.loads``.
        parse_float: as for ``json.loads``; also for ``NaN`` and ``Infinity``.

    Raises:
        ValueError: it is not JSON, or exceeds a bound; the message says so in a few words.
    """
    if len(data) > most_bytes:
        raise ValueError(f"larger than {most_bytes} bytes")
    text = data if isinstance(data, str) else str(data, "utf-8-sig")
    opened = text.count("[") + text.count("{")
    if opened + text.count(",") > most_values:
        raise ValueError(f"more than {most_values} values")
    if opened > MAX_DEPTH and _is_too_deep(text):
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    return json.loads(text, parse_int=parse_int, parse_float=parse_float, parse_constant=parse_float)


def read_json(path: Path) -> Any:  # noqa: ANN401  (any JSON)
    """Return the value of a JSON file; raise like ``read_file``, and ``ArchiveCorrupt`` for anything but JSON."""
    data = read_file(path)
    try:
        return parse_json(data)
    except ValueError as error:
        raise ArchiveCorrupt(f"{path}: not what dgm wrote ({error}); restore it from a copy") from error


def read_file(path: Path, most_bytes: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: it does not exist, or cannot be read.
        ArchiveCorrupt: it is a link, a folder, a pipe or a device, or larger than ``most_bytes``.
    """
    with open_file(path) as file:
        # Python reserves what it is asked for; a file may grow meanwhile.
        expected = max(os.fstat(file.fileno()).st_size, 1 << 16)
        data = file.read(min(most_bytes, expected) + 1)
    if len(data) > most_bytes:
        raise ArchiveCorrupt(f"{path}: larger than {most_bytes} bytes")
    return data


def open_file(path: Path) -> BinaryIO:
    """Open a regular file to read it; raise like ``read_file``."""
    if path.is_symlink():
        raise ArchiveCorrupt(f"{path}: a link, which is not followed; put the file itself there")
    # Without O_NONBLOCK, opening a pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ArchiveCorrupt(f"{path}: not a regular file")
    return os.fdopen(descriptor, "rb")


@contextmanager
def refuse_odd_values(place: object) -> Iterator[None]:
    """Raise errors of values that have another form than dgm writes as ``ArchiveCorrupt``, which names their place."""
    try:
        yield
    except DgmError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise ArchiveCorrupt(
            f"{place}: not what dgm wrote ({type(error).__name__}: {error}); restore it from a copy"
        ) from error


def _is_too_deep(text: str) -> bool:
    depth = 0
    for token in _TOKENS.finditer(text):
        first = text[token.start()]
        if first in "[{":
            depth += token.end() - token.start()
            if depth > MAX_DEPTH:
                return True
        elif first != '"':
            depth -= token.end() - token.start()
    return False


def parse_python(source: str | bytes) -> ast.Module:
    """Call ``ast.parse`` under a lock, one call at a time.

    Until Python 3.11.8 and 3.12.2, two threads inside it corrupt each other's recursion count, and one of them gets a
    ``SystemError`` (https://github.com/python/cpython/issues/106905).

    :raises SyntaxError: the source is not Python; also ``ValueError``, ``RecursionError`` or ``MemoryError``.
    """
    with _parsing:
        return ast.parse(source)


def parse_literal(source: str) -> Any:  # noqa: ANN401  (any literal)
    """Call ``ast.literal_eval``, with the parsing under the same lock.

    :raises SyntaxError, ValueError: the source is no literal; also as ``parse_python`` raises, or ``TypeError``.
    """
    with _parsing:
        tree = ast.parse(source.lstrip(" \t"), mode="eval")
    return ast.literal_eval(tree)


def plain_requirement(text: str) -> str:
    """Return a requirement as ``NAME[extras]specifier; marker``; empty if it is an address, a path or an option."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    try:
        parsed = Requirement(text.strip())
    except (InvalidRequirement, RecursionError):
        return ""
    parsed.name = canonicalize_name(parsed.name)
    return str(parsed) if not parsed.url and _PLAIN.fullmatch(str(parsed)) else ""
