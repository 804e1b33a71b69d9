"""Packages that the tasks of a suite share: a folder of the suite, shown read-only to agents and to graded tests.

``environments/NAME/`` holds ``environment.toml`` and ``packages/``. The name begins the digest of the folder, so that a
task that names it also says which packages those are.
"""

import asyncio
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dgm.benchmarks.languages import LANGUAGES, Language
from dgm.benchmarks.toml_table import Table
from dgm.errors import UserError
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
PACKAGES, GENERATED = "packages", "generated"
OWN = "repository"
"""Folder in Python's packages with the metadata of those that the workspace holds: their versions and entry points."""
NAME_LENGTH = 16
_VERSION = re.compile(r"3\.\d{1,2}")
_NODE_VERSION = re.compile(r"\d{1,3}")
_GO_VERSION = re.compile(r"1\.\d{1,3}")
_NAME = re.compile(rf"[0-9a-f]{{{NAME_LENGTH}}}")
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
    def language(self) -> Language | None:
        """The language of the packages; None if they are for a command."""
        if self.command:
            return None
        return Language.JAVASCRIPT if self.node else Language.GO if self.go else Language.PYTHON

    @property
    def version(self) -> str:
        """The version of the language's program that they are for."""
        return self.node or self.go or self.python

    @property
    def generated(self) -> Path:
        """Folder of files that installing the project made in the workspace; it may be missing."""
        return self.packages.parent / GENERATED

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
        mount = Mount(self.packages, TARGET, f"environment-{self.name}")
        return TaskEnvironment(mount, (*roots, *self.python_path))

    @property
    def python_path(self) -> tuple[str, ...]:
        """Folders in a sandbox with the packages of Python, and with the metadata of the repository's own."""
        own = (f"{TARGET}/{OWN}",) if (self.packages / OWN).is_dir() else ()
        return (TARGET, *own)


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
            language = environment.language or Language.PYTHON
            check_tool(environment, await ask_tool(self._engine, image, labels, language), image)
            self._checked.add((environment.name, image))


async def ask_tool(
    engine: SandboxEngine, image: str, labels: Mapping[str, str], language: Language = Language.PYTHON
) -> tuple[str, str]:
    """Return the version of a language's program in an image's sandboxes, and their machine: ``3.11``, ``x86_64``.

    Raises:
        UserError: the image has no such program.
        Infrastructure: the sandbox failed.
    """
    record = LANGUAGES[language]
    async with engine.open(SandboxSpec(image, labels)) as sandbox:
        command = f"export HOME=/tmp; {record.version} && uname -m"
        done = await sandbox.exec(["sh", "-c", command], timeout_s=_ASK_S, cwd="/")
    words = done.output.decode("ascii", "replace").split()
    if done.exit_code or len(words) != 2 or not words[0][0].isdigit():
        raise UserError(
            f"the sandbox image {image!r} has no {record.program} that runs; use the recipe {record.image}"
        )
    return words[0], words[1]


def check_tool(environment: Environment, found: tuple[str, str], image: str) -> None:
    """Refuse an environment that is for another version of its language's program, or another machine.

    Raises:
        UserError: it is.
    """
    version, machine = found
    folder = environment.packages.parent
    if environment.language and version != environment.version:
        raise UserError(
            f"{folder}: made for {LANGUAGES[environment.language].program} {environment.version}, but the sandbox "
            f"image {image!r} has {version}; use the sandbox it was mined with, or mine the suite again"
        )
    if environment.machine not in ("", machine):
        raise UserError(
            f"{folder}: holds machine code for {environment.machine}, and the sandboxes' machine is {machine}; "
            "mine the suite again on such a machine"
        )
