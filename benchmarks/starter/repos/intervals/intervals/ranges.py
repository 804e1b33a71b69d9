"""Text such as ``1-3,7,9-12``: whole numbers, both ends included."""

import re

from .intervalset import IntervalSet

_PART = re.compile(r"(\d+)(?:-(\d+)(?:/(\d+))?)?")


class RangeSyntaxError(ValueError):
    """The text is not a list of ranges."""


def parse_ranges(text):
    """Read a comma-separated list of numbers and ranges.

    ``10-20/5`` stands for 10, 15 and 20. Returns an ``IntervalSet``.
    """
    pieces = []
    for part in text.split(","):
        part = part.strip()
        if not part:
            continue
        found = _PART.fullmatch(part)
        if not found:
            raise RangeSyntaxError(f"not a range: {part!r}")
        first = int(found.group(1))
        last = int(found.group(2) or first)
        if last < first:
            raise RangeSyntaxError(f"range runs backwards: {part!r}")
        if found.group(3) is None:
            pieces.append((first, last + 1))
            continue
        step = int(found.group(3))
        if not step:
            raise RangeSyntaxError(f"a step of 0: {part!r}")
        pieces.extend((number, number + 1) for number in range(first, last + 1, step))
    return IntervalSet(pieces)


def format_ranges(intervals):
    """Write a set of whole numbers as ``parse_ranges`` reads it."""
    parts = []
    for start, end in intervals:
        parts.append(str(start) if end - start == 1 else f"{start}-{end - 1}")
    return ",".join(parts)
