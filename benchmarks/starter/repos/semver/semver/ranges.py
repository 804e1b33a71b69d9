"""Ranges of versions: a union of intervals, written the way package files write them.

A range is alternatives separated by ``||``; an alternative is comparators separated by blanks,
all of which must hold, or one hyphen range.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import Iterable, Optional

from .version import Version

log = logging.getLogger(__name__)

_PARTIAL = re.compile(
    r"v?(?P<major>\d+|[xX*])"
    r"(?:\.(?P<minor>\d+|[xX*]))?"
    r"(?:\.(?P<patch>\d+|[xX*]))?"
    r"(?:-(?P<pre>[0-9A-Za-z.-]+))?"
    r"(?:\+[0-9A-Za-z.-]+)?"
)
_COMPARATOR = re.compile(r"(?P<op>\^|~|>=|<=|>|<|=)?\s*(?P<partial>[^\s<>=^~]+)")
_HYPHEN = re.compile(r"(?P<low>\S+)\s+-\s+(?P<high>\S+)")


class RangeError(ValueError):
    """The text is not a range of versions."""


@dataclass(frozen=True)
class Interval:
    """Versions from ``low`` to ``high``; an end that is ``None`` is open for ever."""

    low: Optional[Version] = None
    high: Optional[Version] = None
    low_closed: bool = True
    high_closed: bool = False

    def __contains__(self, version: Version) -> bool:
        if self.low is not None:
            if version < self.low or (version == self.low and not self.low_closed):
                return False
        if self.high is not None:
            if version > self.high or (version == self.high and not self.high_closed):
                return False
        return True

    @property
    def is_empty(self) -> bool:
        """Whether no version can be inside."""
        if self.low is None or self.high is None:
            return False
        if self.low == self.high:
            return not (self.low_closed and self.high_closed)
        return self.low > self.high

    def admits_prerelease(self, version: Version) -> bool:
        """Whether an end of the interval names a pre-release of the same release."""
        ends = (self.low, self.high)
        return any(
            end is not None and end.pre and end.pre != ("0",) and end.triple == version.triple for end in ends
        )

    def intersect(self, other: Interval) -> Interval:
        """The versions that are in both intervals."""
        low, low_closed = self.low, self.low_closed
        if other.low is not None:
            if low is None or other.low > low:
                low, low_closed = other.low, other.low_closed
            elif other.low == low:
                low_closed = low_closed and other.low_closed
        high, high_closed = self.high, self.high_closed
        if other.high is not None:
            if high is None or other.high < high:
                high, high_closed = other.high, other.high_closed
            elif other.high == high:
                high_closed = high_closed and other.high_closed
        return Interval(low, high, low_closed, high_closed)

    def __str__(self) -> str:
        if self.low is not None and self.low == self.high and self.low_closed and self.high_closed:
            return f"={self.low}"
        parts = []
        if self.low is not None:
            parts.append((">=" if self.low_closed else ">") + str(self.low))
        if self.high is not None:
            parts.append(("<=" if self.high_closed else "<") + str(self.high))
        return " ".join(parts) or "*"


@dataclass(frozen=True)
class _Partial:
    """A version of which the last numbers may be missing."""

    major: Optional[int]
    minor: Optional[int]
    patch: Optional[int]
    pre: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> _Partial:
        match = _PARTIAL.fullmatch(text)
        if match is None:
            raise RangeError(f"not a version in a range: {text!r}")
        numbers: list[Optional[int]] = []
        for name in ("major", "minor", "patch"):
            part = match[name]
            missing = part is None or part in "xX*" or (numbers and numbers[-1] is None)
            numbers.append(None if missing else int(part))
        pre = match["pre"]
        return cls(*numbers, tuple(pre.split(".")) if pre else ())

    def floor(self) -> Version:
        """The lowest version that the partial names."""
        return Version(self.major or 0, self.minor or 0, self.patch or 0, self.pre)

    def ceiling(self) -> Optional[Version]:
        """The lowest version above all that the partial names, ``None`` when it names all."""
        if self.major is None:
            return None
        if self.minor is None:
            return _before(self.major + 1, 0, 0)
        if self.patch is None:
            return _before(self.major, self.minor + 1, 0)
        return _before(self.major, self.minor, self.patch + 1)

    @property
    def is_full(self) -> bool:
        return self.patch is not None


def _before(major: int, minor: int, patch: int) -> Version:
    """The lowest pre-release, so that an open upper end shuts out all of them."""
    return Version(major, minor, patch, ("0",))


def _caret(partial: _Partial) -> Interval:
    """Up to the next change of the leftmost number that is not zero."""
    if partial.major is None:
        return Interval()
    if partial.major > 0 or partial.minor is None:
        high = _before(partial.major + 1, 0, 0)
    elif partial.minor > 0 or partial.patch is None:
        high = _before(0, partial.minor + 1, 0)
    else:
        high = _before(0, 0, partial.patch + 1)
    return Interval(partial.floor(), high)


def _tilde(partial: _Partial) -> Interval:
    """Up to the next minor version, or the next major one when only that is named."""
    if partial.major is None:
        return Interval()
    if partial.minor is None:
        return Interval(partial.floor(), _before(partial.major + 1, 0, 0))
    return Interval(partial.floor(), _before(partial.major, partial.minor + 1, 0))


def _exact(partial: _Partial) -> Interval:
    """One version, or every version that a partial one stands for."""
    if partial.is_full:
        version = partial.floor()
        return Interval(version, version, True, True)
    if partial.major is None:
        return Interval()
    return Interval(partial.floor(), partial.ceiling())


def _comparator(op: str, partial: _Partial) -> Interval:
    if op == "^":
        return _caret(partial)
    if op == "~":
        return _tilde(partial)
    if op == ">=":
        return Interval(low=partial.floor())
    if op == "<":
        return Interval(high=partial.floor())
    if op == ">":
        if partial.is_full:
            return Interval(low=partial.floor(), low_closed=False)
        return Interval(low=partial.ceiling())
    if op == "<=":
        if partial.is_full:
            return Interval(high=partial.floor(), high_closed=True)
        return Interval(high=partial.ceiling())
    return _exact(partial)


def _hyphen(low: _Partial, high: _Partial) -> Interval:
    """Both ends belong to the range, and a partial end stands for all its versions."""
    first = low.floor()
    if high.is_full:
        return Interval(first, high.floor(), True, True)
    return Interval(first, high.ceiling())


def _alternative(text: str) -> Interval:
    text = text.strip()
    hyphen = _HYPHEN.fullmatch(text)
    if hyphen is not None:
        return _hyphen(_Partial.parse(hyphen["low"]), _Partial.parse(hyphen["high"]))
    interval, end = Interval(), 0
    for match in _COMPARATOR.finditer(text):
        if text[end : match.start()].strip():
            raise RangeError(f"not a range: {text!r}")
        interval = interval.intersect(_comparator(match["op"] or "", _Partial.parse(match["partial"])))
        end = match.end()
    if text[end:].strip():
        raise RangeError(f"not a range: {text!r}")
    return interval


@dataclass(frozen=True)
class Range:
    """A union of intervals of versions."""

    intervals: tuple[Interval, ...]

    @classmethod
    def parse(cls, text: str) -> Range:
        """Read a range; empty text stands for every release."""
        intervals = tuple(_alternative(part) for part in text.split("||"))
        result = cls(tuple(interval for interval in intervals if not interval.is_empty))
        log.debug("range %r is %s", text, result)
        return result

    @property
    def is_empty(self) -> bool:
        """Whether nothing can match."""
        return not self.intervals

    def __contains__(self, version: Version) -> bool:
        return self.matches(version)

    def matches(self, version: Version, prereleases: bool = False) -> bool:
        """Whether the version is inside; a pre-release only when asked for or named by an end."""
        for interval in self.intervals:
            if version not in interval:
                continue
            if not version.is_prerelease or prereleases or interval.admits_prerelease(version):
                return True
        return False

    def intersect(self, other: Range) -> Range:
        """What is in both ranges."""
        pairs = (mine.intersect(theirs) for mine in self.intervals for theirs in other.intervals)
        return Range(tuple(interval for interval in pairs if not interval.is_empty))

    def best(self, versions: Iterable[Version], prereleases: bool = False) -> Optional[Version]:
        """The newest of the versions that match, ``None`` when there is none."""
        matching = [version for version in versions if self.matches(version, prereleases)]
        log.debug("%d versions match %s", len(matching), self)
        return max(matching, default=None)

    def __str__(self) -> str:
        return " || ".join(str(interval) for interval in self.intervals) or "<nothing>"
