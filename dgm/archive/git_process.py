"""Git: run on object ids only, with no configuration except the one given here.

No hook, filter, attribute, text conversion or submodule of an agent's tree takes effect. The git configurations of the
user and the machine have no effect either. A repository may come from a stranger: git sees its folder ``objects`` and
nothing else of it (``ObjectFolder``).
"""

import os
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Self

from dgm.archive.objects import CONFIG, object_id
from dgm.archive.snapshots import MAX_BYTES
from dgm.domain import COMMIT, CommitId
from dgm.errors import ArchiveCorrupt, Infrastructure, UserError
from dgm.processes import run_apart, start_apart

_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.attributesFile": "/dev/null",
    "core.fsmonitor": "false",
    "core.quotePath": "true",
    "diff.external": "",
    "core.commitGraph": "false",
    "core.multiPackIndex": "false",
    "core.useReplaceRefs": "false",
    "pack.useBitmaps": "false",
    "gc.auto": "0",
    "protocol.allow": "never",
    # Since 2.43, a bare repository would take attributes from the tree that HEAD names.
    "attr.tree": _EMPTY_TREE,
    # The user names the run, so the owner of its files does not matter.
    "safe.directory": "*",
}
_TIMEOUT_S = 120.0
_MEMORY = "1g"
"""Maximum memory of one piece that git may ask for; an object may claim to be of any size."""


def run_git(repository: Path, *arguments: str, given: bytes = b"") -> bytes:
    """Run git on a bare repository that this process made, with ``given`` as its input; return its output.

    Raises:
        ArchiveCorrupt: git fails; the message has the first line of its error output.
        Infrastructure: git takes longer than two minutes.
        UserError: git is not installed.
    """
    return _run(repository, repository, environment(), arguments, given)


