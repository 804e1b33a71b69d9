"""A copy of the exercise, commands that run in it, and what came of its tests.

Standard library only, Python 3.9 or later: it runs in sandboxes.
"""

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_CHAINS = {".cpp": "cpp", ".go": "go", ".java": "java", ".js": "javascript", ".py": "python", ".rs": "rust"}
_TAIL_BYTES = 65_536
PASSED, FAILED, UNUSABLE = 0, 1, 2


class Unusable(Exception):
    """What happened says nothing of the solution: a wrong use, or no tool chain."""


@dataclass(frozen=True)
class Outcome:
    """What a test tool reported."""

    passed: int = 0
    failed: int = 0
    built: bool = True

    def __str__(self) -> str:
        if not self.built:
            return "it does not build"
        if self.failed:
            return f"{self.failed} of {self.passed + self.failed} failed"
        return f"{self.passed} passed" if self.passed else "no test ran"

    def __add__(self, other: "Outcome") -> "Outcome":
        built = self.built and other.built
        return Outcome(self.passed + other.passed, self.failed + other.failed, built)

    @property
    def good(self) -> bool:
        """Whether at least one test ran and all passed."""
        return self.built and self.passed > 0 and self.failed == 0


@dataclass(frozen=True)
class Exercise:
    """A copy that may be built in."""

    folder: Path
    scratch: Path
    """Empty, for whatever the tools write."""
    tests: Sequence[str]
    """The test files, relative to the folder."""

    def run(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> "tuple[int, str]":
        """Runs a tool in the folder with its output shown; returns its exit code and the end of what it said."""
        environment = {**os.environ, "HOME": str(self.scratch), **(env or {})}
        tail = b""
        with subprocess.Popen(
            list(command),
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as tool:
            assert tool.stdout is not None
            while part := os.read(tool.stdout.fileno(), _TAIL_BYTES):
                show(part)
                tail = (tail + part)[-_TAIL_BYTES:]
        return tool.returncode, tail.decode("utf-8", "replace")


def show(output: bytes) -> None:
    """Prints what a tool said, whatever bytes it said."""
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()


def need(*commands: str) -> None:
    """Makes sure that the tool chain is there.

    Raises:
        Unusable: it is not.
    """
    missing = [command for command in commands if shutil.which(command) is None]
    if missing:
        raise Unusable(f"not installed here: {', '.join(missing)}")


def main(tests: Sequence[str]) -> int:
    """Runs the tests and returns the exit code."""
    try:
        outcome = _tested(tests)
    except Unusable as error:
        show(f"run-tests: {error}\n".encode())
        return UNUSABLE
    show(f"\nrun-tests: {outcome}\n".encode())
    return PASSED if outcome.good else FAILED


def _tested(tests: Sequence[str]) -> Outcome:
    here = Path.cwd()
    chain = importlib.import_module(f"chains.{_chain(here, tests)}")
    with _room() as room:
        folder = room / "copy" / "exercise"
        try:
            shutil.copytree(here, folder, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        except (shutil.Error, OSError) as error:
            raise Unusable(f"cannot copy the exercise to {room}: {error}") from error
        scratch = room / "scratch"
        scratch.mkdir()
        outcome: Outcome = chain.test(Exercise(folder, scratch, tests))
        return outcome


@contextmanager
def _room() -> Iterator[Path]:
    """A folder that is gone afterwards; always of one name if that is free, because tools print it."""
    room = Path(tempfile.gettempdir(), "run-tests")
    try:
        room.mkdir(mode=0o700)
    except FileExistsError:
        room = Path(tempfile.mkdtemp(prefix="run-tests-"))
    try:
        yield room
    finally:
        shutil.rmtree(room, ignore_errors=True)


def _chain(here: Path, tests: Sequence[str]) -> str:
    if not tests:
        raise Unusable("usage: run-tests TEST_FILE...")
    for test in tests:
        if Path(test).is_absolute() or ".." in Path(test).parts or not (here / test).is_file():
            raise Unusable(f"{test}: not a file below {here}")
    suffixes = {Path(test).suffix for test in tests} & set(_CHAINS)
    if len(suffixes) != 1:
        raise Unusable(f"{' '.join(tests)}: expected files of one language of {', '.join(_CHAINS)}")
    return _CHAINS[suffixes.pop()]
