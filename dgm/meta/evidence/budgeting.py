"""Puts evidence into a prompt of bounded length, for models whose context is small."""

from collections.abc import Sequence

from dgm.meta.evidence.cases import cut

MARK = "=== {title} ==="
"""Stands above each part."""
END = "=== end ==="
"""Stands below the last one."""
LEAST = 200
"""Characters that each part gets, however many there are."""


def budgeted(parts: Sequence[tuple[str, bytes]], chars: int) -> str:
    """The parts under their titles, at most about ``chars`` characters of them together.

    A part that is shorter than its share is shown whole and leaves the rest to the others; a longer one keeps its first
    and its last half, with a line that says how much is missing.

    Args:
        parts: title and content of each.
        chars: of all contents; each gets ``LEAST`` at least.
    """
    shares: dict[int, int] = {}
    room = chars
    for done, place in enumerate(sorted(range(len(parts)), key=lambda n: len(parts[n][1]))):
        shares[place] = max(LEAST, room // (len(parts) - done))
        room -= min(len(parts[place][1]), shares[place])
    shown = [
        f"{MARK.format(title=title)}\n{cut(data, shares[n]).decode('utf-8', 'replace').rstrip()}\n"
        for n, (title, data) in enumerate(parts)
    ]
    return "\n".join([*shown, END])
