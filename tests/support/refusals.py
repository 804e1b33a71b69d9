"""A look from inside a sandbox: are the system calls that ``sandboxes/seccomp.json`` does not allow really refused?

Each call is made with arguments that no kernel accepts, so that nothing happens where a filter lets it through: the
kernel then answers with another error than a filter does. A call that this user may not make anyway counts as refused.
"""

import errno
import json
from collections.abc import Mapping, Sequence

from dgm.errors import Infrastructure
from dgm.protocols import Sandbox
from dgm.sandboxes.seccomp import ARCHITECTURES, numbers, profile

_TRIES_S = 60.0
_SAME_EVERYWHERE_FROM = 424
"""First number that means the same call on every architecture."""
_REFUSED = (errno.EPERM, errno.ENOSYS)
_INVALID = (-1, -1, -1, -1, -1, -1)
_FAMILIES = {"AF_NETLINK": 16, "AF_PACKET": 17, "AF_ALG": 38, "AF_VSOCK": 40, "AF_XDP": 44}
_DATAGRAM = 2
_NEW_USER_NAMESPACE, _THREAD = 0x10000000, 0x10000
_TERMINAL_INPUT = {"TIOCSTI": 0x5412, "TIOCLINUX": 0x541C}
_OPEN_FILES = 7
_TRY = """
import ctypes, json, os, signal, sys
call = ctypes.CDLL(None, use_errno=True).syscall
for name, number, arguments in json.loads(sys.argv[1]):
    child = os.fork()
    if not child:
        signal.alarm(2)
        values = [os.getpid() if each == "self" else each for each in arguments]
        ctypes.set_errno(0)
        answer = call(ctypes.c_long(number), *map(ctypes.c_long, values))
        os._exit(answer == -1 and ctypes.get_errno() in %s)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (1, -signal.SIGSYS):
        print(name)
print("done")
"""
"""Program that tries calls, each in a process of its own, and prints the names of those that are not refused."""

Attempt = tuple[str, int, Sequence[int | str]]
"""Name for people, number, arguments; ``self`` is the process's own id."""


def attempts_on(machine: str) -> Sequence[Attempt]:
    """Return one attempt at each call, or use of a call, that the list refuses.

    Args:
        machine: architecture of the sandbox; on an unknown one, only calls are tried that have one number everywhere.
    """
    known = numbers(machine if machine in ARCHITECTURES else "x86_64")
    if machine not in ARCHITECTURES:
        known = {name: number for name, number in known.items() if number >= _SAME_EVERYWHERE_FROM}
    rules = json.loads(profile().read_text(encoding="utf-8"))["syscalls"]
    allowed = {name for rule in rules if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    plain = [(name, number, _INVALID) for name, number in sorted(known.items()) if name not in allowed]
    return [*plain, *_partly_allowed(known)] if machine in ARCHITECTURES else plain


def _partly_allowed(known: Mapping[str, int]) -> Sequence[Attempt]:
    """Return attempts at the refused uses of calls that the list allows otherwise."""
    return [
        *((name, known["socket"], (family, _DATAGRAM, 0)) for name, family in _FAMILIES.items()),
        *((name, known["ioctl"], (-1, request, 0)) for name, request in _TERMINAL_INPUT.items()),
        # A thread in a namespace of its own: no kernel makes one.
        ("clone into a user namespace", known["clone"], (_NEW_USER_NAMESPACE | _THREAD, 0, 0, 0, 0)),
        ("prlimit64 of a named process", known["prlimit64"], ("self", _OPEN_FILES, 0, 0)),
    ]


def trying_command(machine: str) -> Sequence[str]:
    """Return the command that makes all attempts: it prints the names of those that are not refused, then ``done``."""
    return ["python3", "-c", _TRY % (_REFUSED,), json.dumps(attempts_on(machine))]


async def find_allowed(sandbox: Sandbox, machine: str) -> Sequence[str]:
    """Return the calls, or uses of calls, that the list refuses and this sandbox does not.

    Args:
        sandbox: of an image with Python.
        machine: its architecture.

    Raises:
        Infrastructure: they could not be tried.
    """
    done = await sandbox.exec(trying_command(machine), timeout_s=_TRIES_S, cwd="/tmp")
    lines = done.output.decode("utf-8", "replace").splitlines()
    if done.exit_code or lines[-1:] != ["done"]:
        last = lines[-1] if lines else f"exit {done.exit_code}"
        raise Infrastructure(f"system calls could not be tried in a sandbox: {last[:200]}")
    return lines[:-1]
