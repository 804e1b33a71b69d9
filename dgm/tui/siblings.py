"""The order in which siblings stand."""

from collections.abc import Sequence
from enum import StrEnum

from dgm.archive.outline import Members
from dgm.domain import AgentId

_MANY = 2_000
"""Siblings from which on an array is sorted."""


class Order(StrEnum):
    """What siblings are sorted by."""

    BIRTH = "birth"
    OWN = "own"
    """Rate of the agent's own verdicts."""
    CLADE = "clade"
    """Rate of the clade's verdicts."""
    BOUND = "bound"
    """The lower bound of the agent's own rate, see ``stats.lower_bound``."""


def arranged(
    members: Members, family: Sequence[AgentId], order: Order, *, descending: bool
) -> Sequence[AgentId]:
    """Siblings in order: the oldest first, or the highest, of equals the one with more verdicts, then the older one.

    Args:
        members: whose tallies count.
        family: the siblings, by birth.
        order: what they are sorted by. Without a verdict one stands behind all others, if it is not for bounds.
        descending: the whole the other way round.
    """
    if order is Order.BIRTH:
        return family[::-1] if descending else family
    resolved, unresolved = members.own_resolved, members.own_unresolved
    if order is Order.CLADE:
        resolved, unresolved = members.clade_resolved, members.clade_unresolved
    counts = [(resolved[agent], unresolved[agent]) for agent in family]
    rates = _bounds(counts) if order is Order.BOUND else _rates(counts)
    if len(family) > _MANY:
        found = _by_arrays(family, counts, rates)
    else:
        rows = zip(rates, counts, family, strict=True)
        found = [agent for _, _, agent in sorted((-rate, -sum(count), agent) for rate, count, agent in rows)]
    return found[::-1] if descending else found


def _rates(counts: Sequence[tuple[int, int]]) -> Sequence[float]:
    return [good / (good + bad) if good + bad else -1.0 for good, bad in counts]


def _bounds(counts: Sequence[tuple[int, int]]) -> Sequence[float]:
    import numpy as np

    from dgm.stats import lower_bounds

    table = np.array(counts, dtype=np.int64).reshape(-1, 2)
    bounds: list[float] = lower_bounds(table[:, 0], table[:, 1]).tolist()
    return bounds


def _by_arrays(
    family: Sequence[AgentId], counts: Sequence[tuple[int, int]], rates: Sequence[float]
) -> Sequence[AgentId]:
    import numpy as np

    places: list[int] = np.lexsort(
        (np.array(family), -np.array(counts).sum(axis=1), -np.array(rates))
    ).tolist()
    return [family[place] for place in places]
