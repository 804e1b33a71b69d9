"""The line from the seed to one agent, a step a line."""

from collections.abc import Iterator

from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.show.agents import agent_line, row_of
from dgm.show.spans import Line, Span, Tone

WITH = "   with "


def step_lines(tree: Tree, agent: AgentId, *, width: int | None = None) -> Iterator[tuple[AgentId, Line]]:
    """Yield one step, a crossover's other parents before it.

    The line of another parent names that parent; it is no step.

    Args:
        tree: the archive.
        agent: the step.
        width: as in ``agent_line``.
    """
    for parent in tree.agents[agent].parents[1:]:
        room = None if width is None else max(0, width - len(WITH))
        yield parent, (Span(WITH, Tone.DIM), *_agent_line(tree, parent, room))
    yield agent, _agent_line(tree, agent, width)


def _agent_line(tree: Tree, agent: AgentId, width: int | None) -> Line:
    return agent_line(row_of(tree, tree.agents[agent], aim=tree.aim(agent)), width)
