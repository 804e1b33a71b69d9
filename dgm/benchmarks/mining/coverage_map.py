"""The tests that run each line, read from the data file that coverage.py writes with ``--cov-context=test``.

The file comes out of a sandbox: only its tables are read, and only up to stated bounds. Its schema is documented by
coverage.py; a line set (*numbits*) has bit ``n % 8`` of byte ``n // 8`` set for line ``n``.
"""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

MOST_BYTES = 1_000_000_000
"""Maximum size of a data file."""
MOST_LINES = 1_000_000
"""Maximum number of a line."""
_PHASES = ("|setup", "|run", "|call", "|teardown")
_TABLES = ("file", "context", "line_bits", "arc")
_LINES = """
    SELECT path, context, CAST(numbits AS BLOB) FROM line_bits JOIN file ON file.id = file_id
    JOIN context ON context.id = context_id WHERE context != ''
"""
_ARCS = """
    SELECT DISTINCT path, context, abs(line) FROM (
        SELECT file_id, context_id, fromno AS line FROM arc UNION SELECT file_id, context_id, tono FROM arc
    ) JOIN file ON file.id = file_id JOIN context ON context.id = context_id WHERE context != '' AND line > 0
"""


@dataclass(frozen=True, slots=True)
class CoverageMap:
    """Lines of files → the tests that ran them."""

    _files: Mapping[str, Mapping[str, bytes]]
    """Path → test → its lines, a bit each."""

    @property
    def paths(self) -> frozenset[str]:
        """The files of which any line ran in a test."""
        return frozenset(self._files)

    def tests_of(self, path: str, line: int) -> frozenset[str]:
        """Return the pytest ids of the tests that ran a line; empty for a line that ran in none, as at import."""
        byte, mask = line >> 3, 1 << (line & 7)
        lines = self._files.get(path, {})
        return frozenset(test for test, bits in lines.items() if byte < len(bits) and bits[byte] & mask)


def read_contexts(data_file: Path, root: Path) -> CoverageMap:
    """Read a data file of coverage.py with a context for each test.

    Args:
        data_file: the SQLite file, usually ``.coverage``.
        root: the repository's folder where the tests ran, which need not exist here; files outside of it are left out.

    Raises:
        ValueError: it is no such file, has no test in it, or exceeds a bound; the message says so.
    """
    if not data_file.is_file() or data_file.is_symlink():
        raise ValueError(f"{data_file}: missing; coverage.py wrote no data")
    if data_file.stat().st_size > MOST_BYTES:
        raise ValueError(f"{data_file}: larger than {MOST_BYTES:,} bytes")
    files: dict[str, dict[str, bytearray]] = {}
    try:
        with closing(
            sqlite3.connect(f"{data_file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        ) as data:
            _check_tables(data)
            for path, context, bits in data.execute(_LINES):
                _merge(_lines_of(files, root, path, context), bits)
            for path, context, line in data.execute(_ARCS):
                if isinstance(line, int) and line <= MOST_LINES:
                    _merge(_lines_of(files, root, path, context), bytes(line >> 3) + bytes([1 << (line & 7)]))
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{data_file}: no data file of coverage.py: {error}") from error
    files.pop("", None)
    if not files:
        raise ValueError(
            f"{data_file}: no line of {root} ran in a test; was it written with --cov-context=test?"
        )
    return CoverageMap(
        {path: {test: bytes(bits) for test, bits in tests.items()} for path, tests in files.items()}
    )


def _check_tables(data: sqlite3.Connection) -> None:
    """Refuse a file in which a view, which may run for hours, stands for a table."""
    kinds = dict(data.execute("SELECT name, type FROM sqlite_master WHERE name IN (?, ?, ?, ?)", _TABLES))
    missing = [name for name in _TABLES if kinds.get(name) != "table"]
    if missing:
        raise sqlite3.DatabaseError(f"it has no table {missing[0]!r}")


def _lines_of(files: dict[str, dict[str, bytearray]], root: Path, path: object, context: object) -> bytearray:
    """Return the lines of a test in a file, which may be added to; those outside of the repository go to no file."""
    place = PurePosixPath(str(path))
    if place.is_absolute():
        place = (
            place.relative_to(root.as_posix()) if place.is_relative_to(root.as_posix()) else PurePosixPath()
        )
    name = "" if place == PurePosixPath() or ".." in place.parts else str(place)
    test = str(context)
    for phase in _PHASES:
        test = test.removesuffix(phase)
    return files.setdefault(name, {}).setdefault(test, bytearray())


def _merge(lines: bytearray, bits: object) -> None:
    if not isinstance(bits, bytes) or len(bits) > MOST_LINES // 8:
        return
    lines.extend(bytes(max(0, len(bits) - len(lines))))
    for index, byte in enumerate(bits):
        lines[index] |= byte
