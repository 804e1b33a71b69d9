"""The order of siblings."""

from collections.abc import Sequence
from enum import StrEnum

from dgm.analysis.outline import Members
from dgm.domain import AgentId

_MANY = 2_000
"""Smallest number of siblings for which an array is sorted."""


class SiblingOrder(StrEnum):
    """The criterion by which siblings are sorted."""

    BIRTH = "birth"
    OWN = "own"
    """Rate of the agent's own verdicts."""
    CLADE = "clade"
    """Rate of the clade's verdicts."""
    BOUND = "bound"
    """The lower bound of the agent's own rate, see ``stats.lower_bound``."""


def sort_siblings(
    members: Members, family: Sequence[AgentId], order: SiblingOrder, *, descending: bool
) -> Sequence[AgentId]:
    """Return siblings in order: the oldest first, or the highest; ties by more verdicts, then by age.

    Args:
        members: the tallies.
        family: the siblings, by birth.
        order: the criterion. A sibling without a verdict stands behind all others, except for bounds.
        descending: whether the whole order is reversed.
    """
    if order is SiblingOrder.BIRTH:
        return family[::-1] if descending else family
    resolved, unresolved = members.own_resolved, members.own_unresolved
    if order is SiblingOrder.CLADE:
        resolved, unresolved = members.clade_resolved, members.clade_unresolved
    counts = [(resolved[agent], unresolved[agent]) for agent in family]
    rates = _compute_bounds(counts) if order is SiblingOrder.BOUND else _compute_rates(counts)
    if len(family) > _MANY:
        found = _sort_by_arrays(family, counts, rates)
    else:
        rows = zip(rates, counts, family, strict=True)
        found = [agent for _, _, agent in sorted((-rate, -sum(count), agent) for rate, count, agent in rows)]
    return found[::-1] if descending else found


def _compute_rates(counts: Sequence[tuple[int, int]]) -> Sequence[float]:
    return [good / (good + bad) if good + bad else -1.0 for good, bad in counts]


def _compute_bounds(counts: Sequence[tuple[int, int]]) -> Sequence[float]:
    import numpy as np

    from dgm.stats import lower_bounds

    table = np.array(counts, dtype=np.int64).reshape(-1, 2)
    bounds: list[float] = lower_bounds(table[:, 0], table[:, 1]).tolist()
    return bounds


def _sort_by_arrays(
    family: Sequence[AgentId], counts: Sequence[tuple[int, int]], rates: Sequence[float]
) -> Sequence[AgentId]:
    import numpy as np

    places: list[int] = np.lexsort(
        (np.array(family), -np.array(counts).sum(axis=1), -np.array(rates))
    ).tolist()
    return [family[place] for place in places]
