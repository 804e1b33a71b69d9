"""Packages that the tasks of a suite share: a folder of the suite, shown read-only to agents and to graded tests.

``environments/NAME/`` holds ``environment.toml`` and ``packages/``. The name begins the digest of the folder, so that a
task that names it also says which packages those are.
"""

import asyncio
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dgm.benchmarks.toml_table import Table
from dgm.errors import Infrastructure, UserError
from dgm.folders import list_files, read_entry
from dgm.protocols import Mount, SandboxEngine, SandboxSpec, TaskEnvironment

TARGET = "/opt/dgm-environment"
"""Place of Python's packages in every sandbox."""
NODE_TARGET = "/node_modules"
"""Place of node's packages, which it finds from every folder."""
NODE_PROGRAMS = ".dgm"
"""Folder in node's packages with a link ``bin`` to their programs."""
GO_VARIABLES = (
    ("GOMODCACHE", f"{TARGET}/mod"), ("GOCACHE", "/tmp/go-cache"), ("GOPROXY", "off"), ("GOSUMDB", "off"),
    ("GOTOOLCHAIN", "local"), ("GOTELEMETRY", "off"), ("GOFLAGS", "-buildvcs=false"), ("CGO_ENABLED", "0"),
)  # fmt: skip
"""Settings by which an agent's ``go`` finds the modules of its task, and looks for no other."""
FOLDER = "environments"
PACKAGES = "packages"
NAME_LENGTH = 16
_VERSION = re.compile(r"3\.\d{1,2}")
_NODE_VERSION = re.compile(r"\d{1,3}")
_GO_VERSION = re.compile(r"1\.\d{1,3}")
_JAVA_VERSION = re.compile(r"^javac (?:1\.)?(\d+)", re.M)
_NAME = re.compile(rf"[0-9a-f]{{{NAME_LENGTH}}}")
_ASK = "import platform, sys; print('%d.%d' % sys.version_info[:2], platform.machine())"
_ASK_S = 120.0


@dataclass(frozen=True, slots=True)
class Environment:
    """``environment.toml``, and where its packages are."""

    name: str
    packages: Path
    python: str
    """Version of the sandboxes' Python, such as ``3.11``; empty: the packages are node's or Go's."""
    machine: str
    """Architecture as ``uname -m`` says it; empty: the packages hold no machine code."""
    roots: tuple[str, ...]
    """Folders of the workspace from which modules are imported, ``.`` for its top."""
    requirements: tuple[str, ...]
    """The packages and their versions; for people."""
    node: str = ""
    """Version of the sandboxes' node, such as ``20``; empty: the packages are another language's."""
    go: str = ""
    """Version of the sandboxes' Go, such as ``1.23``; empty: the packages are another language's."""
    command: bool = False
    """If true, the packages are files for a command of the user's, who reads ``$DGM_PACKAGES``."""

    @property
    def needs(self) -> tuple[str, str]:
        """The program that the packages are for, and its version; not of those for a command."""
        found = (("node", self.node), ("Go", self.go))
        return next((each for each in found if each[1]), ("Python", self.python))

    def shown(self, workdir: str) -> TaskEnvironment:
        """Return the packages for a sandbox whose workspace is at ``workdir``."""
        if self.node:
            mount = Mount(self.packages, NODE_TARGET, f"environment-{self.name}")
            return TaskEnvironment(mount, (f"{NODE_TARGET}/{NODE_PROGRAMS}",))
        if self.go:
            mount = Mount(self.packages, TARGET, f"environment-{self.name}")
            return TaskEnvironment(mount, (), GO_VARIABLES)
        if self.command:
            return TaskEnvironment(Mount(self.packages, TARGET, f"environment-{self.name}"), ())
        roots = [workdir if root == "." else f"{workdir}/{root}" for root in self.roots]
        return TaskEnvironment(Mount(self.packages, TARGET, f"environment-{self.name}"), (*roots, TARGET))


def read_environments(suite: Path) -> Mapping[str, Environment]:
    """Return the environments of a suite by name; their packages are not read.

    Raises:
        UserError: one is incomplete or wrong; the message names file, line and key.
    """
    if not (suite / FOLDER).is_dir():
        return {}
    found = sorted(
        entry for entry in (suite / FOLDER).iterdir() if entry.is_dir() and entry.name[0] not in "._"
    )
    return {folder.name: _read(folder) for folder in found}


