"""A text on the screen: a patch, a file, a log, a page of facts; with search, wrapping, and a place that is kept."""

from textual import events
from textual.message import Message
from textual.worker import get_current_worker

from dgm.show.safe import one_line
from dgm.show.spans import Line
from dgm.tui.bodies import Body, Lines, Target, found
from dgm.tui.lines import LineList
from dgm.tui.page import Page


class TextView(LineList):
    """Shows a ``Body``."""

    class Found(Message):
        """A search has ended; without a line where the words are nowhere."""

        def __init__(self, body: Body, line: int | None) -> None:
            self.body = body
            self.line = line
            super().__init__()

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self.body: Body = Lines([])
        self._words = ""

    def show(self, body: Body, at: int = 0) -> None:
        """Puts another text in place, with the cursor on a line of it."""
        self.body = body
        self.left = 0
        if self.is_mounted:
            body.reflow(self.room)
        self.cursor = at
        self.scroll_to(y=max(0, at - self.page // 2), animate=False, immediate=True)
        self.updated()

    def renewed(self, body: Body) -> None:
        """Puts a newer form of the same text in place; the cursor and the window stay where they are."""
        self.body = body
        body.reflow(self.room)
        count = len(body)
        self.cursor = max(0, min(self.cursor, count - 1))
        top = self.scroll_offset.y
        self.updated()
        self.scroll_to(y=min(top, max(0, count - self.page)), animate=False, immediate=True)

    def turn(self) -> bool:
        """Shows the text in its other form, side by side or not; whether it has one."""
        if not self.body.turned():
            return False
        share = self.cursor / max(1, self.count())
        self.left = 0
        self.cursor = int(share * len(self.body))
        self.updated()
        return True

    def count(self) -> int:
        """Its length."""
        return len(self.body)

    def line(self, number: int, width: int) -> Line:
        """One line of it."""
        return self.body.line(number, width) if number < len(self.body) else ()

    def widest(self) -> int:
        """As the text says."""
        return self.body.widest()

    @property
    def target(self) -> Target | None:
        """What the line under the cursor leads to."""
        return self.body.target(self.cursor) if self.count() else None

    def on_resize(self, event: events.Resize) -> None:
        """Wraps anew."""
        self.body.reflow(self.room)
        super().on_resize(event)

    def find(self, words: str) -> None:
        """Goes to the next line that holds the words; another thread looks for it."""
        self._words = words
        self.find_again(backwards=False)

    def find_again(self, *, backwards: bool) -> None:
        """Goes to the next line with the words of the last time, or to the one before."""
        if not self._words:
            self._say("nothing was searched for: / searches")
            return
        body, words, start = self.body, self._words, self.cursor

        def look() -> None:
            worker = get_current_worker()
            number = found(body, words, start, backwards=backwards, wanted=lambda: not worker.is_cancelled)
            if not worker.is_cancelled:
                self.post_message(self.Found(body, number))

        self.run_worker(look, thread=True, exclusive=True, group="find")

    def on_text_view_found(self, event: Found) -> None:
        """Goes there, if the text is still shown."""
        event.stop()
        if event.line is None:
            self._say(f"{one_line(self._words, 60)}: not found here")
        elif event.body is self.body:
            self.go(event.line)

    def _say(self, text: str) -> None:
        if isinstance(self.screen, Page):
            self.screen.browser.say(text)
