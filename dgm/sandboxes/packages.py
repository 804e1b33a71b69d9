"""Packages that an agent asks for, shown read-only inside its sandbox.

``requires`` in ``agent.toml`` names those of Python, ``package-lock.json`` those of the npm registry. Each set is
installed once into the user's cache, in a build's sandbox: by uv from wheels alone, by ``npm ci`` without any script.
None of their code runs there. Such a sandbox reaches package indexes alone, so npm gets no package from elsewhere.
"""

import hashlib
import json
import platform
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from dgm.bounded_reading import parse_json, plain_requirement
from dgm.domain import Entry, Snapshot
from dgm.errors import Infrastructure
from dgm.paths import cache_folder
from dgm.protocols import Builder, BuildError, BuildRun, Mount, SandboxEngine, SandboxSpec
from dgm.sandboxes.building import SandboxBuilder
from dgm.sandboxes.engine_client import hold_lock
from dgm.sandboxes.preparing import Preparation

TARGET = "/opt/dgm-packages"
"""Folder of the Python packages in a sandbox; the launcher puts it on ``PYTHONPATH``."""
INSTALL_S = 1800.0
_FORM = 3
"""Form of the folders of Python packages; another one installs anew."""
PYTHON_RECIPE, NPM_RECIPE = "python", "npm"
"""Recipes of the sandboxes in which packages are installed."""
_INSTALL = 'uv pip install --no-config --only-binary :all: --python python3 --target ../packages "$@"'
_COMPILE = "python3 -m compileall -q --invalidation-mode unchecked-hash ../packages >/dev/null || true"
"""Makes bytecode that depends on the source alone: agents start sooner, and the folder is the same each time."""
_INTERPRETER = re.compile(
    rb"#![^\n]*python[^\n]*\n|#!/bin/sh\n'''exec' [^\n]*python[^\n]* \"\$0\" \"\$@\"\n' '''\n"
)
"""First lines of a package's command: with a path to Python, and with one that is too long for the kernel."""
_ANY_PYTHON = b"#!/usr/bin/env python3\n"
_VERSION_S = 120.0
_VERSION = """
import platform, sys
libc, number = platform.libc_ver()
if not libc:
    import subprocess
    shown = subprocess.run(["ldd", "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.decode()
    libc, number = ("musl", shown.split("Version ")[1].split()[0]) if "musl" in shown else ("", "")
print("%d.%d" % sys.version_info[:2], platform.machine(), libc, number)
"""
_GLIBC = (17, 28, *range(31, 41))
"""Minor versions of the GNU C library whose wheels uv knows by name."""
MANIFEST, LOCK = "package.json", "package-lock.json"
MODULES = "node_modules"
_NPM = ("sh", "-c", f'npm "$@" && mkdir -p {MODULES}', "sh", "ci", "--omit=dev")
"""Start of a call; npm makes no folder where there is nothing to install."""
_NPM_FLAGS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--os=linux", "--libc=glibc")
_NPM_CPUS = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
"""Machine → npm's name for it."""
_NPM_REASON = re.compile(r"npm (?:error|ERR!) (?!code |syscall |path |errno )(.+)")


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
        minor = re.fullmatch(r"2\.(\d+)(\.\d+)?", self.libc_version) if self.libc == "glibc" else None
        fit = [known for known in _GLIBC if minor and known <= int(minor[1])]
        return f"{self.machine}-manylinux_2_{max(fit, default=min(_GLIBC))}"


async def find_python(engine: SandboxEngine, spec: SandboxSpec) -> SandboxPython:
    """Open a sandbox of ``spec`` and return its Python.

    Raises:
        Infrastructure: the sandbox could not be started, or has no ``python3``.
    """
    async with engine.open(spec) as sandbox:
        done = await sandbox.exec(["python3", "-c", _VERSION], timeout_s=_VERSION_S)
    if done.timed_out:
        raise Infrastructure(f"the sandbox's python3 did not tell its version within {_VERSION_S:.0f} s")
    words = done.output.decode("ascii", "replace").split()
    if done.exit_code != 0 or len(words) < 2:
        raise Infrastructure(f"the sandbox image {spec.image} has no python3 to install packages for")
    return SandboxPython(*words[:4])


async def packages_mount(
    requires: Sequence[str], engine: SandboxEngine, spec: SandboxSpec
) -> tuple[Mount, ...]:
    """Return the mount with an agent's Python packages; empty if it asks for none; raise as ``ensure_packages``."""
    if not requires:
        return ()
    folder = await ensure_packages(requires, await find_python(engine, spec), engine, spec)
    return (Mount(folder, TARGET, digest=folder.name),)


