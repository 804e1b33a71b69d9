"""The one door to git: GitPython, with an environment of dgm's own.

Objects are read and written as if their repository were a worktree of ``empty.git``, which is part of dgm. Git sees the
configuration of that one and the folder ``objects`` of the repository at hand. So no setting, hook, filter, attribute,
graft or replaced commit of a repository, a user or the machine takes effect.
"""

import os
import re
import signal
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from dgm.archive.snapshots import FILE, LINK, MAX_BYTES, MAX_FILES, PROGRAM, storable
from dgm.domain import CommitId, Entry, Snapshot
from dgm.errors import ArchiveCorrupt, DgmError, Infrastructure, UserError
from dgm.processes import kill_group, run_apart, start_apart

if TYPE_CHECKING:
    import git


EMPTY = Path(__file__).with_name("empty.git")
OBJECT = re.compile(r"[0-9a-f]{40}")
_COMMAND = re.compile(r"[a-z][a-z-]+")
_FOLDER = 0o40000
_MODES = {b"%o" % mode for mode in (FILE, PROGRAM, LINK, _FOLDER)}
TIMEOUT_S = 120.0
REMOTE_S = 600.0
"""Time limit for repositories of others, of any size."""
_MEMORY = "1g"
"""Maximum memory of one piece that git may ask for; an object may claim to be of any size."""
_USERS = (
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
)


