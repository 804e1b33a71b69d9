"""Python packages that an agent asks for (``requires`` in ``agent.toml``), shown read-only inside its sandbox.

They are installed once into the user's cache, wheels only, so that none of their code runs outside a sandbox.
"""

import asyncio
import hashlib
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from dgm.errors import Infrastructure
from dgm.paths import cache_folder
from dgm.protocols import Mount, SandboxEngine, SandboxSpec
from dgm.sandboxes.engine_client import lock_image
from dgm.sandboxes.preparing import Preparation
from dgm.sandboxes.wheels import fetch_wheels, resolve_wheels, unpack_wheels

TARGET = "/opt/dgm-packages"
"""Folder of the packages in a sandbox; the launcher puts it on ``PYTHONPATH``."""
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
_OLDEST = {"glibc": ("manylinux", 2, 5), "musl": ("musllinux", 1, 0)}
"""The tag of wheels for a C library, and the oldest version that one is made for."""


async def packages_mount(
    requires: Sequence[str], engine: SandboxEngine, spec: SandboxSpec
) -> tuple[Mount, ...]:
    """Return the mount with an agent's packages; empty if it asks for none.

    Raises:
        UserError: they cannot be installed; the message quotes pip.
        Infrastructure: the sandbox could not be started.
    """
    if not requires:
        return ()
    async with engine.open(spec) as sandbox:
        done = await sandbox.exec(["python3", "-c", _VERSION], timeout_s=_VERSION_S)
    if done.timed_out:
        raise Infrastructure(f"the sandbox's python3 did not tell its version within {_VERSION_S:.0f} s")
    words = done.output.decode("ascii", "replace").split()
    if done.exit_code != 0 or len(words) < 2:
        raise Infrastructure(f"the sandbox image {spec.image} has no python3 to install packages for")
    python = SandboxPython(*words[:4])
    folder = await asyncio.to_thread(ensure_packages, tuple(requires), python)
    return (Mount(folder, TARGET, digest=folder.name),)


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
    def platforms(self) -> Sequence[str]:
        """The tags of the wheels that it can load, the newest first; pip adds those for every platform."""
        tags = [f"linux_{self.machine}"]
        if self.libc in _OLDEST and re.fullmatch(r"\d+\.\d+(\.\d+)?", self.libc_version):
            name, major, oldest = _OLDEST[self.libc]
            minor = int(self.libc_version.split(".")[1])
            tags = [f"{name}_{major}_{each}_{self.machine}" for each in range(minor, oldest - 1, -1)] + tags
        old = ("manylinux2014", "manylinux2010", "manylinux1") if self.libc == "glibc" else ()
        return [*tags, *(f"{name}_{self.machine}" for name in old)]


def ensure_packages(requires: tuple[str, ...], python: SandboxPython) -> Path:
    """Return the folder of the packages for a sandbox's Python; install them if they are missing.

    What was asked for is looked up once, and stands for the same wheels from then on. The folder is named by the
    digests of its wheels.

    Raises:
        UserError: they cannot be installed.
    """
    asked = hashlib.sha256(json.dumps([sorted(requires), *astuple(python)]).encode()).hexdigest()[:24]
    cache = cache_folder("packages")
    with lock_image(f"packages-{asked}"):
        note = cache / f"{asked}.json"
        known = _read_note(note)
        if known and (cache / known).is_dir():
            return cache / known
        name = _install(requires, python, cache)
        note.write_text(json.dumps({"folder": name, "requires": sorted(requires)}), encoding="utf-8")
        return cache / name


def _read_note(note: Path) -> str:
    try:
        return str(json.loads(note.read_bytes())["folder"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _install(requires: tuple[str, ...], python: SandboxPython, cache: Path) -> str:
    """Install packages below ``cache``, and return the name of their folder."""
    told = Preparation(f"packages for Python {python.version}")
    target = ["--only-binary", ":all:", "--python-version", python.version]
    target += [word for tag in python.platforms for word in ("--platform", tag)]
    wheels = resolve_wheels(requires, target, told)
    files = fetch_wheels(wheels, target, told)
    same = python.version == "{}.{}".format(*sys.version_info[:2])
    what = json.dumps([sorted(file.parent.name for file in files), python.version, same])
    folder = cache / hashlib.sha256(what.encode()).hexdigest()[:24]
    if not folder.exists():
        draft = Path(tempfile.mkdtemp(prefix="draft-", dir=cache))
        try:
            unpack_wheels(files, draft, target, told, compiled=same)
            draft.chmod(0o755)
            draft.replace(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    told.say(f"{len(files)} installed in {told.seconds:.0f} s")
    return folder.name
