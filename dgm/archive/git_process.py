"""Read-only git: run on object ids only, with no configuration except the one given here.

No hook, filter, attribute, text conversion or submodule of an agent's tree takes effect. The git configurations of the
user and the machine have no effect either.
"""

import os
import subprocess
from pathlib import Path
from typing import IO, Self

from dgm.archive.objects import object_id
from dgm.domain import CommitId
from dgm.errors import ArchiveCorrupt, Infrastructure, UserError
from dgm.processes import run_apart, start_apart

_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.attributesFile": "/dev/null",
    "core.fsmonitor": "false",
    "core.quotePath": "true",
    "diff.external": "",
    "protocol.allow": "never",
    # Since 2.43, a bare repository would take attributes from the tree that HEAD names.
    "attr.tree": _EMPTY_TREE,
    # The user names the run, so the owner of its files does not matter.
    "safe.directory": "*",
}
_TIMEOUT_S = 120.0


def run_git(repository: Path, *arguments: str, given: bytes = b"") -> bytes:
    """Run git on a bare repository with ``given`` as its input; return its output.

    Raises:
        ArchiveCorrupt: git fails; the message has the first line of its error output.
        Infrastructure: git takes longer than two minutes.
        UserError: git is not installed.
    """
    try:
        done = run_apart(
            ["git", "--git-dir=.", *arguments],
            env=environment(),
            cwd=repository,
            given=given,
            timeout_s=_TIMEOUT_S,
        )
    except FileNotFoundError as error:
        raise _explain_missing(repository) from error
    except subprocess.TimeoutExpired as error:
        raise Infrastructure(
            f"git {arguments[0]} on {repository} took more than {_TIMEOUT_S:.0f} s"
        ) from error
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().split("\n", 1)[0]
        raise ArchiveCorrupt(f"{repository}: git {arguments[0]}: {said or f'exit code {done.returncode}'}")
    return done.stdout


class GitObjects:
    """One ``git cat-file --batch`` process, asked for one object at a time."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        try:
            self._git = start_apart(
                ["git", "--git-dir=.", "cat-file", "--batch"],
                env=environment(),
                cwd=repository,
                stderr=subprocess.DEVNULL,
            )
        except FileNotFoundError as error:
            raise _explain_missing(repository) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _require_pipe(self._git.stdin).close()
        _require_pipe(self._git.stdout).close()
        self._git.wait(_TIMEOUT_S)

    def get(self, name: str, kind: str) -> bytes:
        """Return the content of one object.

        Raises:
            ArchiveCorrupt: the object is missing, of another kind, or damaged.
        """
        asked, answered = _require_pipe(self._git.stdin), _require_pipe(self._git.stdout)
        try:
            asked.write(name.encode() + b"\n")
            asked.flush()
        except BrokenPipeError as error:
            raise ArchiveCorrupt(f"{self._repository}: {kind} {name} cannot be read") from error
        answer = answered.readline().split()
        if len(answer) != 3 or answer[1] != kind.encode():
            raise ArchiveCorrupt(f"{self._repository}: {kind} {name} is missing or damaged")
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
