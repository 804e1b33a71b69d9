"""The types of the variable parts of a pattern.

A converter reads a part of a path into a value, or None if the part is not of its kind, and writes a value
back. Those of lower ``rank`` are tried first.
"""

import re

from .url import quote_part, quote_path


class Converter:
    """Any text that is not empty."""

    rank = 3
    takes_rest = False

    def read(self, part):
        """Return the value of a part, or None."""
        return part or None

    def write(self, value):
        """Return the quoted text of a value; raises ``ValueError`` if it is not of this kind."""
        text = str(value)
        if self.read(text) is None:
            raise ValueError(f"{text!r} does not fit")
        return quote_part(text)


class IntConverter(Converter):
    """A whole number without a sign."""

    rank = 1

    def read(self, part):
        return int(part) if part.isascii() and part.isdigit() else None


class SlugConverter(Converter):
    """Small letters, digits and hyphens."""

    rank = 2

    def read(self, part):
        return part if re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", part) else None


class PathConverter(Converter):
    """All the rest of the path, slashes included; only at the end of a pattern."""

    rank = 4
    takes_rest = True

    def write(self, value):
        text = str(value).strip("/")
        if not text:
            raise ValueError("an empty path does not fit")
        return quote_path(text)


CONVERTERS = {
    "int": IntConverter(),
    "path": PathConverter(),
    "slug": SlugConverter(),
    "text": Converter(),
}
