"""Python packages that an agent asks for (``requires`` in ``agent.toml``), shown read-only inside its sandbox.

They are installed once into the user's cache, by uv in a build's sandbox: wheels only, so that none of their code runs
there either.
"""

import asyncio
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path

from dgm.errors import UserError
from dgm.paths import cache_folder
from dgm.plain_requirements import plain_requirement
from dgm.protocols import Mount, SandboxEngine, SandboxSpec
from dgm.sandboxes.building import SandboxBuilder
from dgm.sandboxes.engine_client import hold_lock
from dgm.sandboxes.preparing import Preparation
from dgm.sandboxes.sandbox_python import SandboxPython, find_python

TARGET = "/opt/dgm-packages"
"""Folder of the packages in a sandbox; the launcher puts it on ``PYTHONPATH``."""
INSTALL_S = 1800.0
_FORM = 3
"""Form of the folders; another one installs anew."""
_BUILDS_IN = "python"
"""Recipe of the sandbox in which they are installed."""
_INSTALL = 'uv pip install --target ../packages "$@"'
_COMPILE = "python3 -m compileall -q --invalidation-mode unchecked-hash ../packages >/dev/null || true"
"""Makes bytecode that depends on the source alone: agents start sooner, and the folder is the same each time."""
_INTERPRETER = re.compile(
    rb"#![^\n]*python[^\n]*\n|#!/bin/sh\n'''exec' [^\n]*python[^\n]* \"\$0\" \"\$@\"\n' '''\n"
)
"""First lines of a package's command: with a path to Python, and with one that is too long for the kernel."""
_ANY_PYTHON = b"#!/usr/bin/env python3\n"


async def packages_mount(
    requires: Sequence[str], engine: SandboxEngine, spec: SandboxSpec
) -> tuple[Mount, ...]:
    """Return the mount with an agent's packages; empty if it asks for none.

    Raises:
        UserError: they cannot be installed; the message quotes uv.
        Infrastructure: a sandbox could not be started.
    """
    if not requires:
        return ()
    python = await find_python(engine, spec)
    folder = await ensure_packages(tuple(requires), python, engine, spec)
    return (Mount(folder, TARGET, digest=folder.name),)


async def ensure_packages(
    requires: tuple[str, ...], python: SandboxPython, engine: SandboxEngine, spec: SandboxSpec
) -> Path:
    """Return the folder of the packages for a sandbox's Python; install them if they are missing.

    What was asked for is looked up once, and stands for the same files from then on.

    Args:
        requires: names and versions.
        python: what they are for.
        engine: opens the sandbox in which they are installed.
        spec: sandboxes of the agent.

    Raises:
        UserError: they cannot be installed.
        Infrastructure: a sandbox failed.
    """
    for each in requires:
        if not plain_requirement(each):
            raise UserError(
                f"agent.toml: requires: {each!r} is no package such as 'openai>=3' (names and versions)"
            )
    asked = hashlib.sha256(json.dumps([_FORM, sorted(requires), *astuple(python)]).encode()).hexdigest()[:24]
    cache = cache_folder("packages")
    async with hold_lock(f"packages-{asked}"):
        note = cache / f"{asked}.json"
        known = _read_note(note)
        if known and (cache / known).is_dir():
            return cache / known
        plain = SandboxSpec(_BUILDS_IN, spec.labels)
        compiled = (await find_python(engine, plain)).version == python.version
        builder = SandboxBuilder(engine, spec.labels, _BUILDS_IN)
        wanted = sorted(map(plain_requirement, requires))
        name = await _install(wanted, python, builder, cache, compiled=compiled)
        note.write_text(json.dumps({"folder": name, "requires": sorted(requires)}), encoding="utf-8")
        return cache / name


def _read_note(note: Path) -> str:
    try:
        return str(json.loads(note.read_bytes())["folder"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


async def _install(
    requires: Sequence[str], python: SandboxPython, builder: SandboxBuilder, cache: Path, *, compiled: bool
) -> str:
    """Install packages below ``cache``, and return the name of their folder."""
    progress = Preparation(f"packages for Python {python.version}")
    progress.say(f"installing {', '.join(requires)}")
    words = [
        "--no-config",
        "--only-binary",
        ":all:",
        "--python",
        "python3",
        "--python-version",
        python.version,
    ]
    words += ["--python-platform", python.platform, "--", *requires]
    with tempfile.TemporaryDirectory(prefix="draft-", dir=cache) as draft:
        target = Path(draft, "packages")
        async with builder.open() as room:
            command = f"{_INSTALL} && {{ {_COMPILE}; }}" if compiled else _INSTALL
            done = await room.run(["sh", "-c", command, "sh", *words], name="empty", timeout_s=INSTALL_S)
            if done.exit_code:
                cause = " ".join(line.strip(" ×╰─▶│|`->") for line in done.output.splitlines()).strip()
                reason = done.explain(cause[-300:])
                raise UserError(f"agent.toml: requires = {list(requires)[:8]}: cannot be installed: {reason}")
            await room.fetch("packages", target)
        for script in sorted((target / "bin").glob("*")):
            free_script(script)
        folder = cache / await asyncio.to_thread(_digest, target)
        if not folder.exists():
            target.chmod(0o755)
            target.replace(folder)
    progress.say(f"installed in {progress.seconds:.0f} s")
    return folder.name


def _digest(folder: Path) -> str:
    """Return the beginning of a digest of all files and links but bytecode."""
    digest = hashlib.sha256(str(_FORM).encode())
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".pyc" or (path.is_dir() and not path.is_symlink()):
            continue
        content = os.fsencode(path.readlink()) if path.is_symlink() else _hash(path)
        for part in (os.fsencode(path.relative_to(folder)), content):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:24]


def _hash(file: Path) -> bytes:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def free_script(script: Path) -> None:
    """Let a package's command start with the Python of the sandbox; uv names the one that installed it."""
    if script.is_symlink() or not script.is_file():
        return
    data = script.read_bytes()
    if found := _INTERPRETER.match(data):
        script.write_bytes(_ANY_PYTHON + data[found.end() :])
