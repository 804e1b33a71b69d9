"""Beliefs about the agents of a tree, given the parameters: their skills and drifts, and which of them are broken.

Skills are Gaussian belief propagation (J. Pearl, "Probabilistic Reasoning in Intelligent Systems", 1988) on
two-dimensional states (skill θ, drift μ); on a chain it is the smoother of H. Rauch, F. Tung and C. Striebel, AIAA
Journal 3 (1965), p. 1445. The evidence of an agent's verdicts is Gaussian in θ alone. The algebra of one step is
written out for 2 × 2 matrices and works on floats and on arrays, so that many parameters can be tried at once.

Everywhere a parent's index is below its child's, and a root is its own parent; agent 0 is one.
"""

import math
from collections.abc import Iterable, Sequence
from operator import sub
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
N = TypeVar("N", float, Array)

ROOT_VARIANCE = 1.0  # of the seed's skill before data; its mean is 0
ROOT_DRIFT_SCALE = 4.5  # variance of the seed's drift before data, as a multiple of Step.drift
DRIFT_KEPT = 0.95  # share of the parent's drift that a child keeps; the rest comes from the mean drift
LARGEST_MOVE = 1.0  # maximum move of a mean in one update
SETTLED = 1e-4  # smaller changes of a state are not passed down the tree before the next sweep
LEAST_SOUND = 0.02  # a child less likely to be sound than this tells its parent nothing

BROKEN_RATE = 0.05  # share of a sound agent's children that are broken, before data
BROKEN_RATE_WEIGHT = 10.0  # number of children that this belief is worth
BROKEN_RATE_RANGE = (0.01, 0.9)
OFTEN_BROKEN_RATE = 0.3  # replaces BROKEN_RATE where edits turn out to break the agent often
BROKEN_STAYS = 0.7  # share of a broken agent's children that are broken, before data
BROKEN_STAYS_WEIGHT = 10.0
BROKEN_STAYS_RANGE = (0.05, 0.98)
LEARNING_STEPS = 20  # maximum steps of expectation maximisation where edits often break the agent; else one
LEARNED = 4e-3  # the steps end when the rates together move by less than this
ODDS_LIMIT = 50.0  # log odds of being broken are clipped to ± this
ODDS_SETTLED = 1e-3  # smaller changes of log odds are not passed down the tree before the next sweep

Information = tuple[N, ...]
"""J11, J12, J22 of a precision matrix J, and H1, H2 of the information vector H."""
NOTHING: Information[float] = (0.0, 0.0, 0.0, 0.0, 0.0)


class Step(NamedTuple, Generic[N]):
    """The step from parent to child: x ← [[ρ, carry], [0, 0.95]] x + (c1, c2) + N(0, diag(q, drift))."""

    rho: N
    q: N
    c1: N
    c2: float
    drift: N
    """Variance of what is new in a child's drift."""
    carry: float = 1.0
    """Share of the parent's drift that goes into the child's skill; 0 (with ρ = 0) cuts the tree."""


class Filter(NamedTuple, Generic[N]):
    """Information J, H after the noise Q of a step: M = (I + J Q)⁻¹, N = M J and M H."""

    det: N
    """Determinant of I + J Q."""
    m11: N
    m12: N
    m21: N
    m22: N
    n11: N
    n12: N
    n22: N
    h1: N
    """First entry of M H."""
    h2: N


class State(NamedTuple):
    """Posterior means and variances of one agent's skill (t) and drift (m)."""

    t: float
    m: float
    tt: float
    tm: float
    mm: float


def shift(step: Step[N], offset: N) -> Step[N]:
    """Return the step with gains measured from a skill that is higher by ``offset``."""
    return step._replace(c1=step.c1 + (1.0 - step.rho) * offset)


