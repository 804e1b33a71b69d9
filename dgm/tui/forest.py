"""Which lines a tree of agents shows, by counting: every line is found by its number, however many there are.

An agent costs a few numbers, whether it is seen or not; an order among siblings is worked out when they are seen. A
second parent's child stands under its first alone. What a line looks like is left to others.
"""

from array import array
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from dgm.archive.outline import Members
from dgm.domain import AgentId
from dgm.show.columns import indentations, indents
from dgm.tui.siblings import Order, arranged

MORE = 500
"""Children of one agent that are shown at once; a further line stands for the others, and opens as many more."""
_ROOT = -1


class Place(NamedTuple):
    """What stands on one line."""

    agent: AgentId
    """The agent; where ``more`` is above 0, the parent whose further children the line stands for."""
    depth: int
    """Steps to the root of the line."""
    last: tuple[bool, ...]
    """As ``show.trees.guides`` takes it: an entry for each step of indentation."""
    follows: bool = False
    """As ``show.trees.guides`` takes it: an only child, straight below its parent."""
    more: int = 0
    """Children that are not shown; -1 for ``agent`` where they have none, as further roots."""


class Forest:
    """The lines of a tree, parents before children; at first everything is unfolded."""

    def __init__(self, members: Members, order: Order = Order.BIRTH, *, descending: bool = False) -> None:
        """Arranges the agents.

        Args:
            members: the tree, or an outline of it; read where it is, so that what changes there is to be told.
            order: of siblings; rates and bounds go from the highest down.
            descending: the other way round.
        """
        self.members = members
        self.order, self.descending = order, descending
        self._parent = array("q")
        self._depth = array("q")
        self._shown = array("q")
        """Lines of an agent and what is shown below it, if the agent itself is shown."""
        self._open = bytearray()
        self._families: dict[int, list[AgentId]] = {}
        """First-parent children by birth."""
        self._limits: dict[int, int] = {}
        self._sorted: dict[int, Sequence[AgentId]] = {}
        self._lines = 0
        self._steps: Sequence[int] = ()
        """What ``indentations`` says of the agents; made anew when there are more."""
        self._place(len(members.own_resolved))
        for agent, parent in enumerate(self._parent):
            self._families.setdefault(parent, []).append(AgentId(agent))
        self._count()

    def __len__(self) -> int:
        return self._lines

    @property
    def agents(self) -> int:
        """Agents that were taken in."""
        return len(self._parent)

    # Which line is what

    def at(self, line: int) -> Place:
        """What stands on a line.

        Raises:
            IndexError: there is no such line.
        """
        for place in self.walk(line):
            return place
        raise IndexError(line)

    def walk(self, line: int = 0) -> Iterator[Place]:
        """What stands on this line and on those below it, while nothing changes."""
        if not 0 <= line < self._lines:
            return
        # Of each step down: the parent, and which of its children is taken next.
        path: list[tuple[int, int]] = []
        parent = _ROOT
        while True:
            here = self._seen(parent)
            number, line = self._entry(here, line)
            path.append((parent, number))
            if not line or number >= len(here):
                break
            parent, line = here[number], line - 1
        yield from self._onwards(path)

    def line_of(self, agent: AgentId) -> int | None:
        """The agent's line; None while it is folded away."""
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
        """The first parent; None for a root."""
        parent = self._parent[agent]
        return AgentId(parent) if parent != _ROOT else None

    def depth(self, agent: AgentId) -> int:
        """Steps to the root of the line."""
        return self._depth[agent]

    def children(self, agent: AgentId) -> Sequence[AgentId]:
        """The children that are shown when the agent is unfolded, in their order."""
        return self._seen(agent)

    def steps(self) -> Sequence[int]:
        """Steps of indentation of every agent, whether it is shown or not."""
        if len(self._steps) != len(self._parent):
            self._steps = indentations(self._parent)
        return self._steps

    def folded(self, agent: AgentId) -> bool:
        """Whether the agent has children, and none of them is shown."""
        return agent in self._families and not self._open[agent]

    def deepest(self) -> int:
        """Steps down to which anything is shown."""
        return max((self._depth[a] + 1 for a in self._families if a != _ROOT and self._open[a]), default=0)

    # What a person does

    def reveal(self, agent: AgentId) -> int:
        """Unfolds and opens what hides an agent, and says on which line it is."""
        child: int = agent
        while child != _ROOT:
            parent = self._parent[child]
            if child not in self._seen(parent):
                place = self._arranged(parent).index(AgentId(child))
                self._limit(parent, (place // MORE + 1) * MORE)
            if parent != _ROOT:
                self.unfold(AgentId(parent))
            child = parent
        line = self.line_of(agent)
        assert line is not None
        return line

    def fold_away(self, agent: AgentId) -> None:
        """Hides the agent's children."""
        if agent in self._families and self._open[agent]:
            self._open[agent] = 0
            self._grow(agent, 1 - self._shown[agent])

    def unfold(self, agent: AgentId) -> None:
        """Shows the agent's children."""
        if agent in self._families and not self._open[agent]:
            self._open[agent] = 1
            self._grow(agent, self._below(agent))

    def toggle(self, agent: AgentId) -> None:
        """Hides or shows the agent's children."""
        if self.folded(agent):
            self.unfold(agent)
        else:
            self.fold_away(agent)

    def more(self, agent: AgentId) -> None:
        """Shows ``MORE`` more of an agent's children; -1 for roots."""
        self._limit(agent, self._limits.get(agent, MORE) + MORE)

    def fold(self, depth: int | None) -> None:
        """Shows agents down to so many steps from their root; None for all."""
        self._open = bytearray(
            b"\1" * len(self._depth) if depth is None else (below < depth for below in self._depth)
        )
        self._count()

    def sort(self, order: Order, *, descending: bool) -> None:
        """Puts siblings into another order."""
        self.order, self.descending = order, descending
        self._sorted.clear()
        if any(len(self._families[parent]) > self._page(parent) for parent in self._families):
            self._count()

    # What the run does

    def grown(self) -> None:
        """Takes in agents that were born; those whose parent is unfolded are seen at once."""
        for agent in range(len(self._parent), len(self.members.own_resolved)):
            self._place(1)
            parent = self._parent[agent]
            was = self._below(parent) if self._is_open(parent) else 0
            self._families.setdefault(parent, []).append(AgentId(agent))
            self._sorted.pop(parent, None)
            if self._is_open(parent):
                self._grow(parent, self._below(parent) - was)

    def judged(self, agents: Collection[AgentId]) -> None:
        """Puts agents with other tallies than before, and their ancestors, in their places."""
        if self.order is Order.BIRTH:
            return
        concerned = set(agents)
        if self.order is Order.CLADE:
            # A verdict counts for every ancestor, also for those on whose line its agent does not stand.
            for agent in agents:
                concerned.update(self.members.ancestors(agent))
        parents = {self._parent[agent] for agent in concerned}
        for parent in sorted(parents, reverse=True):
            cut = self._is_open(parent) and len(self._families[parent]) > self._page(parent)
            was = self._below(parent) if cut else 0
            self._sorted.pop(parent, None)
            if cut:
                self._grow(parent, self._below(parent) - was)

    def swapped(self, members: Members) -> None:
        """Reads the same agents, and perhaps more, from elsewhere; what is folded and the order stay."""
        self.members = members
        self._sorted.clear()
        self.grown()
        self._count()

    # How it counts

    def _place(self, count: int) -> None:
        """Makes room for the next agents, and notes whose children they are."""
        first_parent = self.members.first_parent
        for agent in range(len(self._parent), len(self._parent) + count):
            parent = first_parent(AgentId(agent))
            self._parent.append(_ROOT if parent is None else parent)
            self._depth.append(0 if parent is None else self._depth[parent] + 1)
        self._shown.extend(array("q", [1]) * count)
        self._open.extend(b"\1" * count)

    def _count(self) -> None:
        """Counts all lines anew, from the youngest agent up."""
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
        """Lines below an agent when it is unfolded."""
        here = self._seen(parent)
        cut = len(self._families.get(parent, ())) > len(here)
        return sum(self._shown[child] for child in here) + cut

    def _is_open(self, parent: int) -> bool:
        return parent == _ROOT or bool(self._open[parent])

    def _grow(self, agent: int, lines: int) -> None:
        """The lines below an agent have become more, by so many; so have those of all above it that show it."""
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

    def _page(self, parent: int) -> int:
        return self._limits.get(parent, MORE)

    def _is_cut(self, parent: int) -> bool:
        return len(self._families.get(parent, ())) > self._page(parent)

    # Who stands where

    def _onwards(self, path: list[tuple[int, int]]) -> Iterator[Place]:
        ends = [number == self._entries(parent) - 1 for parent, number in path if self._indents(parent)]
        while path:
            parent, number = path[-1]
            here, further = self._seen(parent), self._indents(parent)
            hidden = len(self._families.get(parent, ())) - len(here)
            if further:
                ends[-1] = number == len(here) - 1 + (hidden > 0)
            follows = parent != _ROOT and not further
            if number >= len(here):
                yield Place(AgentId(parent), len(path) - 1, tuple(ends), follows, hidden)
            else:
                agent = here[number]
                yield Place(agent, len(path) - 1, tuple(ends), follows)
                if agent in self._families and self._open[agent]:
                    path.append((agent, 0))
                    if self._indents(agent):
                        ends.append(False)
                    continue
            while path and path[-1][1] >= self._entries(path[-1][0]) - 1:
                over, _ = path.pop()
                if self._indents(over):
                    ends.pop()
            if path:
                path[-1] = (path[-1][0], path[-1][1] + 1)

    def _indents(self, parent: int) -> bool:
        """Whether the children of an agent stand further in than it; roots do not."""
        return parent != _ROOT and indents(
            root=self._parent[parent] == _ROOT, children=len(self._families.get(parent, ()))
        )

    def _entry(self, here: Sequence[AgentId], line: int) -> tuple[int, int]:
        """Which of the siblings a line belongs to, and how many lines it is below it."""
        for number, child in enumerate(here):
            if line < self._shown[child]:
                return number, line
            line -= self._shown[child]
        return len(here), line

    def _entries(self, parent: int) -> int:
        """Siblings that are shown, the line for the others included."""
        here = self._seen(parent)
        return len(here) + (len(self._families.get(parent, ())) > len(here))

    def _seen(self, parent: int) -> Sequence[AgentId]:
        found = self._sorted.get(parent)
        if found is None:
            whole = self._arranged(parent)
            limit = self._page(parent)
            found = self._sorted[parent] = whole if len(whole) <= limit else whole[:limit]
        return found

    def _arranged(self, parent: int) -> Sequence[AgentId]:
        family = self._families.get(parent, [])
        return arranged(self.members, family, self.order, descending=self.descending)
