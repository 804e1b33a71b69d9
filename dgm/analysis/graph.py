"""The tree as a networkx graph, for the file formats and algorithms of networkx."""

from typing import TYPE_CHECKING

from dgm.analysis.lineage import Lineage
from dgm.archive.tree import Tree
from dgm.domain import AgentId

if TYPE_CHECKING:
    import networkx


def to_networkx(tree: Tree, best: AgentId | None = None) -> "networkx.DiGraph[int]":
    """Return a graph with a node per agent and an edge from each parent to the child (``order`` 0: the lineage parent).

    Attributes are numbers, booleans and strings; the strings are unchanged from the agents.

    Args:
        tree: the agents.
        best: the agent marked as ``best``; the agents from the seed to it are marked as ``lineage``. None: no marks.
    """
    import networkx

    lineage = set() if best is None else {agent.id for agent in Lineage(tree, best).agents}
    graph: networkx.DiGraph[int] = networkx.DiGraph()
    for agent in tree.agents:
        own, clade = tree.own(agent.id), tree.clade(agent.id)
        graph.add_node(
            int(agent.id),
            commit=agent.commit,
            operator=agent.operator,
            rationale=agent.rationale,
            depth=tree.depth(agent.id),
            own_resolved=own.resolved,
            own_unresolved=own.unresolved,
            clade_resolved=clade.resolved,
            clade_unresolved=clade.unresolved,
            **({} if best is None else {"best": agent.id == best, "lineage": agent.id in lineage}),
        )
        for order, parent in enumerate(agent.parents):
            graph.add_edge(int(parent), int(agent.id), order=order)
    return graph