class ObjectFolder:
    """The objects of a repository. Git reads them from a private repository with dgm's configuration.

    So the repository's configuration, hooks, attributes, grafts, replaced commits, worktrees and promises of a partial
    clone have no effect. Links and alternates, which lead out of the folder, are refused.
    """

    def __init__(
        self,
        repository: Path,
        below: Path | None = None,
        *,
        config: bytes = CONFIG,
        shallow: bytes = b"",
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        """Read ``repository``, and what it lacks from the objects of the ``agents.git`` ``below``.

        Args:
            repository: a bare repository, or the ``.git`` of another.
            below: another one.
            config: the configuration of the private repository.
            shallow: ids of the commits at which the history ends, a line each.
            timeout_s: for each call of git.
        """
        self.repository = repository
        self._objects = [each.absolute() / "objects" for each in (repository, below) if each]
        self._files = {"config": config, **({"shallow": shallow} if shallow else {})}
        self._timeout_s = timeout_s
        self._checked = False

    def run(self, *arguments: str, given: bytes = b"", refs: Mapping[str, CommitId] | None = None) -> bytes:
        """Run git with ``given`` as its input and these branches; return its output.

        Raises:
            ArchiveCorrupt: git fails, or the folder holds a link or names another one.
            Infrastructure: git takes too long.
            UserError: git is not installed.
        """
        with self.private(refs or {}) as (folder, variables):
            return _run(self.repository, folder, variables, arguments, given, self._timeout_s)

    @contextmanager
    def private(self, refs: Mapping[str, CommitId]) -> Iterator[tuple[Path, Mapping[str, str]]]:
        """Yield a temporary repository without objects, and the environment in which git finds them.

        Raises:
            ArchiveCorrupt: the folder is missing, holds a link or names another one.
        """
        self._check()
        with tempfile.TemporaryDirectory(prefix="dgm-") as name:
            folder = Path(name)
            (folder / "refs").mkdir()
            (folder / "HEAD").write_bytes(b"ref: refs/heads/none\n")
            for file, data in self._files.items():
                (folder / file).write_bytes(data)
            lines = "".join(f"{commit} refs/heads/{ref}\n" for ref, commit in sorted(refs.items()))
            (folder / "packed-refs").write_text(f"# pack-refs with: sorted\n{lines}")
            objects, *below = self._objects
            for each in below:
                (folder / "below").symlink_to(each)
            yield (
                folder,
                environment()
                | {"GIT_OBJECT_DIRECTORY": str(objects)}
                | ({"GIT_ALTERNATE_OBJECT_DIRECTORIES": "below"} if below else {}),
            )

    def _check(self) -> None:
        """Raise if git would read outside the folder, or wait for a pipe; look once."""
        if self._checked:
            return
        for objects in self._objects:
            try:
                _check_folder(objects.parent)
                _check_folder(objects)
                with os.scandir(objects) as entries:
                    for entry in entries:
                        if not entry.is_file(follow_symlinks=False):
                            _check_folder(Path(entry.path))
                            _check_files(Path(entry.path))
                if any((objects / "info" / name).exists() for name in ("alternates", "http-alternates")):
                    raise ArchiveCorrupt(
                        f"{objects}/info/alternates: names another folder; "
                        "if you trust it, run git repack -a -d, and delete it"
                    )
            except FileNotFoundError as error:
                raise _explain_missing(objects) from error
        self._checked = True


def _check_folder(folder: Path) -> None:
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise ArchiveCorrupt(f"{folder}: a link, or no folder; no link in a repository is followed")


def _check_files(folder: Path) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            # Git's own maintenance makes folders of graphs; they are not read.
            kept = folder.name in ("info", "pack") and entry.is_dir(follow_symlinks=False)
            if not kept and not entry.is_file(follow_symlinks=False):
                raise ArchiveCorrupt(f"{entry.path}: not a file; no link in a repository is followed")


def _run(
    repository: Path,
    folder: Path,
    variables: Mapping[str, str],
    arguments: tuple[str, ...],
    given: bytes,
    timeout_s: float = _TIMEOUT_S,
) -> bytes:
    try:
        done = run_apart(
            ["git", "--git-dir=.", *arguments], env=variables, cwd=folder, given=given, timeout_s=timeout_s
        )
    except FileNotFoundError as error:
        raise _explain_missing(repository) from error
    except subprocess.TimeoutExpired as error:
        raise Infrastructure(
            f"git {arguments[0]} on {repository} took more than {timeout_s:.0f} s"
        ) from error
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().split("\n", 1)[0]
        raise ArchiveCorrupt(f"{repository}: git {arguments[0]}: {said or f'exit code {done.returncode}'}")
    return done.stdout


class GitObjects:
    """One ``git cat-file --batch`` process, asked for one object at a time."""

    def __init__(self, objects: ObjectFolder) -> None:
        self._repository = objects.repository
        self._open = ExitStack()
        folder, variables = self._open.enter_context(objects.private({}))
        try:
            self._git = start_apart(
                ["git", "--git-dir=.", "cat-file", "--batch"],
                env=variables,
                cwd=folder,
                stderr=subprocess.DEVNULL,
            )
        except FileNotFoundError as error:
            self._open.close()
            raise _explain_missing(self._repository) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._open:
            with suppress(BrokenPipeError):
                _require_pipe(self._git.stdin).close()
            _require_pipe(self._git.stdout).close()
            self._git.wait(_TIMEOUT_S)

    def get(self, name: str, kind: str) -> bytes:
        """Return the content of one object.

        Raises:
            ArchiveCorrupt: the object is missing, of another kind, larger than an agent may be, or damaged.
        """
        if not COMMIT.fullmatch(name):
            raise ArchiveCorrupt(
                f"{self._repository}: what the log or a ref names is not a {kind} (40 or 64 hexadecimal digits)"
            )
        asked, answered = _require_pipe(self._git.stdin), _require_pipe(self._git.stdout)
        try:
            asked.write(name.encode() + b"\n")
            asked.flush()
        except BrokenPipeError as error:
            raise ArchiveCorrupt(f"{self._repository}: {kind} {name} cannot be read") from error
        answer = answered.readline().split()
        if len(answer) != 3 or answer[1] != kind.encode():
            raise ArchiveCorrupt(f"{self._repository}: {kind} {name} is missing or damaged")
        if int(answer[2]) > MAX_BYTES:
            raise ArchiveCorrupt(f"{self._repository}: {kind} {name} is larger than {MAX_BYTES} bytes")
        data = answered.read(int(answer[2]))
        answered.read(1)
        if object_id(kind, data) != name:
            raise ArchiveCorrupt(f"{self._repository}: {kind} {name} is damaged")
        return data

    def tree_of(self, commit: CommitId) -> str:
        """Return the tree that a commit names."""
        return self._read_header_field(commit, "tree")[0]

    def parents_of(self, commit: CommitId) -> tuple[CommitId, ...]:
        """Return the parents that a commit names."""
        return tuple(CommitId(parent) for parent in self._read_header_field(commit, "parent"))

    def _read_header_field(self, commit: CommitId, field: str) -> list[str]:
        header = self.get(commit, "commit").decode(errors="replace").split("\n\n", 1)[0]
        pairs = (line.partition(" ") for line in header.split("\n"))
        return [value for key, _, value in pairs if key == field]


def environment() -> dict[str, str]:
    """Return the complete environment of git processes."""
    settings = {
        variable: text
        for n, (key, value) in enumerate(_SETTINGS.items())
        for variable, text in ((f"GIT_CONFIG_KEY_{n}", key), (f"GIT_CONFIG_VALUE_{n}", value))
    }
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_ALLOC_LIMIT": _MEMORY,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
        **settings,
    }


def _require_pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise AssertionError("git was started with pipes")
    return pipe


def _explain_missing(repository: Path) -> UserError | ArchiveCorrupt:
    if not repository.is_dir():
        return ArchiveCorrupt(f"{repository}: missing; restore it from a copy")
    return UserError("git is not installed; install it with your system's package manager")
