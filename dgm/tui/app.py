"""The app of ``dgm browse``: five tabs over one run, the subject that they share, and the way back."""

import asyncio
import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from rich.text import Text
from textual import events, on
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import Hit, Hits, Provider
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widgets import Footer, Input, Static, TabbedContent
from textual.widgets import Tabs as TabBar

from dgm.domain import AgentId
from dgm.errors import DgmError, UserError
from dgm.render import safe
from dgm.tui.reader import BackgroundReader, News, ReaderClosed

# The first screen is painted before the modules that read and show a run are imported.
if TYPE_CHECKING:
    from rich.console import RenderableType

    from dgm.tui.agent import AgentPane
    from dgm.tui.pane import Pane
    from dgm.tui.tree import AgentTree, TreePane

THEMES = {"dark": "textual-dark", "light": "textual-light", "ansi": "ansi-dark"}
"""Names of ``--theme`` and in textual; the last one uses the terminal's own colours."""
LOOK_S = 0.5
"""Seconds between two looks at the run."""
READING_S = 0.1
BEST_SHARE = 20
"""At most one part in so many of the time is used to find the best agent."""
MARKS = 2
_HISTORY = 100
_NEEDS_RUN = frozenset(
    ("tab", "find", "find_next", "best", "mark", "compare", "diff", "copy", "note", "back", "command_palette")
)
_LETTERS = {
    "j": "down",
    "k": "up",
    "h": "left",
    "l": "right",
    "g": "home",
    "G": "end",
    "ctrl+f": "pagedown",
    "ctrl+b": "pageup",
}
"""Keys of vi, and what they stand for."""
_MOVES = frozenset((*_LETTERS, *_LETTERS.values()))
_TABS = ("tree", "agent", "tasks", "compare", "run")


class Position(NamedTuple):
    """What is in view."""

    tab: str
    agent: int | None
    task: str | None
    attempt: int | None
    """The action of the evaluation that is shown."""


class JumpProvider(Provider):
    """Commands of the palette that are typed: the number of an agent, or a part of a task's name."""

    async def search(self, query: str) -> Hits:
        """Yield the agent or the tasks."""
        browser, matcher = self.app, self.matcher(query)
        assert isinstance(browser, Browser)
        if query.strip().isdigit() and int(query) in browser.agents.rows:
            agent = int(query)
            yield Hit(1.0, Text(f"Agent {agent}"), lambda: browser.go("agent", agent=agent))
        for task in await browser.reader.ask(lambda run: run.tree.tasks):
            if (score := matcher.match(task)) > 0:
                yield Hit(
                    score, Text(safe.one_line(task, 200)), lambda task=task: browser.go("tasks", task=task)
                )