def _read(folder: Path) -> Environment:
    table = Table.load(folder / "environment.toml")
    node, go = table.take("node", str, ""), table.take("go", str, "")
    command = table.take("command", bool, False)
    python = table.take("python", str, *([""] if node or go or command else []))
    machine = table.take("machine", str, "")
    roots, requirements = table.texts("roots", (".",)), table.texts("requirements", ())
    table.end()
    if not _NAME.fullmatch(folder.name):
        raise UserError(
            f"{folder}: its name must be the first {NAME_LENGTH} digits of the digest of its files"
        )
    kinds = {"command": command, "node": node, "go": go, "python": python}
    given = [name for name, value in kinds.items() if value]
    if len(given) > 1:
        raise table.fail(given[0], f"the packages are another language's too; keep one of {', '.join(kinds)}")
    if node and not _NODE_VERSION.fullmatch(node):
        raise table.fail("node", f"{node!r} is not a version such as '20'")
    if go and not _GO_VERSION.fullmatch(go):
        raise table.fail("go", f"{go!r} is not a version such as '1.23'")
    if not node and not go and not command and not _VERSION.fullmatch(python):
        raise table.fail("python", f"{python!r} is not a version such as '3.11'")
    for root in roots:
        if root != "." and (root.startswith("/") or {"", ".", ".."} & {*root.split("/")}):
            raise table.fail("roots", f"{root!r} is not a folder within the workspace")
    if not (folder / PACKAGES).is_dir():
        raise UserError(f"{folder / PACKAGES}: missing; mine the suite again, or copy it whole")
    return Environment(
        folder.name,
        (folder / PACKAGES).absolute(),
        python,
        machine,
        roots,
        requirements,
        node,
        go,
        command,
    )


def environment_digest(folder: Path) -> str:
    """Return the SHA-256 of names, modes and contents of all files of an environment, without bytecode.

    Raises:
        UserError: it holds something else than files and links within it.
    """
    digest = hashlib.sha256()
    for name in list_files(folder):
        entry = read_entry(folder, name)
        for part in (name.encode("utf-8", "surrogateescape"), oct(entry.mode).encode(), entry.data):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


class EnvironmentChecks:
    """Checks environments before their first use: the packages are those of the name, and the Python fits."""

    def __init__(self, engine: SandboxEngine) -> None:
        self._engine = engine
        self._lock = asyncio.Lock()
        self._checked: set[tuple[str, str]] = set()

    async def check(self, environment: Environment, image: str, labels: Mapping[str, str]) -> None:
        """Check an environment for sandboxes of an image, once.

        Raises:
            UserError: its packages were changed, or are for another Python or machine than the sandbox has.
            Infrastructure: the sandbox failed.
        """
        async with self._lock:
            if (environment.name, image) in self._checked:
                return
            digest = await asyncio.to_thread(environment_digest, environment.packages.parent)
            if not digest.startswith(environment.name):
                raise UserError(
                    f"{environment.packages.parent}: changed since the suite was made (digest {digest[:NAME_LENGTH]}); "
                    "copy the suite again, or mine it anew"
                )
            if environment.command:
                _check_machine(environment, (await ask_python(self._engine, image, labels))[1])
            else:
                ask = {"node": ask_node, "Go": ask_go}.get(environment.needs[0], ask_python)
                check_tool(environment, await ask(self._engine, image, labels), image)
            self._checked.add((environment.name, image))


async def ask_python(engine: SandboxEngine, image: str, labels: Mapping[str, str]) -> Sequence[str]:
    """Return version and machine of the Python in an image's sandboxes, such as ``3.11`` and ``x86_64``.

    Raises:
        Infrastructure: the sandbox failed, or has no ``python3``.
    """
    async with engine.open(SandboxSpec(image, labels)) as sandbox:
        done = await sandbox.exec(["python3", "-I", "-S", "-c", _ASK], timeout_s=_ASK_S, cwd="/")
    words = done.output.decode("ascii", "replace").split()
    if done.exit_code or len(words) != 2:
        raise Infrastructure(
            f"the python3 of the image {image} does not tell its version (exit {done.exit_code})"
        )
    return words


