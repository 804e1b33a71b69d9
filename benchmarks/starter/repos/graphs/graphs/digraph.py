"""The graph itself: nodes in the order of their adding, edges with weights."""

from __future__ import annotations

from typing import Iterable, Iterator


class GraphError(Exception):
    """A question that the graph has no answer to."""


class NoPath(GraphError):
    """The goal cannot be reached."""


class CycleError(GraphError):
    """The graph has a cycle where none may be."""

    def __init__(self, cycle: list[str]) -> None:
        super().__init__(" -> ".join(cycle))
        self.cycle = cycle


class Graph:
    """A directed graph; at most one edge leads from one node to another."""

    def __init__(self) -> None:
        self._after: dict[str, dict[str, float]] = {}
        self._before: dict[str, dict[str, float]] = {}

    @classmethod
    def of(cls, *edges: str) -> Graph:
        """A graph from texts ``"from to"`` or ``"from to weight"``; a lone name is a node."""
        graph = cls()
        for edge in edges:
            parts = edge.split()
            if len(parts) == 1:
                graph.add_node(parts[0])
            elif len(parts) == 2:
                graph.add_edge(parts[0], parts[1])
            else:
                graph.add_edge(parts[0], parts[1], int(parts[2]))
        return graph

    def add_node(self, node: str) -> None:
        """Add a node unless it is there."""
        self._after.setdefault(node, {})
        self._before.setdefault(node, {})

    def add_edge(self, start: str, end: str, weight: float = 1) -> None:
        """Add an edge, or change its weight; the nodes are added when needed."""
        self.add_node(start)
        self.add_node(end)
        self._after[start][end] = weight
        self._before[end][start] = weight

    def remove_edge(self, start: str, end: str) -> None:
        """Remove an edge; its nodes stay."""
        if not self.has_edge(start, end):
            raise GraphError(f"no edge {start} -> {end}")
        del self._after[start][end]
        del self._before[end][start]

    def remove_node(self, node: str) -> None:
        """Remove a node with all its edges."""
        for end in self.successors(node):
            self.remove_edge(node, end)
        for start in self.predecessors(node):
            self.remove_edge(start, node)
        del self._after[node]
        del self._before[node]

    def __contains__(self, node: object) -> bool:
        return node in self._after

    def __iter__(self) -> Iterator[str]:
        return iter(self._after)

    def __len__(self) -> int:
        return len(self._after)

    def has_edge(self, start: str, end: str) -> bool:
        """Whether an edge leads from one node to the other."""
        return start in self._after and end in self._after[start]

    def weight(self, start: str, end: str) -> float:
        """The weight of an edge."""
        if not self.has_edge(start, end):
            raise GraphError(f"no edge {start} -> {end}")
        return self._after[start][end]

    def successors(self, node: str) -> list[str]:
        """The nodes to which edges lead."""
        if node not in self:
            raise GraphError(f"no node {node}")
        return list(self._after[node])

    def predecessors(self, node: str) -> list[str]:
        """The nodes from which edges come."""
        if node not in self:
            raise GraphError(f"no node {node}")
        return list(self._before[node])

    def edges(self) -> list[tuple[str, str]]:
        """All edges, by the order of the nodes where they begin."""
        return [(start, end) for start, ends in self._after.items() for end in ends]

    def reversed(self) -> Graph:
        """The same nodes with every edge turned round."""
        turned = Graph()
        for node in self:
            turned.add_node(node)
        for start, end in self.edges():
            turned.add_edge(end, start, self.weight(start, end))
        return turned

    def copy(self) -> Graph:
        """A graph of its own with the same nodes and edges."""
        return self.subgraph(self)

    def subgraph(self, nodes: Iterable[str]) -> Graph:
        """The given nodes and the edges between them."""
        wanted = set(nodes)
        part = Graph()
        for node in self:
            if node in wanted:
                part.add_node(node)
        for start, end in self.edges():
            if start in wanted and end in wanted:
                part.add_edge(start, end, self.weight(start, end))
        return part