async def ensure_packages(
    requires: Sequence[str], python: SandboxPython, engine: SandboxEngine, spec: SandboxSpec
) -> Path:
    """Return the folder of the packages for a sandbox's Python; install them if they are missing.

    A request is resolved once; from then on it stands for the same files.

    Args:
        requires: names and versions.
        python: what they are for.
        engine: opens the sandbox in which they are installed.
        spec: sandboxes of the agent.

    Raises:
        BuildError: they cannot be installed; the message quotes uv.
        Infrastructure: a sandbox could not be started.
    """
    for requirement in requires:
        if not plain_requirement(requirement):
            raise BuildError(
                f"agent.toml: requires: {requirement!r} is no package such as 'openai>=3' (names and versions)"
            )
    request = _hash([_FORM, sorted(requires), *astuple(python)])
    cache = cache_folder("packages")
    async with hold_lock(f"packages-{request}"):
        note = cache / f"{request}.json"
        known = _read_note(note)
        if known and (cache / known).is_dir():
            return cache / known
        plain = SandboxSpec(PYTHON_RECIPE, spec.labels)
        compiles = (await find_python(engine, plain)).version == python.version
        wanted = sorted(map(plain_requirement, requires))
        words = ["--python-version", python.version, "--python-platform", python.platform, "--", *wanted]
        command = ["sh", "-c", f"{_INSTALL} && {{ {_COMPILE}; }}" if compiles else _INSTALL, "sh", *words]
        progress = Preparation(f"packages for Python {python.version}")
        progress.say(f"installing {', '.join(wanted)}")
        builder = SandboxBuilder(engine, spec.labels, PYTHON_RECIPE)
        with tempfile.TemporaryDirectory(prefix="draft-", dir=cache) as draft:
            packages = Path(draft, "packages")
            done = await _install(builder, {}, command, "packages", packages)
            if done.exit_code:
                cause = " ".join(line.strip(" ×╰─▶│|`->") for line in done.output.splitlines()).strip()
                reason = done.explain(cause[-300:])
                raise BuildError(f"agent.toml: requires = {wanted[:8]}: cannot be installed: {reason}")
            for script in sorted((packages / "bin").glob("*")):
                free_script(script)
            folder = cache / _hash([request, *sorted(path.name for path in packages.glob("*.dist-info"))])
            if not folder.exists():
                packages.replace(folder)
        note.write_text(json.dumps({"folder": folder.name, "requires": sorted(requires)}), encoding="utf-8")
        progress.say(f"installed in {progress.seconds:.0f} s")
        return folder


async def ensure_npm_packages(source: Snapshot, builder: Builder, machine: str = "") -> Path:
    """Return the folder of the npm packages of an agent; install them if they are missing.

    Args:
        source: of the agent, with a manifest and a lock.
        builder: opens the sandbox in which they are installed.
        machine: architecture of the sandboxes; default: this machine's.

    Raises:
        BuildError: they cannot be installed; the message quotes npm, and names what it asked for in vain.
        Infrastructure: the sandbox failed.
    """
    machine = machine or platform.machine()
    flags = (*_NPM_FLAGS, f"--cpu={_NPM_CPUS.get(machine, machine)}")
    manifest, lock = source[MANIFEST].data, source[LOCK].data
    digest = hashlib.sha256("\0".join(("npm", *flags)).encode())
    for data in (manifest, lock):
        digest.update(len(data).to_bytes(8, "big") + data)
    folder = cache_folder("packages") / f"npm-{digest.hexdigest()[:24]}"
    async with hold_lock(f"packages-{folder.name}"):
        if folder.exists():
            return folder
        progress = Preparation("npm packages")
        progress.say(f"installing what {LOCK} names")
        project = {MANIFEST: Entry(manifest), LOCK: Entry(drop_missing_options(lock))}
        with tempfile.TemporaryDirectory(prefix="draft-", dir=folder.parent) as draft:
            modules = Path(draft, MODULES)
            done = await _install(builder, project, [*_NPM, *flags], f"project/{MODULES}", modules)
            if done.exit_code:
                raise BuildError(f"{LOCK}: cannot be installed: {done.explain(first_error(done.output))}")
            modules.replace(folder)
        progress.say(f"installed in {progress.seconds:.0f} s")
    return folder


async def _install(
    builder: Builder, project: Snapshot, command: Sequence[str], result: str, target: Path
) -> BuildRun:
    """Run an installer in a build's sandbox, in a folder with the project's files; fetch its result if it succeeds."""
    async with builder.open() as sandbox:
        await sandbox.put(project, "project")
        done = await sandbox.run(command, name="project", timeout_s=INSTALL_S)
        if not done.exit_code:
            await sandbox.fetch(result, target)
            target.chmod(0o755)
    return done


def drop_missing_options(data: bytes) -> bytes:
    """Return a lock without optional packages that it only names.

    They are for other systems, and the registry did not have them when the lock was written. ``npm ci`` refuses that.

    Raises:
        BuildError: it is no lock of npm 7 or later.
    """
    try:
        lock = parse_json(data.decode("utf-8"))
        packages = lock["packages"]
        names = {path.rpartition(f"{MODULES}/")[2] for path in packages}
        for path, package in packages.items():
            options = package.get("optionalDependencies") if path else None
            if isinstance(options, dict):
                package["optionalDependencies"] = {name: options[name] for name in options if name in names}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BuildError(f"{LOCK}: cannot be read: {error!r}; make it anew with npm 7 or later") from error
    return json.dumps(lock).encode()


def find_install_scripts(source: Snapshot) -> list[str]:
    """Return the names of the packages in an agent's lock that have install scripts, which dgm does not run."""
    return sorted({name for name, package in read_lock(source) if package.get("hasInstallScript")})


def read_lock(source: Snapshot) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """Return the name and the entry of each package in an agent's lock; nothing without a lock that can be read."""
    try:
        packages = parse_json(source[LOCK].data.decode("utf-8"))["packages"]
        return [(path.rpartition(f"{MODULES}/")[2], dict(packages[path])) for path in packages if path]
    except (KeyError, ValueError, AttributeError, TypeError):
        return []


def first_error(output: str) -> str:
    """Return the first reason that npm prints for a failure."""
    lines = [line.strip() for line in output.splitlines()]
    reasons = [match[1] for line in lines if (match := _NPM_REASON.match(line))]
    return (reasons or lines or ["npm failed"])[0][:300]


def free_script(script: Path) -> None:
    """Let a package's command start with the Python of the sandbox; uv names the one that installed it."""
    if script.is_symlink() or not script.is_file():
        return
    data = script.read_bytes()
    if head := _INTERPRETER.match(data):
        script.write_bytes(_ANY_PYTHON + data[head.end() :])


def _read_note(note: Path) -> str:
    try:
        return str(json.loads(note.read_bytes())["folder"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _hash(values: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:24]
