"""Test output as plain lines: what a terminal would take for colours, titles and movements of its cursor is gone.

Every grader reads logs through ``plain_log``, so that a status behind a colour or a progress bar is a status.
"""

import re

_TITLE = rb"\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"
"""OSC and its kin: titles, links, whatever ends with BEL or ST."""
_MOVES = rb"\x1b\[[0-9;:<=>?]*[ABEFGHfd]"
"""The cursor goes to another line or column: what follows begins a line of its own."""
_FORWARD = rb"\x1b\[[0-9]*C"
_OTHER = rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]|\x1b"
"""Colours, erasing, modes, character sets, and an escape that begins nothing."""
_SEQUENCE = re.compile(
    rb"(?P<title>" + _TITLE + rb")|(?P<line>" + _MOVES + rb"|\r+(?![\r\n])|\x08+)|(?P<blank>" + _FORWARD
    + rb")|(?P<nothing>" + _OTHER + rb"|\r+(?=\n))"
)  # fmt: skip


def plain_log(log: bytes) -> bytes:
    r"""Return the log without escape sequences, its lines ended by ``\n`` alone.

    A carriage return, backspaces and a moved cursor begin a new line, so that nothing is hidden by what a program
    wrote over it. Bytes that belong to no sequence stay as they are.
    """
    if b"\x1b" not in log and b"\r" not in log and b"\x08" not in log:
        return log
    return _SEQUENCE.sub(_plain, log)


def plain_text(text: str) -> str:
    """The same for a text."""
    return plain_log(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def _plain(found: re.Match[bytes]) -> bytes:
    match found.lastgroup:
        case "line":
            return b"\n"
        case "blank":
            return b" "
        case _:
            return b""
