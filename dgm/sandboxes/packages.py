"""Python packages that an agent asks for (``requires`` in ``agent.toml``), shown read-only inside its sandbox.

They are installed once into the user's cache, wheels only, so that none of their code runs outside a sandbox.
"""

import asyncio
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from dgm.errors import Infrastructure, UserError
from dgm.paths import cache_folder
from dgm.protocols import Mount, SandboxEngine, SandboxSpec

TARGET = "/opt/dgm-packages"
"""Folder of the packages in a sandbox; the launcher puts it on ``PYTHONPATH``."""
INSTALL_S = 600
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
    return (Mount(folder, TARGET, constant=True),)


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

    Raises:
        UserError: they cannot be installed.
    """
    what = json.dumps([sorted(requires), *astuple(python)])
    folder = cache_folder("packages") / hashlib.sha256(what.encode()).hexdigest()[:24]
    if not folder.exists():
        draft = Path(tempfile.mkdtemp(prefix="draft-", dir=folder.parent))
        try:
            _install(requires, python, draft)
            draft.chmod(0o755)
            draft.replace(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return folder


def _install(requires: tuple[str, ...], python: SandboxPython, target: Path) -> None:
    same = python.version == "{}.{}".format(*sys.version_info[:2])
    # Use -P and an empty working folder: no file in the user's current folder is run or installed.
    words = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    words += ["--target", str(target), "--only-binary", ":all:", "--python-version", python.version]
    words += [word for tag in python.platforms for word in ("--platform", tag)]
    # Bytecode of another version would be useless.
    words += ["--compile" if same else "--no-compile", "--", *requires]
    try:
        done = subprocess.run(
            words,
            cwd=target,
            capture_output=True,
            text=True,
            check=False,
            timeout=INSTALL_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(f"agent.toml: requires: not installed within {INSTALL_S} s") from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip failed"]
        raise UserError(f"agent.toml: requires = {list(requires)}: cannot be installed: {lines[-1][:300]}")
