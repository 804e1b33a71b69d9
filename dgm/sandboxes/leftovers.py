"""Removal of a dead process's bubblewrap sandboxes: processes, control groups, mounts, folders."""

import contextlib
import logging
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from dgm.sandboxes import scratch
from dgm.sandboxes.cgroups import ControlGroup

log = logging.getLogger(__name__)


def reap(labels: Mapping[str, str]) -> int:
    """Remove every sandbox of this user that carries all of ``labels``; return their number."""
    count = 0
    for place, note in scratch.list_sandboxes():
        if all(note.labels.get(key) == value for key, value in labels.items()):
            log.info("removing the sandbox %s that process %d left", place.name, note.pid)
            _kill(place)
            ControlGroup(tuple(Path(folder) for folder in note.groups)).remove()
            place.remove()
            count += 1
    return count


def _kill(place: scratch.Scratch) -> None:
    """Kill the keepers of the sandbox's programs, which name its folder; the rest dies with them."""
    mark = os.fsencode(place.folder) + b"/"
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in (process / "cmdline").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)
