"""Evidence cut to fit a prompt of bounded length, for models with a small context."""

from collections.abc import Sequence

from dgm.meta.evidence.cases import cut_middle

MARK = "=== {title} ==="
"""Heading of each part."""
END = "=== end ==="
"""End mark below the last part."""
LEAST = 200
"""Minimum characters of each part, however many there are."""


def fit_to_budget(parts: Sequence[tuple[str, bytes]], chars: int) -> str:
    """Return the parts under their titles, with about ``chars`` characters of content in total.

    A part shorter than its share is shown whole and leaves the rest to the others. A longer one keeps its first and
    last half, with a line that gives the number of missing characters.

    Args:
        parts: title and content of each.
        chars: bound on all contents together; each gets ``LEAST`` at least.
    """
    shares: dict[int, int] = {}
    room = chars
    for done, place in enumerate(sorted(range(len(parts)), key=lambda n: len(parts[n][1]))):
        shares[place] = max(LEAST, room // (len(parts) - done))
        room -= min(len(parts[place][1]), shares[place])
    shown = [
        f"{MARK.format(title=title)}\n{cut_middle(data, shares[n]).decode('utf-8', 'replace').rstrip()}\n"
        for n, (title, data) in enumerate(parts)
    ]
    return "\n".join([*shown, END])
