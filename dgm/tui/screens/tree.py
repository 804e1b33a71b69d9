"""Screen 1: the tree of agents, and beside it the facts of the agent under the cursor."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.worker import get_current_worker

from dgm.analysis.lookups import find_matching, next_match
from dgm.domain import AgentId
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, make_line, plain_text
from dgm.tui.agent_list import AgentList
from dgm.tui.bars import Block
from dgm.tui.changes import RunChanges, find_newest_agent
from dgm.tui.keys import KeyScope
from dgm.tui.page import Page
from dgm.tui.panel import panel_lines
from dgm.tui.siblings import SiblingOrder

if TYPE_CHECKING:
    from dgm.tui.palette import Command

_PAGER_WIDTH = 160
_PAGED = 5_000
"""Maximum number of lines of the tree that are given to a pager."""


class TreeScreen(Page):
    """The whole archive, an agent a line."""

    NAME = "tree"
    WHERE = (KeyScope.TREE, KeyScope.LIST)

    def __init__(self) -> None:
        super().__init__()
        self._found: Sequence[AgentId] = ()
        self._words = ""
        self._drawn: object = None
        self._here = False

    def body(self) -> ComposeResult:
        """Yield the list, and the panel where there is room for it."""
        with Horizontal():
            yield AgentList(self.reader, id="agents")
            yield Block(id="tree-panel")

    @property
    def agents(self) -> AgentList:
        """The list of agents."""
        return self.query_one(AgentList)

    def show_subject(self) -> None:
        """Put the cursor on the agent that the screens are about."""
        agents = self.agents
        agents.marked = self.browser.marks
        agents.changed(RunChanges(whole=True))
        agents.focus()
        if self.browser.agent is not None and self.browser.agent != agents.agent:
            agents.goto(self.browser.agent)
        self._here = True
        if self.browser.following:
            self.follow()

    def on_screen_suspend(self, _: events.ScreenSuspend) -> None:
        """Stop reporting the cursor's agent when another screen is shown."""
        self._here = False

    def changed(self, changed: RunChanges) -> None:
        """Show the changes; while following, put the cursor on the agent of the newest event."""
        agents = self.agents
        drawn = self.reader.best, self.reader.state, tuple(self.browser.marks)
        if changed.whole or changed.events or changed.born or drawn != self._drawn:
            agents.marked = self.browser.marks
            agents.changed(changed)
        elif self.reader.members is None:
            agents.refresh()
        self._drawn = drawn
        if self.browser.agent is not None and changed.whole and self.browser.agent != agents.agent:
            agents.goto(self.browser.agent)
        newest = find_newest_agent(changed.events)
        if self.browser.following and (changed.whole or newest is not None):
            self.follow(newest)
        self._draw_panel()

    def follow(self, newest: AgentId | None = None) -> bool:
        """Put the cursor on the agent of the newest event, which is looked up where it is not known."""
        newest = self.reader.newest() if newest is None else newest
        if newest is not None:
            self.agents.goto(newest)
        return True

    def note(self) -> None:
        """Tell the app the agent under the cursor, where this screen is the one that is shown."""
        if self._here and self.agents.agent is not None:
            self.browser.agent = self.agents.agent

    def on_line_list_moved(self, event: AgentList.Moved) -> None:
        """Tell the app the agent under the cursor, and draw its panel."""
        event.stop()
        self.note()
        self._draw_panel()
        self.draw_bars()

    def on_line_list_chosen(self, event: AgentList.Chosen) -> None:
        """Open the agent."""
        event.stop()
        self.browser.go("agent", agent=self.agents.agent)

    def on_agent_list_touched(self, event: AgentList.Touched) -> None:
        """Stop following when a person moves the cursor."""
        event.stop()
        if self.browser.following:
            self.browser.following = False
            self.draw_bars()

    def action_diff(self) -> None:
        """Show the agent's changes."""
        self.browser.go("agent", agent=self.agents.agent, tab="diff")

    def find(self, words: str) -> None:
        """Search agents by number, commit, operator, rationale, or task, beside the drawing."""
        self._words = words
        self.browser.say(f"looking for {one_line(words, 60)} …")
        self.in_thread(partial(self._search, words, self.reader.until), "find")

    def find_again(self, *, backwards: bool) -> None:
        """Go to the next agent found, by number."""
        if not self._words:
            super().find_again(backwards=backwards)
            return
        here = self.agents.agent
        there = next_match(self._found, AgentId(-1) if here is None else here, backwards=backwards)
        if there is None:
            self.browser.say(f"no agent fits {one_line(self._words, 60)}")
            return
        self.agents.handle_move()
        self.agents.goto(there)
        number = list(self._found).index(there) + 1
        self.browser.say(
            f"{number} of {len(self._found):,} for {one_line(self._words, 60)}; n the next, N the one before"
        )

    def facts(self) -> Sequence[Line]:
        """Return the order, where it is not that of birth."""
        forest = self.agents.forest
        if forest is None or (forest.order is SiblingOrder.BIRTH and not forest.descending):
            return ()
        return [make_line(Span(f"by {forest.order}{', reversed' if forest.descending else ''}", Tone.KEY))]

    def pages(self) -> str | None:
        """Return the agents that are unfolded, a line each."""
        agents = self.agents
        if agents.forest is None:
            return None
        shown = min(len(agents.forest), _PAGED)
        lines = [plain_text(agents.line(number, _PAGER_WIDTH)) for number in range(shown)]
        if shown < len(agents.forest):
            lines.append(f"… {len(agents.forest) - shown:,} more lines")
        return "\n".join(lines)

    def meaning(self, verb: str, rest: str) -> "Command | None":
        """Return the meaning of ``sort own``, ``depth 2``."""
        if verb == "sort" and rest in list(SiblingOrder):
            return f"sort by {rest}", partial(self.agents.sort, SiblingOrder(rest))
        if verb == "depth" and rest == "all":
            return "show all generations", partial(self.agents.fold, None)
        if verb == "depth" and rest.isascii() and rest.isdigit():
            return f"show {int(rest)} generations", partial(self.agents.fold, int(rest))
        return None

    def _search(self, words: str, until: int) -> None:
        worker = get_current_worker()
        found = self.reader.ask(lambda store: find_matching(store, words, until))
        if not worker.is_cancelled:
            self.app.call_from_thread(self._take_found, found)

    def _take_found(self, found: Sequence[AgentId]) -> None:
        self._found = found
        self.agents.found = frozenset(found)
        self.agents.redraw(self.agents.agent)
        self.find_again(backwards=False)

    def _draw_panel(self) -> None:
        panel = self.query_one("#tree-panel", Block)
        agent = self.agents.agent
        width = panel.size.width
        if agent is not None and width > 0:
            panel.show(panel_lines(self.reader, agent, width))
        elif not self.reader.count:
            panel.show([])
