"""Random numbers that are a pure function of their purpose: keyed hashes, and nothing drawn in order.

Two callers that ask about the same agent, task and attempt get the same number, whatever they asked before. This pairs
the trials of two policies in one world.
"""

import hashlib
import math
import struct
from statistics import NormalDist

KEY_BYTES = 16
_STEP = 2.0**-52
_HALF = 2.0**-53
_EIGHT = struct.Struct("<8Q").unpack
_TWO = struct.Struct("<2Q").unpack
normal = NormalDist().inv_cdf
"""Quantile of the standard normal distribution at a share in the open interval from 0 to 1."""


def key_of(*parts: bytes) -> bytes:
    """Return a key from the parts; their lengths enter it too, so that no two lists of parts look alike."""
    joined = b"".join([len(part).to_bytes(2, "little") + part for part in parts])
    return hashlib.blake2b(joined, digest_size=KEY_BYTES).digest()


def uniforms(key: bytes, label: bytes = b"") -> tuple[float, ...]:
    """Return eight numbers in the open interval from 0 to 1. ``label`` has at most 16 bytes."""
    words = _EIGHT(hashlib.blake2b(key, digest_size=64, person=label).digest())
    return tuple([(word >> 12) * _STEP + _HALF for word in words])


def pair(key: bytes, label: bytes) -> tuple[float, float]:
    """Return two numbers like those of ``uniforms``, but faster."""
    first, second = _TWO(hashlib.blake2b(key, digest_size=16, person=label).digest())
    return (first >> 12) * _STEP + _HALF, (second >> 12) * _STEP + _HALF


def uniform(key: bytes, label: bytes = b"") -> float:
    """Return one number in the open interval from 0 to 1. ``label`` has at most 16 bytes."""
    return pair(key, label)[0]


def between(key: bytes, low: float, high: float) -> float:
    """Return a uniform number between the two."""
    return low + (high - low) * uniform(key)


def log_normal(key: bytes, label: bytes, median: float, sigma: float) -> float:
    """Return a log-normal number: durations of agent runs have one mode and a long right tail."""
    return median * math.exp(sigma * normal(uniform(key, label)))
