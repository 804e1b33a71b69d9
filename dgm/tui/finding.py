"""The line in which search words are typed."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from dgm.tui.page import Page


class Finder(Input):
    """One line at the bottom of a screen; Enter searches, Esc leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave", show=False)]

    def __init__(self) -> None:
        super().__init__(placeholder="search, Enter", id="find", compact=True, select_on_focus=True)
        self.cursor_blink = False
        self.before: Widget | None = None

    @classmethod
    def ask(cls, page: Page) -> None:
        """Open the line on a screen; the words of the last time are there."""
        if not page.query(cls):
            page.mount(cls())
        page.call_after_refresh(cls._open, page)

    @classmethod
    def _open(cls, page: Page) -> None:
        finder = page.query_one(cls)
        if page.focused is not finder:
            finder.before = page.focused
        finder.add_class("open")
        finder.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Search for the words."""
        event.stop()
        page = self.screen
        self.action_leave()
        if isinstance(page, Page) and event.value.strip():
            page.find(event.value.strip())

    def action_leave(self) -> None:
        """Give the keys back to the widget that had them before."""
        self.remove_class("open")
        if self.before is not None and self.before.is_mounted and self.before.display:
            self.before.focus()
        else:
            self.screen.focus_next("LineList")
