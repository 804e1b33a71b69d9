"""The pager for the shown text: ``$PAGER``, never through a shell."""

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from dgm.errors import UserError
from dgm.show.safe import neutralise

DEFAULT = ("less",)


def pager_command(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the pager and its arguments.

    Raises:
        UserError: ``$PAGER`` is not a command line.
    """
    said = environment.get("PAGER", "").strip()
    try:
        return shlex.split(said) or list(DEFAULT)
    except ValueError as error:
        raise UserError(f"PAGER is {said!r}, which is no command line ({error}); set it to less") from error


@contextmanager
def write_page_file(text: str) -> Iterator[Path]:
    """Yield a file with the neutralised text, which only its owner can read, while the block runs."""
    with tempfile.TemporaryDirectory(prefix="dgm-") as folder:
        path = Path(folder, "page.txt")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="replace", newline="\n") as file:  # noqa: PTH123
            file.write(neutralise(text).rstrip("\n") + "\n")
        yield path


def show_in_pager(text: str, environment: Mapping[str, str] = os.environ) -> None:
    """Show a text in the pager, and wait until it is left.

    ``less`` is told that it may neither run programs nor edit or write files (``LESSSECURE``).

    Raises:
        UserError: there is no such program, or ``$PAGER`` is not a command line.
    """
    argv = pager_command(environment)
    with write_page_file(text) as path, _ignore_interrupts():
        try:
            subprocess.run([*argv, str(path)], env={**environment, "LESSSECURE": "1"}, check=False)
        except OSError as error:
            raise UserError(f"{argv[0]}: cannot be started ({error.strerror}); set PAGER") from error


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Leave interrupt and quit to the program that has the terminal; the waiting program ignores them."""
    # A handler that does nothing: the pager would inherit an ignored signal.
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def show_pager_from(app: App[Any], text: str) -> None:
    """Show a text in the pager from the browser, which gives the terminal away meanwhile.

    Raises:
        UserError: there is no such program, ``$PAGER`` is not a command line, or the terminal cannot be given away.
    """
    try:
        with app.suspend():
            show_in_pager(text)
    except SuspendNotSupported as error:
        raise UserError("a pager cannot be opened from here") from error
