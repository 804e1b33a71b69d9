"""The crates that a commit's manifests declare, by ``cargo vendor``: their sources, which every sandbox is shown.

Of the repository cargo reads manifests only; its configuration, and what it would build, are not laid out for it.
"""

import asyncio
import contextlib
import hashlib
import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from dgm.benchmarks.environments import PACKAGES, TARGET
from dgm.benchmarks.mining.declarations import parse_toml
from dgm.benchmarks.mining.epochs import Epochs
from dgm.benchmarks.mining.history import Unit
from dgm.benchmarks.mining.packages import Installed, draft_folder
from dgm.benchmarks.mining.stored_environments import CannotInstall, store_environment
from dgm.domain import Entry, Snapshot
from dgm.protocols import BuildSandbox

INSTALL_S = 900.0
MANIFEST, LOCK = "Cargo.toml", "Cargo.lock"
VENDOR = "vendor"
"""Folder of the crates in ``$DGM_PACKAGES``, which ``cargo vendor "$DGM_PACKAGES/vendor"`` fills."""
_CONFIGURATIONS = (".cargo/config.toml", ".cargo/config")
_SOURCES = f"""
[source.crates-io]
replace-with = "dgm"

[source.dgm]
directory = "{TARGET}/{VENDOR}"
"""
_OFFLINE = "\n[net]\noffline = true\n"
_TABLES = ("dependencies", "dev-dependencies", "build-dependencies")
_SAID = 300


class CargoEpochs(Epochs):
    """Environments of Rust by the digest of what commits declare."""

    hint = f'; for crates: cargo vendor "$DGM_PACKAGES/{VENDOR}"'

    def know_tests(self, units: Sequence[Unit]) -> None:
        """Do nothing: the manifests name all that tests need."""

    def _digest(self, files: Snapshot) -> str:
        lock = files[LOCK].data if LOCK in files else b""
        return hashlib.sha256("\n".join(read_crates(files)).encode() + b"\0" + lock).hexdigest()

    async def _install(self, files: Snapshot, day: str) -> Installed:
        del day  # cargo has no way to ask for the crates of a day
        machine, suite = self._python.machine, self._suite
        if not read_crates(files):
            return Installed(await asyncio.to_thread(keep_files, None, (), machine, suite), "")
        with draft_folder(suite) as draft:
            packages = draft / PACKAGES
            async with self._builder.open() as room:
                await room.put(_without_configuration(files), "checkout")
                await _vendor(room, LOCK in files)
                await room.fetch(PACKAGES, packages)
            crates = _list_crates(packages / VENDOR)
            return Installed(await asyncio.to_thread(keep_files, packages, crates, "", suite), "")

    def _setup_variables(self, packages: str) -> Mapping[str, str]:
        del packages
        return {}

    def _keep(self, packages: Path, files: Snapshot) -> str:
        del files
        return keep_files(packages, _list_crates(packages / VENDOR), self._python.machine, self._suite)


def with_cargo(files: Snapshot) -> Snapshot:
    """Return a commit's files with a configuration by which cargo takes crates from the environment."""
    name = next((each for each in _CONFIGURATIONS if each in files), _CONFIGURATIONS[0])
    entry = files.get(name, Entry(b""))
    text = entry.data.decode("utf-8", "replace")
    try:
        own = tomllib.loads(text)
    except (ValueError, RecursionError):
        return files
    if "source" in own:
        return files
    more = _SOURCES + ("" if "net" in own else _OFFLINE)
    return {**files, name: replace(entry, data=f"{text.rstrip()}\n{more}".lstrip().encode())}


def read_crates(files: Snapshot) -> Sequence[str]:
    """Return the dependencies of all manifests that are no folders of the repository, a line each."""
    found = set()
    for name in sorted(files):
        if PurePosixPath(name).name == MANIFEST:
            found |= {*_crates_of(parse_toml(files[name].data.decode("utf-8", "replace")))}
    return sorted(found)


def _crates_of(manifest: Mapping[str, object]) -> Iterator[str]:
    places = [manifest, manifest.get("workspace")]
    targets = manifest.get("target")
    places += list(targets.values()) if isinstance(targets, dict) else []
    for place in places:
        for key in _TABLES:
            table = place.get(key) if isinstance(place, dict) else None
            for crate, spec in table.items() if isinstance(table, dict) else ():
                if not (isinstance(spec, dict) and {"path", "workspace"} & {*spec}):
                    yield f"{crate} {spec}"


def _without_configuration(files: Snapshot) -> Snapshot:
    """Return what cargo may read: neither a configuration nor the choice of another tool chain."""
    return {
        name: entry
        for name, entry in files.items()
        if ".cargo" not in name.split("/") and not name.startswith("rust-toolchain")
    }


async def _vendor(room: BuildSandbox, locked: bool) -> None:
    words = ["cargo", "vendor", "--quiet", *(["--locked"] if locked else []), f"../{PACKAGES}/{VENDOR}"]
    done = await room.run(words, name="checkout", timeout_s=INSTALL_S)
    if done.exit_code:
        said = " ".join(done.output.split())[-_SAID:] or "cargo vendor fails without a word"
        raise CannotInstall(done.explain(said))


def _list_crates(vendor: Path) -> Sequence[str]:
    found = []
    for file in sorted(vendor.glob(f"*/{MANIFEST}")):
        with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
            about = tomllib.loads(file.read_text(encoding="utf-8"))["package"]
            found.append(f"{about['name']}@{about['version']}")
    return found


def keep_files(packages: Path | None, requirements: Sequence[str], machine: str, suite: Path) -> str:
    """Give a folder of files for a command its name among a suite's environments, and return it; None: an empty one."""
    with draft_folder(suite) as draft:
        kept = draft / PACKAGES
        (kept / VENDOR).mkdir(parents=True)
        if packages is not None:
            shutil.copytree(packages, kept, symlinks=True, dirs_exist_ok=True)
        (kept / VENDOR / ".keep").touch()
        for path in [kept, *kept.rglob("*")]:
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        record = {"command": True, "machine": machine if packages else "", "requirements": requirements}
        return store_environment(kept, record, suite)
