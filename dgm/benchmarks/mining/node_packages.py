"""Installs the packages that a commit's ``package.json`` declares, by npm, without any script of theirs.

The project itself is never in them: it is imported from the workspace.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from dgm.archive.snapshots import write_folder
from dgm.benchmarks.environments import FOLDER, NODE_PROGRAMS
from dgm.benchmarks.mining.epochs import Epochs
from dgm.benchmarks.mining.history import Unit
from dgm.benchmarks.mining.packages import CannotInstall, Installed
from dgm.benchmarks.mining.script_calls import read_manifest
from dgm.benchmarks.mining.stored_environments import store_environment
from dgm.benchmarks.script_tools import TOOLS
from dgm.domain import Snapshot
from dgm.errors import UserError
from dgm.npm_locks import (
    LOCK,
    MANIFEST,
    MODULES,
    TABLES,
    check_lock,
    first_error,
    keep_registry_specs,
)
from dgm.processes import run_apart

INSTALL_S = 900.0
_FLAGS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--os=linux", "--libc=glibc")
_CPUS = {"x86_64": "x64", "aarch64": "arm64"}
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

    def know_tests(self, units: Sequence[Unit]) -> None:
        """Do nothing: the manifest names all that tests need."""

    def _digest(self, files: Snapshot) -> str:
        lock = files[LOCK].data if LOCK in files else b""
        declared, _ = read_declared(files)
        return hashlib.sha256(json.dumps(declared, sort_keys=True).encode() + b"\0" + lock).hexdigest()

    def _install(self, files: Snapshot, day: str) -> Installed:
        return build_node_environment(files, day, (self._python.version, self._python.machine), self._suite)

    def _run_setup(self, files: Snapshot) -> Installed:
        return run_node_setup(self._setup, files, (self._python.version, self._python.machine), self._suite)


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


def build_node_environment(files: Snapshot, day: str, node: tuple[str, str], suite: Path) -> Installed:
    """Install an environment below the suite's ``environments/``, unless it is there.

    Args:
        files: the commit's.
        day: the newest day of packages, where no lock says which they are.
        node: version of node, and the machine.
        suite: the suite's folder.

    Raises:
        CannotInstall: no way to install it succeeds.
        UserError: npm is not installed.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise UserError("npm is not installed; install Node.js with npm, or give the packages by --setup")
    declared, foreign = read_declared(files)
    (suite / FOLDER).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".draft-", dir=suite / FOLDER) as name:
        failure, left = "", list[str]()
        attempts = list(_attempts(files, day, foreign))
        while attempts:
            words, lock, remark = attempts[0]
            _write_manifest(Path(name), without(declared, left), lock)
            said = _run_npm([npm, *words, *_FLAGS, f"--cpu={_CPUS.get(node[1], node[1])}"], Path(name))
            if not said:
                (Path(name) / MODULES).mkdir(exist_ok=True)
                remark = "; ".join(
                    filter(None, [remark, f"without {', '.join(sorted(left))}" if left else ""])
                )
                return Installed(_keep(Path(name) / MODULES, files, node, suite), remark)
            failure = first_error(said)
            blamed = find_blamed(said.decode("utf-8", "replace"), declared.get("devDependencies", {}))
            if lock or not blamed or blamed in left or len(left) >= MOST_LEFT_OUT:
                attempts.pop(0)
            else:
                left.append(blamed)
        raise CannotInstall(failure[-_SAID:])


def run_node_setup(command: str, files: Snapshot, node: tuple[str, str], suite: Path) -> Installed:
    """Build an environment by the user's own command, run by a shell in a checkout; ``$DGM_PACKAGES`` is its target.

    Raises:
        UserError: the command fails, or leaves no package.
    """
    (suite / FOLDER).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".draft-", dir=suite / FOLDER) as name:
        checkout, target = Path(name) / "checkout", Path(name) / MODULES
        write_folder(files, checkout)
        target.mkdir()
        env = {**os.environ, "DGM_PACKAGES": str(target), "DGM_NODE": node[0]}
        try:
            done = run_apart(["sh", "-c", command], cwd=checkout, env=env, timeout_s=INSTALL_S)
        except subprocess.TimeoutExpired as error:
            raise UserError(f"--setup took more than {INSTALL_S:.0f} s") from error
        if done.returncode:
            said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().rpartition("\n")[2][:_SAID]
            raise UserError(f"--setup ended with exit status {done.returncode}: {said}")
        if not any(target.iterdir()):
            raise UserError("--setup left nothing in $DGM_PACKAGES; let it copy node_modules/. there")
        return Installed(_keep(target, files, node, suite), "by --setup")


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
    return name if name in spare and name not in TOOLS else ""


def _write_manifest(folder: Path, declared: Mapping[str, Mapping[str, object]], lock: bytes) -> None:
    """Empty a folder, and write what npm reads into it."""
    shutil.rmtree(folder)
    folder.mkdir()
    manifest = {"name": "dgm-mined", "version": "0.0.0", "private": True, **declared}
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    if lock:
        (folder / LOCK).write_bytes(lock)


def _run_npm(words: Sequence[str], folder: Path) -> bytes:
    """Return what npm prints if it fails; nothing if it does not."""
    try:
        done = run_apart(words, cwd=folder, env=os.environ, timeout_s=INSTALL_S)
    except subprocess.TimeoutExpired:
        return f"npm error not installed within {INSTALL_S:.0f} s".encode()
    return (done.stderr or done.stdout or b"npm error it ended without a word") if done.returncode else b""


def _keep(modules: Path, files: Snapshot, node: tuple[str, str], suite: Path) -> str:
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
    if own and re.fullmatch(r"(?:@[\w.-]+/)?[\w.-]+", own) and ".." not in own:
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