def filter_information(info: Information[N], step: Step[N]) -> Filter[N]:
    """Return M, N and M H of the information and the step's noise."""
    j11, j12, j22, h1, h2 = info
    q, drift = step.q, step.drift
    a = 1.0 + j22 * drift
    b = 1.0 + j11 * q
    cross = j12 * j12
    det = a * b - cross * drift * q
    m11, m12, m21, m22 = a / det, -j12 * drift / det, -j12 * q / det, b / det
    n11, n12, n22 = (a * j11 - cross * drift) / det, j12 / det, (b * j22 - cross * q) / det
    return Filter(det, m11, m12, m21, m22, n11, n12, n22, m11 * h1 + m12 * h2, m22 * h2 + m21 * h1)


def message(of: Filter[N], step: Step[N], sound: N) -> Information[N]:
    """Return a child's message to its parent, weighed by its chance of being sound: r AᵀN A and r Aᵀ(M H - N c)."""
    _, _, _, _, _, n11, n12, n22, h1, h2 = of
    rho, _, c1, c2, _, carry = step
    u1 = h1 - n11 * c1 - n12 * c2
    u2 = h2 - n12 * c1 - n22 * c2
    low = carry * n11 + DRIFT_KEPT * n12
    share = sound * rho
    j22 = sound * (carry * low + DRIFT_KEPT * (carry * n12 + DRIFT_KEPT * n22))
    return share * rho * n11, share * low, j22, share * u1, sound * (carry * u1 + DRIFT_KEPT * u2)


def root_state(info: Information[float], step: Step[float], mean_drift: float) -> State:
    """Return the root's mean S h and variance S = (J + prior precision)⁻¹."""
    j11, j12, j22, h1, h2 = info
    variance = ROOT_DRIFT_SCALE * step.drift
    k11, k22 = j11 + 1.0 / ROOT_VARIANCE, j22 + 1.0 / variance
    h2 += mean_drift / variance
    det = k11 * k22 - j12 * j12
    return State((k22 * h1 - j12 * h2) / det, (k11 * h2 - j12 * h1) / det, k22 / det, -j12 / det, k11 / det)


def child_state(parent: State, of: Filter[float], step: Step[float]) -> State:
    """Return the child's mean Q M H + Mᵀ(A mean_p + c) and variance Q M + Mᵀ(A V_p Aᵀ) M."""
    rho, q, c1, c2, drift, carry = step
    _, m11, m12, m21, m22, _, _, _, h1, h2 = of
    t, m, tt, tm, mm = parent
    e1, e2 = rho * t + carry * m + c1, DRIFT_KEPT * m + c2
    cross = rho * tm + carry * mm
    p11 = rho * rho * tt + carry * (rho * tm + cross)
    p12, p22 = DRIFT_KEPT * cross, DRIFT_KEPT * DRIFT_KEPT * mm
    x1, x2 = m11 * p11 + m21 * p12, m11 * p12 + m21 * p22
    y1, y2 = m12 * p11 + m22 * p12, m12 * p12 + m22 * p22
    return State(
        q * h1 + m11 * e1 + m21 * e2,
        drift * h2 + m12 * e1 + m22 * e2,
        q * m11 + x1 * m11 + x2 * m21,
        q * m12 + x1 * m12 + x2 * m22,
        drift * m22 + y1 * m12 + y2 * m22,
    )


def with_ancestors(agents: Iterable[int], parents: Sequence[int]) -> list[int]:
    """Return the agents and all their ancestors, each once, children before parents."""
    seen: set[int] = set()
    for agent in agents:
        while agent not in seen:
            seen.add(agent)
            agent = parents[agent]
    return sorted(seen, reverse=True)


