"""Counts of what the nodes of a cluster do for one process, for people who watch the run."""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from dgm.archive.live_nodes import NodeState
from dgm.sandboxes.ray.cluster import ClusterNode


@dataclass(slots=True)
class _Count:
    node: ClusterNode
    busy: int = 0
    opened: int = 0
    failures: int = 0
    images: int = 0
    problem: str = ""
    """Why the node failed last; empty since it is used again."""
    is_lost: bool = False


class NodeCounts:
    """The counts of all nodes that were met, by their ids."""

    def __init__(self) -> None:
        self._counts: dict[str, _Count] = {}

    def note_node(self, ident: str, node: ClusterNode) -> None:
        """Take note of a node that is used, for the first time or again."""
        found = self._counts.setdefault(ident, _Count(node))
        found.node, found.problem, found.is_lost = node, "", False

    def note_failure(self, ident: str, node: ClusterNode, why: str, *, is_lost: bool = False) -> None:
        """Count a failure of a node.

        Args:
            ident: of the node.
            node: the node.
            why: for people.
            is_lost: whether it is not used until it is entered anew.
        """
        found = self._counts.setdefault(ident, _Count(node))
        found.failures += 1
        found.problem, found.is_lost = why, found.is_lost or is_lost

    def note_image(self, ident: str) -> None:
        """Count an image of a task that was made or pulled on a node."""
        self._counts[ident].images += 1

    @contextlib.contextmanager
    def hold_slot(self, ident: str) -> Iterator[None]:
        """Count a sandbox on a node while the context lasts."""
        count = self._counts[ident]
        count.busy += 1
        count.opened += 1
        try:
            yield
        finally:
            count.busy -= 1

    def states(self, avoided: Collection[str]) -> Sequence[NodeState]:
        """Return the state of each node, the first that was met first.

        Args:
            avoided: ids of the nodes on which no sandbox is opened now.
        """
        return [
            NodeState(
                count.node.name,
                int(count.node.cpus),
                count.busy,
                count.opened,
                count.failures,
                count.images,
                count.problem if count.is_lost or ident in avoided else "",
            )
            for ident, count in self._counts.items()
        ]
