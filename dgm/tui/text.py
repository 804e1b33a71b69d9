"""A text on the screen: a patch, a file, a log, a page of facts; with search, wrapping, and a place that is kept."""

from collections.abc import Callable
from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.worker import get_current_worker

from dgm.show.safe import one_line
from dgm.show.spans import Line
from dgm.tui.bodies import Body, LineBody, LineTarget, find_line
from dgm.tui.lines import LineList
from dgm.tui.page import Page

AT_ONCE = 100_000
"""Maximum characters that are wrapped at once for a new window width; longer texts are wrapped by another thread."""


class TextView(LineList):
    """A view of a ``Body``."""

    @dataclass
    class Found(Message):
        """A message: a search has ended; without a line where the words are nowhere."""

        body: Body
        line: int | None

    @dataclass
    class Wrapped(Message):
        """A message: a text is wrapped; ``put`` puts the rows in place."""

        body: Body
        put: Callable[[], None]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.body: Body = LineBody([])
        self._words = ""
        self._wrapping = False

    @property
    def measure(self) -> int:
        """Cells at which text is wrapped: the width of a window with a scrollbar, even before the bar is there."""
        whole = self.content_region.width or self.app.size.width
        return max(1, whole - 1 - self.styles.scrollbar_size_vertical)

    def show(self, body: Body, at: int = 0) -> None:
        """Put another text in place, with the cursor on a line of it."""
        self.body = body
        self.left = 0
        self._fit()
        self.cursor = at
        self.scroll_to(y=max(0, at - self.page // 2), animate=False, immediate=True)
        self.adapt_to_lines()

    def replace_body(self, body: Body) -> None:
        """Put a newer form of the same text in place; the cursor and the window stay where they are."""
        self.body = body
        self._fit()
        count = len(body)
        self.cursor = max(0, min(self.cursor, count - 1))
        top = self.scroll_offset.y
        self.adapt_to_lines()
        self.scroll_to(y=min(top, max(0, count - self.page)), animate=False, immediate=True)

    def turn(self) -> bool:
        """Show the text in its other form, side by side or not; return whether it has one."""
        if not self.body.toggle_form():
            return False
        share = self.cursor / max(1, self.count())
        self.left = 0
        self.cursor = int(share * len(self.body))
        self.adapt_to_lines()
        return True

    def count(self) -> int:
        """Return the number of lines."""
        return len(self.body)

    def line(self, number: int, width: int) -> Line:
        """Return one line of the text."""
        return self.body.line(number, width) if number < len(self.body) else ()

    @property
    def target(self) -> LineTarget | None:
        """The target of the line under the cursor."""
        return self.body.target(self.cursor) if self.count() else None

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the text again."""
        self._fit()
        super().on_resize(event)

    def _fit(self) -> None:
        """Wrap the text at the window's width; a long text keeps its rows until a thread has wrapped it."""
        body, measure = self.body, self.measure
        if body.count_unwrapped(measure) <= AT_ONCE:
            body.reflow(measure)
        elif not self._wrapping:
            self._wrapping = True
            self._in_thread(lambda: self.post_message(self.Wrapped(body, body.wrapping(measure))), "wrap")

    def on_text_view_wrapped(self, event: Wrapped) -> None:
        """Show the rows, with the cursor about where it was; wrap again if the window has changed since."""
        event.stop()
        self._wrapping = False
        if event.body is self.body:
            share = self.cursor / max(1, self.count())
            event.put()
            self.cursor = int(share * self.count())
        self._fit()
        self.adapt_to_lines()

    def find(self, words: str) -> None:
        """Go to the next line that holds the words; another thread searches for it."""
        self._words = words
        self.find_again(backwards=False)

    def find_again(self, *, backwards: bool) -> None:
        """Go to the next line with the words of the last time, or to the one before."""
        if not self._words:
            self._say("nothing was searched for: / searches")
            return
        body, words, start = self.body, self._words, self.cursor

        def look() -> None:
            worker = get_current_worker()
            number = find_line(
                body, words, start, backwards=backwards, wanted=lambda: not worker.is_cancelled
            )
            if not worker.is_cancelled:
                self.post_message(self.Found(body, number))

        self._in_thread(look, "find")

    def on_text_view_found(self, event: Found) -> None:
        """Go to the line found, if the text is still shown."""
        event.stop()
        if event.line is None:
            self._say(f"{one_line(self._words, 60)}: not found here")
        elif event.body is self.body:
            self.go(event.line)

    def _in_thread(self, work: Callable[[], object], group: str) -> None:
        self.run_worker(work, thread=True, exclusive=True, group=group, exit_on_error=False)

    def _say(self, text: str) -> None:
        if isinstance(self.screen, Page):
            self.screen.browser.say(text)
