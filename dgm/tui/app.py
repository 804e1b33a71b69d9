"""The app: five screens over one reader, the present position, the marks, and the way back."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.screen import Screen

from dgm.domain import AgentId, TaskId
from dgm.errors import UserError
from dgm.show.safe import one_line
from dgm.tui.bars import SCREENS
from dgm.tui.changes import RunChanges
from dgm.tui.finding import Finder
from dgm.tui.keys import KeyScope, bindings_of
from dgm.tui.page import Page, agent_of
from dgm.tui.pager import show_pager_from
from dgm.tui.palette import TypedCommandProvider, system_commands
from dgm.tui.reader import RunReader
from dgm.tui.screens import make_screen
from dgm.tui.screens.help import HelpScreen

if TYPE_CHECKING:
    from rich.console import RenderableType

THEMES = {"dark": "textual-dark", "light": "textual-light", "ansi": "ansi-dark"}
"""Theme names on the command line and in Textual; the last theme shows the terminal's own colours."""
LOADING_S, LOOK_S = 0.05, 0.5
"""Seconds between checks of the reader, until there is something to show and afterwards."""
MARKS = 2
_REMEMBERED = 100


@dataclass(frozen=True, slots=True)
class BrowserPosition:
    """A position that the person has left."""

    screen: str
    agent: AgentId | None
    task: TaskId | None
    tab: str | None


