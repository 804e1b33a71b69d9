"""Folders as snapshots, and a suite's own patches on them.

Only patches that belong to a suite are applied here, on the host. An agent's patch is applied inside the
sandbox that grades it.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from dgm.archive.snapshots import write_folder
from dgm.domain import Snapshot
from dgm.errors import Infrastructure, UserError
from dgm.folders import read_folder
from dgm.processes import run_apart

__all__ = ["apply_suite_patch", "write_folder"]

PATCH_TIMEOUT_S = 30


def apply_suite_patch(files: Snapshot, patch: Path) -> Snapshot:
    """Return ``files`` after ``git apply`` of the suite's file ``patch``.

    Raises:
        UserError: the patch does not apply, or leaves a link that leads out of the workspace.
        Infrastructure: git is not there or does not answer.
    """
    if not patch.stat().st_size:
        return files
    with tempfile.TemporaryDirectory(prefix="dgm-suite-") as name:
        folder = Path(name)
        write_folder(files, folder)
        _run_git_apply(patch.resolve(), folder)
        try:
            return read_folder(folder)
        except UserError as error:
            raise UserError(f"{patch}: leaves what no workspace may hold: {error}") from error


def _run_git_apply(patch: Path, folder: Path) -> None:
    command = ["git", "apply", "--whitespace=nowarn", "--", str(patch)]
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
