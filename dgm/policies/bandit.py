"""Thompson sampling on what an operator's children are worth, per unit of spend.

An arm succeeds when a child is better than the best of its parents. Success is not observed, only estimated from
verdicts, so a child counts for the share

    q = P(rate of the child > rate of its best parent),   rates ~ Beta(1 + resolved, 1 + unresolved)

once it has ``JUDGED`` = 4 verdicts, and q is renewed with every verdict of either; an expansion without a child
counts as a failure. With m the success of all arms together, the belief about one arm is Beta(a, b),

    a = s m + Σ q,   b = s (1 - m) + Σ (1 - q) + fruitless,   m = (s M + Σ q) / (s + judged + fruitless)

(the sums in m run over all arms), s = ``STRENGTH``, M = ``AT_FIRST``. One number is drawn from each arm's belief and
divided by the arm's mean spend; the largest wins. Spend is the cost of the expansions plus ``JUDGED`` mean evaluations
for each child that was born, which are needed to judge it. So an operator that asks no model is cheap but not free.
Spend is in USD; in tokens where nothing cost USD; in seconds where no tokens were used either. An arm's mean is shrunk
towards the mean of all arms with the weight of ``SPEND_WEIGHT`` expansions.

Source: W. R. Thompson, Biometrika 25 (1933), p. 285; O. Chapelle and L. Li, "An empirical evaluation of Thompson
sampling" (NIPS 2011), which also covers delayed answers. The division by mean costs: Y. Xia, H. Li, T. Qin, N. Yu and
T.-Y. Liu, "Thompson sampling for budgeted multi-armed bandits" (IJCAI 2015), where both are drawn.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import fsum
from random import Random

import numpy as np

from dgm.archive.events import (
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    Recorded,
    TaskGraded,
    VerdictWithdrawn,
)
from dgm.archive.tree import Tree
from dgm.domain import ActionId, AgentId, Cost, Expand
from dgm.stats.better import JUDGED, chance_better

STRENGTH = 4.0
"""How many expansions the success of all arms weighs in the belief about one."""
AT_FIRST = 0.25
"""The share of children that are better, before any is known."""
SPEND_WEIGHT = 2.0
UNJUDGED = ("expired",)
"""Stages at which a child ends that say nothing of who made it."""

Spend = tuple[float, float, float]
"""USD, tokens, seconds."""
NOTHING: Spend = (0.0, 0.0, 0.0)


@dataclass(slots=True)
class Arm:
    """The results of one arm's expansions."""

    spent: Spend = NOTHING
    ended: int = 0
    """Expansions that ended, with a child or without."""
    fruitless: int = 0
    """Those without, but for ``UNJUDGED``."""
    children: list[AgentId] = field(default_factory=list)
    better: dict[AgentId, float] = field(default_factory=dict)
    """q of each child that is judged."""


