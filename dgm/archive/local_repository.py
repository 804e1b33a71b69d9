"""A git repository on this machine, of the user or of a stranger: its objects, its files and its current commit.

Objects are read as ``dgm.archive.git`` reads them. Lists of files are git's own, with the rules of the user and of the
repository; no other setting, and no hook or filter of the repository, takes effect.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Self

from dgm.archive.git import REMOTE_S, Objects, first_line, run_git, user_environment
from dgm.archive.repository import read_files
from dgm.archive.snapshots import MAX_BYTES, storable
from dgm.domain import CommitId, Snapshot
from dgm.errors import UserError

_ID = re.compile(r"[0-9a-f]{40}")


class LocalRepository(Objects):
    """The objects of a repository. All errors are ``UserError``."""

    def __init__(self, place: Path, *, bare: bool = False) -> None:
        """Open the repository whose work tree has its top at ``place``, or the bare one at it.

        Raises:
            UserError: it is damaged, or its ``.git`` leads to a repository that is not its own.
        """
        self.place = place
        self.git = place if bare else place / ".git"
        words = ["rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir", "HEAD"]
        done = run_git(place, user_environment("none") | {"GIT_DIR": str(self.git)}, words)
        lines = done.stdout.decode("utf-8", "surrogateescape").splitlines()
        if len(lines) < 3:
            raise UserError(f"{place}: git cannot read this repository: {first_line(done.stderr)}")
        git, self.common = map(Path, lines[:2])
        self._current = CommitId(lines[2])
        self._is_native = self._names_its_own(git)
        shallow = self.common / "shallow"
        super().__init__(
            self.common,
            error=self._explain,
            shallow=shallow if shallow.is_file() else None,
            timeout_s=REMOTE_S,
        )

    @classmethod
    def find(cls, folder: Path) -> Self | None:
        """Return the repository that a folder is or lies in; None if there is none.

        Raises:
            UserError: as ``LocalRepository``.
        """
        here = folder.resolve()
        for place in (here, *here.parents):
            if _has_mark(place):
                return cls(place)
            if (place / "HEAD").is_file() and all((place / part).is_dir() for part in ("objects", "refs")):
                return cls(place, bare=True)
        return None

    def _names_its_own(self, git: Path) -> bool:
        """Return whether the folder of the repository is its own, or names the work tree back."""
        if git != self.common:
            back = git / "gitdir"
            return (
                git.parent == self.common / "worktrees"
                and back.is_file()
                and Path(back.read_text().strip()).resolve() == self.git
            )
        modules = [folder / ".git" / "modules" for folder in self.place.parents]
        return (git == self.git and not git.is_symlink()) or any(map(git.is_relative_to, modules))

    def _explain(self, message: str) -> UserError:
        if any((self.common / "objects" / "pack").glob("*.promisor")):
            message = (
                f"{self.place}: a partial clone, which lacks files (git clone --filter); complete it: "
                f"git -C {self.place} fetch --refetch --no-filter"
            )
        return UserError(message)

    @property
    def head(self) -> CommitId:
        """The id of the current commit.

        Raises:
            UserError: there is none, or its objects are another repository's.
        """
        if not self._is_native:
            raise UserError(
                f"{self.place}: its .git names {self.common}, which does not name it back; name that one"
            )
        if not _ID.fullmatch(self._current):
            why = "no git repository with a commit that has an id of 40 digits (SHA-1)"
            raise UserError(f"{self.place}: {why}")
        return self._current

    def get(self, name: str, kind: str) -> bytes:
        """Return one object like ``Objects.get``; blobs are remembered, as most commits have most of them."""
        if kind != "blob":
            return super().get(name, kind)
        if name not in self._blobs:
            self._blobs[name] = super().get(name, kind)
        return self._blobs[name]

    @cached_property
    def _blobs(self) -> dict[str, bytes]:
        return {}

    def files(self, commit: CommitId, limit_bytes: int = MAX_BYTES) -> Snapshot:
        """Return all files at a commit, sorted by name; submodules, and names that no folder may hold, are left out.

        Raises:
            UserError: an object is missing, or the files are larger than ``limit_bytes`` together.
        """
        return storable(dict(sorted(read_files(self, self.tree_of(commit), limit_bytes=limit_bytes))))

    def read_tags(self) -> Mapping[str, str]:
        """Return the commits of tags by the tags' names, in the order of the names.

        Raises:
            UserError: git cannot read them.
        """
        words = ["for-each-ref", "--format=%(refname:lstrip=2) %(objectname) %(*objectname)", "refs/tags/"]
        variables = user_environment("none") | {"GIT_DIR": str(self.git)}
        done = run_git(self.place, variables, words)
        if done.returncode:
            raise UserError(f"{self.place}: git cannot read this repository: {first_line(done.stderr)}")
        rows = [line.split(" ") for line in done.stdout.decode("utf-8", "replace").splitlines()]
        return {name: of_tag or commit for name, commit, of_tag in rows}

    def run_on_files(self, *words: str, cwd: Path, data: bytes = b"") -> bytes:
        """Run git on the names of the work tree's files, the index and the ignore rules, those of the user included.

        Raises:
            UserError: git cannot read them, or is not installed.
            Infrastructure: it takes longer than two minutes.
        """
        variables = user_environment("none") | {"GIT_DIR": str(self.git), "GIT_WORK_TREE": str(self.place)}
        done = run_git(cwd, variables, words, data)
        if done.returncode > 1 or (done.returncode and done.stderr):
            raise UserError(
                f"{cwd}: git cannot read this repository: {first_line(done.stderr) or 'no reason'}"
            )
        return done.stdout


def find_top(folder: Path) -> Path | None:
    """Return the top of the work tree that the folder lies in; None if there is no repository around it."""
    here = folder.resolve()
    return next((place for place in (here, *here.parents) if _has_mark(place)), None)


def _has_mark(folder: Path) -> bool:
    mark = folder / ".git"
    # Git passes over an empty folder of this name.
    return mark.is_symlink() or mark.is_file() or (mark.is_dir() and any(mark.iterdir()))
