"""Show what changed inside a line."""

import re

from .script import compare

_PIECE = re.compile(r"\w+|\s+|[^\w\s]")


def mark_words(old, new, removed="[-{}-]", added="{{+{}+}}"):
    """Return one line with the removed and the added words marked."""
    a, b = _PIECE.findall(old), _PIECE.findall(new)
    pieces, position = [], 0
    for edit in compare(a, b):
        pieces += a[position : edit.a_start]
        if edit.a_start < edit.a_stop:
            pieces.append(removed.format("".join(a[edit.a_start : edit.a_stop])))
        if edit.b_start < edit.b_stop:
            pieces.append(added.format("".join(b[edit.b_start : edit.b_stop])))
        position = edit.a_stop
    return "".join(pieces + a[position:])
