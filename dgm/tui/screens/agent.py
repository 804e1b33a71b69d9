"""One agent: its identity, and in tabs its changes, source, evaluations, lineage, making and refusals."""

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message

from dgm.analysis.accounts import AgentAccount, Purpose, account_of
from dgm.domain import ActionId, AgentId, Usage
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.tui.agent_head import head_lines
from dgm.tui.bars import Block
from dgm.tui.bodies import notice_body
from dgm.tui.changes import RunChanges
from dgm.tui.keys import KeyScope, bindings_of
from dgm.tui.page import agent_of, reading_text
from dgm.tui.tabs import Load, diff, evaluations, lineage, refusals, source, transcript
from dgm.tui.text import TextView
from dgm.tui.text_page import TextPage

TABS = ("diff", "source", "evaluations", "lineage", "transcript", "refusals")
HEAD_ROWS = 6
_PARTS = {evaluations.ONE: "evaluations"}
"""Parts that are shown under the tab of another name."""


class Tabs(Block):
    """The names of the tabs; a click on one goes there."""

    def name_here(self, tab: str) -> None:
        """Show which tab is open."""
        names = (
            Span(f"[{name}]", Tone.MARK) if name == tab else Span(f" {name} ", Tone.DIM) for name in TABS
        )
        self.show([tuple(names)])

    def on_click(self, event: events.Click) -> None:
        """Open the tab whose name is there."""
        end = 0
        for name in TABS:
            end += len(name) + 2
            if event.x < end:
                if isinstance(self.screen, AgentScreen):
                    self.screen.open(name)
                return


class AgentScreen(TextPage):
    """The screen ``agent``."""

    NAME = "agent"
    WHERE = (KeyScope.AGENT, KeyScope.LIST)
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.AGENT)]
    CSS = f"""
    #agent-head {{ height: {HEAD_ROWS}; padding: 0 1; }}
    #agent-tabs {{ height: 1; background: $panel; }}
    .low #agent-head, .flat #agent-head, .flat #agent-tabs {{ display: none; }}
    """

    @dataclass
    class Counted(Message):
        """A message: the agent's spend is added up."""

        agent: AgentId
        account: AgentAccount

    def __init__(self) -> None:
        super().__init__()
        self.agent: AgentId | None = None
        self.tab = TABS[0]
        """One of ``TABS``, or a part of it: ``source/PATH``, ``evaluation/ACTION``."""
        self.beside = False
        self._other: AgentId | None = None
        """The agent to compare with; None for nothing, see ``diff.others``."""
        self._account: AgentAccount | None = None

    def body(self) -> ComposeResult:
        """Yield head, names of tabs, and text."""
        yield Block(id="agent-head")
        yield Tabs(id="agent-tabs")
        yield TextView()

    def show_subject(self) -> None:
        """Show the agent that is chosen."""
        agent = agent_of(self.browser)
        self.tab = self.browser.tab or (self.tab if "/" not in self.tab else _tab_of(self.tab))
        self.browser.tab = self.tab
        if agent is None:
            read = self.reader.members is not None
            why = "the run has no agent yet: waiting for the seed" if read else reading_text(self.reader)
            self.put("nobody", notice_body(why))
            return
        if agent != self.agent:
            self.agent, self._account = agent, None
            self._other = next(iter(diff.find_compared_agents(self.reader, agent, ())), None)
        if self._account is None:
            self._count()
        self._draw_head()
        self._read()

    def changed(self, changed: RunChanges) -> None:
        """Draw the head; read the list of evaluations again where there is a new one."""
        if self.agent is None or changed.whole:
            self.show_subject()
            return
        self._draw_head()
        if self.agent in changed.verdicts:
            self._count()
            if self.tab == "evaluations":
                self._read()

    def open(self, tab: str) -> None:
        """Open a tab."""
        self.tab = self.browser.tab = tab
        if self.agent is not None:
            self._draw_head()
            self._read()

    def action_turn_tab(self, tabs: int) -> None:
        """Open the tab that is so many to the right, or to the left if ``tabs`` is negative."""
        self.open(TABS[(TABS.index(_tab_of(self.tab)) + tabs) % len(TABS)])

    def action_against(self) -> None:
        """Compare the agent with the next possible choice."""
        if self.agent is None:
            return
        choices = list(diff.find_compared_agents(self.reader, self.agent, self.browser.marks))
        here = choices.index(self._other) if self._other in choices else -1
        self._other = choices[(here + 1) % len(choices)] if choices else None
        self.open("diff")
        if len(choices) == 1:
            self.browser.say("there is nothing else to compare it with: mark an agent with m")

    def action_beside(self) -> None:
        """Switch between side by side and one below the other."""
        if self.tab == "diff":
            self.beside = not self.beside
        if self.tab == "diff" and self.loading:
            self._read()
        else:
            super().action_beside()

    def _read(self) -> None:
        assert self.agent is not None
        kind, _, rest = self.tab.partition("/")
        key = (self.agent, self.tab, self._other if kind == "diff" else None)
        self.load(
            key, f"the {one_line(_tab_of(self.tab), 40)} of agent {self.agent}", self._question(kind, rest)
        )

    def _question(self, kind: str, rest: str) -> Load:
        reader, agent = self.reader, self.agent
        assert agent is not None
        match kind:
            case "source":
                return source.load(reader, agent, rest)
            case "evaluations":
                return evaluations.load(reader, agent)
            case evaluations.ONE if rest.isdigit():
                return evaluations.load_one(reader, ActionId(int(rest)))
            case "lineage":
                return lineage.load(reader, agent, self.browser.marks)
            case "transcript":
                return transcript.load(reader, agent)
            case "refusals":
                return refusals.load(reader, agent)
            case _:
                return diff.load(reader, agent, self._other, beside=self.beside)

    def _draw_head(self) -> None:
        if self.agent is None or self.reader.members is None:
            return
        width = max(20, self.size.width - 2)
        spent = _spend_line(self._account) if self._account else None
        shown = head_lines(self.reader, self.agent, self.browser.marks, spent, width)
        self.query_one("#agent-head", Block).show(shown[:HEAD_ROWS])
        self.query_one(Tabs).name_here(_tab_of(self.tab))

    def on_resize(self, event: events.Resize) -> None:
        """Fit the head to the new size."""
        super().on_resize(event)
        self.call_after_refresh(self._draw_head)

    def _count(self) -> None:
        """Add up the agent's spend on another thread."""
        agent = self.agent
        if agent is None or self.reader.run is None:
            return

        def work() -> None:
            account = self.reader.ask_tree(lambda run: account_of(run, agent, whole=False))
            self.post_message(self.Counted(agent, account))

        self.in_thread(work, "account")

    def on_agent_screen_counted(self, event: Counted) -> None:
        """Show the spend in the head, unless the person has gone on to another agent."""
        if event.agent == self.agent:
            self._account = event.account
            self._draw_head()


def _tab_of(part: str) -> str:
    kind = part.partition("/")[0]
    kind = _PARTS.get(kind, kind)
    return kind if kind in TABS else TABS[0]


def _spend_line(account: AgentAccount) -> Line:
    pieces: list[str | Span] = []
    for purpose, words in ((Purpose.MAKING, "making it"), (Purpose.EVALUATING, "evaluating it")):
        usage: Usage = account.of(purpose)
        if usage.calls:
            said = f"{usage.calls:,} calls, {usage.tokens:,} tokens, {usage.usd:.4f} USD"
            pieces += ["; " if pieces else "", Span(f"{words} ", Tone.DIM), said]
    return make_line(*pieces) if pieces else make_line(Span("no model was asked for it yet", Tone.DIM))
