"""Sums over clades (an agent and all its descendants), computed all at once; used when many counts are new."""

from array import array
from collections.abc import Mapping, Sequence


def sum_clades(
    first: Sequence[int],
    further: Mapping[int, Sequence[int]],
    columns: Sequence["array[int]"],
    most_steps: int | None = None,
) -> Sequence["array[int]"] | None:
    """Return the sum of each column over clades, counting every descendant once. The input columns do not change.

    If every agent has one parent, one pass from the youngest to the seed suffices. Descendants of a crossover are added
    to each of their ancestors one by one, because two paths may lead to the same ancestor.

    Args:
        first: the first parent of each agent, a smaller id than its own; -1 if it has none.
        further: the other parents of agents that have several.
        columns: the own counts of each agent.
        most_steps: maximum number of additions for descendants of crossovers; None: no limit.

    Returns:
        A column for each input column, or None if ``most_steps`` did not suffice.
    """
    sums = [column[:] for column in columns]
    mixed = _mark_crossovers(first, further)
    for agent in range(len(first) - 1, 0, -1):
        parent = first[agent]
        if parent >= 0 and not (mixed and mixed[agent]):
            for total in sums:
                total[parent] += total[agent]
    steps = 0
    for agent in range(len(mixed)):
        counts = [column[agent] for column in columns] if mixed[agent] else ()
        if any(counts):
            above = _find_ancestors(first, further, agent)
            steps += len(above)
            if most_steps is not None and steps > most_steps:
                return None
            for ancestor in above:
                for total, count in zip(sums, counts, strict=True):
                    total[ancestor] += count
    return sums


def update_clades(
    parents: Sequence[tuple[int, ...]],
    own: Sequence["array[int]"],
    known: Sequence["array[int]"],
    clades: Sequence["array[int]"],
) -> None:
    """Bring the columns of clades up to date.

    Args:
        parents: the parents of each agent.
        own: columns of current own counts.
        known: the own counts when the clades were last correct; younger agents may be missing.
        clades: modified in place.
    """
    news = [column[:] for column in own]
    for column, old in zip(news, known, strict=True):
        for agent, count in enumerate(old):
            column[agent] -= count
    first = [those[0] if those else -1 for those in parents]
    further = {agent: those[1:] for agent, those in enumerate(parents) if len(those) > 1}
    for column, more in zip(clades, sum_clades(first, further, news) or (), strict=True):
        for agent, count in enumerate(more):
            column[agent] += count


def _mark_crossovers(first: Sequence[int], further: Mapping[int, Sequence[int]]) -> bytearray:
    """Return for each agent whether it is a crossover or descends from one; empty if there is no crossover."""
    if not further:
        return bytearray()
    mixed = bytearray(len(first))
    for agent, parent in enumerate(first):
        mixed[agent] = agent in further or (parent >= 0 and mixed[parent])
    return mixed


def _find_ancestors(first: Sequence[int], further: Mapping[int, Sequence[int]], agent: int) -> set[int]:
    found: set[int] = set()
    waiting = [agent]
    while waiting:
        one = waiting.pop()
        for parent in (first[one], *further.get(one, ())):
            if parent >= 0 and parent not in found:
                found.add(parent)
                waiting.append(parent)
    return found
