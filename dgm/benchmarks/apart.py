#!/usr/bin/env -S python3 -I -B
"""Runs a command apart from the tests that start it: ``apart COMMAND…``, in the sandbox of a test command.

dgm does not import it but puts it into the sandbox as a program; standard library only (Python >= 3.9). By the
kernel's Landlock the command and all that it starts can neither open the tests, the reward or dgm's own files, nor
signal or trace a process outside. A kernel before 6.12 does a part of it, one before 5.13 or without Landlock nothing.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from pathlib import Path

HIDDEN = frozenset({"job", "logs", "tests"})
"""Folders at the root that the command cannot open."""
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_VERSION, BENEATH = 1, 1
PR_SET_NO_NEW_PRIVS = 38
FOLDER_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16, 6: 16}
"""Number of rights on files and folders, by version of Landlock."""
FILE_RIGHTS = 0b1100_0000_0000_0111
"""Rights that a file can have: execute, write, read, truncate, device controls."""
NO_NETWORK_RULES, ABSTRACT_SOCKETS_AND_SIGNALS = 0, 3
SIZES = {1: 8, 2: 8, 3: 8, 4: 16, 5: 16, 6: 24}
"""Bytes of the rule set's description, by version."""
NOT_FOUND = 127


def main(command: list[str]) -> int:
    """Confine this process, then become the command; return only if there is no such command."""
    if not command:
        sys.exit("usage: apart COMMAND…")
    confine()
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return NOT_FOUND


def confine() -> None:
    """Give this process all rights below each folder of the root but those that are hidden."""
    libc = ctypes.CDLL(None, use_errno=True)
    version = min(libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ASK_VERSION), max(SIZES))
    if version < 1:
        return
    rights = (1 << FOLDER_RIGHTS[version]) - 1
    about = struct.pack("=QQQ", rights, NO_NETWORK_RULES, ABSTRACT_SOCKETS_AND_SIGNALS)
    rules = libc.syscall(CREATE_RULESET, about, ctypes.c_size_t(SIZES[version]), 0)
    for each in Path("/").iterdir():
        if each.name not in HIDDEN and each.exists():
            place = os.open(each, os.O_PATH | os.O_CLOEXEC)  # type: ignore[attr-defined, unused-ignore]
            allowed = rights if each.is_dir() else rights & FILE_RIGHTS
            libc.syscall(ADD_RULE, rules, BENEATH, struct.pack("=Qi", allowed, place), 0)
            os.close(place)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if rules < 0 or libc.syscall(RESTRICT_SELF, rules, 0):
        sys.exit(f"apart: the command cannot be confined: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
