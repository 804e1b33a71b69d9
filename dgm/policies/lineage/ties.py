"""The agent that is ahead, the same one on any processor.

Two agents with equal evidence promise the same except for the last bits, and these bits depend on the processor. The
exponential of numpy and the sums of its BLAS use other instructions where wider ones exist. The same log must lead to
the same decision everywhere. So values that differ by less than ``TIE`` are a tie, and the first agent wins a tie.
"""

import numpy as np
from numpy.typing import NDArray

from dgm.policies.lineage.constants import TIE


def leader(values: NDArray[np.float64]) -> int:
    """Return the place of the first value that equals the largest except for rounding; shape (n,), n ≥ 1."""
    most = values.max()
    return int(np.argmax(values >= most - TIE * abs(most)))
