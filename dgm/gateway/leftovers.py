"""Folders of dead gateway processes: a socket without a listener, and the evidence beside it."""

import os
import re
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from dgm.archive.cleanup import Leftover, disk_bytes
from dgm.processes import short_address

GATEWAY = "folders of dead gateways"
OLD_S = 3600.0
"""Age in seconds from which a folder without a socket is a dead process's: a live one makes its socket at once."""
_NAME = re.compile(r"(dgm-gateway-(?:[0-9a-f]{16}-)?[a-z0-9_]{8})(?:-evidence-[a-z0-9_]{8})?")


def find_dead_gateways(folder: Path | None = None, now: float | None = None) -> Iterator[Leftover]:
    """Find this user's folders of gateways that no longer serve anybody.

    Args:
        folder: where temporary folders lie; the usual place if None.
        now: Unix time; the present if None.
    """
    place = Path(tempfile.gettempdir()) if folder is None else folder
    moment = time.time() if now is None else now
    for path in sorted(place.glob("dgm-gateway-*")):
        found = _NAME.fullmatch(path.name)
        if found and _is_ours(path) and _is_dead(path, place / found[1], moment):
            yield Leftover(path, GATEWAY, disk_bytes(path))


def _is_ours(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _is_dead(path: Path, gateway: Path, now: float) -> bool:
    try:
        sockets = [each for each in gateway.iterdir() if stat.S_ISSOCK(each.lstat().st_mode)]
        if sockets:
            return not any(map(_is_listening, sockets))
        return now - path.lstat().st_mtime > OLD_S
    except FileNotFoundError:
        return path.exists() and now - path.lstat().st_mtime > OLD_S
    except OSError:
        return False


def _is_listening(path: Path) -> bool:
    try:
        with (
            closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as asking,
            short_address(path) as address,
        ):
            asking.settimeout(1.0)
            asking.connect(address)
    except ConnectionRefusedError:
        return False
    except OSError:
        return True  # busy, or cannot be asked
    return True
