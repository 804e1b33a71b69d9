"""The Python that sandboxes of an image have, which decides what wheels fit.

A sandbox is opened to ask for it. Docker's images are named by their contents, so that each is asked once for all runs.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from dgm.archive.durable import write_durably
from dgm.errors import Infrastructure
from dgm.paths import cache_folder
from dgm.protocols import SandboxEngine, SandboxSpec

_VERSION_S = 120.0
_VERSION = """
import platform, sys
libc, number = platform.libc_ver()
if not libc:
    import subprocess
    said = subprocess.run(["ldd", "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.decode()
    libc, number = ("musl", said.split("Version ")[1].split()[0]) if "musl" in said else ("", "")
print("%d.%d" % sys.version_info[:2], platform.machine(), libc, number)
"""
_GLIBC = (17, 28, *range(31, 41))
"""Minor versions of the GNU C library whose wheels uv knows by name."""


@dataclass(frozen=True, slots=True)
class SandboxPython:
    """The Python of a sandbox, which may be another than this machine's."""

    version: str
    """Such as ``3.11``."""
    machine: str
    """Machine in the words of ``uname -m``, such as ``x86_64``."""
    libc: str = ""
    """``glibc`` or ``musl``; empty if unknown."""
    libc_version: str = ""
    """Such as ``2.36``."""

    @property
    def platform(self) -> str:
        """Uv's name for it: the newest C library that its wheels may need."""
        if self.libc == "musl":
            return f"{self.machine}-unknown-linux-musl"
        found = re.fullmatch(r"2\.(\d+)(\.\d+)?", self.libc_version) if self.libc == "glibc" else None
        fit = [minor for minor in _GLIBC if found and minor <= int(found[1])]
        return f"{self.machine}-manylinux_2_{max(fit, default=min(_GLIBC))}"


@runtime_checkable
class IdentifiesImages(Protocol):
    """An engine whose images are named by their contents."""

    def identify(self, image: str) -> str:
        """Return the name that only these contents of the image have; empty if there is no such image; blocks."""
        ...


async def find_python(engine: SandboxEngine, spec: SandboxSpec) -> SandboxPython:
    """Return the Python of sandboxes of ``spec``; open one to ask, unless its image is known.

    Raises:
        Infrastructure: the sandbox could not be started, or has no ``python3``.
    """
    before = await _identify(engine, spec.image)
    known = _read_words(_note_of(before)) if before else []
    if known:
        return SandboxPython(*known)
    words = await _ask(engine, spec)
    # The image may be built only now, or its name may mean another one by now.
    after = await _identify(engine, spec.image)
    if after and before in ("", after):
        write_durably(_note_of(after), json.dumps(words).encode())
    return SandboxPython(*words)


async def _identify(engine: SandboxEngine, image: str) -> str:
    """Return a name that only these contents of the image have; empty if there is none."""
    if not isinstance(engine, IdentifiesImages):
        return ""
    return await asyncio.to_thread(engine.identify, image)


async def _ask(engine: SandboxEngine, spec: SandboxSpec) -> Sequence[str]:
    async with engine.open(spec) as sandbox:
        done = await sandbox.exec(["python3", "-c", _VERSION], timeout_s=_VERSION_S)
    if done.timed_out:
        raise Infrastructure(f"the sandbox's python3 did not tell its version within {_VERSION_S:.0f} s")
    words = done.output.decode("ascii", "replace").split()
    if done.exit_code != 0 or len(words) < 2:
        raise Infrastructure(f"the sandbox image {spec.image} has no python3 to install packages for")
    return words[:4]


def _note_of(identity: str) -> Path:
    return (
        cache_folder("pythons") / f"{hashlib.sha256(f'{identity} {_VERSION}'.encode()).hexdigest()[:32]}.json"
    )


def _read_words(note: Path) -> Sequence[str]:
    try:
        words = json.loads(note.read_bytes())
    except (OSError, ValueError):
        return []
    is_sound = (
        isinstance(words, list) and 2 <= len(words) <= 4 and all(isinstance(word, str) for word in words)
    )
    return words if is_sound else []
