"""A git repository on this machine, of the user or of a stranger: git sees its objects or its index, and nothing else.

Git runs in a private folder with dgm's configuration. So no setting, hook, filter, attribute, signature, graft or
promise of the repository takes effect. Links and alternates, which lead out of it, are refused where objects are read.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from dgm.archive.git_process import ObjectFolder
from dgm.archive.objects import CONFIG, storable
from dgm.archive.snapshots import FILE, LINK, PROGRAM, check_name
from dgm.bounded_reading import read_file
from dgm.domain import Entry, Snapshot
from dgm.errors import ArchiveCorrupt, UserError
from dgm.processes import run_apart

OBJECTS_S, LIST_S = 600.0, 120.0
_MODES = {f"{mode:o}".encode(): mode for mode in (FILE, PROGRAM, LINK)}
_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = re.compile(r"ref: (refs/(?!.*\.\.)[^\s\0\\:?*\[~^]+)")
_MOST_REFS = 5
"""Maximum number of symbolic refs between HEAD and a commit."""
_SETTINGS = {"core.fsmonitor": "false", "core.hooksPath": "/dev/null", "core.untrackedCache": "false"}
"""Settings over those of the user where files of a work tree are listed."""


@dataclass(frozen=True)
class LocalRepository:
    """A bare repository, or one with a work tree."""

    git: Path
    """Folder of HEAD and the index."""
    common: Path
    """Folder of the objects and refs; another one for a worktree that ``git worktree add`` made."""
    top: Path | None
    """Top of the work tree; None for a bare repository."""
    foreign: bool = False
    """True if the ``.git`` names a folder that does not name it back."""

    @classmethod
    def find(cls, folder: Path) -> Self | None:
        """Return the repository that a folder is or lies in, as git looks for it; None if there is none.

        Raises:
            UserError: its ``.git`` is damaged.
        """
        here = folder.resolve()
        for each in (here, *here.parents):
            if _has_mark(each):
                return cls.of_work_tree(each)
            if (each / "HEAD").is_file() and all((each / part).is_dir() for part in ("objects", "refs")):
                return cls(each, each, None)
        return None

    @classmethod
    def of_work_tree(cls, top: Path) -> Self:
        """Return the repository whose work tree has this top.

        Raises:
            UserError: its ``.git`` is damaged.
        """
        mark = top / ".git"
        if mark.is_dir():
            return cls(mark, mark, top)
        try:
            key, _, name = _read_text(mark).partition(": ")
            git = (top / name).resolve()
            if key != "gitdir" or not git.is_dir():
                raise UserError(f"{top}: git cannot read this repository: its .git names no folder")
            shares = (git / "commondir").is_file()
            common = (git / _read_text(git / "commondir")).resolve() if shares else git
            back = (git / _read_text(git / "gitdir")).resolve() if (git / "gitdir").is_file() else None
        except (OSError, ArchiveCorrupt) as error:
            raise UserError(f"{top}: git cannot read this repository: {error}") from error
        is_module = not shares and any(git.is_relative_to(each / ".git" / "modules") for each in top.parents)
        is_worktree = back == mark and git.parent == common / "worktrees"
        return cls(git, common, top, not (is_module or is_worktree))

    @property
    def place(self) -> Path:
        """The folder that a user knows it by."""
        return self.top or self.git

    @cached_property
    def head(self) -> str:
        """The id of the current commit.

        Raises:
            UserError: there is none.
        """
        ref = self._read_head()
        for _ in range(_MOST_REFS):
            if _ID.fullmatch(ref):
                return ref
            found = _REF.fullmatch(ref)
            ref = self._read_ref(found[1]) if found else ""
        why = "it has no commit yet"
        if (self.common / "reftable").is_dir():
            why = "dgm does not read reftables; run git refs migrate --ref-format=files"
        raise UserError(f"{self.place}: no git repository with a commit: {why}")

    def _read_head(self) -> str:
        try:
            text = _read_text(self.git / "HEAD")
        except (OSError, ArchiveCorrupt) as error:
            raise UserError(f"{self.git}: git cannot read this repository: {error}") from error
        if not (_ID.fullmatch(text) or _REF.fullmatch(text)):
            raise UserError(
                f"{self.git}: git cannot read this repository: its HEAD names no branch or commit"
            )
        return text

    def _read_ref(self, name: str) -> str:
        try:
            if (self.common / name).is_file():
                return _read_text(self.common / name)
            packed = _read_text(self.common / "packed-refs")
        except FileNotFoundError:
            return ""
        except (OSError, ArchiveCorrupt) as error:
            raise UserError(f"{self.common}: git cannot read this repository: {error}") from error
        return next((line[: -len(name) - 1] for line in packed.splitlines() if line.endswith(f" {name}")), "")

    def run(self, *arguments: str, given: bytes = b"") -> bytes:
        """Run git on the objects alone; return its output.

        Raises:
            UserError: git fails, an object is missing, or a link or an alternate leads out of the repository.
            Infrastructure: git takes longer than ten minutes.
        """
        try:
            return self._objects.run(*arguments, given=given)
        except ArchiveCorrupt as error:
            raise UserError(self._explain(str(error))) from error

    def _explain(self, message: str) -> str:
        if any((self.common / "objects" / "pack").glob("*.promisor")):
            return (
                f"{self.place}: a partial clone, which lacks files (git clone --filter); complete it: "
                f"git -C {self.place} fetch --refetch --no-filter"
            )
        return message

    @cached_property
    def _objects(self) -> ObjectFolder:
        if self.foreign:
            raise UserError(
                f"{self.top}: its .git names {self.git}, which does not name it back; name that folder"
            )
        try:
            lines = read_file(self.common / "shallow").decode("ascii", "replace").split()
        except FileNotFoundError:
            lines = []
        shallow = "".join(f"{line}\n" for line in lines if _ID.fullmatch(line)).encode()
        config = _config(uses_sha256=self._uses_sha256)
        return ObjectFolder(self.common, config=config, shallow=shallow, timeout_s=OBJECTS_S)

    def files(self, commit: str, *, most_bytes: int | None = None) -> Snapshot:
        """Return all files at a commit, sorted by name; submodules, and names that no folder may hold, are left out.

        Raises:
            UserError: as ``run``, or they are larger than ``most_bytes`` together.
        """
        rows = []
        total = 0
        for line in self.run("ls-tree", "-r", "-l", "-z", "--full-tree", commit).split(b"\0")[:-1]:
            about, _, name = line.partition(b"\t")
            mode, _, blob, size = about.split()
            if mode in _MODES:
                rows.append((check_name(os.fsdecode(name)), _MODES[mode], blob.decode()))
                total += int(size) if size.isdigit() else 0
        if most_bytes is not None and total > most_bytes:
            raise UserError(f"{self.place}: more than {most_bytes} bytes of files")
        blobs = self.read_blobs([blob for _, _, blob in rows])
        return storable({name: Entry(blobs[blob], mode) for name, mode, blob in sorted(rows)})

    def read_blobs(self, ids: Sequence[str]) -> Mapping[str, bytes]:
        """Return the contents of files by their object ids; each is read once."""
        wanted = [each for each in dict.fromkeys(ids) if each not in self._blobs]
        answer = self.run("cat-file", "--batch", given="".join(f"{each}\n" for each in wanted).encode())
        position = 0
        for _ in wanted:
            end = answer.index(b"\n", position)
            name, kind, *size = answer[position:end].split()
            if kind != b"blob":
                raise UserError(self._explain(f"{self.common}: the object {name.decode()} is missing"))
            self._blobs[name.decode()] = answer[end + 1 : end + 1 + int(size[0])]
            position = end + 2 + int(size[0])
        return self._blobs

    @cached_property
    def _blobs(self) -> dict[str, bytes]:
        """Blobs that were read: most files are the same in most commits."""
        return {}

    def run_on_files(
        self, *words: str, cwd: Path, given: bytes = b""
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run git on the work tree's files, the index and the ignore rules, those of the user included.

        Raises:
            UserError: git is not installed, takes longer than two minutes, or the repository has no HEAD.
        """
        self._read_head()
        with tempfile.TemporaryDirectory(prefix="dgm-") as name:
            folder = Path(name)
            for part in ("objects", "refs", "info"):
                (folder / part).mkdir()
            (folder / "HEAD").write_bytes(b"ref: refs/heads/none\n")
            (folder / "config").write_bytes(_config(uses_sha256=self._uses_sha256, bare=False))
            links = {"info/exclude": self.common / "info" / "exclude", "index": self.git / "index"}
            links |= {file.name: file for file in self.git.glob("sharedindex.*")}
            for link, file in links.items():
                if _is_file_in(file, self.git) or _is_file_in(file, self.common):
                    (folder / link).symlink_to(file)
            variables = {
                **_user_environment(),
                "GIT_DIR": name,
                "GIT_WORK_TREE": str(self.top),
                "GIT_OBJECT_DIRECTORY": str(self.common / "objects"),
            }
            settings = [word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")]
            return _run_git([*settings, *self._find_excludes(variables), *words], cwd, variables, given)

    def _find_excludes(self, variables: Mapping[str, str]) -> Sequence[str]:
        """Return the option for the file of ignore rules that the repository's own configuration names, if any."""
        if not _is_file_in(self.common / "config", self.common):
            return []
        words = ["config", "--file", str(self.common / "config"), "--no-includes", "--type=path"]
        done = _run_git([*words, "--get", "core.excludesFile"], self.common, variables)
        path = os.fsdecode(done.stdout.strip())
        return ["-c", f"core.excludesFile={path}"] if done.returncode == 0 and path else []

    @property
    def _uses_sha256(self) -> bool:
        config = self.common / "config"
        text = read_file(config.resolve()).lower() if _is_file_in(config, self.common) else b""
        return re.search(rb"objectformat\s*=\s*\"?sha256", text) is not None


def find_top(folder: Path) -> Path | None:
    """Return the top of the work tree that the folder lies in; None if there is no repository around it."""
    here = folder.resolve()
    return next((each for each in (here, *here.parents) if _has_mark(each)), None)


def _has_mark(folder: Path) -> bool:
    mark = folder / ".git"
    # Git passes over an empty folder of this name.
    return mark.is_symlink() or mark.is_file() or (mark.is_dir() and any(mark.iterdir()))


def _is_file_in(path: Path, folder: Path) -> bool:
    """Return whether a path is a file of the folder, and no link that leads out of it."""
    return path.is_file() and path.resolve().is_relative_to(folder.resolve())


def _read_text(path: Path) -> str:
    return read_file(path).decode("utf-8", "surrogateescape").strip()


def _config(*, uses_sha256: bool, bare: bool = True) -> bytes:
    text = CONFIG if bare else CONFIG.replace(b"bare = true", b"bare = false")
    if not uses_sha256:
        return text
    return text.replace(b"version = 0", b"version = 1") + b"[extensions]\n\tobjectFormat = sha256\n"


def _user_environment() -> dict[str, str]:
    """Return this process's environment without variables that name another repository or its configuration."""
    return {key: value for key, value in os.environ.items() if not key.startswith("GIT_") or key in _USER} | {
        "LC_ALL": "C.UTF-8",
        "GIT_OPTIONAL_LOCKS": "0",
        # A partial clone would fetch what it lacks by whatever command it names.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
    }


_USER = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM")


def _run_git(
    words: Sequence[str], cwd: Path, variables: Mapping[str, str], given: bytes = b""
) -> "subprocess.CompletedProcess[bytes]":
    try:
        return run_apart(["git", *words], cwd=cwd, env=variables, given=given, timeout_s=LIST_S)
    except FileNotFoundError as error:
        raise UserError("git is not installed; install it with your system's package manager") from error
    except subprocess.TimeoutExpired as error:
        raise UserError(f"{cwd}: git did not list its files within {LIST_S:.0f} s") from error
