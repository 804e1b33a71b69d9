"""One version: parsing, printing, ordering and increments."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

_PATTERN = re.compile(
    r"v?(?P<major>\d+)\.(?P<minor>\d+)\.(?P<patch>\d+)"
    r"(?:-(?P<pre>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
    r"(?:\+(?P<build>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)


class VersionError(ValueError):
    """The text is not a semantic version."""


def _identifier_key(identifier: str) -> tuple:
    """Sort numbers by value and before any word, words by their characters."""
    if identifier.isdigit():
        integer_value = int(identifier)
        return (0, integer_value)
    return (1, identifier)


@functools.total_ordering
@dataclass(frozen=True, eq=False)
class Version:
    """A semantic version; build metadata is kept but never compared."""

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()
    build: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read a full version; a leading ``v`` and outer blanks are allowed."""
        match = _PATTERN.fullmatch(text.strip())
        if match is None:
            raise VersionError(f"not a semantic version: {text!r}")
        pre, build = match["pre"], match["build"]
        return cls(
            int(match["major"]),
            int(match["minor"]),
            int(match["patch"]),
            tuple(pre.split(".")) if pre else (),
            tuple(build.split(".")) if build else (),
        )

    @property
    def triple(self) -> tuple[int, int, int]:
        """The three numbers, without pre-release and build."""
        return (self.major, self.minor, self.patch)

    @property
    def is_prerelease(self) -> bool:
        """Whether the version stands before its release."""
        return bool(self.pre)

    def _key(self) -> tuple:
        ranks = tuple(_identifier_key(identifier) for identifier in self.pre)
        return (self.triple, not self.pre, ranks)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return self._key() == other._key()

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.pre:
            text += "-" + ".".join(self.pre)
        if self.build:
            text += "+" + ".".join(self.build)
        return text

    def next_major(self) -> Version:
        """The first release after this one that may break callers."""
        if self.pre and self.minor == 0 and self.patch == 0:
            return Version(self.major, 0, 0)
        return Version(self.major + 1, 0, 0)

    def next_minor(self) -> Version:
        """The next release with new features."""
        if self.pre and self.patch == 0:
            return Version(self.major, self.minor, 0)
        return Version(self.major, self.minor + 1, 0)

    def next_patch(self) -> Version:
        """The next release with repairs only."""
        if self.pre:
            return Version(*self.triple)
        return Version(self.major, self.minor, self.patch + 1)
