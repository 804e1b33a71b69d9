"""The files of an agent, and one of them."""

import os
from collections.abc import Iterator

from dgm.archive.repository import AgentRepository
from dgm.archive.snapshots import LINK, PROGRAM
from dgm.domain import AgentId, CommitId, Entry
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.words import count_text
from dgm.tui.bodies import Body, LineBody, LineTarget, RawBody, StackedBody, UnreadableBody, heading_line
from dgm.tui.reader import RunReader
from dgm.tui.tabs import Load

NAME = "source"
HEX_BYTES = 512
"""Number of shown bytes of a file that is no text."""
_SEEN = 8_000
"""Number of bytes in which a NUL shows that a file is no text, as git decides it."""
_ROW = 16


def load(reader: RunReader, agent: AgentId, path: str = "") -> Load:
    """Return a loader of the list of an agent's files; of the file itself where there is a path."""
    known = reader.born([agent])
    repository = AgentRepository(reader.folder / "agents.git")

    def look() -> Body:
        files = repository.source(CommitId(known[agent].commit))
        if not path:
            names = sorted(files)
            rows = [_entry_line(name, files[name]) for name in names]
            targets = {n: LineTarget("agent", f"{NAME}/{name}", agent) for n, name in enumerate(names, 1)}
            size = sum(len(entry.data) for entry in files.values())
            title = heading_line(f"agent {agent}", f": {count_text(len(files), 'file')}, {size:,} bytes")
            return LineBody([title, *rows], targets)
        if path not in files:
            return UnreadableBody(path, f"agent {agent} has no such file")
        return StackedBody(
            [
                LineBody([heading_line(one_line(path, 300), f"  {_kind_text(files[path])}"), ()]),
                _file_body(path, files[path]),
            ]
        )

    return look


def is_text(data: bytes) -> bool:
    """Return whether git would show the data line by line."""
    return b"\0" not in data[:_SEEN]


def _entry_line(name: str, entry: Entry) -> Line:
    ends = entry.data.count(bytes([10]))
    said = f"{ends:>7,} {'line' if ends == 1 else 'lines'}"
    lines = said if is_text(entry.data) and entry.mode != LINK else ""
    mark = "link" if entry.mode == LINK else "program" if entry.mode == PROGRAM else ""
    tail = f" → {one_line(os.fsdecode(entry.data), 200)}" if entry.mode == LINK else ""
    return make_line(
        Span(f"  {len(entry.data):>10,} bytes {lines:<13}  {mark:<7}  ", Tone.DIM),
        Span(one_line(name, 300), Tone.KEY),
        tail,
    )


def _kind_text(entry: Entry) -> str:
    if entry.mode == LINK:
        return "a link"
    what = "" if is_text(entry.data) else "binary, "
    return f"{what}{len(entry.data):,} bytes{', a program' * (entry.mode == PROGRAM)}"


def _file_body(path: str, entry: Entry) -> Body:
    if entry.mode == LINK:
        return LineBody([make_line(Span("→ ", Tone.DIM), one_line(os.fsdecode(entry.data), 2_000))])
    if is_text(entry.data):
        return RawBody(entry.data, path, numbered=True)
    left = len(entry.data) - HEX_BYTES
    more = [make_line(Span(f"… {left:,} bytes more", Tone.WARN))] if left > 0 else []
    return LineBody([*_hex_lines(entry.data[:HEX_BYTES]), *more])


def _hex_lines(data: bytes) -> Iterator[Line]:
    for start in range(0, len(data), _ROW):
        row = data[start : start + _ROW]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield make_line(
            Span(f"{start:08x}  ", Tone.DIM), f"{row.hex(' '):<{3 * _ROW}} ", Span(text, Tone.KEY)
        )
