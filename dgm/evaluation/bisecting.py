"""Bisection of a lineage: the first ancestor that fails, in O(log n) decisions, each by a majority against noise.

A member's decision is a majority of an odd number of attempts, and no attempt is made that cannot change it (a
curtailed majority). If one attempt is wrong with probability 0.1, a majority of three is wrong with 0.028, one of five
with 0.009. Which attempts are made follows from the results alone, so a bisection continues where it ended.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise


class Vote(StrEnum):
    """The result of one attempt, and of a decision."""

    GOOD = "passes"
    BAD = "fails"
    NONE = "no answer"
    """The attempt says nothing; so does a member without a majority after twice as many attempts."""


class Ending(StrEnum):
    """End of a bisection."""

    FOUND = "found"
    SEED_FAILS = "the seed fails already"
    AGENT_PASSES = "the agent passes"
    NO_ANSWER = "the seed or the agent gives no answer"


@dataclass(frozen=True, slots=True)
class Bisection:
    """The state of a bisection; members are numbered from the seed, 0."""

    decided: Mapping[int, Vote]
    last_good: int
    first_bad: int
    wanted: int | None
    """The member to be decided next; None at the end."""
    ending: Ending | None = None
    """None before the end."""

    @property
    def contradictions(self) -> Sequence[int]:
        """Members that fail before ``last_good``, or pass after ``first_bad``: the lineage has several changes."""
        before, after = range(self.last_good), range(self.first_bad + 1, max(self.decided) + 1)
        fails = [member for member in before if self.decided.get(member) is Vote.BAD]
        return fails + [member for member in after if self.decided.get(member) is Vote.GOOD]


def decide(votes: Sequence[Vote], attempts: int) -> Vote | None:
    """Return the decision of a majority of an odd number of attempts; None while it is open."""
    for vote in (Vote.GOOD, Vote.BAD):
        if votes.count(vote) > attempts // 2:
            return vote
    return Vote.NONE if len(votes) >= 2 * attempts else None


def count_further(votes: Sequence[Vote], attempts: int) -> int:
    """Return how many further votes could decide at the earliest, while the decision is open."""
    leading = max(votes.count(Vote.GOOD), votes.count(Vote.BAD))
    return min(attempts // 2 + 1 - leading, 2 * attempts - len(votes))


def bisect(votes: Sequence[Sequence[Vote]], attempts: int) -> Bisection:
    """Return how far the bisection of a lineage is.

    The ends come first: the agent must fail, and the seed must pass. At last one member is tried on each side of the
    change, in the middle of the longest stretch without a try, to notice lineages that change more than once.

    Args:
        votes: of the members from the seed to the agent, at least one.
        attempts: number that decides on a member at most; odd.
    """
    decisions = [decide(tried, attempts) for tried in votes]
    decided = {member: vote for member, vote in enumerate(decisions) if vote is not None}
    good, bad = 0, len(votes) - 1
    for member, expected, otherwise in (
        (bad, Vote.BAD, Ending.AGENT_PASSES),
        (good, Vote.GOOD, Ending.SEED_FAILS),
    ):
        if member not in decided:
            return Bisection(decided, good, bad, member)
        if decided[member] is not expected:
            ending = Ending.NO_ANSWER if decided[member] is Vote.NONE else otherwise
            return Bisection(decided, good, bad, None, ending)
    path = {good, bad}
    while inner := [m for m in range(good + 1, bad) if decided.get(m) is not Vote.NONE]:
        member = min(inner, key=lambda m: abs(2 * m - good - bad))
        if member not in decided:
            return Bisection(decided, good, bad, member)
        path.add(member)
        if decided[member] is Vote.GOOD:
            good = member
        else:
            bad = member
    for low, high in ((0, good), (bad, len(votes) - 1)):
        members = sorted(member for member in path if low <= member <= high)
        start, end = max(pairwise(members), key=lambda pair: pair[1] - pair[0], default=(low, low))
        if end - start > 1 and not any(low < member < high for member in decided.keys() - path):
            return Bisection(decided, good, bad, (start + end) // 2)
    return Bisection(decided, good, bad, None, Ending.FOUND)
