"""Installs the packages that a commit's ``package.json`` declares, by npm, without any script of theirs.

The project itself is never in them: it is imported from the workspace.
"""

import asyncio
import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dgm.benchmarks.environments import NODE_PROGRAMS
from dgm.benchmarks.mining.epochs import Epochs
from dgm.benchmarks.mining.history import Unit
from dgm.benchmarks.mining.packages import Installed, draft_folder
from dgm.benchmarks.mining.script_calls import read_manifest
from dgm.benchmarks.mining.stored_environments import CannotInstall, store_environment
from dgm.domain import Entry, Snapshot
from dgm.errors import UserError
from dgm.npm_locks import (
    LOCK,
    MANIFEST,
    MODULES,
    NPM,
    TABLES,
    check_lock,
    first_error,
    keep_registry_specs,
    npm_flags,
)
from dgm.protocols import Builder

INSTALL_S = 900.0
_SCOPES = re.compile(r"(?m)^\s*(@[\w.-]+):registry\s*=")
"""Scopes whose packages a repository's ``.npmrc`` takes from a registry of its own."""
_SAID = 300
_BLAMED = re.compile(
    r"No matching version found for (@?[^@\s]+)@|The requested resource '(@?[^@\s]+)@|404 +'(@?[^@\s]+)@"
)
MOST_LEFT_OUT = 8
"""Maximum number of packages for development that are left out because they cannot be had."""


class NodeEpochs(Epochs):
    """Environments of node by the digest of what commits declare."""

    hint = "; let it copy node_modules/. there"

    def know_tests(self, units: Sequence[Unit]) -> None:
        """Do nothing: the manifest names all that tests need."""

    def _digest(self, files: Snapshot) -> str:
        lock = files[LOCK].data if LOCK in files else b""
        declared, _ = read_declared(files)
        return hashlib.sha256(json.dumps(declared, sort_keys=True).encode() + b"\0" + lock).hexdigest()

    async def _install(self, files: Snapshot, day: str) -> Installed:
        node = (self._python.version, self._python.machine)
        return await build_node_environment(files, day, node, self._suite, self._builder)

    def _setup_variables(self, packages: str) -> Mapping[str, str]:
        del packages
        return {"DGM_NODE": self._python.version}

    def _keep(self, packages: Path, files: Snapshot) -> str:
        return keep_modules(packages, files, (self._python.version, self._python.machine), self._suite)


def read_declared(files: Snapshot) -> tuple[Mapping[str, Mapping[str, object]], Sequence[str]]:
    """Return the tables of packages of a manifest, and the names of those that no registry is to be asked for."""
    manifest = read_manifest(files)
    declared: dict[str, Mapping[str, object]] = {}
    foreign: list[str] = []
    folders = [path for path in files if path.endswith(f"/{MANIFEST}") and f"{MODULES}/" not in path]
    own = {str(read_manifest({MANIFEST: files[path]}).get("name")) for path in folders}
    scopes = _SCOPES.findall(files[".npmrc"].data.decode("utf-8", "replace")) if ".npmrc" in files else []
    for key in TABLES:
        table = manifest.get(key)
        if isinstance(table, dict) and table:
            scoped = {name for name in table if name.partition("/")[0] in scopes}
            declared[key], left = keep_registry_specs(table, own | scoped)
            foreign += left
    return declared, sorted({*foreign})


async def build_node_environment(
    files: Snapshot, day: str, node: tuple[str, str], suite: Path, builder: Builder
) -> Installed:
    """Install an environment below the suite's ``environments/``, unless it is there.

    Args:
        files: the commit's.
        day: the newest day of packages, where no lock says which they are.
        node: version of node, and the machine.
        suite: the suite's folder.
        builder: opens the sandbox of the installation.

    Raises:
        CannotInstall: no way to install it succeeds.
        UserError: npm is not installed.
        Infrastructure: the sandbox failed.
    """
    declared, foreign = read_declared(files)
    failure, left = "", list[str]()
    attempts = list(_attempts(files, day, foreign))
    with draft_folder(suite) as draft:
        async with builder.open() as room:
            for number in range(len(attempts) + MOST_LEFT_OUT):
                words, lock, remark = attempts[0]
                project = f"try-{number}"
                await room.put(_manifest(without(declared, left), lock), project)
                flags = npm_flags(node[1])
                done = await room.run([*NPM, *words, *flags], name=project, timeout_s=INSTALL_S)
                if not done.exit_code:
                    await room.fetch(f"{project}/{MODULES}", draft / MODULES)
                    more = f"without {', '.join(sorted(left))}" if left else ""
                    name = await asyncio.to_thread(keep_modules, draft / MODULES, files, node, suite)
                    return Installed(name, "; ".join(filter(None, [remark, more])))
                failure = done.explain(first_error(done.output))
                blamed = find_blamed(done.output, declared.get("devDependencies", {}))
                if lock or not blamed or blamed in left or len(left) >= MOST_LEFT_OUT:
                    attempts.pop(0)
                else:
                    left.append(blamed)
                if not attempts:
                    break
    raise CannotInstall(failure[-_SAID:])


