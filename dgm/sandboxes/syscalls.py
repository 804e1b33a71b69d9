"""Numbers of the system calls of the machines that run bubblewrap, from ``syscalls.txt``.

Each line of that file has a call's name and its numbers on x86_64 and aarch64 (``-``: it never had the call), from the
kernel's headers. The kernel never changes an assigned number.
"""

import functools
from collections.abc import Mapping
from importlib.resources import files

ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Machine name → its audit number and its column in the table."""

NEWEST = 456
"""Calls above this number came after the table was made: nothing may depend on them."""


@functools.cache
def numbers(machine: str) -> Mapping[str, int]:
    """Return the number of each call that the machine has, by name."""
    _, column = ARCHITECTURES[machine]
    text = files("dgm.sandboxes").joinpath("syscalls.txt").read_text(encoding="ascii")
    rows = (line.split() for line in text.splitlines())
    return {name: int(own[column]) for name, *own in rows if own[column] != "-"}
