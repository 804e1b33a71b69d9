"""Disposable machines."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dgm.domain import Snapshot


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of one command in a sandbox."""

    exit_code: int
    """Exit code as in a shell: 128 + signal if killed; 124 if ``timed_out``; 137 if out of memory."""
    output: bytes
    """Stdout and stderr merged in order, cut at the limit."""
    truncated: bool = False
    timed_out: bool = False
    out_of_memory: bool = False
    seconds: float = 0.0
    out_of_processor: bool = False
    """The command's first process reached its limit of processor time; ``timed_out`` is then true, too."""
    processor_s: float | None = None
    """Processor time used by all processes of the command; None if the engine does not measure it."""

    @property
    def bad_end(self) -> str:
        """How the command ended, in words, if it failed; else an empty text."""
        if self.timed_out:
            return "ran out of time"
        if self.out_of_memory:
            return "ran out of memory"
        return f"exits {self.exit_code}" if self.exit_code else ""


@dataclass(frozen=True, slots=True)
class Mount:
    """A host folder whose contents a sandbox shows read-only, as they are when it is opened."""

    source: Path
    target: str
    digest: str = ""
    """Name of its contents, where they never change, so that an engine may keep them for further sandboxes."""


@dataclass(frozen=True, slots=True)
class SharedSocket:
    """A unix socket of the host that programs in a sandbox can connect to."""

    source: Path
    target: str
    """Absolute path in the sandbox; its folder holds nothing else, and its name is that of ``source``."""


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """The resources of a sandbox. It never has a network, and never a variable of the host's environment."""

    image: str
    """Name of a recipe under ``sandboxes/``, or ``docker:`` and an image of the engine (Docker only)."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels ``dgm.run``, ``dgm.action`` and ``dgm.host``, by which the reaper finds the sandbox."""
    mounts: Sequence[Mount] = ()
    socket: SharedSocket | None = None
    """The gateway's, for an agent at work."""
    runtime: str = ""
    """Image, as in ``image``, whose files are shown read-only at ``/opt/dgm-runtime``, so that its commands work there.

    Under bubblewrap a recipe stands for the host's own programs, which are there already.
    """
    filled: Mapping[str, str] = field(default_factory=dict)
    """Further writable folders → the folder of the image from which each is copied (Docker only)."""
    cpus: float = 1.0
    memory_mb: int = 1024
    pids: int = 128
    disk_mb: int = 256
    """Maximum that the sandbox may write, over all folders together."""
    lifetime_s: float = 3600.0
    """Seconds after which the sandbox ends, even if the host's process died."""


class Sandbox(Protocol):
    """One disposable machine: commands run as an unprivileged user in a separate folder tree.

    ``/work``, ``/agent``, ``/job`` and ``/tmp`` are writable and executable; everything else is read-only. Every method
    raises ``Infrastructure`` if the sandbox itself (not the command) failed.
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
        """Run a command to its end, kill all of it at ``timeout_s``, and keep ``output_limit`` bytes of output.

        ``processor_s`` limits the processor time of each process of the command. Output beyond the limit is discarded.
        Processes in the background are not guaranteed to end (they do under bubblewrap, not under docker).
        """
        ...

    async def put(self, files: Snapshot, target: str) -> None:
        """Write the files below the absolute folder ``target`` (created if missing), owned by the sandbox's user."""
        ...

    async def halt(self) -> None:
        """End every program that still runs in the sandbox; its files stay.

        Raises:
            AgentFault: stage ``processes``: too many run to be ended.
        """
        ...

    async def get(self, source: str, *, limit_bytes: int, exclude: Sequence[str] = ()) -> Snapshot:
        """Return a folder as a snapshot; links are kept as links, and devices, pipes and sockets left out.

        ``exclude`` names entries directly under ``source`` to leave out (``.git``).

        Raises:
            AgentFault: stage ``size``: more than ``limit_bytes``, or more than 20,000 files.
        """
        ...


class SandboxEngine(Protocol):
    """An engine that opens sandboxes and removes those of a dead process."""

    name: str
    """``docker`` or ``bubblewrap``."""

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        """Return a fresh sandbox; it is removed with all its contents when the context ends in any way.

        Raises:
            Infrastructure: the sandbox could not be started.
        """
        ...

    async def reap(self, labels: Mapping[str, str]) -> int:
        """Remove every sandbox of this host that carries all of ``labels``; return their number."""
        ...


OpenSandbox = Callable[[SandboxSpec], AbstractAsyncContextManager[Sandbox]]
