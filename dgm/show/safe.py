"""Text that others wrote, made safe and measured: nothing in it moves a cursor, a column or a line.

Widths are in cells of a terminal: a wide character takes two, a combining one none.
"""

from enum import StrEnum, auto
from functools import lru_cache

from dgm.render.safe import cut, neutralise, one_line

__all__ = ["Side", "cell_width", "count_fitting", "cut", "decode_beginning", "fit", "neutralise", "one_line"]
ELLIPSIS = "…"


class Side(StrEnum):
    """The side of a column on which a text stands."""

    LEFT = auto()
    RIGHT = auto()


def cell_width(text: str) -> int:
    """Return the cells of a terminal that the neutralised text takes; line feeds and tabs take none."""
    if text.isascii() and text.isprintable():
        return len(text)
    from rich.cells import cell_len

    return cell_len(neutralise(text))


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