async def ask_node(engine: SandboxEngine, image: str, labels: Mapping[str, str]) -> Sequence[str]:
    """Return version and machine of the node in an image's sandboxes, such as ``20`` and ``x86_64``.

    Raises:
        UserError: the image has no ``node``.
        Infrastructure: the sandbox failed.
    """
    words = (await _ask_sandbox(engine, image, labels, "node --version && uname -m")).split()
    if len(words) != 2 or not words[0].startswith("v"):
        raise UserError(f"the sandbox image {image!r} has no node that runs; use the recipe node")
    return [words[0].removeprefix("v").split(".")[0], words[1]]


async def ask_go(engine: SandboxEngine, image: str, labels: Mapping[str, str]) -> Sequence[str]:
    """Return version and machine of the Go in an image's sandboxes, such as ``1.23`` and ``x86_64``.

    Raises:
        UserError: the image has no ``go``.
        Infrastructure: the sandbox failed.
    """
    command = "HOME=/tmp GOTOOLCHAIN=local go env GOVERSION && uname -m"
    words = (await _ask_sandbox(engine, image, labels, command)).split()
    found = re.match(r"go(1\.\d+)", words[0]) if words else None
    if found is None:
        raise UserError(f"the sandbox image {image!r} has no go that runs; use the recipe polyglot-go")
    return [found[1], words[-1]]


async def ask_rust(engine: SandboxEngine, image: str, labels: Mapping[str, str]) -> Sequence[str]:
    """Return version and machine of the Rust in an image's sandboxes, such as ``1.96.0`` and ``x86_64``.

    Raises:
        UserError: the image has no ``cargo`` or ``rustc``.
        Infrastructure: the sandbox failed.
    """
    command = "cargo --version >/dev/null 2>&1 && rustc --version | cut -d' ' -f2 && uname -m"
    words = (await _ask_sandbox(engine, image, labels, command)).split()
    if len(words) != 2:
        raise UserError(f"the sandbox image {image!r} has no cargo that runs; use the recipe polyglot-rust")
    return words


async def ask_cpp(engine: SandboxEngine, image: str, labels: Mapping[str, str]) -> Sequence[str]:
    """Return version and machine of the C++ compiler in an image's sandboxes, such as ``12`` and ``x86_64``.

    Raises:
        UserError: the image has no ``c++``.
        Infrastructure: the sandbox failed.
    """
    words = (await _ask_sandbox(engine, image, labels, "c++ -dumpversion && uname -m")).split()
    if len(words) != 2:
        raise UserError(f"the sandbox image {image!r} has no c++ that runs; use the recipe cpp")
    return words


async def ask_jvm(engine: SandboxEngine, image: str, labels: Mapping[str, str]) -> Sequence[str]:
    """Return version and machine of the Java compiler in an image's sandboxes, such as ``17`` and ``x86_64``.

    Raises:
        UserError: the image has no ``javac``.
        Infrastructure: the sandbox failed.
    """
    said = await _ask_sandbox(engine, image, labels, "javac -version 2>&1 && uname -m")
    found = _JAVA_VERSION.search(said)
    if not found:
        raise UserError(f"the sandbox image {image!r} has no javac that runs; use the recipe jvm")
    return [found[1], said.split()[-1]]


async def _ask_sandbox(engine: SandboxEngine, image: str, labels: Mapping[str, str], command: str) -> str:
    """Return what a shell command prints in a sandbox of an image; empty if it fails."""
    async with engine.open(SandboxSpec(image, labels)) as sandbox:
        done = await sandbox.exec(["sh", "-c", command], timeout_s=_ASK_S, cwd="/")
    return "" if done.exit_code else done.output.decode("ascii", "replace")


def check_tool(environment: Environment, found: Sequence[str], image: str) -> None:
    """Refuse an environment that is for another version of its language's program, or another machine.

    Raises:
        UserError: it is.
    """
    version, machine = found
    program, needed = environment.needs
    if version != needed:
        raise UserError(
            f"{environment.packages.parent}: made for {program} {needed}, but the sandbox image {image!r} has "
            f"{version}; use the sandbox it was mined with, or mine the suite again"
        )
    _check_machine(environment, machine)


def _check_machine(environment: Environment, machine: str) -> None:
    if environment.machine not in ("", machine):
        raise UserError(
            f"{environment.packages.parent}: holds machine code for {environment.machine}, and the sandboxes' machine "
            f"is {machine}; mine the suite again on such a machine"
        )
