"""Folders as snapshots, and a suite's own patches on them.

Only patches that belong to a suite are applied here, on the host. An agent's patch is applied inside the
sandbox that grades it.
"""

import os
import stat
import subprocess
import tempfile
from pathlib import Path

from dgm.domain import Entry, Snapshot
from dgm.errors import Infrastructure, UserError
from dgm.processes import run_apart

IGNORED = frozenset({"__pycache__", ".git"})
PATCH_TIMEOUT_S = 30


def read_folder(folder: Path) -> Snapshot:
    """Return the files below ``folder``, links as links, without bytecode; sorted by path."""
    found: dict[str, Entry] = {}
    for parent, folders, files in os.walk(folder):
        links = [name for name in folders if Path(parent, name).is_symlink()]
        folders[:] = sorted(name for name in folders if name not in IGNORED and name not in links)
        for name in [*files, *links]:
            if not name.endswith(".pyc"):
                path = Path(parent, name)
                found[path.relative_to(folder).as_posix()] = _read_entry(path)
    return dict(sorted(found.items()))


def write_folder(files: Snapshot, folder: Path) -> None:
    """Write a suite's own files below ``folder``, which must be empty: paths are trusted."""
    for name, entry in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if stat.S_ISLNK(entry.mode):
            path.symlink_to(os.fsdecode(entry.data))
        else:
            path.write_bytes(entry.data)
            path.chmod(stat.S_IMODE(entry.mode))


def apply_suite_patch(files: Snapshot, patch: Path) -> Snapshot:
    """Return ``files`` after ``git apply`` of the suite's file ``patch``.

    Raises:
        UserError: the patch does not apply.
        Infrastructure: git is not there or does not answer.
    """
    if not patch.stat().st_size:
        return files
    with tempfile.TemporaryDirectory(prefix="dgm-suite-") as name:
        folder = Path(name)
        write_folder(files, folder)
        _run_git_apply(patch.resolve(), folder)
        return read_folder(folder)


def _run_git_apply(patch: Path, folder: Path) -> None:
    command = ["git", "apply", "--whitespace=nowarn", str(patch)]
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        # Inside a repository, git would take the patch's paths as relative to that repository's root.
        "GIT_CEILING_DIRECTORIES": str(folder.resolve().parent),
    }
    try:
        done = run_apart(command, cwd=folder, env=environment, timeout_s=PATCH_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Infrastructure(f"git apply {patch} could not run: {error}") from error
    if done.returncode:
        first = done.stderr.decode("utf-8", "replace").strip().split("\n", 1)[0]
        raise UserError(f"{patch}: does not apply: {first}")


def _read_entry(path: Path) -> Entry:
    if path.is_symlink():
        return Entry(os.fsencode(path.readlink()), 0o120000)
    return Entry(path.read_bytes(), 0o100755 if os.access(path, os.X_OK) else 0o100644)
