"""Detection of new files that a person would not commit: git's own ignore rules, applied to a folder as a value."""

import os
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from dgm.archive.git_process import environment
from dgm.archive.repository import scratch_repository
from dgm.archive.snapshots import write_folder
from dgm.domain import Snapshot
from dgm.errors import Infrastructure, UserError
from dgm.processes import run_apart

RULES = ".gitignore"
ENVIRONMENT = "pyvenv.cfg"
"""A folder with this file is a Python virtual environment, whatever its name."""
NEVER_COMMITTED = (
    "__pycache__/",
    "*.py[co]",
    "*.egg-info/",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".hypothesis/",
    ".tox/",
    ".nox/",
    ".venv/",
    "node_modules/",
    ".DS_Store",
)
"""Byte code, caches and environments, as ``.gitignore`` patterns."""
_TIMEOUT_S = 60.0


def find_ignored(files: Snapshot, names: Iterable[str], patterns: Sequence[str] = ()) -> frozenset[str]:
    """Return the ``names`` that the folder's ``.gitignore`` files, ``NEVER_COMMITTED`` or ``patterns`` ignore.

    The caller decides which files are new: git's rules apply only to files that it does not track.

    Args:
        files: the folder; only its ``.gitignore`` files are read.
        names: paths of regular files or links in the folder.
        patterns: further ``.gitignore`` patterns; the folder's own rules take precedence.

    Raises:
        UserError: git is not installed.
        Infrastructure: git failed.
    """
    asked = sorted(set(names))
    if not asked:
        return frozenset()
    environments = _find_environments(asked)
    kept = [name for name in asked if not name.startswith(environments)]
    rules = {
        name: entry
        for name, entry in files.items()
        if name.rpartition("/")[2] == RULES and entry.mode != 0o120000 and not _is_in_git_folder(name)
    }
    with scratch_repository() as repository, tempfile.TemporaryDirectory(prefix="dgm-ignored-") as place:
        tree, excludes = Path(place, "tree"), Path(place, "excludes")
        write_folder(rules, tree)
        excludes.write_text("\n".join([*NEVER_COMMITTED, *patterns, ""]), encoding="utf-8")
        found = _run_check_ignore(repository, tree, excludes, kept)
    return frozenset(found) | frozenset(name for name in asked if name.startswith(environments))


def _find_environments(names: Sequence[str]) -> tuple[str, ...]:
    found = (name.removesuffix(ENVIRONMENT) for name in names if name.endswith("/" + ENVIRONMENT))
    return tuple(found)


def _is_in_git_folder(name: str) -> bool:
    return any(part.lower() == ".git" for part in name.split("/"))


def _run_check_ignore(repository: Path, tree: Path, excludes: Path, names: Sequence[str]) -> list[str]:
    settings = ["-c", "core.bare=false", "-c", f"core.excludesFile={excludes}", "-c", "core.ignoreCase=false"]
    where = [f"--git-dir={repository}", f"--work-tree={tree}"]
    # Names that git reserves or that lead outside would abort the whole query.
    asked = [name for name in names if not _is_in_git_folder(name)]
    # A name that begins with ":" would be read as a pattern.
    given = b"".join(b"./" + os.fsencode(name) + b"\0" for name in asked)
    try:
        done = run_apart(
            ["git", *settings, *where, "check-ignore", "--no-index", "-z", "--stdin"],
            cwd=tree,
            env=environment(),
            timeout_s=_TIMEOUT_S,
            given=given,
        )
    except FileNotFoundError as error:
        raise UserError("git is not installed; install it with your system's package manager") from error
    except subprocess.TimeoutExpired as error:
        raise Infrastructure(f"git check-ignore took more than {_TIMEOUT_S:.0f} s") from error
    if done.returncode not in (0, 1):
        said = done.stderr.decode("utf-8", "replace").strip().split("\n", 1)[0]
        raise Infrastructure(f"git check-ignore failed: {said}")
    return [os.fsdecode(name[2:]) for name in done.stdout.split(b"\0") if name]
