"""Runs a suite's test command inside its sandbox and reports its end: ``python3 -I -B command_watcher.py``.

dgm does not import it but puts it into the sandbox as a file; standard library only (Python >= 3.9). Standard input
holds the assignment as JSON. Standard output gets the command's output, and at the end one line with the report and
its HMAC under the assignment's key. No other process of the sandbox can read the key: this one cannot be traced, and
everything else is stopped when the command has ended, before the reward is read.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import json
import os
import signal
import stat
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ctypes

MARK = "dgm-command-report"
CHUNK = 65536
DRAINED_S = 10.0
"""Seconds that the last output may take after all its writers were killed."""
PR_SET_DUMPABLE = 4
CLOSED_WRITTEN, OPENED, MOVED_TO, DELETED_SELF, MOVED_SELF, OVERFLOW = 0x8, 0x20, 0x80, 0x400, 0x800, 0x4000
NONBLOCKING_CLOSED_ON_EXEC = 0x80800
FATAL = (signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM)
NOT_FOUND, NOT_STARTED = 127, 126


class RewardFolder:
    """The folder of the reward: which one it was at the start, and how often a reward was written to it."""

    def __init__(self, path: str, names: list[str], limit: int, libc: ctypes.CDLL | None) -> None:
        self.path, self.names, self.limit = path, names, limit
        self.identity = _identity(path)
        self.events = -1
        if libc is not None:
            self.events = libc.inotify_init1(NONBLOCKING_CLOSED_ON_EXEC)
            # The kernel merges equal events that follow each other: opening stands between two writes.
            own = OPENED | CLOSED_WRITTEN | MOVED_TO | DELETED_SELF | MOVED_SELF
            libc.inotify_add_watch(self.events, path.encode(), own)
            libc.inotify_add_watch(self.events, os.fsencode(Path(path).parent), MOVED_SELF)

    def count_writes(self) -> int:
        """Return how often a reward was written, or -1 if that is not known."""
        if self.events < 0:
            return -1
        writes = 0
        while True:
            try:
                data = os.read(self.events, CHUNK)
            except BlockingIOError:
                return writes
            while data:
                _, mask, _, length = struct.unpack_from("iIII", data)
                name = data[16 : 16 + length].rstrip(b"\0").decode("utf-8", "replace")
                data = data[16 + length :]
                if mask & (OVERFLOW | DELETED_SELF | MOVED_SELF):
                    return -1
                writes += name in self.names and bool(mask & (CLOSED_WRITTEN | MOVED_TO))

    def read(self) -> dict[str, str]:
        """Return each reward's file, base64; a ``ValueError`` says why a file cannot be taken."""
        if _identity(self.path) != self.identity:
            raise ValueError("the folder of the reward was replaced")
        if not os.lstat(self.path).st_mode & stat.S_IWUSR:
            raise ValueError("the folder of the reward was made read-only")
        return {name: self._read(name) for name in self.names if os.path.lexists(f"{self.path}/{name}")}

    def _read(self, name: str) -> str:
        path = f"{self.path}/{name}"
        about = os.lstat(path)
        if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
            raise ValueError(f"{name} is no file of its own, but a link, a pipe or a folder")
        if not about.st_mode & stat.S_IWUSR:
            raise ValueError(f"{name} was made read-only")
        if about.st_size > self.limit:
            raise ValueError(f"{name} holds more than {self.limit} bytes")
        with open(path, "rb", opener=lambda file, flags: os.open(file, flags | os.O_NOFOLLOW)) as file:
            return base64.b64encode(file.read(self.limit)).decode()


def main() -> int:
    """Run the command, print the report, and return the command's exit code as a shell would."""
    if os.getuid() == 0:
        sys.exit(
            "command_watcher.py ends all other processes of its user: it runs in sandboxes only, and not as root"
        )
    asked = json.loads(sys.stdin.buffer.read())
    libc = protect()
    folder = RewardFolder(asked["folder"], asked["names"], asked["limit"], libc) if asked["folder"] else None
    report = run(asked["command"], asked["env"], asked["output_limit"], folder)
    text = json.dumps(report)
    seal = hmac.new(bytes.fromhex(asked["key"]), text.encode(), "sha256").hexdigest()
    _write(f"\n{MARK} {seal} {text}\n".encode())
    return int(report["code"])


def protect() -> ctypes.CDLL | None:
    """Keep other processes of this user out of this one's memory, and return the C library.

    Without ``ctypes``, which a reduced Python may lack, both are left out, and None is returned.
    """
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return None
    return libc


def run(command: list[str], env: dict[str, str], limit: int, folder: RewardFolder | None) -> dict[str, Any]:
    """Run the command, end everything that it left, and return the report."""
    report: dict[str, Any] = {
        "code": NOT_FOUND,
        "signal": 0,
        "left": 0,
        "writes": 0,
        "refused": "",
        "rewards": {},
    }
    source, target = os.pipe()
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=target, stderr=target, env={**os.environ, **env},
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        _write(f"{command[0]}: {error.strerror}\n".encode())
        return {**report, "code": NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED}
    finally:
        os.close(target)
    relaying = threading.Thread(target=relay, args=(source, limit), daemon=True)
    relaying.start()
    code = process.wait()
    report.update(code=code if code >= 0 else 128 - code, signal=max(0, -code))
    parents = ancestors()
    _signal(-1, signal.SIGSTOP)
    others = [pid for pid in processes() if pid not in parents]
    report["left"] = sum(not is_ending(pid) for pid in others)
    if folder is not None:
        try:
            report.update(writes=folder.count_writes(), rewards=folder.read())
        except (ValueError, OSError) as error:
            report["refused"] = str(error)
    for pid in others:
        _signal(pid, signal.SIGKILL)
    for pid in parents:
        _signal(pid, signal.SIGCONT)
    relaying.join(DRAINED_S)
    return report


def relay(source: int, limit: int) -> None:
    """Pass on the first ``limit`` bytes of the command's output, and discard the rest."""
    while True:
        chunk = os.read(source, CHUNK)
        if not chunk:
            return
        _write(chunk[:limit])
        limit = max(0, limit - len(chunk))


def ancestors() -> set[int]:
    """Return the processes above this one, which the engine has started."""
    found: set[int] = set()
    pid = os.getppid()
    while pid > 0 and pid not in found:
        found.add(pid)
        pid = int(_status(pid).get("PPid", "0"))
    return found


def processes() -> list[int]:
    """Return the other processes of this user; a process that hides its memory also hides its owner from ``stat``."""
    user = str(os.getuid())
    numbers = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
    return [pid for pid in numbers if pid != os.getpid() and user in _status(pid).get("Uid", "").split()]


def is_ending(pid: int) -> bool:
    """Return whether a process has ended, or will before it does anything else."""
    said = _status(pid)
    if said.get("State", "Z")[0] in "ZX":
        return True
    pending, shared, blocked, ignored, caught = (
        int(said.get(name, "0"), 16) for name in ("SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt")
    )
    fatal = sum(1 << (each - 1) for each in FATAL)
    return bool((pending | shared) & fatal & ~(blocked | ignored | caught))


def _status(pid: int) -> dict[str, str]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _identity(path: str) -> tuple[int, int]:
    about = os.lstat(path)
    return about.st_dev, about.st_ino


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    sys.exit(main())
