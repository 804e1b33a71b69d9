"""True clade metaproductivity: the score that an agent's descendants can reach.

It is the expected true score of the best agent that a fixed effort finds in the clade of an agent, the agent itself
included. The fixed effort is ``EFFORT`` expansions within the clade, by a searcher that knows the truth. The searcher
always expands the member with the highest prospect: its mean skill, projected over up to ``HORIZON`` generations by its
heritable part. The mean is over ``LINES`` such searches, in futures that the trial itself will not meet, so that it
is an expectation and no foresight. The futures are the same for all agents: expansion number n of a search does the
same edit in each. So two agents' potentials differ by the agents' natures, hardly by luck.
"""

from collections.abc import Sequence
from typing import Protocol

from dgm.simulate.chances import key_of
from dgm.simulate.dynamics import Dynamics
from dgm.simulate.latent import Latent

EFFORT = 24
LINES = 4
HORIZON = 6
REPAIR = 1.0
"""What being broken takes from an agent's prospect: most of its children are broken too."""


class Growing(Protocol):
    """The part of a world that potentials need."""

    def made(self, key: bytes, parents: Sequence[Latent], birth: int) -> Latent:
        """Return the child that has this key."""
        ...

    def fresh_score(self, agent: Latent) -> float:
        """Return the true score of the agent."""
        ...


_FUTURES = tuple(
    tuple(key_of(b"future", bytes([line, number])) for number in range(EFFORT)) for line in range(LINES)
)


def potential(world: Growing, laws: Dynamics, top: tuple[Latent, int], effort: int = EFFORT) -> float:
    """Return the potential of an agent, where ``effort`` expansions are still to come.

    ``top`` is the agent and the number of children that it had so far.
    """
    own = world.fresh_score(top[0])
    found = [max(own, _best_below(world, laws, future[:effort], top)) for future in _FUTURES]
    return sum(found) / LINES


def prospect(laws: Dynamics, agent: Latent, births: int, ahead: int = HORIZON) -> float:
    """Return the highest mean skill over the generations ahead if edits did nothing, plus a next edit's spread.

    The spread shrinks with crowding; a broken agent loses ``REPAIR``.
    """
    skill = best = sum(agent.skills) / len(agent.skills)
    drift, reserve = agent.drift, agent.reserve
    for _ in range(ahead):
        skill = laws.retention * skill + drift + laws.release * reserve
        drift *= laws.drift_keep
        reserve *= 1.0 - laws.release
        best = max(best, skill)
    best += laws.step_sd / (1.0 + laws.crowding * births)
    return best - REPAIR if agent.broken else best


def _best_below(world: Growing, laws: Dynamics, future: Sequence[bytes], top: tuple[Latent, int]) -> float:
    best = 0.0
    members, children = [top[0]], [top[1]]
    prospects = [prospect(laws, *top)]
    for number, key in enumerate(future):
        left = len(future) - number
        if left <= HORIZON:
            prospects = [prospect(laws, *member, left) for member in zip(members, children, strict=True)]
        chosen = max(range(len(members)), key=prospects.__getitem__)
        child = world.made(key, (members[chosen],), children[chosen])
        children[chosen] += 1
        prospects[chosen] = prospect(laws, members[chosen], children[chosen], min(left, HORIZON))
        if not child.broken:
            best = max(best, world.fresh_score(child))
            members.append(child)
            children.append(0)
            prospects.append(prospect(laws, child, 0, min(left, HORIZON)))
    return best
