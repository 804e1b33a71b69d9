"""Modules that a commit's ``go.mod`` requires, as go downloads them; no code of theirs runs.

A repository with ``vendor/`` brings its own.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from dgm.archive.snapshots import write_folder
from dgm.benchmarks.environments import FOLDER
from dgm.benchmarks.mining.epochs import Epochs
from dgm.benchmarks.mining.go_calls import MODULE
from dgm.benchmarks.mining.history import Unit
from dgm.benchmarks.mining.packages import CannotInstall, Installed
from dgm.benchmarks.mining.stored_environments import store_environment
from dgm.domain import Snapshot
from dgm.errors import UserError
from dgm.processes import run_apart

INSTALL_S = 900.0
_SAID = 300
_DECLARING = (MODULE, "go.sum", "go.work", "go.work.sum")
_OTHERS = frozenset({"vendor", "testdata", "node_modules"})
_REQUIRES = re.compile(r"^\s*(?:require\s+)?([\w.~/-]+\.[\w.~/-]+)\s+(v\d[\w.+-]*)", re.MULTILINE)
_ASKS = re.compile(r"^go\s+1\.(\d+)", re.MULTILINE)
_REFUSES_NEWER = 21
"""Since Go 1.21 a module that asks for a newer Go is refused; earlier ones try it."""
_LOCAL = re.compile(r"/(?:[^/]+\.(?:lock|zip)|list|lock)$")
"""Files of the module cache that go makes anew, or does not need beside the unpacked module."""


class GoEpochs(Epochs):
    """Environments of Go by the digest of what commits declare."""

    def know_tests(self, units: Sequence[Unit]) -> None:
        """Do nothing: ``go.mod`` names all that tests need."""

    def _digest(self, files: Snapshot) -> str:
        digest = hashlib.sha256()
        for name, entry in sorted(read_modules(files).items()):
            for part in (name.encode(), entry.data):
                digest.update(len(part).to_bytes(8, "big") + part)
        return digest.hexdigest()

    def _install(self, files: Snapshot, day: str) -> Installed:  # noqa: ARG002  (go.mod names versions)
        return build_go_environment(files, self._python.version, self._suite)

    def _run_setup(self, files: Snapshot) -> Installed:
        return run_go_setup(self._setup, files, self._python.version, self._suite)


def read_modules(files: Snapshot) -> Snapshot:
    """Return the files that declare a repository's modules, without those of other projects."""
    return {
        name: entry
        for name, entry in files.items()
        if PurePosixPath(name).name in _DECLARING and not _OTHERS.intersection(name.split("/")[:-1])
    }


def check_version(modules: Snapshot, go: str) -> str:
    """Return a remark where a module asks for a newer Go than the sandbox has; empty where none does.

    Raises:
        CannotInstall: the sandbox's Go refuses it.
    """
    own = int(go.partition(".")[2])
    text = "\n".join(
        entry.data.decode("utf-8", "replace") for name, entry in modules.items() if name.endswith(MODULE)
    )
    asked = max((int(minor) for minor in _ASKS.findall(text)), default=0)
    if asked <= own:
        return ""
    said = f"its {MODULE} asks for Go 1.{asked}, and the sandbox has {go}"
    if own >= _REFUSES_NEWER:
        raise CannotInstall(f"{said}; use an image with a newer one")
    return said


def build_go_environment(files: Snapshot, go: str, suite: Path) -> Installed:
    """Download the modules of a commit below the suite's ``environments/``, unless they are there.

    Args:
        files: the commit's.
        go: version of the sandbox's Go.
        suite: the suite's folder.

    Raises:
        CannotInstall: it declares no module, asks for a newer Go, or a module cannot be had.
        UserError: go is not installed.
    """
    modules = read_modules(files)
    if not any(name.endswith(MODULE) for name in modules):
        raise CannotInstall(f"it has no {MODULE}, and only modules are mined")
    remark = check_version(modules, go)
    (suite / FOLDER).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".draft-", dir=suite / FOLDER) as name:
        cache = Path(name) / "packages" / "mod"
        cache.mkdir(parents=True)
        write_folder(modules, Path(name) / "declared")
        for module in sorted(each for each in modules if each.rpartition("/")[2] == MODULE):
            folder = str(PurePosixPath(module).parent)
            if (
                requires(modules[module].data)
                and f"{folder}/vendor/modules.txt".removeprefix("./") not in files
            ):
                _download(Path(name) / "declared" / folder, cache)
        return Installed(_store(cache.parent, go, suite), remark)


