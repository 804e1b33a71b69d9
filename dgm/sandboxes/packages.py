"""Python packages that an agent asks for (``requires`` in ``agent.toml``), shown read-only inside its sandbox.

They are installed once into the user's cache, wheels only, so that none of their code runs outside a sandbox.
"""

import asyncio
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path

from dgm.paths import cache_folder
from dgm.protocols import Mount, SandboxEngine, SandboxSpec
from dgm.sandboxes.engine_client import lock_image
from dgm.sandboxes.preparing import Preparation
from dgm.sandboxes.sandbox_python import SandboxPython, find_python
from dgm.sandboxes.wheels import fetch_wheels, resolve_wheels, unpack_wheels

TARGET = "/opt/dgm-packages"
"""Folder of the packages in a sandbox; the launcher puts it on ``PYTHONPATH``."""
_FORM = 2
"""Form of the folders; another one installs anew from the wheels that are kept."""


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
    python = await find_python(engine, spec)
    folder = await asyncio.to_thread(ensure_packages, tuple(requires), python)
    return (Mount(folder, TARGET, digest=folder.name),)


def ensure_packages(requires: tuple[str, ...], python: SandboxPython) -> Path:
    """Return the folder of the packages for a sandbox's Python; install them if they are missing.

    What was asked for is looked up once, and stands for the same wheels from then on. The folder is named by the
    digests of its wheels.

    Raises:
        UserError: they cannot be installed.
    """
    asked = hashlib.sha256(json.dumps([_FORM, sorted(requires), *astuple(python)]).encode()).hexdigest()[:24]
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
    what = json.dumps([_FORM, sorted(file.parent.name for file in files), python.version, same])
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
