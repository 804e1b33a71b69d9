"""Screens that are mostly one text: loading it beside the drawing, finding words in it, following its lines."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from textual.message import Message
from textual.worker import get_current_worker

from dgm.show.spans import Tone
from dgm.tui.bodies import Body, notice_body
from dgm.tui.lines import LineList
from dgm.tui.page import Page
from dgm.tui.tabs import Load, load_or_explain
from dgm.tui.text import TextView

PATIENCE_S = 0.3
"""Seconds after which a message says that a text is being read."""
REMEMBERED = 200


class TextPage(Page):
    """A page with a ``TextView``."""

    AUTO_FOCUS: ClassVar[str | None] = "TextView"

    @dataclass
    class Loaded(Message):
        """A message: a text is there."""

        key: Hashable
        body: Body

    def __init__(self) -> None:
        super().__init__()
        self._wanted: Hashable = None
        self._shown: Hashable = None
        self._showing: TextView | None = None
        """The view that ``_shown`` is in; ``view`` may be another one when it is left."""
        self._places: dict[Hashable, int] = {}
        self.loading = False
        """Whether a requested text is not there yet."""

    @property
    def view(self) -> TextView:
        """The view of the text."""
        return self.query_one(TextView)

    def load(self, key: Hashable, what: str, question: Load) -> None:
        """Ask for a text on another thread, and show it when it is there.

        Args:
            key: its identity; a text with the key of the shown text replaces that without a jump.
            what: its name, should it be missing.
            question: asked on the other thread.
        """
        self._wanted, self.loading = key, True
        measure = self.view.measure

        def work() -> None:
            body = load_or_explain(what, question)
            body.reflow(measure)
            if not get_current_worker().is_cancelled:
                self.post_message(self.Loaded(key, body))

        self.in_thread(work, "load")
        if key != self._shown:
            self.set_timer(PATIENCE_S, lambda: self._wait(key, what))

    def put(self, key: Hashable, body: Body) -> None:
        """Show a text that is there already."""
        self._wanted, self.loading = key, False
        if key == self._shown:
            self.view.replace_body(body)
            return
        self._leave()
        self._shown, self._showing = key, self.view
        self.view.show(body, self._places.get(key, 0))

    def on_text_page_loaded(self, event: Loaded) -> None:
        """Show the text, unless the person has gone on to another."""
        if event.key == self._wanted:
            self.put(event.key, event.body)

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Go to the target of the line."""
        if event.lines is not self.view:
            return
        target = self.view.target
        if target is None:
            return
        if not target.screen:
            self.view.go(target.line)
        else:
            self.browser.go(target.screen, agent=target.agent, task=target.task, tab=target.tab)

    def find(self, words: str) -> None:
        """Search in the text."""
        self.view.find(words)

    def find_again(self, *, backwards: bool) -> None:
        """Search on in the text."""
        self.view.find_again(backwards=backwards)

    def pages(self) -> str | None:
        """Return the whole text."""
        return "\n".join(self.view.body.text())

    def action_beside(self) -> None:
        """Switch between side by side and one below the other."""
        if self.loading:
            self.browser.say("it is still being read")
        elif not self.view.turn():
            self.browser.say("there is nothing to be shown side by side here")

    def _leave(self) -> None:
        if self._shown is not None and self._showing is not None:
            self._places[self._shown] = self._showing.cursor
            while len(self._places) > REMEMBERED:
                self._places.pop(next(iter(self._places)))

    def _wait(self, key: Hashable, what: str) -> None:
        if self._wanted == key and self._shown != key and self.is_mounted:
            self._leave()
            self._shown = None
            self.view.show(notice_body(f"reading {what} …", Tone.DIM))
