"""Lines on a terminal in colour, and in a pipe as plain and stable text."""

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from typing import TextIO

from dgm.show.ascii import marks_to_ascii
from dgm.show.spans import Line, Tone, crop_line, plain_text

SGR: Mapping[Tone, str] = {
    Tone.DIM: "2",
    Tone.STRONG: "1",
    Tone.GOOD: "32",
    Tone.BAD: "31",
    Tone.WARN: "33",
    Tone.MARK: "1;33",
    Tone.KEY: "36",
    Tone.ADDED: "32",
    Tone.REMOVED: "31",
    Tone.HUNK: "36",
    Tone.CODE_COMMENT: "2",
    Tone.CODE_KEYWORD: "35",
    Tone.CODE_STRING: "32",
    Tone.CODE_NUMBER: "36",
    Tone.CODE_NAME: "1;34",
    Tone.CODE_BUILTIN: "36",
    Tone.CODE_DECORATOR: "33",
}
"""Codes of each tone in the terminal's own colours; ECMA-48, section 8.3.117. A tone without one is plain."""


def write_lines(lines: Iterable[Line], stream: TextIO | None = None, *, crop: bool = False) -> None:
    """Write lines as they come; the first is flushed at once.

    On a terminal they are coloured, unless ``NO_COLOR`` or ``TERM=dumb`` says otherwise. Where the stream cannot show
    our marks they are written as ASCII.

    Args:
        lines: the lines.
        stream: standard output if None.
        crop: whether lines are cut at the width of a terminal; otherwise the terminal wraps them. A pipe gets whole
            lines.
    """
    out = sys.stdout if stream is None else stream
    width = shutil.get_terminal_size().columns if crop and out.isatty() else None
    first = True
    for each in lines:
        shown = each if width is None else crop_line(each, width)
        out.write(style_line(shown, out) + "\n")
        if first:
            out.flush()
            first = False


def style_line(shown: Line, stream: TextIO) -> str:
    """Return a line as ``write_lines`` writes it to the stream, without its end."""
    text = colour_line(shown) if uses_colours(stream) else plain_text(shown)
    return text if draws_marks(stream) else _to_ascii(text, stream)


def uses_colours(stream: TextIO) -> bool:
    """Return whether text on the stream is shown in colour."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def speaks_utf8(stream: TextIO) -> bool:
    """Return whether the stream takes every character; a stream without an encoding is a buffer, which takes all."""
    return (stream.encoding or "utf-8").lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")


def wants_ascii(environment: Mapping[str, str]) -> bool:
    """Return whether a person has chosen the locale ``C`` or ``POSIX``, whose terminals have ASCII only.

    Python writes UTF-8 in that locale, and says so in ``LC_CTYPE`` where that was not set.
    """
    chosen = environment.get("LC_ALL") or environment.get("LC_CTYPE") or ""
    if chosen in ("", "C.UTF-8", "C.utf8", "UTF-8") and not environment.get("LC_ALL"):
        chosen = environment.get("LANG", "")
    return chosen in ("C", "POSIX")


def draws_marks(stream: TextIO) -> bool:
    """Return whether the stream shows marks such as ``★`` and box lines unchanged; else they are ASCII."""
    return speaks_utf8(stream) and not wants_ascii(os.environ)


def colour_line(shown: Line) -> str:
    """Return the line with the escape sequences of its tones."""
    return "".join(
        f"\x1b[{SGR[span.tone]}m{span.text}\x1b[0m" if span.tone in SGR else span.text for span in shown
    )


def _to_ascii(text: str, stream: TextIO) -> str:
    encoding = stream.encoding or "ascii"
    return marks_to_ascii(text).encode(encoding, "replace").decode(encoding)
