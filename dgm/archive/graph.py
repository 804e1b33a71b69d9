"""The tree as a networkx graph, for the formats that networkx writes and for its algorithms."""

from typing import TYPE_CHECKING

from dgm.archive.tree import Tree

if TYPE_CHECKING:
    import networkx


def to_networkx(tree: Tree) -> "networkx.DiGraph[int]":
    """A node per agent, an edge from each parent to the child; attributes are numbers and strings."""
    import networkx

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
        )
        for order, parent in enumerate(agent.parents):
            graph.add_edge(int(parent), int(agent.id), order=order)
    return graph
