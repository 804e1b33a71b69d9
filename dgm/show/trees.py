"""A tree of agents as lines: guides in front, one agent a line."""

from collections.abc import Iterator, Mapping, Sequence

from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.show.agents import State, agent_line, row_of
from dgm.show.safe import cells, one_line
from dgm.show.spans import Line, Span, Tone, line
from dgm.show.words import interval_text, tally_text

_THERE, _LAST = "├─ ", "└─ "
_BESIDE, _BELOW = "│  ", "   "
_QUIET: Mapping[AgentId, State] = {}


def guides(last: Sequence[bool]) -> str:
    """What stands in front of a row: three cells a step from the seed.

    Args:
        last: of each of the row's ancestors but the seed, and of the row itself, whether it is the last child shown
            of its parent; empty for a seed.
    """
    if not last:
        return ""
    return "".join(_BELOW if ended else _BESIDE for ended in last[:-1]) + (_LAST if last[-1] else _THERE)


def tree_lines(
    tree: Tree,
    best: AgentId | None = None,
    depth: int | None = None,
    *,
    width: int | None = None,
    states: Mapping[AgentId, State] = _QUIET,
) -> Iterator[tuple[AgentId, Line]]:
    """The archive, parents before children; a second parent's child is shown once, under its first.

    Args:
        tree: the archive.
        best: marked with a star.
        depth: steps from the seed down to which agents are shown; None for all.
        width: as in ``agent_line``, guides included.
        states: as ``agents.states_of`` says; shown where there is a width.
    """
    waiting = [(agent.id, "", "") for agent in reversed(tree.agents) if not agent.parents]
    while waiting:
        identity, lead, below = waiting.pop()
        agent = tree.agents[identity]
        state = states.get(identity, State.QUIET)
        row = row_of(tree, agent, aim=tree.aim(identity), state=state, best=best)
        room = None if width is None else max(0, width - cells(lead))
        yield identity, (*line(Span(lead, Tone.DIM)), *agent_line(row, room))
        if depth is not None and tree.depth(identity) >= depth:
            continue
        children = [child for child in tree.children(identity) if tree.first_parent(child) == identity]
        end = len(children) - 1
        waiting += [
            (child, below + (_LAST if n == end else _THERE), below + (_BELOW if n == end else _BESIDE))
            for n, child in reversed(list(enumerate(children)))
        ]


def best_line(tree: Tree, best: AgentId) -> Line:
    """The best agent, below a tree that is too large to be searched before its first line is shown."""
    own = tree.own(best)
    return line(
        Span("best  ", Tone.KEY),
        Span(str(best), Tone.STRONG),
        f"  {tally_text(own)} {interval_text(own)}".rstrip(),
        f"  {one_line(tree.agents[best].rationale, 60)}",
    )
