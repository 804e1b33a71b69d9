"""Output of tests as it is read, kept and shown: plain lines, of bounded length, writable as UTF-8."""

import builtins
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


def cut_middle(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters, and a line of dots where its middle was left out."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}\n[...]\n{text[-half:]}"


def cut_bytes(data: bytes, most: int) -> bytes:
    """Return the same of bytes."""
    half = most // 2
    return data if len(data) <= most else data[:half] + b"\n[...]\n" + data[-half:]


def mend_surrogates(text: str) -> str:
    """Return the text with a question mark for each half of a surrogate pair: JSON can spell one, no file holds it."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


OWN_KIND = "an exception of its own kind"
_KIND = re.compile(r"(?:E\s+)?(?:[\w.]*\.)?(\w+(?:Error|Exception|Exit|Interrupt|Iteration|Warning))\b")


def known_kind(line: str) -> str:
    """Return the name of Python's exception with which a line of a report begins.

    Return ``OWN_KIND`` for another exception, and an empty text if the line names none.
    """
    found = _KIND.match(line.strip())
    if not found:
        return ""
    kind = getattr(builtins, found[1], None)
    return found[1] if isinstance(kind, type) and issubclass(kind, BaseException) else OWN_KIND
