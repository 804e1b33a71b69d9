"""A compiler of ``sandboxes/seccomp.json`` (Docker's format) to BPF (bubblewrap's format).

One file defines, for both engines, the system calls that no sandbox may make. Only the features used in that file are
supported.
"""

import errno
import functools
import json
import platform
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dgm.errors import Infrastructure
from dgm.paths import asset
from dgm.sandboxes.syscalls import ARCHITECTURES, NEWEST, NUMBERS

_LOAD, _JUMP_EQUAL, _JUMP_GREATER, _AND, _RETURN = 0x20, 0x15, 0x25, 0x54, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16

Instruction = tuple[int, int, int, int]


def profile() -> Path:
    """Return the path of the shipped profile."""
    return asset("sandboxes", "seccomp.json")


@functools.cache
def filter_program(machine: str | None = None) -> bytes:
    """Return the BPF program for ``machine`` (by default this one), as an array of ``struct sock_filter``.

    Raises:
        Infrastructure: there is no table of system calls for that machine.
    """
    machine = machine or platform.machine()
    if machine not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise Infrastructure(
            f"no seccomp filter for the machine {machine!r} (there is one for {known}): use Docker"
        )
    audit, column = ARCHITECTURES[machine]
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_EQUAL, 1, 0, audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        # This also rejects the x32 calls, which would pass a comparison of numbers.
        (_JUMP_GREATER, 0, 1, NEWEST),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    for rule in json.loads(profile().read_text(encoding="utf-8"))["syscalls"]:
        for name in rule["names"]:
            number = NUMBERS[name][column]
            if number is not None:
                program += _denial(number, rule)
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _denial(number: int, rule: Mapping[str, Any]) -> list[Instruction]:
    refusal = (_RETURN, 0, 0, _ERRNO | int(rule.get("errnoRet", errno.EPERM)))
    if not rule.get("args"):
        return [(_JUMP_EQUAL, 0, 1, number), refusal]
    (argument,) = rule["args"]
    test = [*_condition(argument), refusal, (_LOAD, 0, 0, _NUMBER_AT)]
    return [(_JUMP_EQUAL, 0, len(test), number), *test]


def _condition(argument: Mapping[str, Any]) -> list[Instruction]:
    """Return instructions that fall through if the argument matches, else skip one instruction.

    Only the low half is compared: the kernel takes these arguments as 32 bits, so garbage above must not bypass the
    check.
    """
    load = (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * int(argument["index"]))
    value = int(argument["value"])
    match argument["op"]:
        case "SCMP_CMP_EQ":
            return [load, (_JUMP_EQUAL, 0, 1, value)]
        case "SCMP_CMP_GT":
            return [load, (_JUMP_GREATER, 0, 1, value)]
        case "SCMP_CMP_MASKED_EQ":
            return [load, (_AND, 0, 0, value), (_JUMP_EQUAL, 0, 1, int(argument["valueTwo"]))]
        case other:
            raise ValueError(f"{profile()}: cannot compile the comparison {other!r}")
