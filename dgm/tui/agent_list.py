"""A tree of agents as a list of lines: folding, the line of the cursor's agent, the content of a row."""

from collections.abc import Callable, Collection, Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.message import Message

from dgm.analysis.outline import Members, trace_lineage
from dgm.domain import AgentId
from dgm.show.agents import aligned_line, row_of
from dgm.show.columns import RowColumns, columns_of, extent_of, most_steps
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.trees import guide_text
from dgm.tui.changes import RunChanges
from dgm.tui.forest import MORE, Forest, ForestLine
from dgm.tui.keys import KeyScope, bindings_of
from dgm.tui.lines import LineList
from dgm.tui.reader import RunReader
from dgm.tui.siblings import SiblingOrder

FOLDED = "▸"
_WINDOW = 64
"""Number of lines that are looked up at once."""
_MARKS = 5
"""Cells for the marks behind an agent's number: two marks out of three, and a blank behind each."""
_FOUND = "» "


class AgentList(LineList):
    """The forest of a run; ``row`` may be replaced, to show other facts of each agent."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.TREE)]

    class Touched(Message):
        """A message: a person moved the cursor."""

    def __init__(self, reader: RunReader, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.reader = reader
        self.forest: Forest | None = Forest(reader.members) if reader.members is not None else None
        self.marked: Collection[AgentId] = ()
        self.found: Collection[AgentId] = ()
        """The agents that a search found; shown with a mark."""
        self.row: Callable[[AgentId, Line, int], Line] = self.agent_row
        """Function that makes a row from an agent, the text in front of it, and the cells of the whole line."""
        self.beside = 0
        """Number of cells that ``row`` puts between the guides and an agent's number."""
        self._columns: tuple[object, RowColumns] | None = None
        self._agent: AgentId | None = None
        self._places: dict[int, ForestLine] = {}

    @property
    def agent(self) -> AgentId | None:
        """The agent under the cursor; on a line for further children, their parent."""
        if self.forest is None or not len(self.forest):
            return None
        place = self._at(self.cursor)
        return place.agent if place.agent >= 0 else None

    def count(self) -> int:
        """Return the number of lines of the forest."""
        return len(self.forest) if self.forest else 0

    def line(self, number: int, width: int) -> Line:
        """Return guides and an agent, or the number of children that are not shown."""
        place = self._at(number)
        lead = self._lead(place, width)
        if place.more:
            said = f"… {place.more:,} more (Enter shows {min(MORE, place.more):,})"
            return make_line(Span(lead, Tone.DIM), Span(said, Tone.KEY))
        return self.row(place.agent, make_line(Span(lead, Tone.DIM)), width)

    def nothing(self) -> Line:
        """Return the reason why there is no agent."""
        if self.reader.members is not None:
            return make_line(Span("no agent is born yet: the run makes its first one", Tone.DIM))
        return make_line(Span(f"reading the run, {self.reader.reading or 0:.0%} …", Tone.DIM))

    def agent_row(self, agent: AgentId, lead: Line, width: int) -> Line:
        """Return the agent as it is listed everywhere, in the columns of this list."""
        members, born = self.reader.members, self.reader.born([agent]).get(agent)
        if members is None or born is None:
            return (*lead, Span(str(agent), Tone.STRONG))
        row = row_of(
            members,
            born,
            aim=self.reader.aim(agent),
            state=self.reader.activity_of(agent),
            best=self.reader.best,
            marked=self.marked,
        )
        before = (*lead, Span(_FOUND, Tone.MARK)) if agent in self.found else lead
        return aligned_line(row, before, self._columns_for(members, width))

    def _columns_for(self, members: Members, width: int) -> RowColumns:
        """Return the columns of the rows; they are computed only when something has changed."""
        assert self.forest is not None
        marks = _MARKS + self.beside + len(_FOUND) * bool(self.found)
        key = id(members), members.seq, self.forest.agents, width, marks
        if self._columns is None or self._columns[0] != key:
            found = columns_of(extent_of(members, self.forest.steps()), width, marks)
            self._columns = key, found
        return self._columns[1]

    # Changes

    def changed(self, changed: RunChanges) -> None:
        """Take in the news of the run; the cursor stays on its agent."""
        members = self.reader.members
        if members is None:
            return
        here = self.agent
        if self.forest is None:
            self.forest = Forest(members)
        elif self.forest.members is not members:
            self.forest.replace_members(members)
        else:
            self._grow(self.forest, changed)
        self.redraw(here)

    def _grow(self, forest: Forest, changed: RunChanges) -> None:
        if forest.agents < self.reader.count:
            forest.add_newborn()
        if changed.whole and forest.order is not SiblingOrder.BIRTH:
            forest.sort(forest.order, descending=forest.descending)
        elif changed.events:
            forest.judged(changed.agents)

    def redraw(self, agent: AgentId | None = None) -> None:
        """Draw all rows again, with the cursor on an agent if it can be seen."""
        self._places.clear()
        if agent is not None and self.forest is not None:
            number = self.forest.line_of(agent)
            place = self._at(self.cursor) if self.cursor < len(self.forest) else None
            if number is not None and not (place is not None and place.more and place.agent == agent):
                self.cursor = number
        self.adapt_to_lines()
        self._announce()

    def goto(self, agent: AgentId) -> bool:
        """Put the cursor on an agent and unfold its ancestors; return False where there is no such agent."""
        if self.forest is None or not 0 <= agent < self.reader.count or agent >= self.forest.agents:
            return False
        number = self.forest.reveal(agent)
        self._places.clear()
        self.cursor = number
        self.adapt_to_lines()
        self.reveal()
        self._announce()
        return True

    def fold(self, depth: int | None) -> None:
        """Show ``depth`` generations below the roots; None for all."""
        self._refold(lambda forest: forest.fold(depth))

    def sort(self, order: SiblingOrder, *, descending: bool = False) -> None:
        """Put siblings into another order."""
        self._refold(lambda forest: forest.sort(order, descending=descending))

    def handle_move(self) -> None:
        """Post that a person moved the cursor."""
        self.post_message(self.Touched())

    def handle_press(self, number: int, x: int) -> None:
        """Fold or unfold the agent when the click is in front of its number."""
        place = self._at(number)
        if place.more:
            self.action_choose()
        elif x < len(self._lead(place, self.room)):
            self.action_fold()

    # Actions of keys

    def action_choose(self) -> None:
        """Show more children, or open the agent."""
        place = self._at(self.cursor) if self.count() else None
        if place is not None and place.more:
            here = self.cursor
            self._refold(lambda forest: forest.more(place.agent))
            self.go(here)
            return
        super().action_choose()

    def action_fold(self) -> None:
        """Fold or unfold the agent."""
        agent = self.agent
        if agent is not None:
            self._refold(lambda forest: forest.toggle(agent))

    def action_left(self) -> None:
        """Fold the agent, or go to its parent."""
        agent, forest = self.agent, self.forest
        if agent is None or forest is None:
            return
        self.handle_move()
        if self._at(self.cursor).more:
            self.goto(agent)
        elif forest.children(agent) and not forest.is_folded(agent):
            self._refold(lambda forest: forest.fold_away(agent))
        else:
            self.action_parent()

    def action_right(self) -> None:
        """Unfold the agent, or go to its first child."""
        agent, forest = self.agent, self.forest
        if agent is None or forest is None or self._at(self.cursor).more:
            return
        self.handle_move()
        if forest.is_folded(agent):
            self._refold(lambda forest: forest.unfold(agent))
        elif forest.children(agent):
            self.goto(forest.children(agent)[0])

    def action_deepen(self, generations: int) -> None:
        """Show some generations more, or fewer if the number is negative."""
        if self.forest is not None:
            self.fold(max(0, self.forest.deepest() + generations))

    def action_fold_all(self) -> None:
        """Fold everything, or unfold everything if it is folded."""
        if self.forest is not None:
            self.fold(0 if self.forest.deepest() else None)

    def action_sort(self) -> None:
        """Sort by the next order."""
        if self.forest is not None:
            orders = list(SiblingOrder)
            self.sort(orders[(orders.index(self.forest.order) + 1) % len(orders)])

    def action_reverse(self) -> None:
        """Reverse the present order."""
        if self.forest is not None:
            self.sort(self.forest.order, descending=not self.forest.descending)

    def action_parent(self) -> None:
        """Go to the parent."""
        self._go_up(lambda line: line[-2] if len(line) > 1 else None)

    def action_ancestor(self) -> None:
        """Go to the first ancestor below the root."""
        self._go_up(lambda line: line[1] if len(line) > 1 else None)

    def action_root(self) -> None:
        """Go to the root."""
        self._go_up(lambda line: line[0])

    def _go_up(self, whither: Callable[[Sequence[AgentId]], AgentId | None]) -> None:
        """Go to one of the agents from the root to this one, as ``whither`` chooses it."""
        agent, forest = self.agent, self.forest
        if agent is None or forest is None:
            return
        self.handle_move()
        there = whither(trace_lineage(forest.members, agent))
        if there is not None:
            self.goto(there)

    def _refold(self, change: Callable[[Forest], None]) -> None:
        """Change the folding or the order; the cursor goes to the nearest ancestor of its agent that is still shown."""
        if self.forest is None:
            return
        here = self.agent
        change(self.forest)
        while here is not None and self.forest.line_of(here) is None:
            here = self.forest.parent(here)
        self._places.clear()
        if here is not None:
            self.cursor = self.forest.line_of(here) or 0
        self.adapt_to_lines()
        self.reveal()
        self._announce()

    def _announce(self) -> None:
        self.post_message(self.Moved(self, self.cursor))

    def _at(self, number: int) -> ForestLine:
        if number not in self._places and self.forest is not None:
            if len(self._places) > 16 * _WINDOW:
                self._places.clear()
            begin = max(0, number - _WINDOW // 2)
            for line, place in zip(range(begin, begin + _WINDOW), self.forest.walk(begin), strict=False):
                self._places[line] = place
        return self._places[number]

    def _lead(self, place: ForestLine, width: int) -> str:
        """Return the guides, with a mark if the agent is folded."""
        lead = guide_text(place.last, follows=place.follows, most=most_steps(width))
        folded = self.forest is not None and not place.more and self.forest.is_folded(place.agent)
        if folded:
            return (lead[:-1] if lead else "") + FOLDED
        return lead
