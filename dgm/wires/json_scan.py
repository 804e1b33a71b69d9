"""The size of JSON text in nesting and values, found out without parsing it: parsers give up on deep nesting."""

import re
from itertools import accumulate

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_WITHIN = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_BACKSLASH = 0x5C
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEP = [{0x5B: 1, 0x7B: 1, 0x5D: -1, 0x7D: -1}.get(byte, 0) for byte in range(256)]


class JsonScan:
    """A scan of JSON text in pieces, without parsing it.

    Attributes:
        depth: the greatest nesting of objects and lists so far.
        values: an upper bound of the number of values so far.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.values = 1
        self._level = 0
        self._within = False
        self._escaped = False

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        if self._within:
            data = self._after_string(data)
        data = _STRING.sub(b"", data)
        start = data.find(b'"')
        if start >= 0:
            self._within = True
            self._after_string(data[start + 1 :])
            data = data[:start]
        self.values += data.count(b",") + data.count(b"[") + data.count(b"{")
        brackets = data.translate(None, _NO_BRACKETS)
        levels = list(accumulate(map(_STEP.__getitem__, brackets), initial=self._level))
        self._level = levels[-1]
        self.depth = max(self.depth, *levels)

    def _after_string(self, data: bytes) -> bytes:
        """Return the rest of a piece behind the end of an open string; empty if it does not end here."""
        if self._escaped and data:
            data, self._escaped = data[1:], False
        found = _WITHIN.match(data)
        end = found.end() if found else 0
        if end == len(data):
            return b""
        if data[end] == _BACKSLASH:
            self._escaped = True
            return b""
        self._within = False
        return data[end + 1 :]


def measure_nesting(text: str) -> int:
    """Return the greatest nesting of objects and lists in a JSON text, without parsing it."""
    scan = JsonScan()
    scan.feed(text.encode("utf-8", "replace"))
    return scan.depth