def requires(declared: bytes) -> list[str]:
    """Return the modules and versions that a ``go.mod`` requires."""
    text = re.sub(r"//.*", "", declared.decode("utf-8", "replace"))
    return [f"{name}@{version}" for name, version in _REQUIRES.findall(text)]


def run_go_setup(command: str, files: Snapshot, go: str, suite: Path) -> Installed:
    """Fill the module cache by the user's own command, run by a shell in a checkout.

    ``$DGM_PACKAGES`` and ``$GOMODCACHE`` are the module cache.

    Raises:
        UserError: the command fails.
        CannotInstall: the result cannot be an environment.
    """
    (suite / FOLDER).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".draft-", dir=suite / FOLDER) as name:
        checkout, cache = Path(name) / "checkout", Path(name) / "packages" / "mod"
        write_folder(files, checkout)
        cache.mkdir(parents=True)
        env = {**_settings(cache), "DGM_PACKAGES": str(cache), "DGM_GO": go}
        try:
            done = run_apart(["sh", "-c", command], cwd=checkout, env=env, timeout_s=INSTALL_S)
        except subprocess.TimeoutExpired as error:
            raise UserError(f"--setup took more than {INSTALL_S:.0f} s") from error
        if done.returncode:
            raise UserError(f"--setup ended with exit status {done.returncode}: {_end(done)}")
        return Installed(_store(cache.parent, go, suite), "by --setup")


def _settings(cache: Path) -> Mapping[str, str]:
    return {**os.environ, "GOMODCACHE": str(cache), "GOTOOLCHAIN": "local", "GOFLAGS": "-modcacherw"}


def _download(folder: Path, cache: Path) -> None:
    """Let go download all modules that a ``go.mod`` names.

    Raises:
        CannotInstall: one cannot be had.
        UserError: go is not installed.
    """
    go = shutil.which("go")
    if go is None:
        raise UserError("go is not installed; install it, or give the modules by --setup")
    try:
        done = run_apart([go, "mod", "download"], cwd=folder, env=_settings(cache), timeout_s=INSTALL_S)
    except subprocess.TimeoutExpired as error:
        raise CannotInstall(f"its modules were not downloaded within {INSTALL_S:.0f} s") from error
    if done.returncode:
        raise CannotInstall(_end(done))


def _end(done: "subprocess.CompletedProcess[bytes]") -> str:
    return (done.stderr or done.stdout).decode("utf-8", "replace").strip().partition("\n")[0][:_SAID]


def _store(packages: Path, go: str, suite: Path) -> str:
    """Make a module cache the same wherever it is filled, and give it its name."""
    cache = packages / "mod"
    shutil.rmtree(cache / "cache" / "download" / "sumdb", ignore_errors=True)
    shutil.rmtree(cache / "cache" / "vcs", ignore_errors=True)
    downloaded = cache / "cache"
    for path in sorted(packages.rglob("*")):
        if path.is_file() and downloaded in path.parents and _LOCAL.search(path.as_posix()):
            path.unlink()
        elif not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    (cache / ".keep").write_bytes(b"")
    record = {"go": go, "machine": "", "requirements": sorted(_list_modules(cache))}
    return store_environment(packages, record, suite)


def _list_modules(cache: Path) -> Sequence[str]:
    top = cache / "cache" / "download"
    return [
        f"{file.parent.parent.relative_to(top).as_posix()}@{file.stem}"
        for file in top.glob("**/@v/*.ziphash")
    ]
