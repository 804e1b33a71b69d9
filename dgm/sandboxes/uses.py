"""When this machine last used an image or a volume of an engine: what nobody used for a week may be removed."""

import contextlib
import hashlib
from pathlib import Path

from dgm.paths import cache_folder

UNUSED_S = 7 * 24 * 3600.0
"""Seconds without use after which something is removed."""


def note_use(name: str) -> None:
    """Note that an image or a volume is used now."""
    _note_of(name).touch()


def find_last_use(name: str) -> float:
    """Return the time of the last use, in seconds since 1970; 0 if this machine knows of none."""
    with contextlib.suppress(OSError):
        return _note_of(name).stat().st_mtime
    return 0.0


def forget(name: str) -> None:
    """Remove the note about something that is gone."""
    _note_of(name).unlink(missing_ok=True)


def _note_of(name: str) -> Path:
    return cache_folder("uses") / hashlib.sha256(name.encode()).hexdigest()[:32]
