"""Exact inference in a tree of two-dimensional Gaussian states: messages up, means and variances down.

Gaussian belief propagation in information form (J. Pearl, "Probabilistic Reasoning in Intelligent Systems", 1988;
on a chain it is the smoother of H. Rauch, F. Tung and C. Striebel, AIAA Journal 3 (1965), p. 1445). States are
(skill θ, drift μ); what an agent's verdicts say is Gaussian in θ alone. The algebra is written out for 2 × 2
matrices and works on floats and on arrays alike, so that many parameters can be tried at once.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dgm.policies.lineage.constants import (
    DRIFT_KEPT,
    DRIFT_VARIANCE,
    LARGEST_MOVE,
    LEAST_SOUND,
    ROOT_DRIFT_VARIANCE,
    ROOT_VARIANCE,
    SETTLED,
)

Array = NDArray[np.float64]
N = TypeVar("N", float, Array)

Information = tuple[N, N, N, N, N]
"""J11, J12, J22 of a precision matrix and H1, H2 of the vector that goes with it."""


class Step(NamedTuple, Generic[N]):
    """From parent to child: x ← [[ρ, carry], [0, 0.95]] x + (c1, c2) + N(0, diag(q, 0.009))."""

    rho: N
    q: N
    c1: N
    c2: float
    carry: float = 1.0
    """Share of the parent's drift that goes into the child's skill; 0 (with ρ = 0) cuts the tree."""


class Gains(NamedTuple, Generic[N]):
    """What turns a parent's posterior into its child's: S, G and S H of the module's downward pass."""

    s11: N
    s12: N
    s22: N
    g11: N
    g12: N
    g21: N
    g22: N
    m1: N
    m2: N


NOTHING: Information[float] = (0.0, 0.0, 0.0, 0.0, 0.0)


class Filtered(NamedTuple, Generic[N]):
    """What both the message and the likelihood are made of: M = (I + J Q)⁻¹, N = M J."""

    det: N
    """Of I + J Q."""
    n11: N
    n12: N
    n22: N
    m1: N
    m2: N
    """Of M H."""


def filtered(info: Information[N], q: N) -> Filtered[N]:
    """Takes the noise of one step into account."""
    j11, j12, j22, h1, h2 = info
    a = 1.0 + j22 * DRIFT_VARIANCE
    b = 1.0 + j11 * q
    cross = j12 * j12
    det = a * b - cross * DRIFT_VARIANCE * q
    return Filtered(
        det,
        (a * j11 - cross * DRIFT_VARIANCE) / det,
        j12 / det,
        (b * j22 - cross * q) / det,
        (a * h1 - j12 * DRIFT_VARIANCE * h2) / det,
        (b * h2 - j12 * q * h1) / det,
    )


def message(of: Filtered[N], step: Step[N], sound: N) -> Information[N]:
    """What a child tells its parent, weighed by its chance of being sound: r AᵀN A and r Aᵀ(M H - N c)."""
    _, n11, n12, n22, m1, m2 = of
    rho, _, c1, c2, carry = step
    u1 = m1 - n11 * c1 - n12 * c2
    u2 = m2 - n12 * c1 - n22 * c2
    low = carry * n11 + DRIFT_KEPT * n12
    share = sound * rho
    return (
        share * rho * n11,
        share * low,
        sound * (carry * low + DRIFT_KEPT * (carry * n12 + DRIFT_KEPT * n22)),
        share * u1,
        sound * (carry * u1 + DRIFT_KEPT * u2),
    )


def gains(info: Information[N], step: Step[N]) -> Gains[N]:
    """S = (J + Q⁻¹)⁻¹, G = S Q⁻¹ and S H."""
    j11, j12, j22, h1, h2 = info
    q = step.q
    a = 1.0 + j22 * DRIFT_VARIANCE
    b = 1.0 + j11 * q
    det = a * b - j12 * j12 * q * DRIFT_VARIANCE
    s11 = q * a / det
    s12 = -q * DRIFT_VARIANCE * j12 / det
    s22 = DRIFT_VARIANCE * b / det
    return Gains(
        s11, s12, s22, a / det, -j12 * q / det, -j12 * DRIFT_VARIANCE / det, b / det,
        s11 * h1 + s12 * h2, s12 * h1 + s22 * h2,
    )  # fmt: skip


class State(NamedTuple):
    """Posterior means and variances of one agent's skill (t) and drift (m)."""

    t: float
    m: float
    tt: float
    tm: float
    mm: float


