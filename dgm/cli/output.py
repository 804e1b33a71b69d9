"""Printing: JSON for programs, Rich for people, and patches; ``dgm.show.terminal`` writes lists."""

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dgm.show.ascii import INSTEAD
from dgm.show.diffs import Patch
from dgm.show.safe import neutralise
from dgm.show.terminal import speaks_utf8, uses_colours, write_lines

if TYPE_CHECKING:
    from rich.console import Console


def make_console(*, stderr: bool = False) -> "Console":
    """Return a console; plain and 100 columns wide if the output is not a terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 100
    return Console(file=stream, width=width, highlight=False, soft_wrap=not stream.isatty())


def emit_json(document: Mapping[str, Any] | list[Any]) -> None:
    """Print one JSON document on stdout, ASCII only."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=True) + "\n")


def show_patch(patch: bytes) -> None:
    """Print a patch, neutralised: on a terminal in colour with long lines wrapped, elsewhere byte for byte.

    Characters that the output cannot encode are written as escapes.
    """
    if uses_colours(sys.stdout):
        write_lines(Patch(patch).lines())
    else:
        text = neutralise(patch.decode("utf-8", "replace"))
        if not speaks_utf8(sys.stdout):
            text = text.encode(sys.stdout.encoding, INSTEAD).decode(sys.stdout.encoding)
        sys.stdout.write(text)
