"""New files and folders that appear whole or not at all, and never replace an existing one."""

import contextlib
import errno
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dgm.archive.lock import error_of_write
from dgm.errors import DgmError, UserError


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """Yield a scratch path beside ``target``; it gets the target's name on success and is removed otherwise.

    Raises:
        UserError: something is there already, or nothing can be written there.
    """
    with _draft(target) as draft:
        try:
            yield draft
            _check_absent(target)
            draft.replace(target)
        finally:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield a new scratch folder beside ``target``; it gets the target's name on success and is removed otherwise.

    An empty folder may be there already.

    Raises:
        UserError: something else is there already, or nothing can be written there.
    """
    with _draft(target) as draft:
        try:
            draft.mkdir()
            yield draft
            _check_absent(target)
            draft.replace(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def _draft(target: Path) -> Iterator[Path]:
    try:
        _check_absent(target)
        parent = target.absolute().parent
        if not parent.is_dir():
            raise UserError(f"{target}: there is no folder {parent}; make it first")
        yield parent / f".dgm-{secrets.token_hex(6)}"
    except DgmError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise error_of_write(target, error) from error
        raise UserError(f"{target}: cannot be written: {error.strerror or error}") from error


def _check_absent(target: Path) -> None:
    if target.is_dir() and not target.is_symlink() and not any(target.iterdir()):
        return
    if target.exists() or target.is_symlink():
        raise UserError(f"{target}: already exists; choose another name, or remove it first")
