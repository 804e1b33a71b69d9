"""The resemblance of two edits by their words alone: no model and no embedding.

The resemblance of Broder, "On the resemblance and containment of documents" (1997), is the share of common shingles in
two texts. A shingle is a run of ``SHINGLE`` tokens. ``syntax_key`` detects identical sources.
"""

import re
from collections.abc import Iterator, Sequence

SHINGLE = 4
"""Tokens in a shingle."""
MAX_BYTES = 400_000
"""Bytes of one patch that are examined; the rest is ignored."""

Shingles = frozenset[tuple[str, ...]]

_TOKEN = re.compile(r"\w+|[^\w\s]")
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


def nearest(edit: bytes, edits: Sequence[bytes]) -> tuple[int, float]:
    """Return the index of the most alike patch in ``edits`` (the first of equals), and the resemblance, up to 1.0.

    The result is ``(-1, 0.0)`` if none has anything in common with ``edit``. Patches are as ``repository.patch`` gives
    them.
    """
    ours = shingles(edit)
    best, most = -1, 0.0
    for n, other in enumerate(edits):
        alike = resemblance(ours, shingles(other))
        if alike > most:
            best, most = n, alike
    return best, most


def resemblance(first: Shingles, second: Shingles) -> float:
    """Return Broder's r(A, B) = |S(A) ∩ S(B)| / |S(A) ∪ S(B)|.

    The result is 0.0 if both are empty: an empty edit is no copy of another one.
    """
    union = len(first | second)
    return len(first & second) / union if union else 0.0


def shingles(patch: bytes) -> Shingles:
    """Return every run of four tokens in a patch's added lines, and in its removed lines, kept apart.

    Each shingle begins with ``+`` or ``-``. Consecutive lines are one text; a text of fewer than four tokens gives one
    short shingle. Paths, places, white space and binary files do not count.
    """
    found: set[tuple[str, ...]] = set()
    for sign, text in _runs(patch[:MAX_BYTES]):
        tokens = _TOKEN.findall(text)
        last = max(len(tokens) - SHINGLE, 0)
        found.update((sign, *tokens[n : n + SHINGLE]) for n in range(last + 1) if tokens)
    return frozenset(found)


def _runs(patch: bytes) -> Iterator[tuple[str, str]]:
    """Yield consecutive lines with the same sign: the sign, and their text."""
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
    """Yield the lines inside hunks by the counts in their headers: a removed ``-- x`` looks like a header itself."""
    old = new = 0
    for line in patch.split(b"\n"):
        if old > 0 or new > 0:
            old -= line[:1] in b" -"
            new -= line[:1] in b" +"
            yield line or b" "
        elif header := _HUNK.match(line):
            old, new = (int(count) if count is not None else 1 for count in header.groups())
            yield b" "
