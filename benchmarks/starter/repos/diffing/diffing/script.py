"""Edit scripts: what to do to one list to get the other."""

from dataclasses import dataclass

from .matching import matching_blocks


@dataclass(frozen=True)
class Edit:
    """Lines ``a_start`` to ``a_stop`` of the old list become ``b_start`` to ``b_stop`` of the new one."""

    a_start: int
    a_stop: int
    b_start: int
    b_stop: int

    @property
    def kind(self):
        if self.a_start == self.a_stop:
            return "insert"
        return "delete" if self.b_start == self.b_stop else "replace"


def compare(a, b, key=None):
    """Return the edits that turn ``a`` into ``b``.

    With ``key`` two lines are equal if the key function returns the same for both.
    """
    if key is not None:
        a, b = [key(line) for line in a], [key(line) for line in b]
    edits, i, j = [], 0, 0
    for a_start, b_start, length in [*matching_blocks(a, b), (len(a), len(b), 0)]:
        if i < a_start or j < b_start:
            edits.append(Edit(i, a_start, j, b_start))
        i, j = a_start + length, b_start + length
    return edits


def similarity(a, b):
    """Return how alike two lists are, from 0.0 to 1.0; two empty ones are alike."""
    total = len(a) + len(b)
    if total == 0:
        return 1.0
    common = sum(length for _, _, length in matching_blocks(a, b))
    return 2 * common / total
