"""Python packages that an agent asks for (``requires`` in ``agent.toml``), shown read-only inside its sandbox.

They are installed once into the user's cache, wheels only, so that none of their code runs outside a sandbox.
"""

import asyncio
import hashlib
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dgm.errors import Infrastructure, UserError
from dgm.paths import cache_folder
from dgm.protocols import Mount, SandboxEngine, SandboxSpec

TARGET = "/opt/dgm-packages"
"""Folder of the packages in a sandbox; the launcher puts it on ``PYTHONPATH``."""
INSTALL_S = 600
_VERSION_S = 120.0
_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


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
    version = done.output.decode("ascii", "replace").strip()
    if done.exit_code != 0:
        raise Infrastructure(f"the sandbox image {spec.image} has no python3 to install packages for")
    folder = await asyncio.to_thread(ensure_packages, tuple(requires), version)
    return (Mount(folder, TARGET, constant=True),)


def ensure_packages(requires: tuple[str, ...], version: str) -> Path:
    """Return the folder of the packages for that version of Python (``3.11``); install them if they are missing.

    Raises:
        UserError: they cannot be installed.
    """
    what = json.dumps([sorted(requires), version, platform.machine()])
    folder = cache_folder("packages") / hashlib.sha256(what.encode()).hexdigest()[:24]
    if not folder.exists():
        draft = Path(tempfile.mkdtemp(prefix="draft-", dir=folder.parent))
        try:
            _install(requires, version, draft)
            draft.chmod(0o755)
            draft.replace(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return folder


def _install(requires: tuple[str, ...], version: str, target: Path) -> None:
    same = version == "{}.{}".format(*sys.version_info[:2])
    # Use -P and an empty working folder: no file in the user's current folder is run or installed.
    words = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    words += ["--target", str(target), "--only-binary", ":all:", "--python-version", version]
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
