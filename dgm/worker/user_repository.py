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
from dgm.processes import run_apart

LIMIT_BYTES = 100_000_000
GIT_TIMEOUT_S = 120.0
_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.untrackedCache": "false",
}
"""Settings over those of a repository, which may be a stranger's: it runs no program."""
_SUBMODULE = b"160000 "


@dataclass(frozen=True, slots=True)
class UserFiles:
    """The files of a repository that its owner would commit."""

    files: Snapshot
    absent: tuple[str, ...] = ()
    """Parts that the agent does not see, a sentence each."""


def user_files(repo: Path) -> UserFiles:
    """Read tracked files and new ones that git does not ignore, those of checked-out submodules included.

    A folder that is in no git repository, or that a repository around it ignores, is taken whole. One that git
    does not read, whatever the reason, never is: it may hold files that its owner would not show.

    Raises:
        UserError: it is too large to be copied, or git refuses to read it.
    """
    try:
        top = _find_top(repo)
        if top is None:
            return UserFiles(from_folder(repo, limit_bytes=LIMIT_BYTES))
        names, absent = _list_files(repo)
        if not names and top != repo.resolve():
            return UserFiles(from_folder(repo, limit_bytes=LIMIT_BYTES))
        found = from_names(repo, _without_linked(repo, names), limit_bytes=LIMIT_BYTES)
        return UserFiles(found, tuple(absent))
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
    if _find_top(repo) is None:
        return frozenset()
    fields = _start_git(repo, words, given).stdout.split(b"\0")[:-1]
    rows = zip(fields[::4], fields[2::4], fields[3::4], strict=True)
    top = repo.resolve()
    base = _find_top(repo) or repo
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
        before = from_names(repo, _without_linked(repo, touched))
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

    top = _find_top(repo)
    if top is None or top == repo.resolve():
        return shlex.join(["git", "-C", str(repo), "apply", str(file)])
    prefix = repo.resolve().relative_to(top).as_posix()
    return shlex.join(["git", "-C", str(top), "apply", f"--directory={prefix}/", str(file)])


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


def _find_top(repo: Path) -> Path | None:
    """Return the top of the work tree that the folder lies in; None if there is no repository around it."""
    here = repo.resolve()
    for folder in (here, *here.parents):
        mark = folder / ".git"
        # Git passes over an empty folder of this name.
        if mark.is_symlink() or mark.is_file() or (mark.is_dir() and any(mark.iterdir())):
            return folder
    return None


def _without_linked(repo: Path, names: Iterable[str]) -> list[str]:
    """Return the names without those that lead through a link, which to git are no files of the repository."""
    real: dict[str, bool] = {"": True}
    for name in names:
        parent = name.rpartition("/")[0]
        if parent not in real:
            folders = [repo / parent, *list((repo / parent).parents)[: parent.count("/")]]
            real[parent] = not any(folder.is_symlink() for folder in folders)
    return [name for name in names if real[name.rpartition("/")[0]]]


def _list_files(repo: Path) -> tuple[list[str], list[str]]:
    """Return the files below a work tree as git lists them, and sentences on the parts left out."""
    listed = _run_git(repo, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ".")
    names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    staged = _run_git(repo, "ls-files", "-z", "--stage", "--", ".").split(b"\0")
    modules = sorted({os.fsdecode(row.partition(b"\t")[2]) for row in staged if row.startswith(_SUBMODULE)})
    absent = [
        f"{name} is a repository of its own: the agent does not see it"
        for name in names
        if name.endswith("/")
    ]
    for module in modules:
        if _without_linked(repo, [f"{module}/.git"]) and (repo / module / ".git").exists():
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
    done = _start_git(repo, words)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UserError(f"{repo}: git cannot read this repository: {said[0] if said else 'no reason given'}")
    return done.stdout


def _start_git(repo: Path, words: Sequence[str], given: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    git = shutil.which("git")
    if git is None:
        raise UserError("git is not installed; dgm needs it (for example: apt-get install git)")
    settings = {**_SETTINGS, "safe.directory": str(_find_top(repo))}
    options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    try:
        return run_apart(
            [git, *options, *words], cwd=repo, env=_environment(), given=given, timeout_s=GIT_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(f"{repo}: git did not list its files within {GIT_TIMEOUT_S:.0f} s") from error


def _environment() -> dict[str, str]:
    """Return this process's environment without variables that name another repository than the folder's own."""
    others = (
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_PREFIX",
        "GIT_OBJECT_DIRECTORY",
        "GIT_COMMON_DIR",
        "GIT_CEILING_DIRECTORIES",
    )
    return {key: value for key, value in os.environ.items() if key not in others} | {
        "LC_ALL": "C.UTF-8",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM": "1",
        # A partial clone would fetch what it lacks by whatever command it names.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
    }