class Beliefs:
    """The messages between agents and the states that result.

    Evidence is set per agent; then ``update`` brings all states up to date. An update costs the path to the root and
    the states that really change below it.
    """

    def __init__(self, step: Step[float], mean_drift: float) -> None:
        self.step = step
        """The step in the tree of agent 0."""
        self.offsets: dict[int, float] = {}
        """Root → the skill that gains in its tree are measured from, minus the one in agent 0's tree."""
        self._steps: dict[int, Step[float]] = {}
        self.mean_drift = mean_drift
        self.parents: list[int] = []
        self.roots: list[int] = []
        """The root that each agent descends from along first parents."""
        self.depths: list[int] = []
        self.states: list[State] = []
        self.evidence: list[tuple[float, float]] = []
        """Precision Λ of an agent's verdicts, and η = Λ · (where their likelihood peaks)."""
        self.sound: list[float] = []
        """The chance that an agent's messages say anything of its parent."""
        self._info: list[Information[float]] = []
        self._sent: list[Information[float]] = []
        self._filters: list[Filter[float]] = []
        self._dirty: set[int] = set()
        """Agents whose evidence changed since the last update."""
        self._unsettled: set[int] = set()
        """Agents whose mean is still held back by the largest move."""

    def copy(self) -> "Beliefs":
        """Return a copy; changes to it leave the original alone."""
        twin = Beliefs(self.step, self.mean_drift)
        twin.__dict__.update(
            {name: value.copy() for name, value in vars(self).items() if hasattr(value, "copy")}
        )
        return twin

    def add(self, parent: int) -> None:
        """Add an agent without evidence; a root is its own parent."""
        agent = len(self.parents)
        self.parents.append(parent)
        self.roots.append(agent if parent == agent else self.roots[parent])
        self.depths.append(0 if parent == agent else self.depths[parent] + 1)
        if parent == agent:
            self.offsets[agent], self._steps[agent] = 0.0, self.step
        step = self._steps[self.roots[agent]]
        self.evidence.append((0.0, 0.0))
        self.sound.append(1.0)
        self._info.append(NOTHING)
        self._sent.append(NOTHING)
        self._filters.append(filter_information(NOTHING, step))
        is_root = parent == agent
        self.states.append(
            self._root_state(agent)
            if is_root
            else child_state(self.states[parent], self._filters[agent], step)
        )

    def set_evidence(self, agent: int, precision: float, eta: float, sound: float) -> None:
        """Replace the evidence of the agent's verdicts, and the weight of its messages."""
        old = self.evidence[agent]
        self.evidence[agent] = precision, eta
        self.sound[agent] = sound
        j11, j12, j22, h1, h2 = self._info[agent]
        self._info[agent] = j11 + precision - old[0], j12, j22, h1 + eta - old[1], h2
        self._dirty.add(agent)

    def predict(self, agent: int) -> float:
        """Return the agent's expected skill, given its parent's state; for a root, its own mean."""
        parent, step = self.states[self.parents[agent]], self._steps[self.roots[agent]]
        if self.parents[agent] == agent:
            return parent.t
        return step.rho * parent.t + step.carry * parent.m + step.c1

    def update(self) -> list[int]:
        """Bring every state up to date; return the agents whose state changed by more than ``SETTLED``."""
        touched = with_ancestors(self._dirty, self.parents)
        self._dirty.clear()
        for agent in touched:
            if self.parents[agent] != agent:
                self._send(agent, self._sent[agent])
        return self._update_states(touched)

    def restart(self, step: Step[float], mean_drift: float) -> list[int]:
        """Infer everything anew with other parameters and ``offsets``; return the agents as in ``update``."""
        self.step, self.mean_drift = step, mean_drift
        self._steps = {root: shift(step, offset) for root, offset in self.offsets.items()}
        self._dirty.clear()
        self._info = [
            (precision, 0.0, 0.0, eta, 0.0) if precision else NOTHING for precision, eta in self.evidence
        ]
        for agent in range(len(self.parents) - 1, 0, -1):
            if self.parents[agent] != agent:
                self._send(agent, NOTHING)
        return self._update_states(range(len(self.parents)))

    def _send(self, agent: int, before: Information[float]) -> None:
        """Send the agent's message to its parent in place of ``before``."""
        info, sound, step = self._info[agent], self.sound[agent], self._steps[self.roots[agent]]
        self._filters[agent] = filter_ = filter_information(info, step)
        sent = message(filter_, step, sound) if sound >= LEAST_SOUND and info is not NOTHING else NOTHING
        self._sent[agent] = sent
        if sent is not before:
            of = self._info[self.parents[agent]]
            self._info[self.parents[agent]] = (
                of[0] + sent[0] - before[0],
                of[1] + sent[1] - before[1],
                of[2] + sent[2] - before[2],
                of[3] + sent[3] - before[3],
                of[4] + sent[4] - before[4],
            )

    def _root_state(self, root: int) -> State:
        return root_state(self._info[root], self._steps[root], self.mean_drift)

    def _update_states(self, touched: Iterable[int]) -> list[int]:
        """Infer the states of these agents and of the descendants of whoever moved; return those that moved."""
        due = bytearray(len(self.parents))
        for agents in (touched, self._unsettled):
            for agent in agents:
                due[agent] = 1
        self._unsettled.clear()
        moved = []
        changed = bytearray(len(self.parents))
        states, filters = self.states, self._filters
        for agent, parent in enumerate(self.parents):
            if not (due[agent] or changed[parent]):
                continue
            old = states[agent]
            if parent == agent:
                new = self._root_state(agent)
            else:
                new = child_state(states[parent], filters[agent], self._steps[self.roots[agent]])
            if not -LARGEST_MOVE <= new.t - old.t <= LARGEST_MOVE:
                new = new._replace(t=old.t + math.copysign(LARGEST_MOVE, new.t - old.t))
                self._unsettled.add(agent)
            states[agent] = new
            if max(map(abs, map(sub, old, new))) > SETTLED:
                changed[agent] = 1
                moved.append(agent)
        return moved


