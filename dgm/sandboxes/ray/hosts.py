"""The programs on the nodes that hold one sandbox after the other; starting one takes a second or two."""

import asyncio
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dgm.errors import Infrastructure
from dgm.sandboxes.ray.cluster import Cluster, HostNeeds, Remote
from dgm.sandboxes.ray.session import ClusterSession
from dgm.sandboxes.ray.waiting import stop, within
from dgm.sandboxes.ray.wire import decode

_KEPT_S = 60.0
"""Seconds for which an unused host is kept for the next sandbox."""


@dataclass(slots=True)
class Host:
    """A host on a node, without a sandbox."""

    remote: Remote
    node: str
    needs: HostNeeds
    free_since: float = 0.0


@dataclass(frozen=True, slots=True)
class Wish:
    """The nodes for a sandbox."""

    needs: HostNeeds
    avoid: Collection[str]
    """Where it must not be."""
    near: Collection[str] = ()
    """Where it is best."""


class _Waiting(NamedTuple):
    """A sandbox that waits for a host."""

    wish: Wish
    host: "asyncio.Future[Host]"


class HostPool:
    """The hosts of one engine. Ray says where a new one has room; a free one is used again where it stands."""

    def __init__(self, cluster: Cluster, *, grows: bool = False) -> None:
        """Hold no host yet; in a cluster that ``grows`` a node with room may come later."""
        self._cluster = cluster
        self._grows = grows
        self._free: list[Host] = []
        self._waiting: list[_Waiting] = []
        """Sandboxes that wait for a node with room; a host that becomes free meanwhile is theirs."""

    async def take(self, session: ClusterSession, wish: Wish, wait_s: float) -> Host:
        """Return a host, on a node that is not avoided, and on one of the best where one is free.

        Raises:
            Infrastructure: no node has room in time, or none ever has.
        """
        needs, now = wish.needs, time.monotonic()
        self.retire([host for host in self._free if now - host.free_since > _KEPT_S])
        fit = [host for host in self._free if host.needs == needs and host.node not in wish.avoid]
        if near := frozenset(wish.near).difference(wish.avoid):
            # One elsewhere gives way to a new one: what the best nodes have takes longer to get than a process.
            fit = [host for host in fit if host.node in near]
        if fit:
            self._free.remove(fit[0])
            return fit[0]
        # The room of hosts for other sandboxes may be wanted.
        self.retire(self._free)
        wanted = f"{needs.cpus:g} processors and {needs.memory_mb} MB, as a sandbox needs"
        nodes = (await self._cluster.nodes()).values()
        if not self._grows and not any(map(needs.fit, nodes)):
            raise Infrastructure(f"no node of the cluster has {wanted}")
        try:
            return await self._start(wish, wait_s, f"a node with room for {wanted},")
        except Infrastructure:
            # It may have been a new node, on which dgm does not start.
            await session.enter_new()
            raise

    def give_back(self, host: Host) -> None:
        """Give a host to the sandbox that waits for one like it; else keep it, unless others wait for its room."""
        for waiting in self._waiting:
            wish = waiting.wish
            if wish.needs == host.needs and host.node not in wish.avoid and not waiting.host.done():
                waiting.host.set_result(host)
                return
        if self._waiting:
            host.remote.kill()
            return
        host.free_since = time.monotonic()
        self._free.append(host)

    def retire(self, hosts: Sequence[Host] | None = None) -> None:
        """End free hosts; None: all."""
        for host in list(self._free if hosts is None else hosts):
            self._free.remove(host)
            host.remote.kill()

    async def _start(self, wish: Wish, wait_s: float, what: str) -> Host:
        """Return a new host, or one that becomes free before Ray has found room."""
        needs = wish.needs
        remote = self._cluster.start_host(needs, wish.avoid, wish.near)
        starting = asyncio.ensure_future(within(max(wait_s, 1.0), remote.call("where"), what))
        waiting = _Waiting(wish, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        found: Host | None = None
        try:
            ends: list[asyncio.Future[Any]] = [starting, waiting.host]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if waiting.host.done():
                found = waiting.host.result()
            else:
                found = Host(remote, decode(starting.result(), str), needs)
            return found
        finally:
            self._waiting.remove(waiting)
            await stop(starting)
            if found is None or found.remote is not remote:
                remote.kill()
            if found is None and waiting.host.done():
                self.give_back(waiting.host.result())