def clean_environment() -> dict[str, str]:
    """Return the complete environment of git where nothing of the user or the machine may take effect."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "GIT_DIR": ".",
        "GIT_COMMON_DIR": str(EMPTY),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_ALLOC_LIMIT": _MEMORY,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }


def user_environment(transports: str) -> dict[str, str]:
    """Return this process's environment without variables that name another repository.

    The user's configuration counts: it holds rules of what is ignored, keys, helpers and proxies.

    Args:
        transports: git's transports that may be used, with colons between.
    """
    settings = {"core.hooksPath": os.devnull, "core.fsmonitor": "false", "safe.directory": "*"}
    settings |= {"core.untrackedCache": "false", "submodule.recurse": "false"}
    pairs = [
        (f"GIT_CONFIG_{part}_{number}", text)
        for number, setting in enumerate(settings.items())
        for part, text in zip(("KEY", "VALUE"), setting, strict=True)
    ]
    inherited = {
        name: text for name, text in os.environ.items() if not name.startswith("GIT_") or name in _USERS
    }
    return inherited | {
        "LC_ALL": "C.UTF-8",
        "GIT_ALLOW_PROTOCOL": transports,
        # A partial clone would fetch what it lacks by whatever command it names.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": str(len(settings)),
        **dict(pairs),
    }


@cache
def gitpython() -> "type[git.Repo]":
    """Return GitPython's ``Repo``, whose commands get exactly the variables that they are given.

    GitPython is imported here, where git is needed first: that takes 100 ms and asks git for its version.
    """
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")  # `execute` reports that git is missing
    import git

    class Command(git.Git):
        """Git in a session of its own, which Ctrl-C does not reach, for a limited time."""

        def execute(  # type: ignore[override]  # one kind of result instead of nine
            self,
            command: Sequence[str],
            istream: int | None = None,
            as_process: bool = False,
            data: bytes = b"",
            timeout_s: float = REMOTE_S,
            **_: object,
        ) -> Any:  # noqa: ANN401
            folder, variables = Path(str(self.working_dir)), self.environment()
            try:
                if not as_process:
                    return run_apart(command, cwd=folder, env=variables, given=data, timeout_s=timeout_s)
                lasting = istream is not None
                errors: int | IO[bytes] = subprocess.DEVNULL if lasting else subprocess.PIPE
                process = start_apart(command, cwd=folder, env=variables, stderr=errors)
            except FileNotFoundError as error:
                if folder.is_dir():
                    raise UserError(
                        "git is not installed; install it with your system's package manager"
                    ) from error
                raise ArchiveCorrupt(f"{folder}: missing; restore it from a copy") from error
            except subprocess.TimeoutExpired as error:
                raise Infrastructure(
                    f"{folder}: git {command[1]} took more than {timeout_s:.0f} s"
                ) from error
            if not lasting:
                watchdog = threading.Timer(timeout_s, kill_group, (process,))
                watchdog.daemon = True
                watchdog.start()
            return self.AutoInterrupt(process, command)

    class Repo(git.Repo):
        GitCommandWrapperType = Command

    return Repo


def run_git(
    folder: Path,
    variables: Mapping[str, str],
    words: Sequence[str],
    data: bytes = b"",
    timeout_s: float = TIMEOUT_S,
) -> "subprocess.CompletedProcess[bytes]":
    """Run git to its end with ``data`` as its input; return its output, whatever its exit code.

    Raises:
        ArchiveCorrupt: the folder is missing.
        Infrastructure: it takes longer than ``timeout_s``.
        UserError: git is not installed.
    """
    command = gitpython().GitCommandWrapperType(folder)
    command.update_environment(**variables)
    execute: Any = command.execute  # dgm's own, of which GitPython's types know nothing
    done: subprocess.CompletedProcess[bytes] = execute(["git", *words], data=data, timeout_s=timeout_s)
    return done


def clone_repository(url: str, folder: Path, transports: str) -> None:
    """Fetch the newest commit of a repository into a new bare one, with the user's own configuration.

    Args:
        url: its address; never taken for an option.
        folder: the new repository.
        transports: as in ``user_environment``.

    Raises:
        Infrastructure: it takes longer than ten minutes.
        UserError: it fails (the message is git's last line), git is not installed, or the address names a program.
    """
    repo = gitpython()
    import git

    variables = user_environment(transports) | {"GIT_TEMPLATE_DIR": ""}
    options: dict[str, Any] = {"bare": True, "depth": 1, "no_tags": True, "quiet": True}
    try:
        repo.clone_from(url, folder, env=variables, **options).close()
    except git.UnsafeProtocolError as error:
        raise UserError(f"{url}: git would run a program for this address") from error
    except git.GitCommandError as error:
        if error.status == -signal.SIGKILL:
            raise Infrastructure(f"{url}: git clone took more than {REMOTE_S:.0f} s") from error
        raise UserError(f"{url}: {last_line(str(error.stderr))}") from error


def last_line(output: str) -> str:
    """Return the last line of what git prints when it fails."""
    return output.strip(" \n'").rpartition("\n")[2] or "no reason"


def first_line(output: bytes) -> str:
    """Return the first line of what git prints."""
    return output.decode(errors="replace").strip().partition("\n")[0]


class Objects:
    """The objects of a repository. Links and alternates, which lead out of its folder, are refused.

    ``with`` ends the process that ``get`` uses.
    """

    def __init__(
        self,
        repository: Path,
        below: Path | None = None,
        *,
        error: Callable[[str], DgmError] = ArchiveCorrupt,
        shallow: Path | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Read ``repository``, and what it lacks from the one ``below``.

        Args:
            repository: a bare repository, or the ``.git`` of another.
            below: another one.
            error: makes the error for a failure of git or a missing object.
            shallow: file with the ids of the commits at which the history ends.
            timeout_s: for each call of ``run``.
        """
        self.repository = repository
        self.error = error
        self._folders = [folder.absolute() / "objects" for folder in (repository, below) if folder]
        self._shallow = shallow
        self._timeout_s = timeout_s
        self._reading = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "_batch" in self.__dict__:
            self._batch.clear_cache()

    @cached_property
    def variables(self) -> Mapping[str, str]:
        """The environment in which git sees the objects.

        Raises:
            ArchiveCorrupt: a folder is missing, holds a link or names another one; ``error`` if another was chosen.
        """
        for folder in self._folders:
            self._refuse_ways_out(folder)
        objects, *below = map(str, self._folders)
        return {
            **clean_environment(),
            "GIT_DIR": str(self.repository.absolute()),
            "GIT_OBJECT_DIRECTORY": objects,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": quote_name(below[0]).decode() if below else "",
            **({"GIT_SHALLOW_FILE": str(self._shallow)} if self._shallow else {}),
        }

    def _refuse_ways_out(self, objects: Path) -> None:
        if not objects.is_dir():
            raise self.error(f"{objects.parent}: missing; restore it from a copy")
        for path in (objects.parent, objects, *objects.iterdir(), *objects.glob("*/*")):
            with suppress(FileNotFoundError):  # another process packs the objects anew
                mode = path.lstat().st_mode
                if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                    message = "neither a file nor a folder; no link in a repository is followed"
                    raise self.error(f"{path}: {message}")
        if any((objects / "info" / name).exists() for name in ("alternates", "http-alternates")):
            raise self.error(
                f"{objects}/info/alternates: names another folder; if you trust it, run git repack -a -d, and delete it"
            )

    def run(self, *words: str, data: bytes = b"", highest_status: int = 0) -> bytes:
        """Run git with ``data`` as its input; return its output.

        Raises:
            ArchiveCorrupt: its exit code is above ``highest_status`` (the message is the first line of its errors), or
                as ``variables``; ``error`` if another was chosen.
            Infrastructure: it takes too long.
            UserError: git is not installed.
        """
        done = run_git(self.repository, self.variables, words, data, self._timeout_s)
        if 0 <= done.returncode <= highest_status:
            return done.stdout
        message = first_line(done.stderr or done.stdout) or f"exit code {done.returncode}"
        command = next(filter(_COMMAND.fullmatch, words))
        raise self.error(f"{self.repository}: git {command}: {message}")

    @cached_property
    def _batch(self) -> "git.Git":
        command = gitpython().GitCommandWrapperType(self.repository)
        command.update_environment(**self.variables)
        return command

    def get(self, name: str, kind: str) -> bytes:
        """Return the content of one object by its id, in any thread; all calls share one process.

        Raises:
            ArchiveCorrupt: it is missing, of another kind, larger than an agent may be, or damaged; ``error`` if
                another was chosen.
        """
        if not OBJECT.fullmatch(name.partition(":")[0]):
            raise self.error(
                f"{self.repository}: {name[:60]!r} is not the id of a {kind} (40 hexadecimal digits)"
            )
        # Two requests at once would get each other's answers.
        with self._reading, suppress(ValueError, OSError):
            _, stored_kind, size, stream = self._batch.stream_object_data(name)
            # GitPython's types promise text here; it is bytes.
            if (
                stored_kind in (kind, kind.encode())
                and size <= MAX_BYTES
                and len(data := stream.read(size)) == size
            ):
                return data
            del stream  # which skips the rest, so that the next answer is the next object's
        raise self.error(
            f"{self.repository}: {kind} {name} is missing, damaged or larger than {MAX_BYTES} bytes"
        )

    def tree_of(self, commit: CommitId) -> str:
        """Return the id of a commit's content."""
        return self._header(commit)["tree"][0]

    def parents_of(self, commit: CommitId) -> tuple[CommitId, ...]:
        """Return the parents that a commit names."""
        return tuple(map(CommitId, self._header(commit).get("parent", ())))

    def _header(self, commit: CommitId) -> Mapping[str, Sequence[str]]:
        return parse_header(self.get(commit, "commit"))


def parse_header(commit: bytes) -> Mapping[str, Sequence[str]]:
    """Return the fields before a commit's message; always with one tree."""
    fields: dict[str, list[str]] = {}
    for line in commit.partition(b"\n\n")[0].decode(errors="replace").split("\n"):
        name, _, value = line.partition(" ")
        fields.setdefault(name, []).append(value)
    return {"tree": [""], **fields}


def quote_name(name: str) -> bytes:
    """Return a name between quotation marks, as git reads any name."""
    return b'"%b"' % b"".join(b"\\%03o" % byte for byte in os.fsencode(name))


def read_files(
    objects: Objects, root: str, seen: set[str] | None = None, limit_bytes: int = MAX_BYTES
) -> Iterator[tuple[str, Entry]]:
    """Yield the files of a tree, by name.

    Args:
        objects: the repository.
        root: the tree.
        seen: objects to leave out, with all below them; those that are read are added. None: every file is wanted.
        limit_bytes: of all files together, with their names.

    Raises:
        ArchiveCorrupt: an object is missing or damaged, or there is too much; ``objects.error`` if another was chosen.
    """
    names, size = 0, 0
    waiting = [("", root)]
    while waiting:
        prefix, tree = waiting.pop()
        for mode, name, entry_id in _parse_tree(objects, tree):
            if seen is not None:
                if entry_id in seen:
                    continue
                seen.add(entry_id)
            names, size = names + 1, size + len(name)
            if mode == _FOLDER:
                waiting.append((f"{prefix}{name}/", entry_id))
            else:
                entry = Entry(objects.get(entry_id, "blob"), mode)
                size += len(entry.data)
                yield prefix + name, entry
            if names > 10 * MAX_FILES or size > limit_bytes:
                raise objects.error(
                    f"tree {root} holds more than {10 * MAX_FILES} names or {limit_bytes} bytes"
                )


def _parse_tree(objects: Objects, tree: str) -> Iterator[tuple[int, str, str]]:
    """Yield mode, name and id of each entry; submodules are left out."""
    data = objects.get(tree, "tree")
    while data:
        head, _, rest = data.partition(b"\0")
        mode, _, name = head.partition(b" ")
        if len(rest) < 20:
            raise objects.error(f"{objects.repository}: tree {tree} is damaged")
        if mode in _MODES:
            yield int(mode, 8), os.fsdecode(name), rest[:20].hex()
        data = rest[20:]


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
