"""Exact inference in a tree of two-dimensional Gaussian states: messages up, means and variances down.

``steps`` holds the algebra of a single step.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from dgm.policies.lineage.constants import LARGEST_MOVE, LEAST_SOUND, SETTLED
from dgm.policies.lineage.steps import (
    NOTHING,
    Gains,
    Information,
    State,
    Step,
    child_state,
    filtered,
    gains,
    message,
    root_state,
)


class Beliefs:
    """The tree's messages and states; a parent's index is below its child's.

    Evidence is set per agent; then ``update`` brings all states up to date. An update costs the path to the root and
    the states that really change below it.
    """

    def __init__(self, step: Step[float], mean_drift: float) -> None:
        self.step = step
        self.mean_drift = mean_drift
        self.parents: list[int] = []
        self.states: list[State] = []
        self._evidence: list[tuple[float, float]] = []
        self._sound: list[float] = []
        self._info: list[Information[float]] = []
        self._sent: list[Information[float]] = []
        self._gains: list[Gains[float]] = []
        self._dirty: set[int] = set()
        """Agents whose evidence changed since the last update."""
        self._unsettled: set[int] = set()
        """Agents whose mean is still held back by the largest move."""

    def __len__(self) -> int:
        return len(self.parents)

    def copy(self) -> "Beliefs":
        """Return a copy; changes to it leave the original alone."""
        twin = Beliefs(self.step, self.mean_drift)
        twin.parents, twin.states = self.parents[:], self.states[:]
        twin._evidence, twin._sound = self._evidence[:], self._sound[:]
        twin._info, twin._sent, twin._gains = self._info[:], self._sent[:], self._gains[:]
        twin._dirty, twin._unsettled = set(self._dirty), set(self._unsettled)
        return twin

    def add(self, parent: int) -> None:
        """Add an agent without evidence; the first one is the root, whatever its parent."""
        agent = len(self.parents)
        self.parents.append(parent)
        self._evidence.append((0.0, 0.0))
        self._sound.append(1.0)
        self._info.append(NOTHING)
        self._sent.append(NOTHING)
        self._gains.append(gains(NOTHING, self.step))
        self.states.append(
            child_state(self.states[parent], self._gains[agent], self.step)
            if agent
            else root_state(NOTHING, self.step, self.mean_drift)
        )

    def evidence(self, agent: int) -> tuple[float, float]:
        """Return the agent's own precision Λ and η = Λ · (where the likelihood peaks)."""
        return self._evidence[agent]

    def set_evidence(self, agent: int, precision: float, eta: float, sound: float) -> None:
        """Set the evidence of the agent's own verdicts; ``sound`` is the chance that it says anything of its parent."""
        old = self._evidence[agent]
        self._evidence[agent] = precision, eta
        self._sound[agent] = sound if sound >= LEAST_SOUND else 0.0
        j11, j12, j22, h1, h2 = self._info[agent]
        self._info[agent] = j11 + precision - old[0], j12, j22, h1 + eta - old[1], h2
        self._dirty.add(agent)

    def predicted(self, agent: int) -> float:
        """Return the agent's expected skill, given its parent's state; for the root, its own mean."""
        if not agent:
            return self.states[0].t
        parent = self.states[self.parents[agent]]
        return self.step.rho * parent.t + self.step.carry * parent.m + self.step.c1

    def update(self) -> list[int]:
        """Bring every state up to date; return the agents whose state changed by more than ``SETTLED``."""
        touched = self._upward(self._dirty)
        self._dirty.clear()
        return self._downward(touched)

    def restart(self, step: Step[float], mean_drift: float) -> list[int]:
        """Infer everything anew with other parameters; return the agents as in ``update``."""
        self.step, self.mean_drift = step, mean_drift
        self._dirty.clear()
        self._info = [
            (precision, 0.0, 0.0, eta, 0.0) if precision else NOTHING for precision, eta in self._evidence
        ]
        for agent in range(len(self) - 1, 0, -1):
            self._gains[agent] = gains(self._info[agent], step)
            self._send(agent, NOTHING)
        return self._downward(range(len(self)))

    def replace_evidence(self, evidence: list[tuple[float, float]], sound: list[float]) -> None:
        """Set the evidence of every agent; ``restart`` must follow."""
        self._evidence = evidence
        self._sound = [chance if chance >= LEAST_SOUND else 0.0 for chance in sound]

    def _send(self, agent: int, before: Information[float]) -> None:
        sound = self._sound[agent]
        info = self._info[agent]
        tells = sound and info is not NOTHING
        sent = message(filtered(info, self.step), self.step, sound) if tells else NOTHING
        self._sent[agent] = sent
        if sent is before:
            return
        parent = self.parents[agent]
        of = self._info[parent]
        self._info[parent] = (
            of[0] + sent[0] - before[0],
            of[1] + sent[1] - before[1],
            of[2] + sent[2] - before[2],
            of[3] + sent[3] - before[3],
            of[4] + sent[4] - before[4],
        )

    def _upward(self, dirty: Iterable[int]) -> set[int]:
        waiting = [-agent for agent in dirty]
        heapify(waiting)
        seen = set(dirty)
        while waiting:
            agent = -heappop(waiting)
            if not agent:
                break
            self._gains[agent] = gains(self._info[agent], self.step)
            self._send(agent, self._sent[agent])
            parent = self.parents[agent]
            if parent not in seen:
                seen.add(parent)
                heappush(waiting, -parent)
        return seen

    def _downward(self, touched: Iterable[int]) -> list[int]:
        revisit = bytearray(len(self))
        for agent in touched:
            revisit[agent] = 1
        for agent in self._unsettled:
            revisit[agent] = 1
        self._unsettled.clear()
        moved = []
        changed = bytearray(len(self))
        parents, states, step, all_gains = self.parents, self.states, self.step, self._gains
        for agent, parent in enumerate(parents):
            if not (revisit[agent] or changed[parent]):
                continue
            old = states[agent]
            if agent:
                new = child_state(states[parent], all_gains[agent], step)
            else:
                new = root_state(self._info[0], step, self.mean_drift)
            if not -LARGEST_MOVE <= new.t - old.t <= LARGEST_MOVE:
                new = new._replace(t=old.t + (LARGEST_MOVE if new.t > old.t else -LARGEST_MOVE))
                self._unsettled.add(agent)
            states[agent] = new
            if _differ(old, new):
                changed[agent] = 1
                moved.append(agent)
        return moved


def _differ(old: State, new: State) -> bool:
    return (
        abs(old[0] - new[0]) > SETTLED
        or abs(old[1] - new[1]) > SETTLED
        or abs(old[2] - new[2]) > SETTLED
        or abs(old[3] - new[3]) > SETTLED
        or abs(old[4] - new[4]) > SETTLED
    )
