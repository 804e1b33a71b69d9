"""Expected improvement: what a draw from N(d, s²) adds, on average, above 0.

D. Jones, M. Schonlau and W. Welch, "Efficient Global Optimization of Expensive Black-Box Functions", Journal of
Global Optimization 13 (1998), p. 455, eq. 15.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dgm.policies.lineage.constants import PROBE_INFORMATION

Array = NDArray[np.float64]

FAR = -6.0
"""Below so many standard deviations the formula loses its digits to cancellation."""


def expected_improvement(d: Array, s: Array) -> Array:
    """Return EI = s φ(d/s) + d Φ(d/s); ``d`` and ``s`` ≥ 0 have one shape."""
    s = np.maximum(s, 1e-9)
    z = np.maximum(d / s, -37.0)
    density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    flat = (-z / math.sqrt(2.0)).ravel().tolist()
    below = 0.5 * np.fromiter(map(math.erfc, flat), np.float64, len(flat)).reshape(z.shape)
    result: Array = s * np.where(z < FAR, density / (z * z + 3.0), density + z * below)
    return result


def learned_spread(variance: Array, probes: Array) -> Array:
    """Return s(v, m) = v √(I / (1 + v I)), I = 0.18 m.

    This is how far m evaluations (``probes``) are expected to move a mean of variance v.
    """
    information = PROBE_INFORMATION * probes
    spread: Array = variance * np.sqrt(information / (1.0 + variance * information))
    return spread
