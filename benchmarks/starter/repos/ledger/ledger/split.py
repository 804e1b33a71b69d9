"""Share cents out without losing or inventing any."""

import logging

log = logging.getLogger(__name__)


def split(cents, parts):
    """Split ``cents`` into ``parts`` nearly equal shares, the larger ones first."""
    if parts < 1:
        raise ValueError("parts must be at least 1")
    share, remainder = divmod(cents, parts)
    shares = [share + 1 if index < remainder else share for index in range(parts)]
    log.debug("split %d into %d parts: %s", cents, parts, shares)
    return shares


def allocate(cents, weights):
    """Share ``cents`` out by ``weights``; leftover cents go to the largest remainders.

    Equal remainders are served from left to right.
    """
    total = sum(weights)
    if not weights or total <= 0 or min(weights) < 0:
        raise ValueError("weights must be non-negative and not all zero")
    shares = [cents * weight // total for weight in weights]
    left = cents - sum(shares)
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(cents * weights[i] % total), i))
    for index in by_remainder[:left]:
        shares[index] += 1
    log.debug("allocate %d by %s: %s", cents, weights, shares)
    return shares
