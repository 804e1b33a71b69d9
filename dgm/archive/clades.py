"""Sums over clades (an agent and all its descendants) from own counts, all at once; used where many are new."""

from array import array
from collections.abc import Mapping, Sequence


def clade_sums(
    first: Sequence[int],
    further: Mapping[int, Sequence[int]],
    columns: Sequence["array[int]"],
    most_steps: int | None = None,
) -> Sequence["array[int]"] | None:
    """Each column added up over clades, every descendant once; the columns are left as they are.

    One pass from the youngest to the seed does it where every agent has one parent. Agents that descend from a
    crossover are added to each of their ancestors one by one, as two ways may lead to the same one.

    Args:
        first: of each agent its first parent, below its own id; -1 where it has none.
        further: the other parents of those that have several.
        columns: of each agent its own counts.
        most_steps: additions for descendants of crossovers after which it gives up; None for no limit.

    Returns:
        A column for each column; None where it gave up.
    """
    sums = [column[:] for column in columns]
    mixed = _mixed(first, further)
    for agent in range(len(first) - 1, 0, -1):
        parent = first[agent]
        if parent >= 0 and not (mixed and mixed[agent]):
            for total in sums:
                total[parent] += total[agent]
    steps = 0
    for agent in range(len(mixed)):
        counts = [column[agent] for column in columns] if mixed[agent] else ()
        if any(counts):
            above = _ancestors(first, further, agent)
            steps += len(above)
            if most_steps is not None and steps > most_steps:
                return None
            for ancestor in above:
                for total, count in zip(sums, counts, strict=True):
                    total[ancestor] += count
    return sums


def add_news(
    parents: Sequence[tuple[int, ...]],
    own: Sequence["array[int]"],
    known: Sequence["array[int]"],
    clades: Sequence["array[int]"],
) -> None:
    """Brings columns of clades up to date.

    Args:
        parents: of each agent.
        own: columns of own counts as they are.
        known: the same as they were when the clades were right; younger agents may lack.
        clades: changed in place.
    """
    news = [column[:] for column in own]
    for column, old in zip(news, known, strict=True):
        for agent, count in enumerate(old):
            column[agent] -= count
    first = [those[0] if those else -1 for those in parents]
    further = {agent: those[1:] for agent, those in enumerate(parents) if len(those) > 1}
    for column, more in zip(clades, clade_sums(first, further, news) or (), strict=True):
        for agent, count in enumerate(more):
            column[agent] += count


def _mixed(first: Sequence[int], further: Mapping[int, Sequence[int]]) -> bytearray:
    """Of each agent, whether it is a crossover or descends from one; empty where there is none."""
    if not further:
        return bytearray()
    mixed = bytearray(len(first))
    for agent, parent in enumerate(first):
        mixed[agent] = agent in further or (parent >= 0 and mixed[parent])
    return mixed


def _ancestors(first: Sequence[int], further: Mapping[int, Sequence[int]], agent: int) -> set[int]:
    found: set[int] = set()
    waiting = [agent]
    while waiting:
        one = waiting.pop()
        for parent in (first[one], *further.get(one, ())):
            if parent >= 0 and parent not in found:
                found.add(parent)
                waiting.append(parent)
    return found
