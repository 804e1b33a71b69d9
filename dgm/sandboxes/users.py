"""A user id for each sandbox: the kernel counts pending signals, watches, pipes and more by user.

Two live sandboxes of a machine never share one, whichever dgm opened them. Their group is common: it only lets them
reach the gateway's socket.
"""

import errno
import secrets
import socket
from collections.abc import Iterator

from dgm.errors import Infrastructure

SIGNALS, QUEUE_BYTES = 512, 200_000
"""Pending signals, and bytes of message queues, that a sandbox's user may have.

Sandboxes of an ordinary user have one user for the kernel. Each is counted in its user namespace (since Linux 5.14),
and all of them against the larger limit that dgm was started with.
"""
SANDBOX_GID = 10001
"""Default gid of everything in a sandbox; a recipe may set another."""
BUBBLEWRAP = range(58_001, 58_501)
"""Users of bubblewrap's sandboxes, started by root."""
DOCKER = range(58_501, 59_001)
"""Users of Docker's sandboxes."""


class UserLease:
    """A user id that no other sandbox has until it is given back, or this process ends."""

    def __init__(self, uid: int, lock: socket.socket) -> None:
        self.uid = uid
        self._lock = lock

    def close(self) -> None:
        """Give it back; the second call does nothing."""
        self._lock.close()


def lease_user() -> UserLease:
    """Return the lease of a free user id for bubblewrap.

    An abstract socket is the lock: one name for all processes of a network namespace, freed by the kernel.

    Raises:
        Infrastructure: all are taken.
    """
    for uid in in_random_order(BUBBLEWRAP):
        lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            lock.bind(f"\0dgm-sandbox-user-{uid}")
        except OSError as error:
            lock.close()
            if error.errno != errno.EADDRINUSE:
                raise Infrastructure(f"cannot take a user id for a sandbox: {error}") from error
        else:
            return UserLease(uid, lock)
    raise Infrastructure(f"all {len(BUBBLEWRAP)} user ids of sandboxes are taken: end some of them")


def in_random_order(uids: range) -> Iterator[int]:
    """Yield each of the user ids once, from a random one on: few are taken, so the first is mostly free."""
    start = secrets.randbelow(len(uids))
    yield from (uids[(start + step) % len(uids)] for step in range(len(uids)))
