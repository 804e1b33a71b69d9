"""How much room text takes on the screen."""

import re
import unicodedata

_AMOUNT = re.compile(r"[-+]?\d[\d,]*(\.\d+)?%?")


def char_width(char):
    """Return 0 for combining characters, 2 for wide ones, otherwise 1."""
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def display_width(text):
    """Return the number of cells that ``text`` takes."""
    return sum(char_width(char) for char in text)


def split_at(text, width):
    """Return what of ``text`` fits into ``width``, and the rest."""
    used = 0
    for place, char in enumerate(text):
        used += char_width(char)
        if used > width:
            return text[:place], text[place:]
    return text, ""


def cut(text, width, mark="…"):
    """Shorten ``text`` to ``width``, with ``mark`` in place of what is left out."""
    if display_width(text) <= width:
        return text
    return split_at(text, width - display_width(mark))[0] + mark


def pad(text, width, align="left"):
    """Fill ``text`` up to ``width``; in the middle the odd blank goes to the right."""
    room = max(width - display_width(text), 0)
    if align == "right":
        return " " * room + text
    if align == "center":
        return " " * (room // 2) + text + " " * (room - room // 2)
    return text + " " * room


def all_amounts(cells):
    """Tell whether all cells that are not empty are numbers, and at least one is."""
    found = False
    for cell in cells:
        if not cell.strip():
            continue
        if not _AMOUNT.fullmatch(cell.strip()):
            return False
        found = True
    return found
