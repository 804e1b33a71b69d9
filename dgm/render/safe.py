"""The neutraliser: text of agents and models must not move a terminal's cursor, hide itself or fake a line."""

import re

# Categories Cc, Cf, Cs, Co, Zl and Zp up to Unicode 16, except line feed and tab. A test compares.
_unsafe = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u2064\u2066-\u206f\ud800-\uf8ff\ufeff\ufff9-\ufffb\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
    "\U000f0000-\U000ffffd\U00100000-\U0010fffd]"
)


def neutralise(text: str) -> str:
    """Return the text with control and formatting characters (escape sequences, bidi marks …) made visible.

    Line feeds and tabs stay as they are.
    """
    return _unsafe.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def one_line(text: str, width: int) -> str:
    """Return the text neutralised, on one line, in at most ``width`` terminal cells; ``…`` stands where it is cut."""
    return cut(" ".join(neutralise(text).split()), width)


def cut(line: str, width: int) -> str:
    """Return the beginning of a neutralised line in at most ``width`` terminal cells, ``…`` included."""
    if len(line) <= width and line.isascii():
        return line
    from rich.cells import cell_len, set_cell_size

    if cell_len(line) <= width:
        return line
    return set_cell_size(line, width - 1).rstrip() + "…" if width > 0 else ""
