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
from typing import Any

from dgm.bounded_reading import parse_json
from dgm.domain import Snapshot
from dgm.errors import UserError
from dgm.paths import cache_folder
from dgm.processes import run_apart
from dgm.sandboxes.engine_client import lock_image
from dgm.sandboxes.preparing import Preparation

MANIFEST, LOCK = "package.json", "package-lock.json"
MODULES = "node_modules"
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
        UserError: they cannot be installed, or the lock names something beside packages of a registry.
    """
    cpu = _CPUS.get(machine or platform.machine(), machine or platform.machine())
    wanted = {name: source[name].data for name in (MANIFEST, LOCK)}
    check_lock(wanted[LOCK])
    digest = hashlib.sha256("\0".join(("npm", cpu)).encode())
    for data in wanted.values():
        digest.update(len(data).to_bytes(8, "big") + data)
    folder = cache_folder("packages") / f"npm-{digest.hexdigest()[:24]}"
    with lock_image(f"packages-{folder.name}"):
        if not folder.exists():
            _install(wanted, cpu, folder)
    return folder


def check_lock(data: bytes) -> None:
    """Refuse a lock that would make npm run git, read files of this machine, or take what no digest covers.

    Raises:
        UserError: it does, or is no lock of version 2 or later.
    """
    try:
        packages = parse_json(data.decode("utf-8")).get("packages")
    except (ValueError, AttributeError) as error:
        raise UserError(f"{LOCK}: cannot be read: {error}; make it anew: npm install") from error
    if not isinstance(packages, dict):
        raise UserError(f"{LOCK}: is of an old form; make it anew with npm 7 or later: npm install")
    for name, entry in packages.items():
        if name and not _is_from_registry(entry):
            raise UserError(
                f"{LOCK}: {name[:100]}: only packages of a registry, with their integrity, can be installed; publish "
                "it there, or leave it in the agent's folder"
            )


def _is_from_registry(entry: Any) -> bool:  # noqa: ANN401  (a value of a file)
    if not isinstance(entry, dict) or entry.get("link"):
        return False
    if entry.get("inBundle"):
        return True
    resolved = entry.get("resolved", "https://")
    return isinstance(resolved, str) and resolved.startswith("https://") and bool(entry.get("integrity"))


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
            raise UserError(f"{LOCK}: cannot be installed: {_first_error(done.stderr)}")
        modules = draft / MODULES
        modules.mkdir(exist_ok=True)
        modules.chmod(0o755)
        modules.replace(folder)
    except subprocess.TimeoutExpired as error:
        raise UserError(f"{LOCK}: not installed within {INSTALL_S} s") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    told.say(f"installed in {told.seconds:.0f} s")


def _first_error(said: bytes) -> str:
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines()]
    told = [line for line in lines if line.startswith("npm error ") and not line.startswith("npm error code")]
    return (told or lines or ["npm failed"])[0].removeprefix("npm error ")[:300]
