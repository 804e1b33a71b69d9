"""Messages between agents, two-dimensional Gaussians in information form, and the states that result.

The method is Gaussian belief propagation (J. Pearl, "Probabilistic Reasoning in Intelligent Systems", 1988). On a chain
it is the smoother of H. Rauch, F. Tung and C. Striebel, AIAA Journal 3 (1965), p. 1445. States are (skill θ, drift μ);
the evidence of an agent's verdicts is Gaussian in θ alone. The algebra is written out for 2 × 2 matrices. It works on
floats and on arrays alike, so that many parameters can be tried at once. ``passes`` carries it through the tree.
"""

from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dgm.policies.lineage.constants import (
    DRIFT_KEPT,
    ROOT_DRIFT_SCALE,
    ROOT_VARIANCE,
)

Array = NDArray[np.float64]
N = TypeVar("N", float, Array)

Information = tuple[N, N, N, N, N]
"""J11, J12, J22 of a precision matrix and H1, H2 of the vector that goes with it."""


class Step(NamedTuple, Generic[N]):
    """The step from parent to child: x ← [[ρ, carry], [0, 0.95]] x + (c1, c2) + N(0, diag(q, drift))."""

    rho: N
    q: N
    c1: N
    c2: float
    drift: N
    """The variance of what is new in a child's drift."""
    carry: float = 1.0
    """Share of the parent's drift that goes into the child's skill; 0 (with ρ = 0) cuts the tree."""


class Gains(NamedTuple, Generic[N]):
    """The factors that turn a parent's posterior into its child's: S, G and S H of ``gains``."""

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
    """The terms that the message and the likelihood share: M = (I + J Q)⁻¹, N = M J."""

    det: N
    """Of I + J Q."""
    n11: N
    n12: N
    n22: N
    m1: N
    m2: N
    """Of M H."""


def filtered(info: Information[N], step: Step[N]) -> Filtered[N]:
    """Return the information after the noise of one step: det(I + J Q), N = M J and M H."""
    j11, j12, j22, h1, h2 = info
    q, drift = step.q, step.drift
    a = 1.0 + j22 * drift
    b = 1.0 + j11 * q
    cross = j12 * j12
    det = a * b - cross * drift * q
    return Filtered(
        det,
        (a * j11 - cross * drift) / det,
        j12 / det,
        (b * j22 - cross * q) / det,
        (a * h1 - j12 * drift * h2) / det,
        (b * h2 - j12 * q * h1) / det,
    )


def message(of: Filtered[N], step: Step[N], sound: N) -> Information[N]:
    """Return a child's message to its parent, weighed by its chance of being sound: r AᵀN A and r Aᵀ(M H - N c)."""
    _, n11, n12, n22, m1, m2 = of
    rho, _, c1, c2, _, carry = step
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
    """Return S = (J + Q⁻¹)⁻¹, G = S Q⁻¹ and S H."""
    j11, j12, j22, h1, h2 = info
    q, drift = step.q, step.drift
    a = 1.0 + j22 * drift
    b = 1.0 + j11 * q
    det = a * b - j12 * j12 * q * drift
    s11 = q * a / det
    s12 = -q * drift * j12 / det
    s22 = drift * b / det
    return Gains(
        s11, s12, s22, a / det, -j12 * q / det, -j12 * drift / det, b / det,
        s11 * h1 + s12 * h2, s12 * h1 + s22 * h2,
    )  # fmt: skip


class State(NamedTuple):
    """Posterior means and variances of one agent's skill (t) and drift (m)."""

    t: float
    m: float
    tt: float
    tm: float
    mm: float


def root_state(info: Information[float], step: Step[float], mean_drift: float) -> State:
    """Return the root's mean S h and variance S = (J + prior precision)⁻¹."""
    j11, j12, j22, h1, h2 = info
    variance = ROOT_DRIFT_SCALE * step.drift
    k11, k22 = j11 + 1.0 / ROOT_VARIANCE, j22 + 1.0 / variance
    h2 += mean_drift / variance
    det = k11 * k22 - j12 * j12
    return State((k22 * h1 - j12 * h2) / det, (k11 * h2 - j12 * h1) / det, k22 / det, -j12 / det, k11 / det)


def child_state(parent: State, gain: Gains[float], step: Step[float]) -> State:
    """Return the child's mean S H + G (A mean_p + c) and variance V = S + G (A V_p Aᵀ) Gᵀ."""
    rho, _, c1, c2, _, carry = step
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
