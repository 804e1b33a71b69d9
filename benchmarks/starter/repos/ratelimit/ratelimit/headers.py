"""Decisions as HTTP headers."""

import math


def headers(decision):
    """Return the headers that tell a web client about a decision."""
    found = {}
    if decision.remaining is not None:
        found["RateLimit-Remaining"] = str(max(decision.remaining, 0))
    if not decision.allowed and decision.retry_after_s is not None:
        found["Retry-After"] = str(math.ceil(decision.retry_after_s))
    return found


def status(decision):
    """Return the HTTP status: 200, 429 for later, 403 for a ban, 413 for never."""
    if decision.allowed:
        return 200
    if decision.reason == "banned":
        return 403
    return 413 if decision.retry_after_s is None else 429
