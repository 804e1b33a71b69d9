"""Reads what an evaluation script printed: the words it says under a nonce, and the test output between its markers.

The output may be gzip, and 100 MB of it are read piece by piece: what is handed to a log parser is bounded. Of a longer
log the beginning, the end, and the lines between them that look like results are kept.
"""

import re
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from dgm.benchmarks.plain_logs import plain_log

MARK = b">>>>> "
GZIP = b"\x1f\x8b\x08"
CHUNK = 1 << 16
LINE_LIMIT = 16_384
"""Bytes kept of one line: names of tests are shorter, and a line of 100 MB is nobody's result."""
HEAD_LIMIT, MIDDLE_LIMIT, TAIL_LIMIT = 2 << 20, 2 << 20, 1 << 20
"""Bytes kept of the beginning, of lines that look like results, and of the end."""
AROUND_LIMIT = 8000
RESULT = re.compile(
    rb"(?i)\b(?:pass|fail|error|skip|xfail|xpass|ok\b|not ok\b)|\.\.\. |\xe2\x9c|\xe2\x88\x9a|\xc3\x97"
)
"""Statuses in words or as ticks and crosses."""
_RETURNS = re.compile(rb"\r+(?![\r\n]|$)")
"""Returns to the beginning of a line, as far as what follows is known."""


@dataclass(frozen=True, slots=True)
class Log:
    """One evaluation script's output."""

    words: Mapping[str, str]
    """What the script said of itself: ``ready``, ``refused`` …, each with what stands behind it."""
    tests: Path
    """The test output as far as it was kept."""
    size: int
    """Bytes of the test output, all of it."""
    cut: bool
    around: str
    """The beginning of what stands outside the markers, for people."""

    def text(self) -> str:
        """The test output as text."""
        return self.tests.read_text(encoding="utf-8", errors="replace")

    def excerpt(self, limit: int) -> bytes:
        """Beginning and end of the test output; what stands around it where there is none."""
        data = self.tests.read_bytes() or self.around.encode()
        half = limit // 2
        return data if len(data) <= limit else data[:half] + b"\n[...]\n" + data[-half:]


def read(output: bytes, nonce: str, tests: Path) -> Log:
    """Reads a script's output.

    Args:
        output: plain or gzip, whole or broken off; text before the gzip data is what the shell said before the script.
        nonce: the script's; lines without it are no words of the script, whatever they look like.
        tests: is written: the test output, at most about 5 MB of it.
    """
    words: dict[str, str] = {}
    around = bytearray()
    mark = MARK + nonce.encode() + b" "
    with tests.open("wb") as file:
        kept = _Kept(file)
        for line in _lines(_plain(output)):
            if line.startswith(mark):
                word, _, rest = line[len(mark) :].decode("utf-8", "replace").strip().partition(" ")
                words.setdefault(word, rest)
            elif "start" in words and "end" not in words:
                kept.add(plain_log(line))
            elif len(around) < AROUND_LIMIT:
                around += line
        kept.finish()
    return Log(words, tests, kept.size, kept.cut, around[:AROUND_LIMIT].decode("utf-8", "replace"))


@dataclass(slots=True)
class _Kept:
    """Writes the head at once, holds the tail back, and looks at each line that falls out of the tail."""

    file: BinaryIO
    size: int = 0
    cut: bool = False
    _tail: deque[bytes] = field(default_factory=deque)
    _tail_size: int = 0
    _middle: int = 0

    def add(self, line: bytes) -> None:
        self.size += len(line)
        if self.size <= HEAD_LIMIT:
            self.file.write(line)
            return
        self._tail.append(line)
        self._tail_size += len(line)
        while self._tail_size > TAIL_LIMIT:
            self._drop(self._tail.popleft())

    def _drop(self, line: bytes) -> None:
        self._tail_size -= len(line)
        if self._middle + len(line) <= MIDDLE_LIMIT and RESULT.search(line):
            self._middle += len(line)
            self.file.write(line)
        else:
            self.cut = True

    def finish(self) -> None:
        for line in self._tail:
            self.file.write(line)


def _plain(output: bytes) -> Iterator[bytes]:
    start = output.find(GZIP, 0, CHUNK)
    if start < 0:
        yield from (output[at : at + CHUNK] for at in range(0, len(output), CHUNK))
        return
    yield output[:start]
    stream = zlib.decompressobj(wbits=31)
    view = memoryview(output)
    for at in range(start, len(output), CHUNK):
        data: bytes | memoryview = view[at : at + CHUNK]
        while data and not stream.eof:
            try:
                yield stream.decompress(data, 4 * CHUNK)
            except zlib.error:
                return
            data = stream.unconsumed_tail
    yield stream.flush()


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines with their ends; of a longer one the first ``LINE_LIMIT`` bytes. What a progress bar wrote over is one."""
    rest = b""
    for chunk in chunks:
        text = _RETURNS.sub(b"\n", rest + chunk)
        *whole, rest = text.split(b"\n")
        yield from (line[:LINE_LIMIT] + b"\n" for line in whole)
        # A line that never ends: what is beyond the limit would not be kept anyway.
        rest = rest[:LINE_LIMIT]
    if rest:
        yield rest[:LINE_LIMIT]