class Browser(App[None]):
    """The app of ``dgm browse``."""

    CSS_PATH = Path(__file__).with_name("look.tcss")
    TITLE = "dgm"
    MODES: ClassVar[dict[str, Any]] = {name: partial(make_screen, name) for name, _ in SCREENS}
    DEFAULT_MODE = "tree"
    COMMANDS: ClassVar[set[Any]] = {*App.COMMANDS, TypedCommandProvider}
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.EVERYWHERE)]
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    HORIZONTAL_BREAKPOINTS = [(0, "narrow"), (110, "wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "flat"), (8, "low"), (12, "high")]  # noqa: RUF012

    def __init__(
        self,
        reader: RunReader,
        *,
        follow: bool = False,
        theme: str | None = None,
        agent: AgentId | None = None,
    ) -> None:
        """Show a run.

        Args:
            reader: the run; closed by its opener.
            follow: whether the cursor follows the newest event.
            theme: of ``THEMES``; None for the theme of ``TEXTUAL_THEME``, else dark.
            agent: the agent on which the cursor stands first.
        """
        plain = bool(os.environ.get("NO_COLOR"))
        if not plain and "NO_COLOR" in os.environ:
            del os.environ["NO_COLOR"]  # an empty value asks for nothing, but Textual would obey it
        super().__init__(ansi_color=True if plain else None)
        if plain:
            self.theme = THEMES["ansi"]
        elif theme is not None:
            self.theme = THEMES[theme]
        self.animation_level = "none"
        self.reader = reader
        self.following = follow
        self.agent = agent
        self.task_id: TaskId | None = None
        self.tab: str | None = None
        """The requested part of the screen ``agent``; that screen takes it and sets it to None."""
        self.marks: list[AgentId] = []
        self.said = ""
        """A message in the bottom line, until the next key."""
        self._been: list[BrowserPosition] = []
        self._leaving = False

    @property
    def page(self) -> Page | None:
        """The screen of the five that is shown, also under help or palette; None once the browser has closed."""
        stack = self.screen_stack
        return stack[0] if stack and isinstance(stack[0], Page) else None

    def on_mount(self) -> None:
        """Begin to look at the run."""
        self._look()

    def _look(self) -> None:
        self.look()
        loading = self.reader.members is None and not self.reader.problem
        self.set_timer(LOADING_S if loading else LOOK_S, self._look)

    def look(self) -> None:
        """Draw the news of the run."""
        changed = self.reader.advance()
        lacking = (
            self.reader.explain_missing_agent(self.agent) if changed.whole and self.agent is not None else ""
        )
        if lacking:
            self.agent = None
            self.say(lacking)
        if changed and self.page is not None and self.page.is_mounted:
            self.page.redraw(changed)

    async def on_event(self, event: events.Event) -> None:
        """Give keys and the mouse priority over threads that read."""
        if isinstance(event, events.InputEvent):
            self.reader.gate.hold()
            if self.said and isinstance(event, events.Key):
                self.said = ""
                self.draw_bars()
        await super().on_event(event)

    # Position

    def go(
        self, screen: str, *, agent: AgentId | None = None, task: TaskId | None = None, tab: str | None = None
    ) -> None:
        """Go to a screen, for another agent or task where one is given; Esc comes back.

        Following ends when the agent is another one than here, or any agent in the tree.
        """
        if self.page is not None:
            self.page.note()
        here = BrowserPosition(self.current_mode, self.agent, self.task_id, self.tab)
        if agent is not None and (agent != self.agent or screen == "tree"):
            self.agent, self.following = agent, False
        if tab is None and screen == self.current_mode == "agent" and "/" not in (self.tab or "/"):
            # The agent is shown already: its tab stays open.
            tab = self.tab
        self.task_id = self.task_id if task is None else task
        self.tab = tab
        if here != BrowserPosition(screen, self.agent, self.task_id, self.tab):
            self._been = [*self._been, here][-_REMEMBERED:]
        self._show(screen)

    def _show(self, screen: str) -> None:
        if self._leaving:
            return  # Textual would show the screen without content
        if screen == self.current_mode and self.page is not None:
            self.page.show_subject()
            self.draw_bars()
        else:
            self.switch_mode(screen)

    def say(self, text: str) -> None:
        """Show a message in the bottom line; the text is neutralised."""
        self.said = one_line(text, 300)
        self.draw_bars()

    def draw_bars(self) -> None:
        """Draw head and foot of the screen that is shown."""
        if self.page is not None and self.page.is_mounted:
            self.page.draw_bars()

    def refresh_page(self) -> None:
        """Draw the whole screen again, for example after a mark was set."""
        if self.page is not None:
            self.page.redraw(RunChanges(facts=True))

    # Actions of keys

    def exit(
        self, result: None = None, return_code: int = 0, message: "RenderableType | None" = None
    ) -> None:
        """Leave the browser; keys typed ahead do nothing after that."""
        self._leaving = True
        super().exit(result, return_code, message)

    async def run_action(self, *args: Any, **kwargs: Any) -> bool:  # noqa: ANN401  (Textual's)
        """Perform the action of a key.

        Keys that were typed ahead may still arrive after the one to leave; they do nothing.
        """
        return False if self._leaving else await super().run_action(*args, **kwargs)

    def action_show(self, screen: str) -> None:
        """Go to one of the five screens."""
        self.go(screen)

    async def action_back(self) -> None:
        """Close the layer over the screen, or go back to the position before."""
        if len(self.screen_stack) > 1:
            self.pop_screen()
        elif self._been:
            last = self._been.pop()
            self.agent, self.task_id, self.tab = last.agent, last.task, last.tab
            self._show(last.screen)

    def action_help(self) -> None:
        """Show the table of keys."""
        self.push_screen(HelpScreen())

    def action_theme(self) -> None:
        """Switch to the next theme."""
        if self.no_color:
            self.say("NO_COLOR is set: there are no colours")
            return
        names = list(THEMES.values())
        here = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(here + 1) % len(names)]
        self.say(f"theme {list(THEMES)[(here + 1) % len(names)]}")

    def action_find(self) -> None:
        """Ask for words to search for."""
        if self.page is not None:
            Finder.ask(self.page)

    def action_find_next(self) -> None:
        """Go to the next place found."""
        if self.page is not None:
            self.page.find_again(backwards=False)

    def action_find_previous(self) -> None:
        """Go to the previous place found."""
        if self.page is not None:
            self.page.find_again(backwards=True)

    def action_best(self) -> None:
        """Go to the best agent."""
        if self.reader.best is None:
            self.say("the best agent is being worked out" if self.reader.count else "there is no agent yet")
        else:
            self.following = False
            self.go("agent" if self.current_mode == "agent" else "tree", agent=self.reader.best)

    def action_mark(self) -> None:
        """Mark the agent, or remove its mark; a third mark removes the oldest."""
        agent = agent_of(self)
        if agent is None:
            self.say("there is no agent yet")
            return
        if agent in self.marks:
            self.marks.remove(agent)
        else:
            self.marks = [*self.marks, agent][-MARKS:]
        self.refresh_page()
        self.say(f"marked: {' and '.join(map(str, self.marks)) or 'none'}")

    def action_compare(self) -> None:
        """Compare the marked agents; one mark alone with the agent here."""
        agent = agent_of(self)
        if len(self.marks) == 1 and agent is not None and agent not in self.marks:
            self.marks = [*self.marks, agent]
        if len(self.marks) < MARKS:
            self.say("mark two agents with m, or one and go to another")
            return
        self.go("compare")

    def action_follow(self) -> None:
        """Follow the newest event, or stop following it."""
        self.following = not self.following
        if not self.following:
            self.say("not following")
        elif self.page is not None and self.page.follow():
            self.say("following the newest event")
        else:
            self.say("the tree follows the newest event")

    def action_pager(self) -> None:
        """Open the text of the screen in the pager."""
        text = self.page.pages() if self.page is not None else None
        if text is None:
            self.say("there is nothing here to open in a pager")
            return
        try:
            show_pager_from(self, text)
        except UserError as error:
            self.say(str(error))

    def action_copy(self) -> None:
        """Copy the name of the screen's subject."""
        text = self.page.identity() if self.page is not None else ""
        if text:
            self.copy_to_clipboard(text)
            self.say(f"copied {text}, if your terminal allows it")
        else:
            self.say("there is nothing to copy")

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:  # noqa: ARG002
        """Yield one command for each key that works here."""
        yield from system_commands(self)
