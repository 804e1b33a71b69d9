"""Results of trials in a file that only grows, so that a stopped or killed study continues where it was.

A line is one JSON object: the trial, the fingerprint of the code that performed it, and its result. The file belongs
to no study: several studies may share it, and known trials are not repeated.
"""

import errno
import fcntl
import json
import os
from dataclasses import asdict, fields
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import TypeAdapter, ValidationError

from dgm.errors import Infrastructure, UserError
from dgm.simulate.fingerprint import fingerprint
from dgm.simulate.trial import SHARES, Result, Trial

_START = b'{"trial": {'
_TRIAL, _RESULT = TypeAdapter(Trial), TypeAdapter(Result)
_FIELDS = {kind: {field.name for field in fields(kind)} for kind in (Trial, Result)}


class Results:
    """A file of results, open for reading and appending by one process at a time; ``with`` closes it."""

    def __init__(self, path: Path | None) -> None:
        """Open the file; create it where there is none.

        Args:
            path: the file; None to keep results nowhere.

        Raises:
            UserError: the file cannot be written, another process writes it, or it holds something else.
        """
        self._path = path
        self._known: dict[tuple[Trial, str], Result] = {}
        self._file = -1
        if path is not None:
            self._file = _open(path)
            try:
                self._load(path)
            except BaseException:
                os.close(self._file)
                raise

    def get(self, trial: Trial) -> Result | None:
        """Return the result of a trial that the current code performed; None where there is none."""
        return self._known.get((trial, fingerprint(trial.policy, trial.family, trial.budget)))

    def add(self, trial: Trial, result: Result) -> None:
        """Append a result; it is in the file when this returns.

        Raises:
            Infrastructure: the disk is full or failing.
        """
        version = fingerprint(trial.policy, trial.family, trial.budget)
        if self._file >= 0:
            line = json.dumps({"trial": asdict(trial), "version": version, "result": asdict(result)})
            self._write(line.encode() + b"\n")
        self._known[trial, version] = result

    def close(self) -> None:
        """Close the file and release its lock for the next writer."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, line: bytes) -> None:
        """Write a line with one system call, and remove a line that was written in part.

        So an incomplete line can only be the last one, left by a dying process.

        Raises:
            Infrastructure: the disk is full or failing.
        """
        before = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, line)
            if written < len(line):
                os.ftruncate(self._file, before)
        except OSError as error:
            raise Infrastructure(error.errno, f"cannot write {self._path}: {error.strerror}") from error
        if written < len(line):
            raise Infrastructure(errno.ENOSPC, f"cannot write {self._path}: {os.strerror(errno.ENOSPC)}")

    def _load(self, path: Path) -> None:
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[:whole].splitlines(), 1):
            try:
                trial, version, result = _read(line)
                if result is not None:
                    self._known[trial, version] = result
            except ValueError as error:
                raise UserError(
                    f"{path}:{number}: not a result ({_why(error)}); mend that line, or choose another file"
                ) from error
        if whole < len(content):
            # A dying process may leave the start of a line of ours; anything else is another file.
            if not content[whole:].startswith(_START[: len(content) - whole]):
                raise UserError(f"{path}: does not end like a file of results; choose another one")
            os.ftruncate(self._file, whole)


def _open(path: Path) -> int:
    try:
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(file)
        raise UserError(f"{path}: another study is writing it; wait, or choose another file") from error
    return file


def _read(line: bytes) -> tuple[Trial, str, Result | None]:
    """Return the trial, the version and the result of a line; the result is None where it has another format.

    A study that needs such a trial performs it again.

    Raises:
        ValueError: the line is not a result.
    """
    match json.loads(line, parse_float=_finite, parse_constant=_finite):
        case {"trial": dict(of), "version": str(version), "result": dict(found)}:
            pass
        case _:
            raise ValueError("wants an object with trial, version and result")
    if unknown := of.keys() - _FIELDS[Trial]:
        raise ValueError(f"trial: unknown field {min(unknown)}")
    trial = _TRIAL.validate_python(of)
    if found.keys() != _FIELDS[Result]:
        return trial, version, None
    result = _RESULT.validate_python(found)
    if len(result.curve) != len(SHARES):
        raise ValueError(f"curve: {len(result.curve)} scores instead of {len(SHARES)}")
    return trial, version, result


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is no finite number")
    return number


def _why(error: ValueError) -> str:
    match error:
        case ValidationError():
            first = error.errors()[0]
            return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        case UnicodeDecodeError():
            return "it is not UTF-8"
        case _:
            return str(error)
