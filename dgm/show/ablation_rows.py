"""The report of an ablation: a row for each part, and what the numbers mean."""

from collections.abc import Iterator, Sequence

from dgm.evaluation.ablation import DIFFERENCE, Effect, PartEffect
from dgm.show.safe import neutralise
from dgm.show.words import count_text, p_text

HEADS = ("part", "with", "without", "difference (95 %)", "p", "tokens/turn", "verdict")


def effect_rows(effects: Sequence[PartEffect], tasks_needed: int) -> Iterator[str]:
    """Yield the table of all parts and its explanation.

    Args:
        effects: at least one.
        tasks_needed: from ``Ablation``.
    """
    rows = [HEADS, *map(_cells, effects)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEADS))]
    for row in rows:
        cells = [
            cell.ljust(width) if at in (0, 6) else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
    judged = [each for each in effects if each.effect is not Effect.NEEDED]
    if not judged:
        return
    yield "difference: percentage points of tasks resolved with the part minus without it; 95 % for this part alone"
    parts = count_text(len(judged), "part")
    yield f"p: exact paired test over tasks, adjusted for {parts} (Holm); up to 0.05 counts as an effect"
    if any(each.effect is Effect.NOT_SHOWN for each in judged):
        yield (
            f"'{Effect.NOT_SHOWN}' does not mean that there is none: to show {DIFFERENCE * 100:.0f} points takes about "
            f"{tasks_needed} tasks, and here are {max(each.tasks for each in judged)}"
        )


def _cells(effect: PartEffect) -> tuple[str, ...]:
    part = neutralise(effect.part)
    if effect.effect is Effect.NEEDED:
        return part, "–", "–", "–", "–", "–", effect.effect
    low, high = (100 * end for end in effect.interval)
    cost = (
        f", costs {effect.tokens:,} tokens" if effect.effect is not Effect.HELPS and effect.tokens > 0 else ""
    )
    return (
        part,
        f"{effect.with_part}/{effect.pairs}",
        f"{effect.without_part}/{effect.pairs}",
        f"{100 * effect.difference:+.0f} ({low:+.0f} to {high:+.0f})",
        p_text(effect.p).removeprefix("p ").removeprefix("= "),
        f"{effect.tokens:,}",
        f"{effect.effect}{cost}",
    )
