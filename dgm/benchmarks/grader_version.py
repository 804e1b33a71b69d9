"""The version of a benchmark: the grader's number, and a digest of the data that decides its verdicts.

A benchmark of another package says its own version, which only compares as a whole.
"""

import hashlib
import re
from collections.abc import Iterable

from dgm.domain import Entry

GRADER_VERSION = 1
"""Raised when the same patch may get another verdict or score; the changelog says which patches."""
_STAMPED = re.compile(r"(\d+)-([0-9a-f]{64})")
_EARLIER = re.compile(r"[0-9a-f]{64}")
"""A version that dgm 0.1 made of data and program together."""


def stamp_version(digest: str) -> str:
    """Return the version of a benchmark whose data have this SHA-256."""
    return f"{GRADER_VERSION}-{digest}"


def data_of(version: str) -> str:
    """Return the part of a version that does not depend on the grader."""
    stamped = _STAMPED.fullmatch(version)
    return stamped[2] if stamped else version


def name_grader(version: str) -> str:
    """Return the grader of a version in words."""
    stamped = _STAMPED.fullmatch(version)
    return f"grader {stamped[1]}" if stamped else "an earlier grader"


def differ_in_grader(before: str, now: str) -> bool:
    """Return whether two versions are of the same data under different graders.

    The data of a version that dgm 0.1 made cannot be told, and count as the same.
    """
    if before == now or not _STAMPED.fullmatch(now):
        return False
    return data_of(before) == data_of(now) or bool(_EARLIER.fullmatch(before))


def digest_files(files: Iterable[tuple[str, Entry]], more: str = "") -> str:
    """Return the SHA-256 of names, modes and contents of files, in their order, behind a text."""
    digest = hashlib.sha256(more.encode())
    for name, entry in files:
        for part in (name.encode("utf-8", "surrogateescape"), oct(entry.mode).encode(), entry.data):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()
