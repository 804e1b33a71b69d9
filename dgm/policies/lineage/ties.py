"""Who is ahead, on any processor.

Two agents that nothing tells apart promise the same, but for the last bits, and those are another processor's own: the
exponential of numpy and the sums of its BLAS take other instructions where there are wider ones. So that the same log
leads to the same decision everywhere, what differs by less than ``TIE`` is a tie, and a tie goes to who comes first.
"""

import numpy as np
from numpy.typing import NDArray

from dgm.policies.lineage.constants import TIE


def leader(values: NDArray[np.float64]) -> int:
    """The place of the first value that is the largest one but for rounding; shape (n,), n ≥ 1."""
    most = values.max()
    return int(np.argmax(values >= most - TIE * abs(most)))
