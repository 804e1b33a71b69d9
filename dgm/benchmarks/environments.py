"""Packages that the tasks of a suite share: a folder of the suite, shown read-only to agents and to graded tests.

``environments/NAME/`` holds ``environment.toml`` and ``packages/``. The name begins the digest of the folder, so that a
task that names it also says which packages those are.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dgm.benchmarks.grader_version import digest_files
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
_VERSIONS = {
    Language.PYTHON: ("python", r"3\.\d{1,2}", "3.11"),
    Language.JAVASCRIPT: ("node", r"\d{1,3}", "20"),
    Language.GO: ("go", r"1\.\d{1,3}", "1.23"),
}
"""Key of a version in ``environment.toml``, its form, and an example."""
_NAME = re.compile(rf"[0-9a-f]{{{NAME_LENGTH}}}")
_ASK_S = 120.0


@dataclass(frozen=True, slots=True)
class Environment:
    """``environment.toml``, and where its packages are."""

    name: str
    packages: Path
    language: Language | None
    """Language of the packages; None: they are files for a command of the user's, who reads ``$DGM_PACKAGES``."""
    version: str
    """Version of the language in the sandboxes, such as ``3.11``."""
    machine: str
    """Architecture as ``uname -m`` says it; empty: the packages hold no machine code."""
    roots: tuple[str, ...]
    """Folders of the workspace from which modules are imported, ``.`` for its top."""
    requirements: tuple[str, ...]
    """The packages and their versions; for people."""

    @property
    def generated(self) -> Path:
        """Folder of files that installing the project made in the workspace; it may be missing."""
        return self.packages.parent / GENERATED

    def shown(self, workdir: str) -> TaskEnvironment:
        """Return the packages for a sandbox whose workspace is at ``workdir``."""
        target = NODE_TARGET if self.language is Language.JAVASCRIPT else TARGET
        mount = Mount(self.packages, target, f"environment-{self.name}")
        match self.language:
            case Language.PYTHON:
                roots = [workdir if root == "." else f"{workdir}/{root}" for root in self.roots]
                return TaskEnvironment(mount, (*roots, *self.python_path))
            case Language.JAVASCRIPT:
                return TaskEnvironment(mount, (f"{NODE_TARGET}/{NODE_PROGRAMS}",))
            case Language.GO:
                return TaskEnvironment(mount, (), GO_VARIABLES)
            case _:
                return TaskEnvironment(mount, ())

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
    given = [language for language, (key, *_) in _VERSIONS.items() if table.has(key)]
    command, version, language = table.take("command", bool, False), "", None
    if len(given) + command > 1:
        keys = ", ".join(["command", *(key for key, *_ in _VERSIONS.values())])
        raise table.fail(
            _VERSIONS[given[-1]][0], f"the packages are another language's too; keep one of {keys}"
        )
    if not command:
        language = given[0] if given else Language.PYTHON
        key, form, example = _VERSIONS[language]
        version = table.take(key, str)
        if not re.fullmatch(form, version):
            raise table.fail(key, f"{version!r} is not a version such as {example!r}")
    machine = table.take("machine", str, "")
    roots, requirements = table.texts("roots", (".",)), table.texts("requirements", ())
    table.end()
    if not _NAME.fullmatch(folder.name):
        raise UserError(
            f"{folder}: its name must be the first {NAME_LENGTH} digits of the digest of its files"
        )
    for root in roots:
        if root != "." and (root.startswith("/") or {"", ".", ".."} & {*root.split("/")}):
            raise table.fail("roots", f"{root!r} is not a folder within the workspace")
    if not (folder / PACKAGES).is_dir():
        raise UserError(f"{folder / PACKAGES}: missing; mine the suite again, or copy it whole")
    packages = (folder / PACKAGES).absolute()
    return Environment(folder.name, packages, language, version, machine, roots, requirements)


def environment_digest(folder: Path) -> str:
    """Return the SHA-256 of names, modes and contents of all files of an environment, without bytecode.

    Raises:
        UserError: it holds something else than files and links within it.
    """
    return digest_files((name, read_entry(folder, name)) for name in list_files(folder))


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
