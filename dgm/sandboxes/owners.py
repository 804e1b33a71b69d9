"""The processes that open sandboxes: each holds a lock while it lives, so that another can tell what a dead one left.

A lock needs neither ``/proc`` nor a shared space of pids, and the kernel gives it up with the process. A sandbox whose
owner is not known here (of another user, or of a process whose state is elsewhere) counts as in use: it ends at its
lifetime.
"""

import contextlib
import fcntl
import functools
import logging
import os
import re
import time
import uuid
from pathlib import Path

from dgm.archive.lock import is_locked
from dgm.paths import state_folder

LABEL = "dgm.owner"
"""Label of a sandbox: the mark of its owner."""
_KEPT_S = 30 * 24 * 3600.0
"""Seconds for which the file of an ended process is kept: longer than any sandbox lives."""
_MARK = re.compile(r"[0-9a-f]{32}")

log = logging.getLogger(__name__)


def label_owner() -> dict[str, str]:
    """Return the label of this process's sandboxes; empty if it can hold no lock, as its state folder is read-only."""
    mark = _take_lock(os.getpid())
    return {LABEL: mark} if mark else {}


def has_ended(mark: str) -> bool:
    """Return whether the owner ended; False if it lives, and if no file of this user names it."""
    if not _MARK.fullmatch(mark):
        return False
    path = _folder() / mark
    return path.is_file() and not is_locked(path)


@functools.cache
def _take_lock(_pid: int) -> str:
    """Take the lock of this process, which lives as long as it does, and return its mark.

    A forked process has a pid of its own, hence a lock of its own.
    """
    mark = uuid.uuid4().hex
    try:
        folder = _folder()
        _remove_old(folder)
        descriptor = os.open(folder / mark, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        log.info("sandboxes of this process carry no owner: %s", error)
        return ""
    return mark


def _remove_old(folder: Path) -> None:
    oldest = time.time() - _KEPT_S
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < oldest and not is_locked(path):
                path.unlink()


def _folder() -> Path:
    return state_folder("owners")
