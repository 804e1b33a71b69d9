"""A control group per bubblewrap sandbox: the only hard bound on its processes, memory and processor time.

Only root can make one. Version 1 has a tree per controller, version 2 one for all; both are supported.
"""

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dgm.errors import Infrastructure

_ROOT = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")
_CONTROLLERS = ("pids", "memory", "cpu")
_ACCOUNT = "cpuacct"
"""Accounting controller of version 1, which may have a tree of its own; it bounds nothing."""
_PERIOD_US = 100_000
_GONE_WITHIN_S = 5.0
_MIB = 1024 * 1024
_TCP_SHARE = 4
"""Share of the memory that buffers of TCP may take beside it, where control groups are of version 1."""


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """Limits on all processes of a group together."""

    pids: int
    memory_mb: int
    cpus: float


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The folders of one group: one in version 2, one per controller in version 1."""

    folders: tuple[Path, ...]

    @property
    def entrances(self) -> list[Path]:
        """Files into which a process writes its id to join, before it forks."""
        return [folder / "cgroup.procs" for folder in self.folders]

    def create(self, limits: GroupLimits) -> None:
        """Create the group.

        Raises:
            Infrastructure: the kernel refused.
        """
        try:
            for folder in self.folders:
                folder.mkdir()
                _limit(folder, limits)
        except OSError as error:
            raise Infrastructure(f"cannot make the control group {self.folders[0].name}: {error}") from error

    def out_of_memory_kills(self) -> int:
        """Return how many processes of the group the kernel has killed so far for lack of memory."""
        for folder in self.folders:
            for name in ("memory.events", "memory.oom_control"):
                with contextlib.suppress(OSError):
                    for line in (folder / name).read_text().splitlines():
                        key, _, value = line.partition(" ")
                        if key == "oom_kill":
                            return int(value)
        return 0

    def processor_s(self) -> float | None:
        """Return the processor seconds of all the group's processes so far; None without accounting."""
        for folder in self.folders:
            with contextlib.suppress(OSError, ValueError):
                return int((folder / "cpuacct.usage").read_text()) / 1e9
            with contextlib.suppress(OSError):
                for line in (folder / "cpu.stat").read_text().splitlines():
                    key, _, value = line.partition(" ")
                    if key == "usage_usec":
                        return int(value) / 1e6
        return None

    def remove(self) -> None:
        """Kill all processes in the group and remove it.

        Raises:
            Infrastructure: its processes do not go away.
        """
        deadline = time.monotonic() + _GONE_WITHIN_S
        for folder in self.folders:
            while folder.exists():
                _kill(folder)
                try:
                    folder.rmdir()
                except OSError as error:
                    if time.monotonic() > deadline:
                        raise Infrastructure(f"cannot remove the control group {folder}: {error}") from error
                    time.sleep(0.002)


def available() -> bool:
    """Return whether this process can make groups that bound processes and memory."""
    return os.geteuid() == 0 and _parents() is not None


def version() -> int:
    """Return the version of this machine's control groups: 2 counts all memory in one place, 1 does not."""
    return 2 if (_ROOT / "cgroup.controllers").exists() else 1


def group(name: str) -> ControlGroup:
    """Return the group of that name, without creating it.

    Raises:
        Infrastructure: no groups can be made on this machine.
    """
    parents = _parents()
    if parents is None:
        raise Infrastructure(f"no control groups for pids, memory and cpu can be made below {_ROOT}")
    return ControlGroup(tuple(dict.fromkeys(parent / name for parent in parents)))


def _limit(folder: Path, limits: GroupLimits) -> None:
    memory, quota = str(limits.memory_mb * _MIB), str(int(limits.cpus * _PERIOD_US))
    for name, value in (
        ("pids.max", str(limits.pids)),
        ("memory.max", memory),
        ("memory.swap.max", "0"),
        ("memory.limit_in_bytes", memory),
        ("memory.memsw.limit_in_bytes", memory),
        ("cpu.max", f"{quota} {_PERIOD_US}"),
        ("cpu.cfs_period_us", str(_PERIOD_US)),
        ("cpu.cfs_quota_us", quota),
    ):
        if (folder / name).exists():
            (folder / name).write_text(value)
    # Version 1 counts these apart, where the kernel counts them at all; it never counts the buffers of UDP.
    tcp = folder / "memory.kmem.tcp.limit_in_bytes"
    if tcp.exists():
        with contextlib.suppress(OSError):
            tcp.write_text(str(limits.memory_mb * _MIB // _TCP_SHARE))


def _parents() -> Sequence[Path] | None:
    """Return the folders in which groups can be made, one per controller, or ``None``."""
    if version() == 2:
        return _unified_parent()
    parents = []
    for controller in _CONTROLLERS:
        here = _own_group(controller)
        if not os.access(here, os.W_OK) or not (here / "cgroup.procs").exists():
            return None
        parents.append(here)
    return with_account(parents, _own_group(_ACCOUNT))


def with_account(parents: Sequence[Path], account: Path) -> Sequence[Path]:
    """Return the folders and the account's folder, if it is writable and not one of them under another name."""
    same = {parent.resolve() for parent in parents}
    there = os.access(account / "cgroup.procs", os.W_OK) and account.resolve() not in same
    return [*parents, account] if there else parents


def _own_group(controller: str) -> Path:
    """Return this process's own group, so that its bounds include its sandboxes; else the top of the tree."""
    try:
        lines = _OWN_GROUPS.read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            own = _ROOT / controller / path.lstrip("/")
            if own.is_dir():
                return own
    return _ROOT / controller


def _unified_parent() -> Sequence[Path] | None:
    parent = _ROOT / "dgm"
    wanted = " ".join(f"+{controller}" for controller in _CONTROLLERS)
    try:
        if not set(_CONTROLLERS) <= set((_ROOT / "cgroup.subtree_control").read_text().split()):
            (_ROOT / "cgroup.subtree_control").write_text(wanted)
        parent.mkdir(exist_ok=True)
        if not set(_CONTROLLERS) <= set((parent / "cgroup.subtree_control").read_text().split()):
            (parent / "cgroup.subtree_control").write_text(wanted)
    except OSError:
        return None
    return [parent]


def _kill(folder: Path) -> None:
    with contextlib.suppress(OSError):
        if (folder / "cgroup.kill").exists():
            (folder / "cgroup.kill").write_text("1")
            return
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
