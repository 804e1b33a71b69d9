"""Searches, paths, and the edges that paths imply."""

from __future__ import annotations

import heapq
import logging
from collections import deque
from typing import Iterator, Optional

from .digraph import CycleError, Graph, GraphError, NoPath
from .order import find_cycle

log = logging.getLogger(__name__)


def hops(graph: Graph, start: str) -> dict[str, int]:
    """The least number of edges to every node that can be reached, the start included."""
    if start not in graph:
        raise GraphError(f"no node {start}")
    found = {start: 0}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for after in graph.successors(node):
            if after not in found:
                found[after] = found[node] + 1
                waiting.append(after)
    return found


def farthest(graph: Graph, start: str) -> tuple[int, list[str]]:
    """The most hops that any node is away, and the nodes that far, in the order of the graph."""
    found = hops(graph, start)
    most = max(found.values())
    return most, [node for node in graph if found.get(node) == most]


def reachable(graph: Graph, start: str) -> set[str]:
    """The nodes to which at least one edge leads from the start, directly or not."""
    found: set[str] = set()
    waiting = graph.successors(start)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(graph.successors(node))
    return found


def _search(graph: Graph, start: str) -> tuple[dict[str, float], dict[str, str]]:
    """The least cost to every node and the node before it on the way."""
    costs: dict[str, float] = {start: 0}
    came_from: dict[str, str] = {}
    done: set[str] = set()
    queue: list[tuple[float, str]] = [(0, start)]
    while queue:
        cost, node = heapq.heappop(queue)
        if node in done:
            continue
        done.add(node)
        log.debug("settled %s at %s", node, cost)
        for after in graph.successors(node):
            weight = graph.weight(node, after)
            if weight < 0:
                raise GraphError(f"negative weight on {node} -> {after}")
            if after not in costs or cost + weight < costs[after]:
                costs[after] = cost + weight
                came_from[after] = node
                heapq.heappush(queue, (cost + weight, after))
    return costs, came_from


def _way_back(came_from: dict[str, str], start: str, goal: str) -> list[str]:
    path = [goal]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    path.reverse()
    return path


def distances(graph: Graph, start: str) -> dict[str, float]:
    """The least cost to every node that can be reached."""
    return _search(graph, start)[0]


def shortest_path(graph: Graph, start: str, goal: str) -> tuple[float, list[str]]:
    """The least cost from one node to another, and the nodes on the way.

    Raises:
        NoPath: The goal cannot be reached.
        GraphError: A weight is negative, or the start is unknown.
    """
    costs, came_from = _search(graph, start)
    if goal not in costs:
        raise NoPath(f"{goal} cannot be reached from {start}")
    return costs[goal], _way_back(came_from, start, goal)


def widest_path(graph: Graph, start: str, goal: str) -> tuple[float, list[str]]:
    """The path whose narrowest edge is as wide as possible, weights taken as widths.

    Raises:
        NoPath: The goal cannot be reached.
    """
    widths: dict[str, float] = {start: float("inf")}
    came_from: dict[str, str] = {}
    queue: list[tuple[float, str]] = [(-widths[start], start)]
    while queue:
        negative, node = heapq.heappop(queue)
        if -negative < widths[node]:
            continue
        log.debug("%s through %s", node, widths[node])
        for after in graph.successors(node):
            width = min(widths[node], graph.weight(node, after))
            if width > widths.get(after, 0):
                widths[after] = width
                came_from[after] = node
                heapq.heappush(queue, (-width, after))
    if goal not in widths:
        raise NoPath(f"{goal} cannot be reached from {start}")
    return widths[goal], _way_back(came_from, start, goal)


def simple_paths(graph: Graph, start: str, goal: str, longest: Optional[int] = None) -> Iterator[list[str]]:
    """Every path without a repeated node, in the order of the edges.

    With ``longest``, only paths of at most so many edges.
    """
    path = [start]
    branches = [iter(graph.successors(start))]
    if start == goal:
        yield list(path)
        return
    while branches:
        node = next(branches[-1], None)
        if node is None:
            branches.pop()
            path.pop()
        elif node == goal:
            if longest is None or len(path) <= longest:
                log.debug("path of %d edges to %s", len(path), goal)
                path.append(node)
                yield list(path)
                path.pop()
        elif node not in path and (longest is None or len(path) < longest):
            path.append(node)
            branches.append(iter(graph.successors(node)))


def transitive_closure(graph: Graph) -> Graph:
    """An edge wherever there is a path."""
    full = Graph()
    for node in graph:
        full.add_node(node)
    for start in graph:
        ends = reachable(graph, start)
        for end in graph:
            if end in ends:
                full.add_edge(start, end)
    return full


def transitive_reduction(graph: Graph) -> Graph:
    """The fewest edges that leave the same paths; weights are kept.

    Raises:
        CycleError: The graph has a cycle.
    """
    cycle = find_cycle(graph)
    if cycle is not None:
        raise CycleError(cycle)
    small = graph.copy()
    for start, end in graph.edges():
        others = (other for other in graph.successors(start) if other != end)
        if any(end in reachable(graph, other) for other in others):
            small.remove_edge(start, end)
    return small
