"""Throw-away machines."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dgm.domain import Snapshot


@dataclass(frozen=True, slots=True)
class Completed:
    """What one command in a sandbox left."""

    exit_code: int
    """As a shell gives it: 128 + signal when killed; 124 when ``timed_out``; 137 when out of memory."""
    output: bytes
    """Stdout and stderr merged in order, cut at the limit."""
    truncated: bool = False
    timed_out: bool = False
    out_of_memory: bool = False
    seconds: float = 0.0
    out_of_processor: bool = False
    """Its processor time was over; then ``timed_out`` is true, too."""
    processor_s: float | None = None
    """Processor time that it took, over all its processes; None where it was not bounded, or nobody can tell."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A host folder shown read-only inside a sandbox."""

    source: Path
    target: str


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """What a sandbox may have. There is never a network, and never a variable of the host's environment."""

    image: str
    """Name of a recipe under ``sandboxes/``, or ``docker:`` and an image that the engine has (Docker only)."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """``dgm.run``, ``dgm.action``, ``dgm.host``: what the reaper looks for."""
    mounts: Sequence[Mount] = ()
    filled: Mapping[str, str] = field(default_factory=dict)
    """Further writable folders → the folder of the image that each starts as a copy of (Docker only)."""
    cpus: float = 1.0
    memory_mb: int = 1024
    pids: int = 128
    disk_mb: int = 256
    """All that the sandbox may write, over all folders together."""
    lifetime_s: float = 3600.0
    """After this it ends, even if the host's process died."""


class Sandbox(Protocol):
    """One throw-away machine: commands run as an unprivileged user in a folder tree of their own.

    ``/work``, ``/agent``, ``/job`` and ``/tmp`` are writable and executable, everything else is read-only.
    Every method raises ``Infrastructure`` when the sandbox itself (not the command) failed.
    """

    async def exec(  # noqa: PLR0913  (all but two have their usual value)
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        cwd: str = "/work",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        output_limit: int = 1_000_000,
        processor_s: float | None = None,
    ) -> Completed:
        """Runs a command to its end, kills all of it at ``timeout_s``, and keeps ``output_limit`` bytes of output.

        At ``processor_s`` seconds of processor time it is killed, too: of all its processes together, or, where the
        engine has no account of them (bubblewrap without control groups), of any single one. What else runs in the
        sandbox meanwhile counts.

        A command that writes more than the limit is let run on with its output discarded. Not promised: that what
        it started in the background is gone afterwards (it is under bubblewrap, not under docker).
        """
        ...

    async def put(self, files: Snapshot, target: str) -> None:
        """Writes the files below the absolute folder ``target`` (made if missing), owned by the sandbox's user."""
        ...

    async def halt(self) -> None:
        """Ends every program that still runs in the sandbox; its files stay.

        Raises:
            AgentFault: stage ``processes``: so many run that they cannot be ended.
        """
        ...

    async def get(self, source: str, *, limit_bytes: int, exclude: Sequence[str] = ()) -> Snapshot:
        """Reads a folder back as a snapshot; links are kept as links, devices, pipes and sockets left out.

        ``exclude`` names entries directly under ``source`` to leave out (``.git``).

        Raises:
            AgentFault: stage ``size``: more than ``limit_bytes``, or more than 20,000 files.
        """
        ...


class SandboxEngine(Protocol):
    """Opens sandboxes and cleans up after a dead process."""

    name: str
    """``docker`` or ``bubblewrap``."""

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        """A fresh sandbox, removed with everything in it when the context ends, however it ends.

        Raises:
            Infrastructure: it could not be started.
        """
        ...

    async def reap(self, labels: Mapping[str, str]) -> int:
        """Removes every sandbox of this host that carries all of ``labels``; returns how many there were."""
        ...


OpenSandbox = Callable[[SandboxSpec], AbstractAsyncContextManager[Sandbox]]
