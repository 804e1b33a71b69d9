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
    last = 0.0
    for note in (_note_of(name), *_former_notes(name)):
        with contextlib.suppress(OSError):
            last = max(last, note.stat().st_mtime)
    return last


def forget(name: str) -> None:
    """Remove the note about something that is gone."""
    for note in (_note_of(name), *_former_notes(name)):
        note.unlink(missing_ok=True)


def _note_of(name: str) -> Path:
    return cache_folder("uses") / hashlib.sha256(name.encode()).hexdigest()[:32]


def _former_notes(name: str) -> tuple[Path, Path]:
    """Return where earlier versions noted the use of a task's and of an agent's image."""
    cache, digest = cache_folder(), name.replace("/", ":").rpartition(":")[2]
    return cache / "instance-images" / "used" / f"{_note_of(name).name}.json", cache / "agent-images" / digest
