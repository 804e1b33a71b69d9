"""A measure of the evidence that an editor read, from the text that its model was shown.

No engine has to watch the files. Only certain lines count for a file. They occur in no other file of the folder, nor in
the edited source, and they are long enough to rule out coincidence. A counted line was certainly shown; a file that a
tool only searched is not counted.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence

from dgm.domain import Snapshot
from dgm.messages import Request, Role

LEAST = 12
"""Minimum characters of a counted line, without the blanks around it."""
_PREFIXES = (
    re.compile(r"\s*\d+(?:\s*[:|]|[-\t ])\s?"),
    re.compile(r"[^\s:]+?[:-]\d+[:-]"),
    re.compile(r"[^\s:]+:"),
)
"""Prefixes that ``cat -n``, ``nl`` and ``grep`` put before a line."""


def manifest(evidence: Snapshot) -> bytes:
    """Return the contents of the folder as JSON: path → ``sha256`` and ``bytes``."""
    found = {
        path: {"sha256": hashlib.sha256(entry.data).hexdigest(), "bytes": len(entry.data)}
        for path, entry in sorted(evidence.items())
    }
    return json.dumps(found).encode()


def record_reading(evidence: Snapshot, source: Snapshot, said: Sequence[Request]) -> bytes:
    """Return the shown part of the folder as JSON: path → number of shown lines and of countable lines.

    Args:
        evidence: the folder.
        source: the source that the editor worked on.
        said: all answered requests of the expansion; the host's own questions count like the editor's.
    """
    found = count_shown_lines(evidence, source, _collect_seen_texts(said))
    return json.dumps({path: list(counts) for path, counts in sorted(found.items()) if counts[0]}).encode()


def count_shown_lines(
    evidence: Snapshot, source: Snapshot, told: Iterable[str]
) -> dict[str, tuple[int, int]]:
    """Return path → number of its lines in the shown text, and number of countable lines."""
    common = {line for entry in source.values() for line in _lines(entry.data)}
    where: dict[str, str | None] = {}
    for path, entry in evidence.items():
        for line in _lines(entry.data):
            if where.setdefault(line, path) != path or line in common:
                where[line] = None
    seen = {line for text in told for row in text.splitlines() for line in _readings(row) if line in where}
    counts = dict.fromkeys(evidence, (0, 0))
    for line, place in where.items():
        if place is not None:
            shown, all_lines = counts[place]
            counts[place] = (shown + (line in seen), all_lines + 1)
    return counts


def _lines(data: bytes) -> Iterator[str]:
    stripped = (line.strip() for line in data.decode("utf-8", "replace").splitlines())
    return (line for line in stripped if len(line) >= LEAST)


def _readings(row: str) -> Iterator[str]:
    yield row.strip()
    for prefix in _PREFIXES:
        found = prefix.match(row)
        if found:
            yield row[found.end() :].strip()


def _collect_seen_texts(said: Sequence[Request]) -> Iterable[str]:
    """Yield the results of tools; without tools, user messages, because results then arrive there."""
    return dict.fromkeys(
        message.text
        for request in said
        for message in request.messages
        if message.role is Role.TOOL or (message.role is Role.USER and not request.tools)
    )
