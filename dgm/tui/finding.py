"""The line in which words are typed that are looked for."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from dgm.tui.page import Page


class Finder(Input):
    """One line at the bottom of a screen; Enter looks, Esc leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave", show=False)]

    def __init__(self) -> None:
        super().__init__(placeholder="search, Enter", id="find", compact=True, select_on_focus=True)
        self.cursor_blink = False
        self.before: Widget | None = None

    @classmethod
    def ask(cls, page: Page) -> None:
        """Opens the line on a screen; the words of the last time are there."""
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
        """Looks for the words."""
        event.stop()
        page = self.screen
        self.action_leave()
        if isinstance(page, Page) and event.value.strip():
            page.find(event.value.strip())

    def action_leave(self) -> None:
        """Back to what the keys went to before."""
        self.remove_class("open")
        if self.before is not None and self.before.is_mounted and self.before.display:
            self.before.focus()
        else:
            self.screen.focus_next("LineList")
