"""How alike two edits are, by their words alone: no model and no embedding.

The resemblance of Broder, "On the resemblance and containment of documents" (1997): the share that two texts have
of their shingles, runs of ``SHINGLE`` tokens. Sources that are the same are ``syntax_key``'s.
"""

import re
from collections.abc import Iterator, Sequence

SHINGLE = 4
"""Tokens in a shingle."""
MAX_BYTES = 400_000
"""Of one patch that is looked at; what stands behind is ignored."""

Shingles = frozenset[tuple[str, ...]]

_TOKEN = re.compile(r"\w+|[^\w\s]")
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


def similarity(edit: bytes, edits: Sequence[bytes]) -> float:
    """The resemblance of a patch to the nearest of several, from 0.0 to 1.0; 0.0 where there are none.

    Args:
        edit: a patch as ``repository.patch`` gives it.
        edits: those that it may be a copy of.
    """
    return nearest(edit, edits)[1]


def nearest(edit: bytes, edits: Sequence[bytes]) -> tuple[int, float]:
    """The place of the most alike patch among ``edits`` (the first of equals), and the resemblance to it.

    ``(-1, 0.0)`` where none has anything in common with ``edit``.
    """
    ours = shingles(edit)
    best, most = -1, 0.0
    for n, other in enumerate(edits):
        alike = resemblance(ours, shingles(other))
        if alike > most:
            best, most = n, alike
    return best, most


def resemblance(first: Shingles, second: Shingles) -> float:
    """Broder's r(A, B) = |S(A) ∩ S(B)| / |S(A) ∪ S(B)|; 0.0 where both are empty: nothing is no copy of nothing."""
    union = len(first | second)
    return len(first & second) / union if union else 0.0


def shingles(patch: bytes) -> Shingles:
    """Every run of four tokens in the lines that a patch adds, and in those that it removes, kept apart.

    Each shingle begins with ``+`` or ``-``. Lines that follow each other are one text; one of fewer than four tokens
    gives one short shingle. Paths, places, white space and binary files do not count.
    """
    found: set[tuple[str, ...]] = set()
    for sign, text in _runs(patch[:MAX_BYTES]):
        tokens = _TOKEN.findall(text)
        last = max(len(tokens) - SHINGLE, 0)
        found.update((sign, *tokens[n : n + SHINGLE]) for n in range(last + 1) if tokens)
    return frozenset(found)


def _runs(patch: bytes) -> Iterator[tuple[str, str]]:
    """Lines of one sign that follow each other: the sign, and their text."""
    sign, lines = "", list[bytes]()
    for line in [*_changes(patch), b" "]:
        now = line[:1].decode("latin-1")
        if now != sign and lines:
            yield sign, b"\n".join(lines).decode("utf-8", "replace")
            lines = []
        sign = now
        if now in "+-":
            lines.append(line[1:])


def _changes(patch: bytes) -> Iterator[bytes]:
    """The lines inside hunks, counted out as their headers say: a removed ``-- x`` looks like a header itself."""
    old = new = 0
    for line in patch.split(b"\n"):
        if old > 0 or new > 0:
            old -= line[:1] in b" -"
            new -= line[:1] in b" +"
            yield line or b" "
        elif header := _HUNK.match(line):
            old, new = (int(count) if count is not None else 1 for count in header.groups())
            yield b" "