def _attempts(
    files: Snapshot, day: str, foreign: Sequence[str]
) -> Iterator[tuple[Sequence[str], bytes, str]]:
    without = f"without {', '.join(foreign)}, which no registry is asked for" if foreign else ""
    lock = files[LOCK].data if LOCK in files and not foreign else b""
    if lock:
        try:
            check_lock(lock)
            yield ["ci"], lock, ""
        except UserError:
            without = f"without its {LOCK}, which names more than packages of a registry"
    dated = ["install", "--no-package-lock", f"--before={day}T23:59:59Z"]
    yield dated, b"", without
    yield [*dated, "--legacy-peer-deps"], b"", without
    newest = "with the newest packages"
    yield (
        ["install", "--no-package-lock", "--legacy-peer-deps"],
        b"",
        "; ".join(filter(None, [without, newest])),
    )


def without(
    declared: Mapping[str, Mapping[str, object]], left: Sequence[str]
) -> Mapping[str, Mapping[str, object]]:
    """Return declared packages without some of them."""
    return {
        key: {name: spec for name, spec in table.items() if name not in left}
        for key, table in declared.items()
    }


def find_blamed(said: str, spare: Mapping[str, object]) -> str:
    """Return the package that npm names as missing, if tests may do without it; empty if it names none.

    Args:
        said: what npm printed.
        spare: packages for the development of the project, of which only the tools of tests are needed.
    """
    named = _BLAMED.search(said)
    name = next(filter(None, named.groups()), "") if named else ""
    return name if name in spare and name not in ("node", "vitest", "jest", "mocha") else ""


def _manifest(declared: Mapping[str, Mapping[str, object]], lock: bytes) -> Snapshot:
    """Return what npm reads."""
    manifest = {"name": "dgm-mined", "version": "0.0.0", "private": True, **declared}
    files = {MANIFEST: Entry(json.dumps(manifest).encode())}
    return {**files, **({LOCK: Entry(lock)} if lock else {})}


def keep_modules(modules: Path, files: Snapshot, node: tuple[str, str], suite: Path) -> str:
    """Give a folder of packages its name, and return it."""
    own = read_manifest(files).get("name")
    _tidy(modules, own if isinstance(own, str) else "")
    record = {
        "node": node[0],
        "machine": node[1] if _has_machine_code(modules) else "",
        "requirements": _list_versions(modules),
    }
    return store_environment(modules, record, suite)


def _tidy(modules: Path, own: str) -> None:
    """Make the folder the same wherever it is built, and take copies of the project itself out."""
    (modules / ".package-lock.json").unlink(missing_ok=True)
    for cache in (".cache", ".vite"):
        shutil.rmtree(modules / cache, ignore_errors=True)
    if re.fullmatch(r"(?:@[\w-][\w.-]*/)?[\w-][\w.-]*", own):
        for folder in [modules, *(path for path in modules.rglob(MODULES) if path.is_dir())]:
            shutil.rmtree(folder / own, ignore_errors=True)
    (modules / ".bin").mkdir(exist_ok=True)
    (modules / NODE_PROGRAMS).mkdir(exist_ok=True)
    (modules / NODE_PROGRAMS / "bin").unlink(missing_ok=True)
    (modules / NODE_PROGRAMS / "bin").symlink_to("../.bin")
    for path in [modules, *modules.rglob("*")]:
        if path.is_symlink():
            if not path.exists():
                path.unlink()
        else:
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def _has_machine_code(modules: Path) -> bool:
    for path in modules.rglob("*"):
        if (
            path.is_file()
            and not path.is_symlink()
            and (path.suffix == ".node" or path.stat().st_mode & 0o100)
        ):
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    return True
    return False


def _list_versions(modules: Path) -> Sequence[str]:
    found = []
    for file in [*modules.glob("*/package.json"), *modules.glob("@*/*/package.json")]:
        try:
            about = json.loads(file.read_bytes())
            found.append(f"{about['name']}@{about['version']}")
        except (ValueError, KeyError, TypeError):
            continue
    return sorted(found)
