"""Packages from the npm registry that an agent's ``package-lock.json`` names, shown read-only inside its sandbox.

They are installed once into the user's cache by ``npm ci`` in a build's sandbox, without any script of theirs.
"""

import hashlib
import platform
import tempfile
from pathlib import Path

from dgm.domain import Entry, Snapshot
from dgm.errors import UserError
from dgm.npm_locks import (
    LOCK,
    MANIFEST,
    MODULES,
    NPM,
    check_lock,
    check_manifest,
    drop_missing_options,
    first_error,
    npm_flags,
)
from dgm.paths import cache_folder
from dgm.protocols import Builder
from dgm.sandboxes.engine_client import hold_lock
from dgm.sandboxes.preparing import Preparation

INSTALL_S = 1800.0
BUILDS_IN = "npm"
"""Recipe of the sandbox in which they are installed."""


async def ensure_npm_packages(source: Snapshot, builder: Builder, machine: str = "") -> Path:
    """Return the folder of the packages of an agent; install them if they are missing.

    Args:
        source: of the agent, with a manifest and a lock.
        builder: opens the sandbox in which they are installed.
        machine: architecture of the sandboxes; default: this machine's.

    Raises:
        UserError: they cannot be installed, or something is named beside packages of a registry.
        Infrastructure: the sandbox failed.
    """
    flags = npm_flags(machine or platform.machine())
    wanted = {name: source[name].data for name in (MANIFEST, LOCK)}
    check_manifest(wanted[MANIFEST])
    check_lock(wanted[LOCK])
    digest = hashlib.sha256("\0".join(("npm", *flags)).encode())
    for data in wanted.values():
        digest.update(len(data).to_bytes(8, "big") + data)
    folder = cache_folder("packages") / f"npm-{digest.hexdigest()[:24]}"
    async with hold_lock(f"packages-{folder.name}"):
        if not folder.exists():
            lock = drop_missing_options(wanted[LOCK])
            await _install({MANIFEST: Entry(wanted[MANIFEST]), LOCK: Entry(lock)}, flags, builder, folder)
    return folder


async def _install(wanted: Snapshot, flags: tuple[str, ...], builder: Builder, folder: Path) -> None:
    progress = Preparation("npm packages")
    progress.say(f"installing what {LOCK} names")
    with tempfile.TemporaryDirectory(prefix="draft-", dir=folder.parent) as draft:
        modules = Path(draft, MODULES)
        async with builder.open() as room:
            await room.put(wanted, "project")
            done = await room.run([*NPM, "ci", "--omit=dev", *flags], name="project", timeout_s=INSTALL_S)
            if done.exit_code:
                raise UserError(f"{LOCK}: cannot be installed: {done.explain(first_error(done.output))}")
            await room.fetch(f"project/{MODULES}", modules)
        modules.chmod(0o755)
        modules.replace(folder)
    progress.say(f"installed in {progress.seconds:.0f} s")