class Breakage:
    """P(broken) of every agent, given the evidence of each one's verdicts: a two-state chain down the tree, exact.

    A sound agent's child breaks at the learned ``rate``. A broken agent's child is broken too (``stays``), except for a
    learned share that is repaired. So failures all along a line show that it broke at its top, even if each agent of it
    has only one result. Roots are sound. Quantities are log odds of broken against sound.
    """

    def __init__(self) -> None:
        self.rate = BROKEN_RATE
        self.stays = BROKEN_STAYS
        self.odds: list[float] = []
        """Posterior log odds."""
        self.sound: list[float] = []
        """P(sound) if the parent is: the share of a line's evidence that can be put down to its parent's skill."""
        self._parents: list[int] = []
        self._evidence: list[float] = []
        self._below: list[float] = []
        """Evidence of an agent's verdicts and of all its descendants'."""
        self._sent: list[float] = []
        self._dirty: set[int] = set()
        self._often = False

    def add(self, parent: int) -> None:
        """Add a new agent; a root is its own parent."""
        agent = len(self._parents)
        self._parents.append(parent)
        for column in (self._evidence, self._below, self._sent):
            column.append(0.0)
        self.odds.append(-ODDS_LIMIT if parent == agent else self._prior(self.odds[parent]))
        self.sound.append(1.0 if parent == agent else 1.0 - self.rate)

    def set_evidence(self, agent: int, odds: float) -> None:
        """Replace the evidence of the agent's verdicts: log P(verdicts | broken) / P(verdicts | sound)."""
        self._below[agent] += odds - self._evidence[agent]
        self._evidence[agent] = odds
        self._dirty.add(agent)

    def update(self) -> list[int]:
        """Bring all odds up to date; return the agents whose ``sound`` may have changed, in ascending order."""
        touched = with_ancestors(self._dirty, self._parents)
        self._dirty.clear()
        for agent in touched:
            if self._parents[agent] != agent:
                self._send(agent)
        self._update_odds(touched)
        return touched[::-1]

    def restart(self, evidence: list[float]) -> None:
        """Replace the evidence of every agent, and infer everything anew."""
        self._evidence, self._below = evidence, evidence[:]
        self._sent = [0.0] * len(evidence)
        self._dirty.clear()
        for agent in range(len(evidence) - 1, 0, -1):
            if self._parents[agent] != agent:
                self._send(agent)
        self._update_odds(range(len(evidence)))

    def learn(self, probed: Iterable[int], often: bool = False) -> None:
        """Learn both rates from agents with results, and infer everything anew.

        This takes one step of expectation maximisation. Where edits ``often`` break the agent it takes up to 20 steps,
        from another belief: a failed try may say so little there that single steps do not move the rates.
        """
        agents = [agent for agent in probed if self._parents[agent] != agent]
        prior = OFTEN_BROKEN_RATE if often else BROKEN_RATE
        if often and not self._often:
            self.rate = max(self.rate, prior)
        self._often = often
        for _ in range(LEARNING_STEPS if often else 1):
            rate, stays = self.rate, self.stays
            self._maximise(agents, prior)
            self.restart(self._evidence)
            if abs(self.rate - rate) + abs(self.stays - stays) < LEARNED:
                break

    def _maximise(self, agents: list[int], prior: float) -> None:
        """Set both rates from the expected counts of broken agents and their parents, shrunk towards ``prior``."""
        sound_parents = breaks = broken_parents = stays = 0.0
        for agent in agents:
            before = _sigmoid(self.odds[self._parents[agent]] - self._sent[agent])
            ratio = math.exp(min(self._below[agent], ODDS_LIMIT))
            both = before * self.stays * ratio
            repaired = before * (1.0 - self.stays)
            broke = (1.0 - before) * self.rate * ratio
            neither = (1.0 - before) * (1.0 - self.rate)
            total = both + repaired + broke + neither
            sound_parents += (broke + neither) / total
            breaks += broke / total
            broken_parents += (both + repaired) / total
            stays += both / total
        rate = (BROKEN_RATE_WEIGHT * prior + breaks) / (BROKEN_RATE_WEIGHT + sound_parents)
        self.rate = min(max(rate, BROKEN_RATE_RANGE[0]), BROKEN_RATE_RANGE[1])
        rate = (BROKEN_STAYS_WEIGHT * BROKEN_STAYS + stays) / (BROKEN_STAYS_WEIGHT + broken_parents)
        self.stays = min(max(rate, BROKEN_STAYS_RANGE[0]), BROKEN_STAYS_RANGE[1])

    def _send(self, agent: int) -> None:
        ratio = math.exp(min(self._below[agent], ODDS_LIMIT))
        evidence = self.rate * ratio + 1.0 - self.rate
        self.sound[agent] = (1.0 - self.rate) / evidence
        sent = math.log((self.stays * ratio + 1.0 - self.stays) / evidence)
        self._below[self._parents[agent]] += sent - self._sent[agent]
        self._sent[agent] = sent

    def _prior(self, parent_odds: float) -> float:
        broken = _sigmoid(parent_odds)
        p = self.stays * broken + self.rate * (1.0 - broken)
        return math.log(p / (1.0 - p))

    def _update_odds(self, touched: Iterable[int]) -> None:
        changed = bytearray(len(self._parents))
        due = bytearray(len(self._parents))
        for agent in touched:
            due[agent] = 1
        for agent, parent in enumerate(self._parents):
            if parent != agent and (due[agent] or due[parent] or changed[parent]):
                odds = self._prior(self.odds[parent] - self._sent[agent]) + self._below[agent]
                odds = min(max(odds, -ODDS_LIMIT), ODDS_LIMIT)
                if abs(odds - self.odds[agent]) > ODDS_SETTLED:
                    self.odds[agent] = odds
                    changed[agent] = 1


def _sigmoid(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-odds)) if odds > -700.0 else 0.0
