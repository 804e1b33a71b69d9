"""Modules that a commit's ``go.mod`` requires, as go downloads them; no code of theirs runs.

A repository with ``vendor/`` brings its own.
"""

import asyncio
import hashlib
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from dgm.benchmarks.environments import PACKAGES
from dgm.benchmarks.mining.epochs import Epochs
from dgm.benchmarks.mining.go_calls import MODULE
from dgm.benchmarks.mining.history import Unit
from dgm.benchmarks.mining.packages import Installed, draft_folder
from dgm.benchmarks.mining.stored_environments import CannotInstall, store_environment
from dgm.domain import Snapshot
from dgm.protocols import Builder, BuildSandbox

INSTALL_S = 900.0
_SAID = 300
_CACHE = "mod"
"""Folder of the module cache."""
_DECLARING = (MODULE, "go.sum", "go.work", "go.work.sum")
_OTHERS = frozenset({"vendor", "testdata", "node_modules"})
_REQUIRES = re.compile(r"^\s*(?:require\s+)?([\w.~/-]+\.[\w.~/-]+)\s+(v\d[\w.+-]*)", re.MULTILINE)
_ASKS = re.compile(r"^go\s+1\.(\d{1,9})", re.MULTILINE)
_REFUSES_NEWER = 21
"""Since Go 1.21 a module that asks for a newer Go is refused; earlier ones try it."""
_LOCAL = re.compile(r"/(?:[^/]+\.(?:lock|zip)|list|lock)$")
"""Files of the module cache that go makes anew, or does not need beside the unpacked module."""


class GoEpochs(Epochs):
    """Environments of Go by the digest of what commits declare."""

    inner = _CACHE
    hint = "; let it download modules there: go mod download"

    def know_tests(self, units: Sequence[Unit]) -> None:
        """Do nothing: ``go.mod`` names all that tests need."""

    def _digest(self, files: Snapshot) -> str:
        digest = hashlib.sha256()
        for name, entry in sorted(read_modules(files).items()):
            for part in (name.encode(), entry.data):
                digest.update(len(part).to_bytes(8, "big") + part)
        return digest.hexdigest()

    async def _install(self, files: Snapshot, day: str) -> Installed:  # noqa: ARG002  (go.mod names versions)
        return await build_go_environment(files, self._python.version, self._suite, self._builder)

    def _setup_variables(self, packages: str) -> Mapping[str, str]:
        return {**_settings(packages), "DGM_GO": self._python.version}

    def _keep(self, packages: Path, files: Snapshot) -> str:
        del files
        return _store(packages, self._python.version, self._suite)


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


async def build_go_environment(files: Snapshot, go: str, suite: Path, builder: Builder) -> Installed:
    """Download the modules of a commit below the suite's ``environments/``, unless they are there.

    Args:
        files: the commit's.
        go: version of the sandbox's Go.
        suite: the suite's folder.
        builder: opens the sandbox that downloads them.

    Raises:
        CannotInstall: it declares no module, asks for a newer Go, or a module cannot be had.
        Infrastructure: the sandbox failed.
    """
    modules = read_modules(files)
    if not any(name.endswith(MODULE) for name in modules):
        raise CannotInstall(f"it has no {MODULE}, and only modules are mined")
    remark = check_version(modules, go)
    wanting = [
        folder
        for folder in sorted(
            name.removesuffix(MODULE) for name in modules if name.rpartition("/")[2] == MODULE
        )
        if requires(modules[f"{folder}{MODULE}"].data) and f"{folder}vendor/modules.txt" not in files
    ]
    with draft_folder(suite) as draft:
        packages = draft / PACKAGES
        if wanting:
            async with builder.open() as room:
                await room.put(modules, "declared")
                for folder in wanting:
                    await _download(room, f"declared/{folder}", f"{PACKAGES}/{_CACHE}")
                await room.fetch(PACKAGES, packages)
        (packages / _CACHE).mkdir(parents=True, exist_ok=True)
        return Installed(await asyncio.to_thread(_store, packages, go, suite), remark)


def requires(declared: bytes) -> list[str]:
    """Return the modules and versions that a ``go.mod`` requires."""
    text = re.sub(r"//.*", "", declared.decode("utf-8", "replace"))
    return [f"{name}@{version}" for name, version in _REQUIRES.findall(text)]


def _settings(cache: str) -> Mapping[str, str]:
    return {"GOMODCACHE": cache, "GOTOOLCHAIN": "local", "GOFLAGS": "-modcacherw"}


async def _download(room: BuildSandbox, folder: str, cache: str) -> None:
    """Let go download all modules that a ``go.mod`` names.

    Raises:
        CannotInstall: one cannot be had.
    """
    env = _settings(f"{room.folder}/{cache}")
    done = await room.run(["go", "mod", "download"], name=folder, timeout_s=INSTALL_S, env=env)
    if done.exit_code:
        raise CannotInstall(done.explain(done.output.strip().partition("\n")[0][:_SAID]))


def _store(packages: Path, go: str, suite: Path) -> str:
    """Make a module cache the same wherever it is filled, and give it its name."""
    cache = packages / _CACHE
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
