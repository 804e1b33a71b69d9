"""A tree of agents, and the line from the seed to one of them, as lines: guides in front, one agent a line."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.show.agents import AgentActivity, agent_line, aligned_line, row_of
from dgm.show.columns import (
    STEP,
    columns_of,
    extent_of,
    indentations,
    indents,
    most_steps,
)
from dgm.show.spans import Line, Span, Tone, make_line

_THERE, _LAST = "├─ ", "└─ "
_BESIDE, _BELOW = "│  ", "   "
_ON_BESIDE, _ON_BELOW = "│↓ ", " ↓ "
"""Guides in front of an only child, which stands straight below its parent."""
_LEFT_OUT = "‹"
_WITH = "   with "
"""Text in front of a step's other parents."""
_QUIET: Mapping[AgentId, AgentActivity] = {}
_MARKS = 4
"""Cells for the marks behind an agent's number: the star, and its activity at this moment."""
_STAR = 2
"""Cells for the marks where only the star is shown."""


def guide_text(last: Sequence[bool], *, follows: bool = False, most: int | None = None) -> str:
    """Return the text in front of a row: three cells for each branching between it and its root.

    Args:
        last: one flag for each branching, the outermost first: whether the row is below the last child that is shown
            there, or is that child; empty for a root.
        follows: whether the row is the only child of an agent that is no root: it stands straight below that.
        most: maximum branchings that are drawn, at least 2. A row with more leaves out outer ones, several at once so
            that rows below each other mostly agree, and ``12‹`` gives their number. None: all are drawn.
    """
    if not last:
        return ""
    hidden, label = _hide_outer_steps(len(last), most)
    *outer, end = last[hidden:]
    own = (_ON_BELOW if end else _ON_BESIDE) if follows else (_LAST if end else _THERE)
    return label + "".join(_BELOW if ended else _BESIDE for ended in outer) + own


def _hide_outer_steps(steps: int, most: int | None) -> tuple[int, str]:
    """Return the number of outer steps that are not drawn, and the text for them, as wide as one step or two."""
    if most is None or steps <= most:
        return 0, ""
    block = max(1, most // 2)
    for taken in (1, 2):
        drawn = max(1, most - taken)
        hidden = min(steps - 1, -(-(steps - drawn) // block) * block)
        label = f"{hidden}{_LEFT_OUT}"
        if len(label) <= STEP * taken:
            break
    return hidden, label.ljust(STEP * taken)


class _PendingRow(NamedTuple):
    """An agent that is still to be drawn."""

    agent: AgentId
    last: tuple[bool, ...]
    follows: bool


def step_lines(tree: Tree, agent: AgentId, *, width: int | None = None) -> Iterator[tuple[AgentId, Line]]:
    """Yield a step of a lineage, a crossover's other parents before it.

    The line of another parent names that parent; it is no step.

    Args:
        tree: the archive.
        agent: the step.
        width: as in ``agent_line``.
    """
    for parent in tree.agents[agent].parents[1:]:
        room = None if width is None else max(0, width - len(_WITH))
        yield parent, (Span(_WITH, Tone.DIM), *_step_line(tree, parent, room))
    yield agent, _step_line(tree, agent, width)


def _step_line(tree: Tree, agent: AgentId, width: int | None) -> Line:
    return agent_line(row_of(tree, tree.agents[agent], aim=tree.aim(agent)), width)


def tree_lines(
    tree: Tree,
    best: AgentId | None = None,
    depth: int | None = None,
    *,
    width: int | None = None,
    states: Mapping[AgentId, AgentActivity] = _QUIET,
) -> Iterator[tuple[AgentId, Line]]:
    """Yield the archive, parents before children; a second parent's child is shown once, under its first.

    An only child stands straight below its parent. All rows have the same columns.

    Args:
        tree: the archive.
        best: marked with a star.
        depth: steps from the seed down to which agents are shown; None for all.
        width: cells of a line, guides included; None where nothing bounds it.
        states: as ``agents.states_of`` says; shown where there is a width.
    """
    parents = [-1 if (first := tree.first_parent(agent.id)) is None else first for agent in tree.agents]
    extent = extent_of(tree, indentations(parents))
    columns, most = columns_of(extent, width, _STAR if width is None else _MARKS), most_steps(width)
    waiting = [_PendingRow(agent.id, (), False) for agent in reversed(tree.agents) if not agent.parents]
    while waiting:
        identity, last, follows = waiting.pop()
        agent = tree.agents[identity]
        state = states.get(identity, AgentActivity.QUIET)
        row = row_of(tree, agent, aim=tree.aim(identity), state=state, best=best)
        lead = make_line(Span(guide_text(last, follows=follows, most=most), Tone.DIM))
        yield identity, aligned_line(row, lead, columns)
        if depth is not None and tree.depth(identity) >= depth:
            continue
        children = [child for child in tree.children(identity) if parents[child] == identity]
        further = indents(root=not agent.parents, children=len(children))
        end = len(children) - 1
        waiting += [
            _PendingRow(child, (*last, n == end) if further else last, not further)
            for n, child in reversed(list(enumerate(children)))
        ]