def root_state(info: Information[float], mean_drift: float) -> State:
    """S = (J + prior precision)⁻¹ and S h."""
    j11, j12, j22, h1, h2 = info
    k11, k22 = j11 + 1.0 / ROOT_VARIANCE, j22 + 1.0 / ROOT_DRIFT_VARIANCE
    h2 += mean_drift / ROOT_DRIFT_VARIANCE
    det = k11 * k22 - j12 * j12
    return State((k22 * h1 - j12 * h2) / det, (k11 * h2 - j12 * h1) / det, k22 / det, -j12 / det, k11 / det)


def child_state(parent: State, gain: Gains[float], step: Step[float]) -> State:
    """The mean is S H + G (A mean_p + c), the variance V = S + G (A V_p Aᵀ) Gᵀ."""
    rho, _, c1, c2, carry = step
    s11, s12, s22, g11, g12, g21, g22, m1, m2 = gain
    t, m, tt, tm, mm = parent
    e1, e2 = rho * t + carry * m + c1, DRIFT_KEPT * m + c2
    cross = rho * tm + carry * mm
    p11 = rho * rho * tt + carry * (rho * tm + cross)
    p12 = DRIFT_KEPT * cross
    p22 = DRIFT_KEPT * DRIFT_KEPT * mm
    x1, x2 = g11 * p11 + g12 * p12, g11 * p12 + g12 * p22
    y1, y2 = g21 * p11 + g22 * p12, g21 * p12 + g22 * p22
    return State(
        m1 + g11 * e1 + g12 * e2,
        m2 + g21 * e1 + g22 * e2,
        s11 + x1 * g11 + x2 * g12,
        s12 + x1 * g21 + x2 * g22,
        s22 + y1 * g21 + y2 * g22,
    )


class Beliefs:
    """The tree's messages and states; a parent's index is below its child's.

    Evidence is set per agent, then ``update`` brings all states up to date, at the price of the path to the root and
    of what really changes below it.
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
        """A copy that can be changed without a trace."""
        twin = Beliefs(self.step, self.mean_drift)
        twin.parents, twin.states = self.parents[:], self.states[:]
        twin._evidence, twin._sound = self._evidence[:], self._sound[:]
        twin._info, twin._sent, twin._gains = self._info[:], self._sent[:], self._gains[:]
        twin._dirty, twin._unsettled = set(self._dirty), set(self._unsettled)
        return twin

    def add(self, parent: int) -> None:
        """A new agent without evidence; the first one is the root, whatever its parent."""
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
            else root_state(NOTHING, self.mean_drift)
        )

    def evidence(self, agent: int) -> tuple[float, float]:
        """Its own precision Λ and η = Λ · (where the likelihood peaks)."""
        return self._evidence[agent]

    def set_evidence(self, agent: int, precision: float, eta: float, sound: float) -> None:
        """What the agent's own verdicts say; ``sound`` is the chance that they say anything of its parent."""
        old = self._evidence[agent]
        self._evidence[agent] = precision, eta
        self._sound[agent] = sound if sound >= LEAST_SOUND else 0.0
        j11, j12, j22, h1, h2 = self._info[agent]
        self._info[agent] = j11 + precision - old[0], j12, j22, h1 + eta - old[1], h2
        self._dirty.add(agent)

    def predicted(self, agent: int) -> float:
        """The skill that the agent's parent makes expect; the root's own mean for the root."""
        if not agent:
            return self.states[0].t
        parent = self.states[self.parents[agent]]
        return self.step.rho * parent.t + self.step.carry * parent.m + self.step.c1

    def update(self) -> list[int]:
        """Brings every state up to date; returns the agents whose mean may have changed."""
        touched = self._upward(self._dirty)
        self._dirty.clear()
        return self._downward(touched)

    def restart(self, step: Step[float], mean_drift: float) -> list[int]:
        """Does everything anew, with other parameters."""
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
        """``set_evidence`` for every agent; ``restart`` must follow."""
        self._evidence = evidence
        self._sound = [chance if chance >= LEAST_SOUND else 0.0 for chance in sound]

    def _send(self, agent: int, before: Information[float]) -> None:
        sound = self._sound[agent]
        info = self._info[agent]
        tells = sound and info is not NOTHING
        sent = message(filtered(info, self.step.q), self.step, sound) if tells else NOTHING
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
                new = root_state(self._info[0], self.mean_drift)
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
