"""Checks whether named files and folders can be written, before anything is paid for."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dgm.errors import UserError


def check_file(path: Path, option: str) -> None:
    """Check that a file can be written there, in the place of an older one.

    Args:
        path: the file.
        option: the option that named it, for the message.

    Raises:
        UserError: it cannot be written.
    """
    with _convert_errors(path, option):
        if path.is_dir():
            raise UserError(f"{option} {path}: a folder; name a file in it")
        if path.exists() and not path.is_file():
            raise UserError(f"{option} {path}: not a file; name a file, which may be a new one")
        if not path.parent.is_dir():
            raise UserError(f"{option} {path}: there is no folder {path.parent}; make it first")
        _try_to_write(path.parent)


def check_folder(path: Path, option: str) -> None:
    """Check that files can be written in a folder, which is made if it is missing.

    Raises:
        UserError: they cannot be written.
    """
    with _convert_errors(path, option):
        if path.exists() and not path.is_dir():
            raise UserError(f"{option} {path}: a file, not a folder; name a folder, which may be a new one")
        if not path.parent.is_dir():
            raise UserError(f"{option} {path}: there is no folder {path.parent}; make it first")
        _try_to_write(path if path.is_dir() else path.parent)


def _try_to_write(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder):
        pass


@contextmanager
def _convert_errors(path: Path, option: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise UserError(f"{option} {path}: cannot be written ({why}); name another place") from error
