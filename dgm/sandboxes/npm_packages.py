"""Packages from the npm registry that an agent's ``package-lock.json`` names, shown read-only inside its sandbox.

They are installed once into the user's cache by ``npm ci``, without any script of theirs, so that none of their code
runs outside a sandbox.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dgm.domain import Snapshot
from dgm.errors import UserError
from dgm.npm_locks import LOCK, MANIFEST, MODULES, check_lock, check_manifest, first_error
from dgm.paths import cache_folder
from dgm.processes import run_apart
from dgm.sandboxes.engine_client import lock_image
from dgm.sandboxes.preparing import Preparation

INSTALL_S = 1800
_CPUS = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
"""Machine → npm's name for it."""
_FLAGS = ("--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--os=linux", "--libc=glibc")


def ensure_npm_packages(source: Snapshot, machine: str = "") -> Path:
    """Return the folder of the packages of an agent; install them if they are missing.

    Args:
        source: of the agent, with a manifest and a lock.
        machine: architecture of the sandboxes; default: this machine's.

    Raises:
        UserError: they cannot be installed, or something is named beside packages of a registry.
    """
    cpu = _CPUS.get(machine or platform.machine(), machine or platform.machine())
    wanted = {name: source[name].data for name in (MANIFEST, LOCK)}
    check_manifest(wanted[MANIFEST])
    check_lock(wanted[LOCK])
    digest = hashlib.sha256("\0".join(("npm", cpu)).encode())
    for data in wanted.values():
        digest.update(len(data).to_bytes(8, "big") + data)
    folder = cache_folder("packages") / f"npm-{digest.hexdigest()[:24]}"
    with lock_image(f"packages-{folder.name}"):
        if not folder.exists():
            _install(wanted, cpu, folder)
    return folder


def _install(wanted: Mapping[str, bytes], cpu: str, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise UserError(
            f"{LOCK}: npm is not installed: install Node.js with npm, or run npm ci in the agent's own Dockerfile"
        )
    told = Preparation("npm packages")
    told.say(f"installing what {LOCK} names")
    draft = Path(tempfile.mkdtemp(prefix="draft-", dir=folder.parent))
    try:
        for name, data in wanted.items():
            (draft / name).write_bytes(data)
        command = [npm, "ci", *_FLAGS, f"--cpu={cpu}"]
        done = run_apart(command, cwd=draft, env=os.environ, timeout_s=INSTALL_S)
        if done.returncode:
            raise UserError(f"{LOCK}: cannot be installed: {first_error(done.stderr)}")
        modules = draft / MODULES
        modules.mkdir(exist_ok=True)
        modules.chmod(0o755)
        modules.replace(folder)
    except subprocess.TimeoutExpired as error:
        raise UserError(f"{LOCK}: not installed within {INSTALL_S} s") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    told.say(f"installed in {told.seconds:.0f} s")
