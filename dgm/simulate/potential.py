"""True clade metaproductivity: what an agent's descendants can come to.

Defined as the expected true score of the best agent that a fixed effort below an agent finds, the agent's own
included. The fixed effort is ``EFFORT`` expansions within its clade, by a searcher that knows the truth and always
expands the member with the highest prospect: its mean skill, projected over up to ``HORIZON`` generations by what it
passes on. The mean is over ``LINES`` such searches, in futures that the trial itself will not meet (the children's
keys are salted), so that this is an expectation and no foresight.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from dgm.simulate.chances import key_of
from dgm.simulate.dynamics import Dynamics
from dgm.simulate.latent import Latent

EFFORT = 24
LINES = 4
HORIZON = 6


class Growing(Protocol):
    """What is needed of a world."""

    def child(self, parents: Sequence[Latent], birth: int) -> Latent:
        """As ``World`` says."""
        ...

    def fresh_score(self, agent: Latent) -> float:
        """The true score."""
        ...


def potential(world: Growing, laws: Dynamics, agent: Latent, births: int) -> float:
    """The potential of an agent that had ``births`` children so far."""
    own = world.fresh_score(agent)
    found = []
    for line in range(LINES):
        salted = replace(agent, key=key_of(agent.key, b"potential", line.to_bytes(4, "little")))
        found.append(max(own, _best_below(world, laws, salted, births)))
    return sum(found) / LINES


def prospect(laws: Dynamics, agent: Latent, births: int) -> float:
    """Highest mean skill over the next generations if edits did nothing, and what a next edit may add by chance."""
    skill = best = sum(agent.skills) / len(agent.skills)
    drift, reserve = agent.drift, agent.reserve
    for _ in range(HORIZON):
        skill = laws.retention * skill + drift + laws.release * reserve
        drift *= laws.drift_keep
        reserve *= 1.0 - laws.release
        best = max(best, skill)
    return best + laws.step_sd / (1.0 + laws.crowding * births)


def _best_below(world: Growing, laws: Dynamics, agent: Latent, births: int) -> float:
    best = 0.0
    members, children = [agent], [births]
    prospects = [prospect(laws, agent, births)]
    for _ in range(EFFORT):
        chosen = max(range(len(members)), key=prospects.__getitem__)
        child = world.child((members[chosen],), children[chosen])
        children[chosen] += 1
        prospects[chosen] = prospect(laws, members[chosen], children[chosen])
        if not child.broken:
            best = max(best, world.fresh_score(child))
            members.append(child)
            children.append(0)
            prospects.append(prospect(laws, child, 0))
    return best
