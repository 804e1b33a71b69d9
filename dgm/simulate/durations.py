"""How long a simulated step takes, and whether the infrastructure fails it."""

import math

from dgm.simulate.chances import key_of, normal, uniform


def log_normal(key: bytes, label: bytes, median: float, sigma: float) -> float:
    """Return a log-normal number: durations of agent runs have one mode and a long right tail."""
    return median * math.exp(sigma * normal(uniform(key, label)))


def infrastructure_fails(key: bytes, try_number: int, rate: float) -> bool:
    """Return whether this try of the step with this key fails; tries fail independently of each other."""
    if rate <= 0.0:
        return False
    return uniform(key_of(key, try_number.to_bytes(4, "little")), b"fails") < rate
