"""Sums over clades (an agent and all its descendants) from own counts, all at once; used where many are new."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any


def add_news(
    parents: Sequence[tuple[int, ...]],
    ancestors: Callable[[Any], Iterable[int]],
    own: Sequence["array[int]"],
    known: Sequence["array[int]"],
    clades: Sequence["array[int]"],
) -> None:
    """Brings columns of clades up to date; every descendant counts once.

    One pass from the youngest to the seed does it where every agent has one parent. Agents that descend from a
    crossover are added to each of their ancestors one by one, as two ways may lead to the same one.

    Args:
        parents: of each agent, below its own id.
        ancestors: of an agent, each once.
        own: columns of own counts as they are.
        known: the same as they were when the clades were right; younger agents may lack.
        clades: changed in place.
    """
    mixed = bytearray(len(parents))
    for agent, those in enumerate(parents):
        mixed[agent] = len(those) > 1 or any(mixed[parent] for parent in those)
    for column, old, clade in zip(own, known, clades, strict=True):
        news = column[:]
        for agent, count in enumerate(old):
            news[agent] -= count
        for agent in range(len(parents) - 1, -1, -1):
            count = news[agent]
            if count:
                clade[agent] += count
                above = ancestors(agent) if mixed[agent] else ()
                for ancestor in above:
                    clade[ancestor] += count
                if parents[agent] and not mixed[agent]:
                    news[parents[agent][0]] += count
