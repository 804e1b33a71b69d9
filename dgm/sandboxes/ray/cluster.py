"""The seam between the engine and the cluster whose nodes its sandboxes are on."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """One live node that takes sandboxes."""

    name: str
    """For people: its address."""
    cpus: float
    memory_mb: int


@dataclass(frozen=True, slots=True)
class HostNeeds:
    """Processors and memory that the cluster reserves for a sandbox."""

    cpus: float
    memory_mb: int

    def fit(self, node: ClusterNode) -> bool:
        """Return whether a node without sandboxes has as much."""
        return node.cpus >= self.cpus and node.memory_mb >= self.memory_mb


class Remote(Protocol):
    """An object on a node."""

    async def call(self, method: str, *args: object) -> object:
        """Return what a method returns.

        Raises:
            Infrastructure: the object, its node or the answer is lost; the message says which and why.
        """
        ...

    def kill(self) -> None:
        """End its process."""
        ...


class Cluster(Protocol):
    """Nodes, and the objects that dgm starts on them. Nothing is repeated: that is the search's decision."""

    @property
    def head_host(self) -> str:
        """The address of this machine that the nodes reach."""
        ...

    async def nodes(self) -> Mapping[str, ClusterNode]:
        """Return the live nodes by id.

        Raises:
            Infrastructure: the cluster does not answer.
        """
        ...

    async def ask_for_room(self, needs: HostNeeds, count: int) -> None:
        """Ask a cluster that scales itself to have room for so many sandboxes; 0 withdraws what was asked before.

        A cluster keeps one such wish, of whichever search expressed it last. It outlives this process.

        Raises:
            Infrastructure: the cluster does not answer.
        """
        ...

    def keeper(self, node: str) -> Remote:
        """Return the ``NodeKeeper`` of a node; it is started if necessary, and outlives this process."""
        ...

    def start_host(self, needs: HostNeeds, avoid: Collection[str], near: Collection[str]) -> Remote:
        """Return a new ``SandboxHost``, which also answers ``where`` with the id of its node.

        It waits until a node has room.

        Args:
            needs: what is set aside for it.
            avoid: nodes on which it must not be.
            near: nodes that are taken first, if one of them has room.
        """
        ...