class Bandit:
    """A chooser among arms; its state is a fold of the events (``Observer``)."""

    def __init__(self, arm: Callable[[Expand], str]) -> None:
        """Begin without knowledge.

        Args:
            arm: names the arm of an expansion; empty where the expansion belongs to no arm of this bandit.
        """
        self._arm = arm
        self._arms: dict[str, Arm] = {}
        self._under_way: dict[ActionId, str] = {}
        self._kin: dict[AgentId, list[AgentId]] = {}
        """The children of each agent that are of some arm."""
        self._of: dict[AgentId, str] = {}
        self._changed: set[AgentId] = set()
        """Children whose q may have changed since it was computed."""
        self._evaluating = NOTHING
        self._evaluations = 0

    def observe(self, event: Recorded) -> None:
        """Fold one event into the state."""
        match event.event:
            case TaskGraded(_, outcome):
                self._evaluating = _sum(self._evaluating, outcome.cost)
                self._evaluations += 1
                self._change(outcome.agent)
            case VerdictWithdrawn(what=what):
                # The cost of a withdrawn verdict was spent all the same.
                self._change(what.agent)
            case ActionStarted(action, Expand() as what):
                if arm := self._arm(what):
                    self._under_way[action] = arm
            case AgentBorn(action, child, outcome):
                arm = self._end(action, outcome.cost)
                if arm:
                    self._arms[arm].children.append(child)
                    self._of[child] = arm
                    for parent in outcome.parents:
                        self._kin.setdefault(parent, []).append(child)
            case AgentStillborn(action, outcome):
                arm = self._end(action, outcome.cost)
                if arm and outcome.stage not in UNJUDGED:
                    self._arms[arm].fruitless += 1
            case _:
                pass

    def pick(self, tree: Tree, arms: Sequence[str], rng: Random) -> str:
        """Return one of the arms; draw no number where there is one arm.

        The legacy generator is used because numpy promises that its stream never changes, so that recorded decisions
        replay under any later numpy.
        """
        if len(arms) == 1:
            return arms[0]
        self._renew(tree)
        pooled = self._pooled()
        beliefs = [self._belief(arm, pooled) for arm in arms]
        stream = np.random.RandomState(rng.getrandbits(32))
        drawn = stream.beta([a for a, _ in beliefs], [b for _, b in beliefs])
        return arms[int(np.argmax(drawn / np.array(self.spends(arms))))]

    def belief(self, tree: Tree, arm: str) -> tuple[float, float]:
        """Return a and b of the belief about an arm; the tree must be the fold of the observed events."""
        self._renew(tree)
        return self._belief(arm, self._pooled())

    def spends(self, arms: Sequence[str]) -> Sequence[float]:
        """Return the mean spend of each arm, in USD, tokens or seconds; 1.0 for each where nothing is known."""
        everybody = list(self._arms.values())
        ended = sum(each.ended for each in everybody)
        unit = next((unit for unit in range(3) if any(each.spent[unit] for each in everybody)), None)
        if unit is None or not ended:
            return [1.0] * len(arms)
        judging = JUDGED * self._evaluating[unit] / self._evaluations if self._evaluations else 0.0

        def spent(arm: Arm) -> float:
            return arm.spent[unit] + judging * len(arm.children)

        pooled = fsum(map(spent, everybody)) / ended
        mine = [self._arms.get(arm, Arm()) for arm in arms]
        return [(spent(arm) + SPEND_WEIGHT * pooled) / (arm.ended + SPEND_WEIGHT) for arm in mine]

    def _pooled(self) -> float:
        everybody = self._arms.values()
        successes = fsum(q for each in everybody for q in each.better.values())
        tried = sum(len(each.better) + each.fruitless for each in everybody)
        return (STRENGTH * AT_FIRST + successes) / (STRENGTH + tried)

    def _belief(self, arm: str, pooled: float) -> tuple[float, float]:
        mine = self._arms.get(arm, Arm())
        own = fsum(mine.better.values())
        failures = len(mine.better) - own + mine.fruitless
        return STRENGTH * pooled + own, STRENGTH * (1.0 - pooled) + failures

    def _renew(self, tree: Tree) -> None:
        enough = min(JUDGED, len(tree.tasks))
        for child in self._changed:
            own = tree.own(child)
            if own.n >= enough:
                parents = [tree.own(parent) for parent in tree.agents[child].parents]
                best = max(parents, key=lambda tally: (1 + tally.resolved) / (2 + tally.n))
                self._arms[self._of[child]].better[child] = chance_better(own, best)
            else:
                self._arms[self._of[child]].better.pop(child, None)
        self._changed.clear()

    def _change(self, agent: AgentId) -> None:
        self._changed.update(self._kin.get(agent, ()))
        if agent in self._of:
            self._changed.add(agent)

    def _end(self, action: ActionId, cost: Cost) -> str:
        arm = self._under_way.pop(action, "")
        if arm:
            known = self._arms.setdefault(arm, Arm())
            known.ended += 1
            known.spent = _sum(known.spent, cost)
        return arm


def _sum(spent: Spend, cost: Cost) -> Spend:
    return (spent[0] + cost.usage.usd, spent[1] + cost.usage.tokens, spent[2] + cost.seconds)
