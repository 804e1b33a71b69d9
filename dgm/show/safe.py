"""Text that others wrote, made safe and measured: nothing in it moves a cursor, a column or a line.

Widths are in cells of a terminal: a wide character takes two, a combining one none.
"""

import re
from enum import StrEnum, auto
from functools import lru_cache

ELLIPSIS = "…"
# Categories Cc, Cf, Cs, Co, Zl and Zp up to Unicode 16, except line feed and tab. A test compares.
_unsafe = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u2064\u2066-\u206f\ud800-\uf8ff\ufeff\ufff9-\ufffb\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
    "\U000f0000-\U000ffffd\U00100000-\U0010fffd]"
)


class Side(StrEnum):
    """The side of a column on which a text stands."""

    LEFT = auto()
    RIGHT = auto()


def neutralise(text: str) -> str:
    """Return the text with control and formatting characters (escape sequences, bidi marks …) made visible.

    Line feeds and tabs stay as they are.
    """
    return _unsafe.sub(_escape_match, text)


def cell_width(text: str) -> int:
    """Return the cells of a terminal that the neutralised text takes; line feeds and tabs take none."""
    if text.isascii() and text.isprintable():
        return len(text)
    from rich.cells import cell_len

    return cell_len(neutralise(text))


def one_line(text: str, width: int) -> str:
    """Return the text neutralised, on one line, in at most ``width`` cells.

    Runs of blanks become one; ``…`` stands where the text is cut.
    """
    return cut(" ".join(neutralise(text).split()), width)


def fit(text: str, width: int, side: Side = Side.LEFT) -> str:
    """Return the text neutralised, on one line, of exactly ``width`` cells: filled with blanks, or cut with a ``…``.

    Args:
        text: any text; line feeds and tabs become blanks.
        width: 0 or more.
        side: the side of a shorter text; a longer text always loses its end.
    """
    text = cut(neutralise(text).replace("\n", " ").replace("\t", " "), width)
    blanks = " " * (width - cell_width(text))
    return text + blanks if side is Side.LEFT else blanks + text


def cut(text: str, width: int) -> str:
    """Return the beginning of a neutralised line in at most ``width`` cells, ``…`` included; never half a character."""
    if cell_width(text) <= width:
        return text
    if width <= 0:
        return ""
    return text[: count_fitting(text, width - 1)] + ELLIPSIS


def count_fitting(text: str, room: int) -> int:
    """Return the number of characters of a neutralised line that fit into ``room`` cells.

    Combining marks go with the character before them.
    """
    if text.isascii():
        return max(0, min(room, len(text)))
    end = 0
    while end < len(text):
        after = end + 1
        # Combining marks belong to the character before them, and one of them can make it wide.
        while after < len(text) and not _character_width(text[after]):
            after += 1
        room -= _character_width(text[end]) if after == end + 1 else cell_width(text[end:after])
        if room < 0:
            break
        end = after
    return end


@lru_cache(8_192)
def _character_width(character: str) -> int:
    return cell_width(character)


def decode_beginning(raw: bytes, most: int) -> tuple[str, int]:
    """Return at most ``most`` characters of a line of UTF-8, and the number of bytes left.

    Invalid bytes are replaced.
    """
    # Invalid UTF-8 is kept in its place here, so that bytes are counted unchanged.
    head = raw[: 4 * most].decode("utf-8", "surrogateescape")[:most].encode("utf-8", "surrogateescape")
    return head.decode("utf-8", "replace"), len(raw) - len(head)


def _escape_match(found: re.Match[str]) -> str:
    return f"\\x{ord(found[0]):02x}"
