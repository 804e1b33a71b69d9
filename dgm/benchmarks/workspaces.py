"""Folders as snapshots, and a suite's own patches on them.

Only patches that belong to a suite are applied here, on the host. An agent's patch is applied inside the
sandbox that grades it.
"""

import os
import tempfile
from pathlib import Path

from dgm.archive.git import clean_environment, first_line, run_git
from dgm.archive.snapshots import write_folder
from dgm.domain import Snapshot
from dgm.errors import UserError
from dgm.folders import read_folder

__all__ = ["apply_suite_patch", "write_folder"]

PATCH_TIMEOUT_S = 30


def apply_suite_patch(files: Snapshot, patch: Path) -> Snapshot:
    """Return ``files`` after ``git apply`` of the suite's file ``patch``.

    Raises:
        UserError: the patch does not apply, or leaves a link that leads out of the workspace; or git is not installed.
        Infrastructure: git does not answer.
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
    # Inside a repository, git would take the patch's paths as relative to that repository's root.
    variables = clean_environment() | {"GIT_DIR": os.devnull}
    words = ["apply", "--whitespace=nowarn", "--", str(patch)]
    done = run_git(folder, variables, words, timeout_s=PATCH_TIMEOUT_S)
    if done.returncode:
        raise UserError(f"{patch}: does not apply: {first_line(done.stderr)}")
