"""Orders of the nodes in which every edge leads forward."""

from __future__ import annotations

import logging
from typing import Optional

from .digraph import CycleError, Graph

log = logging.getLogger(__name__)


def find_cycle(graph: Graph) -> Optional[list[str]]:
    """The nodes of some cycle, its first node repeated at the end, ``None`` when there is none."""
    done: set[str] = set()
    for start in graph:
        if start in done:
            continue
        path = [start]
        branches = [iter(graph.successors(start))]
        while branches:
            node = next(branches[-1], None)
            if node is None:
                branches.pop()
                done.add(path.pop())
            elif node in path:
                return path[path.index(node) :] + [node]
            elif node not in done:
                path.append(node)
                branches.append(iter(graph.successors(node)))
    return None


def topological_order(graph: Graph) -> list[str]:
    """The nodes so that every edge leads forward; of those that could come next, the first added.

    Raises:
        CycleError: There is no such order.
    """
    missing = {node: len(graph.predecessors(node)) for node in graph}
    ordered: list[str] = []
    while len(ordered) < len(graph):
        node = next((node for node, count in missing.items() if count == 0), None)
        if node is None:
            cycle = find_cycle(graph)
            log.info("no order: cycle %s", cycle)
            raise CycleError(cycle or [])
        del missing[node]
        ordered.append(node)
        log.debug("%d: %s", len(ordered), node)
        for after in graph.successors(node):
            missing[after] -= 1
    return ordered


def layers(graph: Graph) -> list[list[str]]:
    """The nodes by the longest way to them: each layer only depends on the layers before it."""
    level: dict[str, int] = {}
    for node in topological_order(graph):
        level[node] = max((level[before] + 1 for before in graph.predecessors(node)), default=0)
    result: list[list[str]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for node in graph:
        result[level[node]].append(node)
    return result
