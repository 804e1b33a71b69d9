"""What an editor read of its evidence, from what its model was shown: no engine has to watch the files for it.

A file counts by its lines that stand in no other file of the folder, nor in the source that the editor works on, and
that are long enough to be no accident. That a line was shown is certain; a file that a tool only searched is not.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence

from dgm.domain import Snapshot
from dgm.messages import Request, Role

LEAST = 12
"""Characters of a line that counts, without the blanks around it."""
_PREFIXES = (
    re.compile(r"\s*\d+(?:\s*[:|]|[-\t ])\s?"),
    re.compile(r"[^\s:]+?[:-]\d+[:-]"),
    re.compile(r"[^\s:]+:"),
)
"""What ``cat -n``, ``nl`` and ``grep`` put before a line."""


def manifest(evidence: Snapshot) -> bytes:
    """What the folder held, as JSON: path → ``sha256`` and ``bytes``."""
    found = {
        path: {"sha256": hashlib.sha256(entry.data).hexdigest(), "bytes": len(entry.data)}
        for path, entry in sorted(evidence.items())
    }
    return json.dumps(found).encode()


def reading(evidence: Snapshot, source: Snapshot, said: Sequence[Request]) -> bytes:
    """What was shown of the folder, as JSON: path → lines that were, and lines that could have been.

    Args:
        evidence: the folder.
        source: what the editor worked on.
        said: all answered requests of the expansion; those of its host's own questions count like the editor's.
    """
    found = shown_lines(evidence, source, _told(said))
    return json.dumps({path: list(counts) for path, counts in sorted(found.items()) if counts[0]}).encode()


def shown_lines(evidence: Snapshot, source: Snapshot, told: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Path → how many of its lines stand in what was told, and how many are looked for."""
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


def _told(said: Sequence[Request]) -> Iterable[str]:
    """Results of tools; what users say where there are no tools, since then results are told so."""
    return dict.fromkeys(
        message.text
        for request in said
        for message in request.messages
        if message.role is Role.TOOL or (message.role is Role.USER and not request.tools)
    )
