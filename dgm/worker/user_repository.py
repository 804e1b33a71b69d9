"""A person's repository: its files for an agent, and the way of an agent's change back into it.

Files are read and written byte for byte. Git is asked only for the list of files. No filter, attribute or
setting of the person's (``core.autocrlf``, ``core.fileMode``, LFS) changes the files that an agent sees or that
are written back.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dgm.archive.repository import apply_patch
from dgm.archive.snapshots import from_folder, from_names, write_folder
from dgm.domain import Snapshot
from dgm.errors import AgentFault, ArchiveCorrupt, Infrastructure, UserError

LIMIT_BYTES = 100_000_000
_SUBMODULE = b"160000 "


@dataclass(frozen=True, slots=True)
class UserFiles:
    """The files of a repository that its owner would commit."""

    files: Snapshot
    absent: tuple[str, ...] = ()
    """Parts that the agent does not see, a sentence each."""


def user_files(repo: Path) -> UserFiles:
    """Read tracked files and new ones that git does not ignore, those of checked-out submodules included.

    A folder that is in no git repository, or that a repository around it ignores, is taken whole.

    Raises:
        UserError: it is too large to be copied, or git refuses to read it.
    """
    try:
        if _run_git(repo, "rev-parse", "--is-inside-work-tree") != b"true\n":
            return UserFiles(from_folder(repo, limit_bytes=LIMIT_BYTES))
        names, absent = _list_files(repo)
        if not names:
            return UserFiles(from_folder(repo, limit_bytes=LIMIT_BYTES))
        return UserFiles(from_names(repo, names, limit_bytes=LIMIT_BYTES), tuple(absent))
    except AgentFault as error:
        raise UserError(f"{repo}: {error}; give a smaller folder") from error
    except OSError as error:
        raise UserError(f"{repo}: cannot be read: {error}") from error


def find_ignored_around(repo: Path, names: Iterable[str]) -> frozenset[str]:
    """Return those of ``names`` that rules outside of the folder ignore.

    These are ``.git/info/exclude``, the person's own excludes file, and ``.gitignore`` files of the folders
    around. The rules of the folder's own files are applied elsewhere, to the files as the agent left them.
    """
    # Git stops when it is asked about a file of a submodule.
    asked = [name for name in sorted(names) if not _is_in_submodule(repo, name)]
    given = b"".join(b"./" + os.fsencode(name) + b"\0" for name in asked)
    words = ["check-ignore", "--no-index", "--verbose", "-z", "--stdin"]
    fields = _start_git(repo, words, given).stdout.split(b"\0")[:-1]
    rows = zip(fields[::4], fields[2::4], fields[3::4], strict=True)
    top = repo.resolve()
    base = Path(os.fsdecode(_run_git(repo, "rev-parse", "--show-toplevel").rstrip(b"\n")) or repo)
    found = set()
    for source, pattern, name in rows:
        place = (base / os.fsdecode(source)).resolve()
        inside = place.name == ".gitignore" and place.is_relative_to(top)
        if not inside and not pattern.startswith(b"!"):
            found.add(os.fsdecode(name[2:]))
    return frozenset(found)


def write_back(repo: Path, patch: bytes, names: Iterable[str]) -> None:
    """Apply a patch to the person's files, all of it or nothing.

    Args:
        repo: the folder of which the agent had a copy.
        patch: the change.
        names: the files that it creates, changes or removes.

    Raises:
        UserError: it does not fit, because the files have changed meanwhile, or they cannot be written.
    """
    touched = sorted(set(names))
    try:
        before = from_names(repo, touched)
        after = apply_patch(before, patch)
    except ArchiveCorrupt as error:
        raise UserError(f"{repo}: the change does not apply any more ({error})") from error
    except AgentFault as error:
        raise UserError(f"{repo}: {error}") from error
    changed = {name: entry for name, entry in after.items() if before.get(name) != entry}
    removed = [name for name in before if name not in after]
    modes = {name: (repo / name).stat().st_mode for name in changed if (repo / name).is_file()}
    try:
        _replace(repo, changed, removed, modes)
    except (UserError, Infrastructure, OSError) as error:
        # Leave nothing half-written: restore the files.
        with suppress(UserError, Infrastructure, OSError):
            _replace(repo, before, [name for name in changed if name not in before], modes)
        raise UserError(f"{repo}: the change cannot be written: {error}") from error


def apply_command(repo: Path, file: Path) -> str:
    """Return the command that applies a patch file to the folder."""
    import shlex

    prefix = os.fsdecode(_run_git(repo, "rev-parse", "--show-prefix").strip())
    if not prefix:
        return shlex.join(["git", "-C", str(repo), "apply", str(file)])
    top = os.fsdecode(_run_git(repo, "rev-parse", "--show-toplevel").rstrip(b"\n"))
    return shlex.join(["git", "-C", top, "apply", f"--directory={prefix}", str(file)])


def _replace(repo: Path, written: Snapshot, removed: Sequence[str], modes: dict[str, int]) -> None:
    # Remove first: a folder may replace a file.
    for name in removed:
        (repo / name).unlink(missing_ok=True)
        for parent in (repo / name).parents:
            if parent == repo or any(parent.iterdir()):
                break
            parent.rmdir()
    write_folder(written, repo)
    for name, mode in modes.items():
        if name in written and not (repo / name).is_symlink():
            executable = 0o111 & (mode | (mode & 0o444) >> 2) if written[name].mode & 0o100 else 0
            (repo / name).chmod((mode & 0o666) | executable)


def _list_files(repo: Path) -> tuple[list[str], list[str]]:
    """Return the files below a work tree as git lists them, and sentences on the parts left out."""
    listed = _run_git_or_raise(
        repo, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "."
    )
    names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    staged = _run_git_or_raise(repo, "ls-files", "-z", "--stage", "--", ".").split(b"\0")
    modules = sorted({os.fsdecode(row.partition(b"\t")[2]) for row in staged if row.startswith(_SUBMODULE)})
    absent = [
        f"{name} is a repository of its own: the agent does not see it"
        for name in names
        if name.endswith("/")
    ]
    for module in modules:
        if (repo / module / ".git").exists():
            below, more = _list_files(repo / module)
            names += [f"{module}/{name}" for name in below]
            absent += [f"{module}/{one}" for one in more]
        else:
            absent.append(f"the submodule {module} is not checked out: the agent does not see it")
    return [name for name in names if not name.endswith("/") and name not in modules], absent


def _is_in_submodule(repo: Path, name: str) -> bool:
    folders = Path(name).parents
    return any((repo / folder / ".git").exists() for folder in folders if folder != Path())


def _run_git(repo: Path, *words: str) -> bytes:
    """Return git's output; empty if this is no repository.

    Raises:
        UserError: there is a repository that git refuses to read.
    """
    done = _start_git(repo, words)
    said = done.stderr.decode("utf-8", "replace").strip()
    if done.returncode and "not a git repository" not in said and "must be run in a work tree" not in said:
        raise UserError(
            f"{repo}: git cannot read this repository: {said.splitlines()[0] if said else 'no reason'}"
        )
    return b"" if done.returncode else done.stdout


def _run_git_or_raise(repo: Path, *words: str) -> bytes:
    done = _start_git(repo, words)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UserError(f"{repo}: git cannot list its files: {said[0] if said else 'no reason given'}")
    return done.stdout


def _start_git(repo: Path, words: Sequence[str], given: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    git = shutil.which("git")
    if git is None:
        raise UserError("git is not installed; dgm needs it (for example: apt-get install git)")
    return subprocess.run(
        [git, *words], cwd=repo, env=_environment(), input=given, capture_output=True, check=False
    )


def _environment() -> dict[str, str]:
    """Return this process's environment without variables that name another repository than the folder's own."""
    others = (
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_PREFIX",
        "GIT_OBJECT_DIRECTORY",
        "GIT_COMMON_DIR",
    )
    return {key: value for key, value in os.environ.items() if key not in others} | {
        "LC_ALL": "C.UTF-8",
        "GIT_OPTIONAL_LOCKS": "0",
    }
