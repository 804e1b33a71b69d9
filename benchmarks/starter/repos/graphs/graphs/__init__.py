"""Directed graphs and algorithms on them."""

from .digraph import CycleError, Graph, GraphError, NoPath
from .order import find_cycle, layers, topological_order
from .paths import (
    distances,
    farthest,
    hops,
    reachable,
    shortest_path,
    simple_paths,
    transitive_closure,
    transitive_reduction,
    widest_path,
)
from .plan import Plan, Step, plan

__all__ = [
    "CycleError",
    "Graph",
    "GraphError",
    "NoPath",
    "Plan",
    "Step",
    "distances",
    "farthest",
    "find_cycle",
    "hops",
    "layers",
    "plan",
    "reachable",
    "shortest_path",
    "simple_paths",
    "topological_order",
    "transitive_closure",
    "transitive_reduction",
    "widest_path",
]
