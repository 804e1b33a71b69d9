"""Bisection of a lineage: the first ancestor that fails, in O(log n) decisions, each by a majority against noise.

A member's decision is a majority of an odd number of attempts, and no attempt is made that cannot change it (a
curtailed majority). If one attempt is wrong with probability 0.1, a majority of three is wrong with 0.028, one of five
with 0.009. Which attempts are made follows from the results alone, so a bisection continues where it ended.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise


class Vote(StrEnum):
    """The result of one attempt, and of a decision."""

    GOOD = "passes"
    BAD = "fails"
    NONE = "no answer"
    """The attempt says nothing; so does a member without a majority after twice as many attempts."""


@dataclass(frozen=True, slots=True)
class Majority:
    """The rule that decides on one member."""

    attempts: int
    """Number of votes that decide at most; odd."""

    @property
    def _needed(self) -> int:
        return self.attempts // 2 + 1

    def decide(self, votes: Sequence[Vote]) -> Vote | None:
        """Return the decision of the votes; None while it is open."""
        for vote in (Vote.GOOD, Vote.BAD):
            if votes.count(vote) >= self._needed:
                return vote
        return Vote.NONE if len(votes) >= 2 * self.attempts else None

    def count_further(self, votes: Sequence[Vote]) -> int:
        """Return how many further votes could decide at the earliest, 0 once it is decided."""
        if self.decide(votes) is not None:
            return 0
        leading = max(votes.count(Vote.GOOD), votes.count(Vote.BAD))
        return min(self._needed - leading, 2 * self.attempts - len(votes))


class Ending(StrEnum):
    """How a bisection ended."""

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
    ending: Ending | None
    """None before the end."""

    @property
    def between(self) -> Sequence[int]:
        """Members without an answer between the last that passes and the first that fails."""
        return range(self.last_good + 1, self.first_bad)

    @property
    def contradictions(self) -> Sequence[int]:
        """Members that fail before ``last_good``, or pass after ``first_bad``: the lineage has several changes."""
        return [
            member
            for member, vote in sorted(self.decided.items())
            if (vote is Vote.BAD and member < self.last_good)
            or (vote is Vote.GOOD and member > self.first_bad)
        ]


def bisect(length: int, decide: Callable[[int], Vote | None]) -> Bisection:
    """Return how far the bisection of a lineage is.

    The ends come first: the agent must fail, and the seed must pass. At last one member is tried on each side of the
    change, in the middle of the longest stretch without a try, to notice lineages that change more than once.

    Args:
        length: number of members, the seed and the agent included, at least 1.
        decide: returns the decision on a member; None while it is open.
    """
    decided = {member: vote for member in range(length) if (vote := decide(member)) is not None}
    good, bad = 0, length - 1

    def result(wanted: int | None, ending: Ending | None = None) -> Bisection:
        return Bisection(decided, good, bad, wanted, ending)

    for member, expected, otherwise in (
        (bad, Vote.BAD, Ending.AGENT_PASSES),
        (good, Vote.GOOD, Ending.SEED_FAILS),
    ):
        if member not in decided:
            return result(member)
        if decided[member] is not expected:
            return result(None, Ending.NO_ANSWER if decided[member] is Vote.NONE else otherwise)
    path = {good, bad}
    while inner := [m for m in range(good + 1, bad) if decided.get(m) is not Vote.NONE]:
        member = min(inner, key=lambda m: abs(2 * m - good - bad))
        if member not in decided:
            return result(member)
        path.add(member)
        if decided[member] is Vote.GOOD:
            good = member
        else:
            bad = member
    for low, high in ((0, good), (bad, length - 1)):
        members = sorted(member for member in path if low <= member <= high)
        start, end = max(pairwise(members), key=lambda pair: pair[1] - pair[0], default=(low, low))
        if end - start > 1 and not any(low < member < high for member in decided.keys() - path):
            return result((start + end) // 2)
    return result(None, Ending.FOUND)
