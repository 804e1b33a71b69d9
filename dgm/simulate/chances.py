"""Random numbers that are a pure function of what they are for: keyed hashes, and nothing drawn in order.

Two askers who meet the same agent, task and attempt get the same number, whatever they asked before; that is what
pairs the trials of two policies in one world.
"""

import hashlib
import struct
from statistics import NormalDist

KEY_BYTES = 16
PER_DIGEST = 8
_WORD = 2.0**-64
_HALF = 2.0**-65
_UNPACK = struct.Struct("<8Q").unpack
_INVERSE = NormalDist().inv_cdf
_LARGEST = 1.0 - 2.0**-53


def key_of(*parts: bytes) -> bytes:
    """A new key from the parts, which are told apart by their lengths too."""
    hasher = hashlib.blake2b(digest_size=KEY_BYTES)
    for part in parts:
        hasher.update(len(part).to_bytes(4, "little"))
        hasher.update(part)
    return hasher.digest()


def uniforms(key: bytes, label: bytes = b"") -> tuple[float, ...]:
    """Eight numbers in the open interval from 0 to 1. ``label`` has at most 16 bytes."""
    words = _UNPACK(hashlib.blake2b(key, digest_size=64, person=label).digest())
    return tuple([min(word * _WORD + _HALF, _LARGEST) for word in words])


def uniform(key: bytes, label: bytes = b"") -> float:
    """One number in the open interval from 0 to 1."""
    return uniforms(key, label)[0]


def normal(share: float) -> float:
    """The value below which a standard normal number falls with this probability."""
    return _INVERSE(share)
