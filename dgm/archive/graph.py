"""The tree as a networkx graph, for the formats that networkx writes and for its algorithms."""

from typing import TYPE_CHECKING

from dgm.archive.lineage import Lineage
from dgm.archive.tree import Tree
from dgm.domain import AgentId

if TYPE_CHECKING:
    import networkx


def to_networkx(tree: Tree, best: AgentId | None = None) -> "networkx.DiGraph[int]":
    """A node per agent, an edge from each parent to the child (``order`` 0: the lineage parent).

    Attributes are numbers, truth values and strings; the strings are as agents wrote them.

    Args:
        tree: the agents.
        best: which agent is ``best``, with the agents from the seed to it as its ``lineage``; None: neither is said.
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
