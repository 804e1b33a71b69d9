"""Read from a program's first bytes the loader that it asks for, or the interpreter of a script."""

import struct
from dataclasses import dataclass

HEAD_BYTES = 1 << 16
"""Bytes of a file that are enough to tell."""
_ELF, _SCRIPT = b"\x7fELF", b"#!"
_HEADER = {1: "HHIIIIIHHH", 2: "HHIQQQIHHH"}
"""Layout of a header after its first 16 bytes, by the class of the file (32 or 64 bit)."""
_ENTRY_OF_INTERPRETER = 3


@dataclass(frozen=True, slots=True)
class Program:
    """A program as the kernel starts it."""

    loader: str = ""
    """Loader of a dynamically linked one; empty if it needs none."""
    interpreter: tuple[str, ...] = ()
    """Words of the first line of a script."""


def read_program(head: bytes) -> Program | None:
    """Return what a file's first bytes say; None if the kernel would not start it."""
    if head.startswith(_SCRIPT):
        line = head[2:].split(b"\n", 1)[0].decode("utf-8", "replace")
        words = tuple(line.split(None, 1))
        return Program(interpreter=tuple(word.strip() for word in words)) if words else None
    if not head.startswith(_ELF) or len(head) < 64:
        return None
    try:
        return Program(loader=_find_loader(head))
    except (struct.error, KeyError, OverflowError):
        return None


def _find_loader(head: bytes) -> str:
    order = {1: "<", 2: ">"}[head[5]]
    layout = order + _HEADER[head[4]]
    fields = struct.unpack_from(layout, head, 16)
    start, size, count = fields[4], fields[8], fields[9]
    for number in range(count):
        at = start + number * size
        if head[4] == 2:
            kind, _, offset, _, _, length = struct.unpack_from(order + "IIQQQQ", head, at)
        else:
            kind, offset, _, _, length = struct.unpack_from(order + "IIIII", head, at)
        if kind == _ENTRY_OF_INTERPRETER:
            return head[offset : offset + length].rstrip(b"\0").decode("ascii", "replace")
    return ""
