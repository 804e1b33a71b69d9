"""A list of lines that are made when they are seen: a cursor, keys, the mouse. Subclasses give the lines."""

from dataclasses import dataclass
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from dgm.show.spans import Line, Span, Tone, line_width
from dgm.tui.keys import KeyScope, bindings_of
from dgm.tui.strips import CURSOR, cursor_style, make_strip, tones_of

STEP = 8
"""Number of cells that a key moves to the side."""


class LineList(ScrollView, can_focus=True, inherit_bindings=False):
    """Lines with a cursor; a subclass gives their number and each line, and calls ``updated``."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.LIST)]

    @dataclass
    class Moved(Message):
        """A message: the cursor is on another line, or another item is under it."""

        lines: "LineList"
        number: int

        @property
        def control(self) -> "LineList":
            """The list."""
            return self.lines

    class Chosen(Moved):
        """A message: a line was opened, by key or by mouse."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.cursor = 0
        self._in_view = True
        self.left = 0
        """Number of cells of every line that are hidden at its beginning."""

    # Methods of a subclass

    def count(self) -> int:
        """Return the number of lines."""
        raise NotImplementedError

    def line(self, number: int, width: int) -> Line:
        """Return one line, of any length; ``width`` is the number of its cells that can be seen at once."""
        raise NotImplementedError

    def nothing(self) -> Line:
        """Return the text that stands in place of lines where there are none."""
        return ()

    def widest(self) -> int:
        """Return the cells of the longest line that is in the window."""
        top = self.scroll_offset.y
        seen = range(top, min(self.count(), top + self.page))
        return max((line_width(self.line(n, self.room)) for n in seen), default=0)

    def handle_press(self, number: int, x: int) -> None:
        """Handle a mouse press on cell ``x`` of a line; the cursor is on it already."""

    def handle_move(self) -> None:
        """Handle a move of the cursor by a person."""

    # Behaviour

    def adapt_to_lines(self) -> None:
        """Adapt to other lines, or more or fewer; keep the cursor on a line.

        A subclass calls it after each change. The window moves with the cursor if the cursor was in view;
        after scrolling
        away it stays.
        """
        count = self.count()
        self.cursor = max(0, min(self.cursor, count - 1))
        self.virtual_size = Size(self.room + 1, count)
        if self._in_view:
            self.reveal()
        self.refresh()

    def go(self, number: int) -> None:
        """Put the cursor on a line, or on the nearest there is."""
        before, self.cursor = self.cursor, max(0, min(number, self.count() - 1))
        self.reveal()
        self.refresh_line(before)
        self.refresh_line(self.cursor)
        self.post_message(self.Moved(self, self.cursor))

    def reveal(self) -> None:
        """Scroll just enough to bring the cursor's line into view."""
        top, height = self.scroll_offset.y, self.page
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, immediate=True)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False, immediate=True)
        self._in_view = True

    @property
    def page(self) -> int:
        """Number of lines that are seen at once, at least 1."""
        return max(1, self.scrollable_content_region.height)

    @property
    def room(self) -> int:
        """Number of cells for a line beside the cursor's mark."""
        return max(1, self.scrollable_content_region.width - 1)

    def render_line(self, y: int) -> Strip:
        """Return a row of the window."""
        number = y + self.scroll_offset.y
        tones = tones_of(self.app)
        base = self.rich_style + tones[Tone.PLAIN]
        width = self.room
        if number >= self.count():
            empty = make_strip((Span(" "), *self.nothing()), tones) if not number else Strip([])
            return empty.crop_extend(0, width + 1, base).apply_style(base)
        here = number == self.cursor
        shown = make_strip(self.line(number, width), tones).crop_extend(self.left, self.left + width, None)
        gutter = make_strip((Span(CURSOR if here else " ", Tone.MARK),), tones)
        whole = Strip.join([gutter, shown])
        return whole.apply_style(base + (cursor_style(self.app) if here else Style.null()))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Note whether the cursor can still be seen."""
        super().watch_scroll_y(old_value, new_value)
        top = self.scroll_offset.y
        self._in_view = top <= self.cursor < top + self.page

    def on_resize(self, _: events.Resize) -> None:
        """Keep the cursor in view."""
        self.adapt_to_lines()

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the mouse; a double click opens the line."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y + self.scroll_offset.y >= self.count():
            return
        number = offset.y + self.scroll_offset.y
        self.handle_move()
        self.go(number)
        if event.chain == 2:
            self.action_choose()
        else:
            self.handle_press(number, offset.x - 1 + self.left)

    def _by_key(self, number: int) -> None:
        self.handle_move()
        self.go(number)

    def action_move(self, lines: int) -> None:
        """Move the cursor some lines down, or up if ``lines`` is negative."""
        self._by_key(self.cursor + lines)

    def action_page(self, pages: float) -> None:
        """Move the cursor some pages down, or up if ``pages`` is negative; at least a line."""
        lines = max(1, int(abs(pages) * self.page))
        self.action_move(lines if pages > 0 else -lines)

    def action_first(self) -> None:
        """Go to the first line."""
        self._by_key(0)

    def action_last(self) -> None:
        """Go to the last line."""
        self._by_key(self.count() - 1)

    def action_left(self) -> None:
        """Show more of the lines' beginnings."""
        self.left = max(0, self.left - STEP)
        self.refresh()

    def action_right(self) -> None:
        """Show more of the lines' ends."""
        self.left = max(0, min(self.left + STEP, self.widest() - self.room))
        self.refresh()

    def action_choose(self) -> None:
        """Open the line under the cursor."""
        if self.count():
            self.post_message(self.Chosen(self, self.cursor))
