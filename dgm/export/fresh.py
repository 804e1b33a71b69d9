"""New files and folders that appear whole or not at all, and never replace an existing one."""

import contextlib
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dgm.errors import Infrastructure, UserError


def check_suffix(target: Path, known: Sequence[str], what: str) -> str:
    """Return the target's suffix in small letters, one of ``known``.

    Raises:
        UserError: it has another one, or none.
    """
    suffix = target.suffix.lower()
    if suffix not in known:
        said = f"{', '.join(known[:-1])} or {known[-1]}"
        raise UserError(f"{target}: the end of the name says how {what} is written; end it with {said}")
    return suffix


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """Yield a scratch path beside ``target``; it gets the target's name on success and is removed otherwise.

    Raises:
        UserError: something is there already, or nothing can be written there.
    """
    with convert_write_errors(target):
        draft = _draft_path(target)
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
    with convert_write_errors(target):
        draft = _draft_path(target)
        try:
            draft.mkdir()
            yield draft
            _check_absent(target)
            draft.replace(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _draft_path(target: Path) -> Path:
    _check_absent(target)
    parent = target.absolute().parent
    if not parent.is_dir():
        raise UserError(f"{target}: there is no folder {parent}; make it first")
    return parent / f".dgm-{secrets.token_hex(6)}"


def _check_absent(target: Path) -> None:
    if target.is_dir() and not target.is_symlink() and not any(target.iterdir()):
        return
    if target.exists() or target.is_symlink():
        raise UserError(f"{target}: already exists; choose another name, or remove it first")


@contextmanager
def convert_write_errors(target: Path) -> Iterator[None]:
    """Turn errors of the file system about a target into a ``UserError``."""
    try:
        yield
    except Infrastructure:
        raise
    except OSError as error:
        raise UserError(f"{target}: cannot be written: {error.strerror or error}") from error
