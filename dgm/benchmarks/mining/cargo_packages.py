"""The crates that a commit's manifests declare, by ``cargo vendor``: their sources, which every sandbox is shown.

Of the repository cargo reads manifests only; its configuration, and what it would build, are not laid out for it.
"""

import hashlib
import os
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from dgm.archive.snapshots import write_folder
from dgm.benchmarks.environments import FOLDER, PACKAGES, TARGET
from dgm.benchmarks.mining.epochs import Epochs
from dgm.benchmarks.mining.history import Unit
from dgm.benchmarks.mining.packages import CannotInstall, Installed
from dgm.benchmarks.mining.stored_environments import store_environment
from dgm.domain import Entry, Snapshot
from dgm.errors import UserError
from dgm.processes import run_apart

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
_HINT = f'; for crates: cargo vendor "$DGM_PACKAGES/{VENDOR}"'


class CargoEpochs(Epochs):
    """Environments of Rust by the digest of what commits declare."""

    def know_tests(self, units: Sequence[Unit]) -> None:
        """Do nothing: the manifests name all that tests need."""

    def _digest(self, files: Snapshot) -> str:
        lock = files[LOCK].data if LOCK in files else b""
        return hashlib.sha256("\n".join(read_crates(files)).encode() + b"\0" + lock).hexdigest()

    def _install(self, files: Snapshot, day: str) -> Installed:
        del day  # cargo has no way to ask for the crates of a day
        if not read_crates(files):
            return Installed(keep_packages(None, (), self._python.machine, self._suite), "")
        with TemporaryDirectory(prefix="dgm-mine-") as folder:
            checkout = Path(folder, "checkout")
            write_folder(_without_configuration(files), checkout)
            _vendor(checkout, Path(folder, PACKAGES, VENDOR))
            packages = Path(folder, PACKAGES)
            return Installed(keep_packages(packages, _list_crates(packages / VENDOR), "", self._suite), "")

    def _run_setup(self, files: Snapshot) -> Installed:
        with TemporaryDirectory(prefix="dgm-mine-") as folder:
            checkout, packages = Path(folder, "checkout"), Path(folder, PACKAGES)
            write_folder(files, checkout)
            packages.mkdir()
            run_command(self._setup, checkout, packages, _HINT)
            crates = _list_crates(packages / VENDOR)
            return Installed(keep_packages(packages, crates, self._python.machine, self._suite), "by --setup")


def last_line(text: str) -> str:
    """Return the last line of a text."""
    return text.strip().rpartition("\n")[2]


def run_command(
    command: str,
    checkout: Path,
    packages: Path,
    hint: str = "",
    find_cause: Callable[[str], str] = last_line,
) -> None:
    """Run the user's own command in a checkout; it fills ``packages``.

    Args:
        command: the user's.
        checkout: folder of the commit's files.
        packages: folder that is filled.
        hint: words that a complaint ends with.
        find_cause: returns the line of a text that tells why the command failed; empty if none does. It is shown what
            the command said of errors, then all else.

    Raises:
        UserError: it fails, or leaves nothing.
    """
    env = {**os.environ, "DGM_PACKAGES": str(packages)}
    try:
        done = run_apart(["sh", "-c", command], cwd=checkout, env=env, timeout_s=INSTALL_S)
    except subprocess.TimeoutExpired as error:
        raise UserError(f"--setup took more than {INSTALL_S:.0f} s") from error
    if done.returncode:
        texts = [text.decode("utf-8", "replace") for text in (done.stderr, done.stdout)]
        causes = [find(text) for find in (find_cause, last_line) for text in texts]
        said = next(filter(None, causes), "")[:_SAID]
        raise UserError(f"--setup ended with exit status {done.returncode}{said and f': {said}'}")
    if not any(packages.iterdir()):
        raise UserError(f"--setup left nothing in $DGM_PACKAGES{hint}")


def with_cargo(files: Snapshot) -> Snapshot:
    """Return a commit's files with a configuration by which cargo takes crates from the environment."""
    name = next((each for each in _CONFIGURATIONS if each in files), _CONFIGURATIONS[0])
    entry = files.get(name, Entry(b""))
    text = entry.data.decode("utf-8", "replace")
    try:
        own = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
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
            try:
                manifest = tomllib.loads(files[name].data.decode("utf-8", "replace"))
            except tomllib.TOMLDecodeError:
                continue
            found |= {*_crates_of(manifest)}
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


def _vendor(checkout: Path, target: Path) -> None:
    cargo = shutil.which("cargo")
    if cargo is None:
        raise UserError("cargo is not installed; install Rust, or give the crates by --setup")
    locked = ["--locked"] if (checkout / LOCK).is_file() else []
    words = [cargo, "vendor", "--quiet", *locked, str(target)]
    try:
        done = run_apart(words, cwd=checkout, env=os.environ, timeout_s=INSTALL_S)
    except subprocess.TimeoutExpired as error:
        raise CannotInstall(f"cargo vendor took more than {INSTALL_S:.0f} s") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise CannotInstall(" ".join(said.split())[-_SAID:] or "cargo vendor fails without a word")


def _list_crates(vendor: Path) -> Sequence[str]:
    found = []
    for file in sorted(vendor.glob(f"*/{MANIFEST}")):
        try:
            about = tomllib.loads(file.read_text(encoding="utf-8"))["package"]
            found.append(f"{about['name']}@{about['version']}")
        except (ValueError, KeyError):
            continue
    return found


def keep_packages(packages: Path | None, requirements: Sequence[str], machine: str, suite: Path) -> str:
    """Give a folder of files for a command its name among a suite's environments, and return it; None: an empty one."""
    (suite / FOLDER).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".draft-", dir=suite / FOLDER) as name:
        kept = Path(name, PACKAGES)
        (kept / VENDOR).mkdir(parents=True)
        if packages is not None:
            shutil.copytree(packages, kept, symlinks=True, dirs_exist_ok=True)
        (kept / VENDOR / ".keep").touch()
        for path in [kept, *kept.rglob("*")]:
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        record = {"command": True, "machine": machine if packages else "", "requirements": requirements}
        return store_environment(kept, record, suite)
