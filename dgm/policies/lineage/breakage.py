"""Which agents are broken: a two-state chain down the tree, solved exactly by passing odds up and down.

A sound agent's child breaks at the learned rate. A broken agent's child is broken too, except for a learned share that
is mended. So failures all along a line show that it broke at its top, even if each agent of it has only one result.
All quantities are log odds of broken against sound.
"""

import math
from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from dgm.policies.lineage.constants import (
    BROKEN_RATE,
    BROKEN_RATE_RANGE,
    BROKEN_RATE_WEIGHT,
    BROKEN_STAYS,
    BROKEN_STAYS_RANGE,
    BROKEN_STAYS_WEIGHT,
    LEARNED,
    LEARNING_STEPS,
    OFTEN_BROKEN_RATE,
)

LIMIT = 50.0
"""Log odds are kept within this."""
SETTLED = 1e-3
"""Smaller changes are not passed on down the tree before the next sweep."""
NEVER = -LIMIT


class Breakage:
    """P(broken) of every agent of a tree, given the evidence of each agent's own verdicts; the root is sound."""

    def __init__(self) -> None:
        self.rate = BROKEN_RATE
        self.stays = BROKEN_STAYS
        self.odds: list[float] = []
        """Posterior log odds."""
        self.sound: list[float] = []
        """P(sound) if the parent is: how far what an agent's line shows can be put down to its parent's skill."""
        self._parents: list[int] = []
        self._own: list[float] = []
        self._below: list[float] = []
        """Of an agent's own verdicts and all its descendants'."""
        self._sent: list[float] = []
        self._dirty: set[int] = set()
        self._often = False

    def add(self, parent: int) -> None:
        """Add a new agent; the first one is the root."""
        agent = len(self._parents)
        self._parents.append(parent)
        for column in (self._own, self._below, self._sent):
            column.append(0.0)
        self.odds.append(self._prior(self.odds[parent]) if agent else NEVER)
        self.sound.append(1.0 - self.rate if agent else 1.0)

    def say(self, agent: int, odds: float) -> None:
        """Set the evidence of the agent's own verdicts: log P(verdicts | broken) / P(verdicts | sound)."""
        self._below[agent] += odds - self._own[agent]
        self._own[agent] = odds
        self._dirty.add(agent)

    def update(self) -> list[int]:
        """Bring all odds up to date; return the agents whose ``sound`` may have changed."""
        touched = self._upward(self._dirty)
        self._dirty.clear()
        self._downward(touched)
        return sorted(touched)

    def learn(self, probed: Iterable[int], often: bool = False) -> None:
        """Learn both rates from agents with results, and infer everything anew.

        This takes one step of expectation maximisation. Where edits ``often`` break the agent it takes up to 20 steps,
        from another belief: a failed try may say so little there that single steps do not move the rates.
        """
        agents = [agent for agent in probed if agent]
        prior = OFTEN_BROKEN_RATE if often else BROKEN_RATE
        if often and not self._often:
            self.rate = max(self.rate, prior)
        self._often = often
        for _ in range(LEARNING_STEPS if often else 1):
            rate, stays = self.rate, self.stays
            self._maximise(agents, prior)
            self.replace(self._own)
            if abs(self.rate - rate) + abs(self.stays - stays) < LEARNED:
                break

    def _maximise(self, agents: list[int], prior: float) -> None:
        """Set both rates from the expected counts of broken agents and their parents, shrunk towards ``prior``."""
        fresh, breaks, old, stays = 0.0, 0.0, 0.0, 0.0
        for agent in agents:
            before = _sigmoid(self.odds[self._parents[agent]] - self._sent[agent])
            says = math.exp(min(self._below[agent], LIMIT))
            both = before * self.stays * says
            mended = before * (1.0 - self.stays)
            broke = (1.0 - before) * self.rate * says
            sound = (1.0 - before) * (1.0 - self.rate)
            total = both + mended + broke + sound
            fresh += (broke + sound) / total
            breaks += broke / total
            old += (both + mended) / total
            stays += both / total
        self.rate = _shrunk(breaks, fresh, prior, BROKEN_RATE_WEIGHT, BROKEN_RATE_RANGE)
        self.stays = _shrunk(stays, old, BROKEN_STAYS, BROKEN_STAYS_WEIGHT, BROKEN_STAYS_RANGE)

    def replace(self, own: list[float]) -> None:
        """Set the evidence of every agent, as ``say`` does, and infer everything anew."""
        self._own, self._below = own, own[:]
        self._sent = [0.0] * len(own)
        self._dirty.clear()
        for agent in range(len(own) - 1, 0, -1):
            self._send(agent)
        self._downward(range(len(own)))

    def _send(self, agent: int) -> None:
        ratio = math.exp(min(self._below[agent], LIMIT))
        evidence = self.rate * ratio + 1.0 - self.rate
        self.sound[agent] = (1.0 - self.rate) / evidence
        sent = math.log((self.stays * ratio + 1.0 - self.stays) / evidence)
        self._below[self._parents[agent]] += sent - self._sent[agent]
        self._sent[agent] = sent

    def _prior(self, parent_odds: float) -> float:
        broken = _sigmoid(parent_odds)
        p = self.stays * broken + self.rate * (1.0 - broken)
        return math.log(p / (1.0 - p))

    def _upward(self, dirty: Iterable[int]) -> set[int]:
        waiting = [-agent for agent in dirty]
        heapify(waiting)
        seen = set(dirty)
        while waiting:
            agent = -heappop(waiting)
            if not agent:
                break
            self._send(agent)
            parent = self._parents[agent]
            if parent not in seen:
                seen.add(parent)
                heappush(waiting, -parent)
        return seen

    def _downward(self, touched: Iterable[int]) -> None:
        changed = bytearray(len(self._parents))
        revisit = bytearray(len(self._parents))
        for agent in touched:
            revisit[agent] = 1
        odds, below, sent = self.odds, self._below, self._sent
        for agent, parent in enumerate(self._parents):
            if not agent or not (revisit[agent] or revisit[parent] or changed[parent]):
                continue
            new = self._prior(odds[parent] - sent[agent]) + below[agent]
            new = min(max(new, -LIMIT), LIMIT)
            if abs(new - odds[agent]) > SETTLED:
                odds[agent] = new
                changed[agent] = 1


def _sigmoid(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-odds)) if odds > -700.0 else 0.0


def _shrunk(
    successes: float, trials: float, mean: float, weight: float, bounds: tuple[float, float]
) -> float:
    return min(max((weight * mean + successes) / (weight + trials), bounds[0]), bounds[1])