class Browser(App[None]):
    """The app."""

    TITLE = "dgm"
    CSS_PATH = "look.tcss"
    BINDING_GROUP_TITLE = "Browser"
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(str(number), f"tab('{tab}')", f"To {tab}", show=False)
            for number, tab in enumerate(_TABS, 1)
        ),
        Binding("slash", "find", "Find", key_display="/"),
        Binding("n", "find_next(1)", "Next match", show=False),
        Binding("N", "find_next(-1)", "Previous match", show=False),
        Binding("b", "best", "Best"),
        Binding("m", "mark", "Mark"),
        Binding("c", "compare", "Compare"),
        Binding("d", "diff", "Diff", show=False),
        Binding("w", "approve", "Approve"),
        Binding("a", "note", "Add a note", show=False),
        Binding("f", "follow", "Follow", show=False),
        Binding("y", "copy", "Copy the agent or task", show=False),
        Binding("t", "next_theme", "Next theme", show=False),
        Binding("escape", "back", "Back", show=False),
        Binding("question_mark", "toggle_keys", "Keys"),
        Binding("q", "quit", "Quit"),
        Binding("colon", "command_palette", "Commands"),
        *(Binding(letter, f"simulate_key('{key}')", show=False) for letter, key in _LETTERS.items()),
    ]
    COMMANDS: ClassVar[set[Any]] = {*App.COMMANDS, JumpProvider}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012

    def __init__(
        self, reader: BackgroundReader, *, agent: str | None = None, theme: str | None = None
    ) -> None:
        """Show a run.

        Args:
            reader: the run; the browser closes it.
            agent: the agent that is shown first: a number, or ``best``.
            theme: of ``THEMES``; None: the one that ``TEXTUAL_THEME`` names, else dark.
        """
        plain = bool(os.environ.get("NO_COLOR"))
        if not plain:
            os.environ.pop("NO_COLOR", None)  # an empty value asks for nothing, but Textual would obey it
        super().__init__(ansi_color=True if plain else None)
        if plain or theme is not None:
            self.theme = THEMES["ansi" if plain else theme or "dark"]
        self.animation_level = "none"
        self.reader = reader
        self.head = Static(id="head", markup=False)
        self.tabs = TabbedContent(id="tabs")
        self.tree_pane: TreePane
        self.agent_pane: AgentPane
        self.finder = Input(placeholder="find", id="find")
        self._leaving = False
        self.problem: DgmError | None = None
        """Why the run is not followed now."""
        self.news: News | None = None
        self.best: int | None = None
        self.failure: DgmError | None = None
        """Why the browser ended by itself."""
        self.agent: int | None = None
        self._wanted = agent
        self.task_id: str | None = None
        self.attempt: int | None = None
        self.marks: list[int] = []
        self.following = False
        self.words = ""
        """What was searched for last."""
        self._history: list[Position] = []
        self._best_due = 0.0
        self._best_seq = -1

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.tabs
        yield self.finder
        yield Footer(show_command_palette=False)

    @property
    def pane(self) -> "Pane":
        """The pane in view, also below another screen."""
        return cast("Pane", self.tabs.active_pane)

    @property
    def agents(self) -> "AgentTree":
        """The tree, which has the rows of all agents."""
        return self.tree_pane.agents

    # Reading

    def on_mount(self) -> None:
        self._show_head()
        self.call_after_refresh(lambda: self.run_worker(self._watch()))

    async def on_unmount(self) -> None:
        self.reader.close()

    async def _watch(self) -> None:
        progress = self.set_interval(READING_S, self._show_head)
        try:
            await self._load()
            await self.reader.open()
        except ReaderClosed:
            return
        except DgmError as error:
            self._fail(error)
            return
        finally:
            progress.stop()
        while not self._leaving:
            try:
                news = await self.reader.follow()
                self.problem = None
                self._take(news)
                await self._find_best(news)
            except (ReaderClosed, NoMatches):
                return  # the browser is being left
            except DgmError as error:
                self.problem = error
            self._show_head()
            await asyncio.sleep(LOOK_S)

    async def _load(self) -> None:
        """Make the panes."""
        await self.reader.load()
        from dgm.tui.agent import AgentPane
        from dgm.tui.compare import ComparePane
        from dgm.tui.run import RunPane
        from dgm.tui.tasks import TasksPane
        from dgm.tui.tree import TreePane

        self.tree_pane, self.agent_pane = TreePane(), AgentPane()
        for pane in (self.tree_pane, self.agent_pane, TasksPane(), ComparePane(), RunPane()):
            await self.tabs.add_pane(pane)
        for bar in self.query(TabBar):
            bar.can_focus = False

    def _take(self, news: News) -> None:
        if self._leaving:
            return
        first, self.news = self.news is None, news
        if first:
            self.refresh_bindings()
        if first and self._wanted is not None and self._wanted.isdigit():
            self.agent = int(self._wanted)
            if self.agent >= news.agents:
                self._fail(
                    UserError(f"no agent {self.agent}; there are 0 to {news.agents - 1}", argument="agent")
                )
                return
        tree = self.tree_pane
        tree.take(news)
        if self.pane is not tree:
            self.pane.take(news)
        if first:
            self.pane.enter()
        self._show_head()

    def exit(
        self, result: None = None, return_code: int = 0, message: "RenderableType | None" = None
    ) -> None:
        """Leave the browser."""
        self._leaving = True
        super().exit(result, return_code, message)

    def _fail(self, error: DgmError) -> None:
        self.failure = error
        self.exit(return_code=1)

    async def _find_best(self, news: News) -> None:
        """Ask for the recommended agent where there is news; finding it can take seconds in a long run."""
        if not news.agents or news.seq == self._best_seq or time.monotonic() < self._best_due:
            return
        begun, self._best_seq = time.monotonic(), news.seq
        self.best = await self.reader.find_best()
        self._best_due = time.monotonic() + BEST_SHARE * (time.monotonic() - begun)
        self.tree_pane.refresh_marks()
        if self._wanted == "best" and self.best is not None:
            self._wanted = None
            self.agents.goto(self.best)

    def _show_head(self) -> None:
        self.head.update(self._head_text(), layout=False)

    def _head_text(self) -> Text:
        parts = [Text(safe.one_line(self.reader.folder.resolve().name, 40), "bold")]
        if self.news is None:
            parts.append(Text(f"reading, {self.reader.events_read:,} events"))
        else:
            from dgm.render import fmt

            parts.append(Text(safe.one_line(self.news.state, 40)))
            parts.append(Text(fmt.count(self.news.agents, "agent")))
            parts.append(Text(fmt.count(self.news.evaluations, "evaluation")))
            if self.best is not None:
                parts.append(Text(f"★ {self.best}", "bold yellow"))
            if self.news.waiting:
                waiting = fmt.count(self.news.waiting, "child waits", "children wait")
                parts.append(Text(f"⏸ {waiting} for approval: w", "bold yellow"))
        if self.following:
            parts.append(Text("following", "green"))
        if self.problem is not None:
            parts.append(Text(safe.one_line(str(self.problem), 300), "bold red"))
        return Text(" · ").join(parts)

    # Positions

    def go(
        self, tab: str, *, agent: int | None = None, task: str | None = None, attempt: int | None = None
    ) -> None:
        """Show a tab, for another agent or task where one is named; Esc comes back."""
        here = self._position()
        self.agent = self.agent if agent is None else agent
        self.task_id = self.task_id if task is None else task
        self.attempt = attempt
        if here != self._position(tab):
            self._history = [*self._history, here][-_HISTORY:]
        self._show_tab(tab)

    def _position(self, tab: str | None = None) -> Position:
        return Position(tab or str(self.pane.id), self.agent, self.task_id, self.attempt)

    def _show_tab(self, tab: str) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()
        if self.tabs.active == tab:
            self.pane.enter()
        else:
            self.tabs.active = tab

    @on(TabbedContent.TabActivated, "#tabs")
    def _enter_tab(self) -> None:
        if self.news is not None:
            self.pane.enter()

    def say(self, message: str) -> None:
        """Show a short message."""
        self.clear_notifications()
        self.notify(safe.one_line(message, 300), timeout=3, markup=False)

    @property
    def subject(self) -> int | None:
        """The agent that the tabs are about: the chosen one, else the best, else the seed."""
        if self.agent is not None or self.news is None or not self.news.agents:
            return self.agent
        return self.best if self.best is not None else 0

    # Actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        if action == "approve":
            return self.news is not None and self.news.waiting > 0
        return self.news is not None or action not in _NEEDS_RUN

    def action_tab(self, tab: str) -> None:
        self.go(tab)

    async def action_back(self) -> None:
        if len(self.screen_stack) > 1:
            self.pop_screen()
        elif self.finder.has_class("-open"):
            self.finder.remove_class("-open")
            self.pane.focus_content()
        elif self.screen.query("HelpPanel"):
            self.action_hide_help_panel()
        elif self._history:
            position = self._history.pop()
            self.agent, self.task_id, self.attempt = position.agent, position.task, position.attempt
            self._show_tab(position.tab)

    def action_find(self) -> None:
        if len(self.screen_stack) == 1:
            self.finder.add_class("-open")
            self.finder.value = ""
            self.finder.focus()

    @on(Input.Submitted, "#find")
    async def _find(self, event: Input.Submitted) -> None:
        self.finder.remove_class("-open")
        self.pane.focus_content()
        if event.value.strip():
            self.words = event.value.strip()
            await self.action_find_next(1)

    async def action_find_next(self, step: int) -> None:
        if not self.words:
            self.say("/ searches")
        elif not await self.pane.find(self.words, step):
            self.say(f"{self.words}: not found")

    def action_best(self) -> None:
        if self.best is None:
            self.say("the best agent is not known yet")
        else:
            self.following = False
            self.go("agent" if self.pane.id == "agent" else "tree", agent=self.best)

    def action_mark(self) -> None:
        agent = self.subject
        if agent is None:
            return
        if agent in self.marks:
            self.marks.remove(agent)
        else:
            self.marks = [*self.marks, agent][-MARKS:]
        self.tree_pane.refresh_marks()
        self.say(f"marked: {' and '.join(map(str, self.marks)) or 'none'}")

    def action_compare(self) -> None:
        agent = self.subject
        if len(self.marks) == 1 and agent is not None and agent not in self.marks:
            self.marks.append(agent)
        if len(self.marks) < MARKS:
            self.say("mark two agents with m")
        else:
            self.go("compare")

    def action_diff(self) -> None:
        pane = self.agent_pane
        if self.pane is pane:
            pane.next_base()
        else:
            pane.part = "diff"
            self.go("agent")

    def action_follow(self) -> None:
        self.following = not self.following
        self._show_head()

    def action_approve(self) -> None:
        from dgm.tui.run import ApprovalScreen

        if self.news is None or not self.news.waiting:
            self.say("no child waits for approval")
        else:
            self.push_screen(ApprovalScreen())

    def action_note(self) -> None:
        from dgm.tui.agent import NoteScreen

        if self.subject is not None and len(self.screen_stack) == 1:
            self.push_screen(NoteScreen(AgentId(self.subject)))

    def action_copy(self) -> None:
        text = self.task_id if self.pane.id == "tasks" else self.subject
        if text is not None:
            self.copy_to_clipboard(str(text))
            self.say(f"copied {text}, if the terminal allows it")

    def action_next_theme(self) -> None:
        names = list(THEMES.values())
        self.theme = names[(names.index(self.theme) + 1) % len(names)] if self.theme in names else names[0]

    def action_toggle_keys(self) -> None:
        if self.screen.query("HelpPanel"):
            self.action_hide_help_panel()
        else:
            self.action_show_help_panel()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key) and event.key in _MOVES and self.following:
            self.following = False
            self._show_head()
        await super().on_event(event)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield a command for each key that works here."""
        titles = set()
        for binding in screen.active_bindings.values():
            if binding.binding.description and binding.binding.description not in titles:
                titles.add(binding.binding.description)
                yield SystemCommand(
                    binding.binding.description,
                    f"key {self.get_key_display(binding.binding)}",
                    lambda action=binding.binding.action, node=binding.node: self.run_worker(
                        self.run_action(action, node)
                    ),
                )
