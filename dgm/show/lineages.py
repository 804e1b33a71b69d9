"""The line from the seed to one agent, a step a line."""

from collections.abc import Iterator

from dgm.archive.lineage import Lineage
from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.show.agents import agent_line, row_of
from dgm.show.spans import Line, Span, Tone

WITH = "   with "


def lineage_lines(tree: Tree, agent: AgentId, *, width: int | None = None) -> Iterator[tuple[AgentId, Line]]:
    """Each step from the seed to the agent, a crossover's other parents before it.

    The line of another parent names that parent; it is no step.

    Args:
        tree: the archive.
        agent: the last step.
        width: as in ``agent_line``.

    Raises:
        UserError: there is no such agent.
    """
    for step in Lineage(tree, agent).agents:
        yield from step_lines(tree, step.id, width=width)


def step_lines(tree: Tree, agent: AgentId, *, width: int | None = None) -> Iterator[tuple[AgentId, Line]]:
    """One step of them."""
    for parent in tree.agents[agent].parents[1:]:
        room = None if width is None else max(0, width - len(WITH))
        yield parent, (Span(WITH, Tone.DIM), *_line(tree, parent, room))
    yield agent, _line(tree, agent, width)


def _line(tree: Tree, agent: AgentId, width: int | None) -> Line:
    return agent_line(row_of(tree, tree.agents[agent], aim=tree.aim(agent)), width)
