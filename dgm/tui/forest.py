"""The lines that a tree of agents shows, by counting: a line is found by its number, however many there are.

An agent costs a few numbers, whether it is seen or not. Siblings are ordered when they are seen. A second parent's
child stands under its first parent alone. The look of a line is left to others.
"""

from array import array
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from dgm.analysis.outline import Members
from dgm.domain import AgentId
from dgm.show.columns import indentations, indents
from dgm.tui.siblings import SiblingOrder, sort_siblings

MORE = 500
"""Children of one agent that are shown at once; a further line stands for the others, and opens as many more."""
_ROOT = -1


class ForestLine(NamedTuple):
    """The content of one line."""

    agent: AgentId
    """The agent; where ``more`` is above 0, the parent whose further children the line stands for."""
    depth: int
    """Steps to the root of the line."""
    last: tuple[bool, ...]
    """One entry for each step of indentation, for ``show.trees.guides``."""
    follows: bool = False
    """Whether this is an only child, straight below its parent; for ``show.trees.guides``."""
    more: int = 0
    """Number of children that are not shown; for further roots ``agent`` is -1."""


class Forest:
    """The lines of a tree, parents before children; at first everything is unfolded."""

    def __init__(self, members: Members) -> None:
        """Arrange the agents by birth.

        Args:
            members: the tree, or an outline of it. It is not copied: the forest must be told of changes there.
        """
        self.members = members
        self.order, self.descending = SiblingOrder.BIRTH, False
        self._parent = array("q")
        self._depth = array("q")
        self._shown = array("q")
        """Number of lines of an agent and of everything shown below it, if the agent itself is shown."""
        self._open = bytearray()
        self._families: dict[int, list[AgentId]] = {}
        """First-parent children by birth."""
        self._limits: dict[int, int] = {}
        self._sorted: dict[int, Sequence[AgentId]] = {}
        self._lines = 0
        self._steps: Sequence[int] = ()
        """The result of ``indentations`` for the agents; computed again when there are more."""
        self._place(len(members.own_resolved))
        for agent, parent in enumerate(self._parent):
            self._families.setdefault(parent, []).append(AgentId(agent))
        self._count()

    def __len__(self) -> int:
        return self._lines

    @property
    def agents(self) -> int:
        """Number of agents that were taken in."""
        return len(self._parent)

    # Lines and their agents

    def walk(self, line: int = 0) -> Iterator[ForestLine]:
        """Yield the content of this line and of all below it; nothing may change meanwhile."""
        if not 0 <= line < self._lines:
            return
        # For each step down: the parent, and which of its children is taken next.
        path: list[tuple[int, int]] = []
        parent = _ROOT
        while True:
            here = self._seen(parent)
            number, line = self._find_entry(here, line)
            path.append((parent, number))
            if not line or number >= len(here):
                break
            parent, line = here[number], line - 1
        yield from self._walk_on(path)

    def line_of(self, agent: AgentId) -> int | None:
        """Return the agent's line; None while it is folded away."""
        line = -1
        child: int = agent
        while child != _ROOT:
            parent = self._parent[child]
            if parent != _ROOT and not self._open[parent]:
                return None
            line += 1
            for sibling in self._seen(parent):
                if sibling == child:
                    break
                line += self._shown[sibling]
            else:
                return None
            child = parent
        return line

    def parent(self, agent: AgentId) -> AgentId | None:
        """Return the first parent; None for a root."""
        parent = self._parent[agent]
        return AgentId(parent) if parent != _ROOT else None

    def children(self, agent: AgentId) -> Sequence[AgentId]:
        """Return the children that are shown when the agent is unfolded, in their order."""
        return self._seen(agent)

    def steps(self) -> Sequence[int]:
        """Return the steps of indentation of every agent, whether it is shown or not."""
        if len(self._steps) != len(self._parent):
            self._steps = indentations(self._parent)
        return self._steps

    def is_folded(self, agent: AgentId) -> bool:
        """Return whether the agent has children, and none of them is shown."""
        return agent in self._families and not self._open[agent]

    def deepest(self) -> int:
        """Return the number of steps down to which anything is shown."""
        return max((self._depth[a] + 1 for a in self._families if a != _ROOT and self._open[a]), default=0)

    # Actions of a person

    def reveal(self, agent: AgentId) -> int:
        """Unfold the ancestors of an agent, and return its line."""
        child: int = agent
        while child != _ROOT:
            parent = self._parent[child]
            if child not in self._seen(parent):
                place = self._sort_children(parent).index(AgentId(child))
                self._limit(parent, (place // MORE + 1) * MORE)
            if parent != _ROOT:
                self.unfold(AgentId(parent))
            child = parent
        line = self.line_of(agent)
        assert line is not None
        return line

    def fold_away(self, agent: AgentId) -> None:
        """Hide the agent's children."""
        if agent in self._families and self._open[agent]:
            self._open[agent] = 0
            self._grow(agent, 1 - self._shown[agent])

    def unfold(self, agent: AgentId) -> None:
        """Show the agent's children."""
        if agent in self._families and not self._open[agent]:
            self._open[agent] = 1
            self._grow(agent, self._below(agent))

    def toggle(self, agent: AgentId) -> None:
        """Hide or show the agent's children."""
        if self.is_folded(agent):
            self.unfold(agent)
        else:
            self.fold_away(agent)

    def more(self, agent: AgentId) -> None:
        """Show ``MORE`` more of an agent's children; -1 for roots."""
        self._limit(agent, self._limits.get(agent, MORE) + MORE)

    def fold(self, depth: int | None) -> None:
        """Show agents down to ``depth`` steps from their root; None for all."""
        self._open = bytearray(
            b"\1" * len(self._depth) if depth is None else (below < depth for below in self._depth)
        )
        self._count()

    def sort(self, order: SiblingOrder, *, descending: bool) -> None:
        """Put siblings into another order; rates and bounds go from the highest down, or up if ``descending``."""
        self.order, self.descending = order, descending
        self._sorted.clear()
        if any(len(self._families[parent]) > self._child_limit(parent) for parent in self._families):
            self._count()

    # Changes of the run

    def add_newborn(self) -> None:
        """Take in agents that were born; children of an unfolded parent are shown at once."""
        for agent in range(len(self._parent), len(self.members.own_resolved)):
            self._place(1)
            parent = self._parent[agent]
            was = self._below(parent) if self._is_open(parent) else 0
            self._families.setdefault(parent, []).append(AgentId(agent))
            self._sorted.pop(parent, None)
            if self._is_open(parent):
                self._grow(parent, self._below(parent) - was)

    def judged(self, agents: Collection[AgentId]) -> None:
        """Move agents whose tallies changed, and their ancestors, to their places."""
        if self.order is SiblingOrder.BIRTH:
            return
        concerned = set(agents)
        if self.order is SiblingOrder.CLADE:
            # A verdict counts for every ancestor, including those on whose line its agent does not stand.
            for agent in agents:
                concerned.update(self.members.ancestors(agent))
        parents = {self._parent[agent] for agent in concerned}
        for parent in sorted(parents, reverse=True):
            cut = self._is_open(parent) and len(self._families[parent]) > self._child_limit(parent)
            was = self._below(parent) if cut else 0
            self._sorted.pop(parent, None)
            if cut:
                self._grow(parent, self._below(parent) - was)

    def replace_members(self, members: Members) -> None:
        """Read the same agents, and perhaps more, from elsewhere; folding and order stay."""
        self.members = members
        self._sorted.clear()
        self.add_newborn()
        self._count()

    # Counting

    def _place(self, count: int) -> None:
        """Make room for the next ``count`` agents, and record their parents."""
        first_parent = self.members.first_parent
        for agent in range(len(self._parent), len(self._parent) + count):
            parent = first_parent(AgentId(agent))
            self._parent.append(_ROOT if parent is None else parent)
            self._depth.append(0 if parent is None else self._depth[parent] + 1)
        self._shown.extend(array("q", [1]) * count)
        self._open.extend(b"\1" * count)

    def _count(self) -> None:
        """Count all lines again, from the youngest agent up."""
        shown, families, is_open = self._shown, self._families, self._open
        for agent in range(len(shown) - 1, -1, -1):
            family = families.get(agent)
            if family is None or not is_open[agent]:
                shown[agent] = 1
            elif len(family) <= MORE:
                total = 1
                for child in family:
                    total += shown[child]
                shown[agent] = total
            else:
                shown[agent] = 1 + self._below(agent)
        self._lines = self._below(_ROOT)

    def _below(self, parent: int) -> int:
        """Return the number of lines below an agent when it is unfolded."""
        here = self._seen(parent)
        cut = len(self._families.get(parent, ())) > len(here)
        return sum(self._shown[child] for child in here) + cut

    def _is_open(self, parent: int) -> bool:
        return parent == _ROOT or bool(self._open[parent])

    def _grow(self, agent: int, lines: int) -> None:
        """Add ``lines`` to the line count of an agent and of all ancestors that show it."""
        while lines and agent != _ROOT:
            self._shown[agent] += lines
            parent = self._parent[agent]
            if not self._is_open(parent) or (
                self._is_cut(parent) and AgentId(agent) not in self._seen(parent)
            ):
                return
            agent = parent
        self._lines += lines

    def _limit(self, parent: int, limit: int) -> None:
        was = self._below(parent)
        self._limits[parent] = limit
        self._sorted.pop(parent, None)
        if self._is_open(parent):
            self._grow(parent, self._below(parent) - was)

    def _child_limit(self, parent: int) -> int:
        return self._limits.get(parent, MORE)

    def _is_cut(self, parent: int) -> bool:
        return len(self._families.get(parent, ())) > self._child_limit(parent)

    # Positions of agents

    def _walk_on(self, path: list[tuple[int, int]]) -> Iterator[ForestLine]:
        ends = [number == self._count_entries(parent) - 1 for parent, number in path if self._indents(parent)]
        while path:
            parent, number = path[-1]
            here, further = self._seen(parent), self._indents(parent)
            hidden = len(self._families.get(parent, ())) - len(here)
            if further:
                ends[-1] = number == len(here) - 1 + (hidden > 0)
            follows = parent != _ROOT and not further
            if number >= len(here):
                yield ForestLine(AgentId(parent), len(path) - 1, tuple(ends), follows, hidden)
            else:
                agent = here[number]
                yield ForestLine(agent, len(path) - 1, tuple(ends), follows)
                if agent in self._families and self._open[agent]:
                    path.append((agent, 0))
                    if self._indents(agent):
                        ends.append(False)
                    continue
            while path and path[-1][1] >= self._count_entries(path[-1][0]) - 1:
                over, _ = path.pop()
                if self._indents(over):
                    ends.pop()
            if path:
                path[-1] = (path[-1][0], path[-1][1] + 1)

    def _indents(self, parent: int) -> bool:
        """Return whether the children of an agent stand further in than the agent; roots do not."""
        return parent != _ROOT and indents(
            root=self._parent[parent] == _ROOT, children=len(self._families.get(parent, ()))
        )

    def _find_entry(self, here: Sequence[AgentId], line: int) -> tuple[int, int]:
        """Return the number of the sibling that a line belongs to, and how many lines the line is below it."""
        for number, child in enumerate(here):
            if line < self._shown[child]:
                return number, line
            line -= self._shown[child]
        return len(here), line

    def _count_entries(self, parent: int) -> int:
        """Return the number of siblings that are shown, including the line for the others."""
        here = self._seen(parent)
        return len(here) + (len(self._families.get(parent, ())) > len(here))

    def _seen(self, parent: int) -> Sequence[AgentId]:
        found = self._sorted.get(parent)
        if found is None:
            whole = self._sort_children(parent)
            limit = self._child_limit(parent)
            found = self._sorted[parent] = whole if len(whole) <= limit else whole[:limit]
        return found

    def _sort_children(self, parent: int) -> Sequence[AgentId]:
        family = self._families.get(parent, [])
        return sort_siblings(self.members, family, self.order, descending=self.descending)
