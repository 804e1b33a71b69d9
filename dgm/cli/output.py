"""Printing: views by rich on a terminal, plain and stable text in a pipe, JSON for programs."""

import json
import os
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dgm.render.safe import neutralise

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console, RenderableType
    from rich.text import Text

PIPE_CELLS = 1_000
"""Width of output that is no terminal: nothing is wrapped there."""


def terminal(*, stderr: bool = False) -> "Console":
    """Return the console of a stream; no string that it prints is read as markup."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPE_CELLS
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def terminal_width() -> int | None:
    """Return the width of a terminal in cells; None if the output is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_view(renderable: "RenderableType", *, stderr: bool = False) -> None:
    """Print a rendered view; in a pipe without blanks at the ends of lines."""
    console = terminal(stderr=stderr)
    if console.is_terminal:
        console.print(renderable)
        return
    with console.capture() as capture:
        console.print(renderable)
    stream = sys.stderr if stderr else sys.stdout
    stream.writelines(line.rstrip() + "\n" for line in capture.get().splitlines())


def print_lines(lines: Iterable["Text"], *, page: bool = False, flush: bool = False) -> None:
    """Print lines as they come.

    Args:
        lines: long ones are wrapped by the terminal.
        page: use the pager of ``$PAGER`` on a terminal that is too small.
        flush: flush after each line.
    """
    console = terminal()
    if not console.is_terminal:
        for line in lines:
            sys.stdout.write(line.plain.rstrip() + "\n")
            if flush:
                sys.stdout.flush()
        return
    if page and os.environ.get("TERM") != "dumb":
        shown = list(lines)
        if len(shown) >= console.height:
            with console.pager(
                styles="-R" in os.environ.get("LESS", "") or "less" in os.environ.get("PAGER", "")
            ):
                for line in shown:
                    console.print(line, soft_wrap=True)
            return
        lines = shown
    for line in lines:
        console.print(line, soft_wrap=True)


def print_json_line(view: "BaseModel") -> None:
    """Print a view as JSON on one line, ASCII only."""
    sys.stdout.write(json.dumps(view.model_dump(mode="json"), ensure_ascii=True) + "\n")


def make_console(*, stderr: bool = False) -> "Console":
    """Return a console; plain and 100 columns wide if the output is not a terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 100
    return Console(file=stream, width=width, highlight=False, soft_wrap=not stream.isatty())


def show_patch(patch: str | bytes) -> None:
    """Print a patch, neutralised: on a terminal in colour with long lines wrapped, elsewhere as git writes it."""
    text = patch if isinstance(patch, str) else patch.decode("utf-8", "replace")
    if sys.stdout.isatty():
        from dgm.render.text import render_patch

        print_lines(render_patch(text))
    else:
        sys.stdout.write(neutralise(text))
