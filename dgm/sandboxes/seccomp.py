"""A compiler of ``sandboxes/seccomp.json`` (Docker's format) to BPF (bubblewrap's format).

One file lists, for both engines, the system calls that a sandbox may make; all others are refused. Only the features
used in that file are supported.
"""

import errno
import functools
import json
import platform
import struct
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from dgm.errors import Infrastructure
from dgm.paths import asset

ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Machine name → its audit number and its column in ``syscalls.txt``."""
NEWEST = 456
"""Calls above this number came after the table was made: nothing may depend on them."""
_LOAD, _JUMP_EQUAL, _JUMP_GREATER, _JUMP_GREATER_OR_EQUAL, _AND, _RETURN = 0x20, 0x15, 0x25, 0x35, 0x54, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_ALLOWS = "SCMP_ACT_ALLOW"
_LOW_HALF = 0xFFFFFFFF
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16

Instruction = tuple[int, int, int, int]


def profile() -> Path:
    """Return the path of the shipped profile."""
    return asset("sandboxes", "seccomp.json")


@functools.cache
def numbers(machine: str) -> Mapping[str, int]:
    """Return the number of each system call that the machine has, by name, as the kernel's headers have them.

    A line of ``syscalls.txt`` has a call's name and its numbers on x86_64 and aarch64 (``-``: it never had the call).
    """
    _, column = ARCHITECTURES[machine]
    text = files("dgm.sandboxes").joinpath("syscalls.txt").read_text(encoding="ascii")
    rows = (line.split() for line in text.splitlines())
    return {name: int(own[column]) for name, *own in rows if own[column] != "-"}


@functools.cache
def filter_program(machine: str | None = None) -> bytes:
    """Return the BPF program for ``machine`` (by default this one), as an array of ``struct sock_filter``.

    Raises:
        Infrastructure: there is no table of system calls for that machine.
    """
    machine = machine or platform.machine()
    if machine not in ARCHITECTURES:
        offered = ", ".join(ARCHITECTURES)
        raise Infrastructure(
            f"no seccomp filter for the machine {machine!r} (there is one for {offered}): use Docker"
        )
    audit, _ = ARCHITECTURES[machine]
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_EQUAL, 1, 0, audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        # This also rejects the x32 calls, which would pass a comparison of numbers.
        (_JUMP_GREATER, 0, 1, NEWEST),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    rules = json.loads(profile().read_text(encoding="utf-8"))["syscalls"]
    known = numbers(machine)
    plain = [rule for rule in rules if rule["action"] == _ALLOWS and not rule.get("args")]
    program += _allow_all(known[name] for rule in plain for name in rule["names"] if name in known)
    for rule in rules:
        if rule not in plain:
            for name in rule["names"]:
                program += _decision(known[name], rule) if name in known else []
    program.append((_RETURN, 0, 0, _ERRNO | errno.EPERM))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _allow_all(wanted: Iterable[int]) -> Iterator[Instruction]:
    """Yield three instructions for each run of successive numbers."""
    chosen = set(wanted)
    starts = sorted(number for number in chosen if number - 1 not in chosen)
    ends = sorted(number for number in chosen if number + 1 not in chosen)
    for first, last in zip(starts, ends, strict=True):
        yield (_JUMP_GREATER_OR_EQUAL, 0, 2, first)
        yield (_JUMP_GREATER, 1, 0, last)
        yield (_RETURN, 0, 0, _ALLOW)


def _decision(number: int, rule: Mapping[str, Any]) -> list[Instruction]:
    allowed = rule["action"] == _ALLOWS
    end = (_RETURN, 0, 0, _ALLOW if allowed else _ERRNO | int(rule.get("errnoRet", errno.EPERM)))
    if not rule.get("args"):
        return [(_JUMP_EQUAL, 0, 1, number), end]
    (argument,) = rule["args"]
    test = [*_condition(argument), end, (_LOAD, 0, 0, _NUMBER_AT)]
    return [(_JUMP_EQUAL, 0, len(test), number), *test]


def _condition(argument: Mapping[str, Any]) -> list[Instruction]:
    """Return instructions that fall through if the argument matches, else skip one instruction.

    Only the low half is compared, and all masks of the profile are of 32 bits: the kernel takes these arguments as
    32 bits, so garbage above must not bypass the check.
    """
    if argument["op"] != "SCMP_CMP_MASKED_EQ" or int(argument["value"]) > _LOW_HALF:
        raise ValueError(f"{profile()}: cannot compile the comparison {argument}")
    load = (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * int(argument["index"]))
    return [load, (_AND, 0, 0, int(argument["value"])), (_JUMP_EQUAL, 0, 1, int(argument["valueTwo"]))]
