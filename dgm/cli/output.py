"""Printing: JSON for programs, Rich for people, and nothing that an agent wrote reaches the terminal raw."""

import json
import sys
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

SAFE = "\n\t"


def console(*, stderr: bool = False) -> "Console":
    """A console; plain and 100 columns wide where the output is not a terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 100
    return Console(file=stream, width=width, highlight=False, soft_wrap=not stream.isatty())


def emit_json(document: Mapping[str, Any] | list[Any]) -> None:
    """One JSON document on stdout, ASCII only."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=True) + "\n")


def neutral(text: str) -> str:
    """The text with control and formatting characters (escape sequences, bidi marks …) made visible."""
    return "".join(
        c if c in SAFE or unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Co"} else f"\\x{ord(c):02x}"
        for c in text
    )


def show_patch(patch: bytes) -> None:
    """Prints a patch, neutralised: in colour and with long lines wrapped on a terminal, as it is elsewhere."""
    text = neutral(patch.decode("utf-8", "replace"))
    if not sys.stdout.isatty():
        sys.stdout.write(text)
        return
    from rich.syntax import Syntax

    console().print(Syntax(text, "diff", background_color="default", word_wrap=True))


def one_line(text: str, width: int) -> str:
    """The text neutralised, on one line, at most ``width`` characters."""
    flat = " ".join(neutral(text).split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"
