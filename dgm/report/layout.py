"""Positions of a tree's agents in a picture; their look is left to ``figures``."""

from collections.abc import Sequence
from dataclasses import dataclass

from dgm.analysis.lineage import Lineage
from dgm.archive.tree import Tree
from dgm.domain import AgentId


@dataclass(frozen=True, slots=True)
class TreeNode:
    """An agent that is drawn."""

    agent: AgentId
    depth: int
    """Steps to the seed, along first parents."""
    row: float
    """Position across: leaves stand at 0, 1, 2 …, an agent in the middle of its children."""
    hidden: int
    """Number of its children that are not drawn."""


@dataclass(frozen=True, slots=True)
class TreeLayout:
    """The tree along first parents, parents before children."""

    nodes: Sequence[TreeNode]
    second: Sequence[tuple[AgentId, AgentId]]
    """Pairs of second parent and child, where both are drawn."""
    line: Sequence[AgentId]
    """Agents from a root to the best agent."""
    rows: int
    """Number of leaves that are drawn."""
    left_out: int
    """Number of agents that are not drawn."""


def place_tree(tree: Tree, best: AgentId, most: int = 2_000) -> TreeLayout:
    """Place the whole tree; above ``most`` agents only the best one's line and the agents with the largest clades."""
    line = [agent.id for agent in Lineage(tree, best).agents]
    chosen = _choose_agents(tree, line, most)
    children: dict[AgentId, list[AgentId]] = {agent: [] for agent in chosen}
    hidden = dict.fromkeys(chosen, 0)
    roots: list[AgentId] = []
    for agent in tree.agents:
        if not agent.parents:
            roots += [agent.id] if agent.id in children else []
        elif agent.id in children:
            children[agent.parents[0]].append(agent.id)
        elif agent.parents[0] in hidden:
            hidden[agent.parents[0]] += 1
    order = _sort_preorder(roots, children)
    rows: dict[AgentId, float] = {}
    leaves = 0
    for agent_id in order:
        if not children[agent_id]:
            rows[agent_id] = leaves
            leaves += 1
    for agent_id in reversed(order):
        if below := children[agent_id]:
            rows[agent_id] = (rows[below[0]] + rows[below[-1]]) / 2
    nodes = [TreeNode(agent, tree.depth(agent), rows[agent], hidden[agent]) for agent in order]
    second = [
        (parent, agent.id)
        for agent in tree.agents
        for parent in agent.parents[1:]
        if agent.id in rows and parent in rows and parent != agent.parents[0]
    ]
    return TreeLayout(nodes, second, line, leaves, len(tree.agents) - len(nodes))


def _choose_agents(tree: Tree, line: Sequence[AgentId], most: int) -> set[AgentId]:
    """Choose at most ``most`` agents, with all their parents.

    A parent's clade holds its child's and its id is lower, so no agent is chosen without its parents.
    """
    everyone = [agent.id for agent in tree.agents]
    if len(everyone) <= most:
        return set(everyone)
    sizes = tree.clade_resolved, tree.clade_unresolved
    everyone.sort(key=lambda agent: (-sizes[0][agent] - sizes[1][agent], agent))
    return {*line, *everyone[: max(0, most - len(line))]}


def _sort_preorder(roots: Sequence[AgentId], children: dict[AgentId, list[AgentId]]) -> list[AgentId]:
    order: list[AgentId] = []
    waiting = list(reversed(roots))
    while waiting:
        agent = waiting.pop()
        order.append(agent)
        waiting += reversed(children[agent])
    return order
