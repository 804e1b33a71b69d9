"""The first and the last line of every screen, and blocks of lines without a cursor."""

from collections.abc import Sequence

from textual import events
from textual.strip import Strip
from textual.widget import Widget

from dgm.show.spans import Line, Span, Tone, crop_line, line_width, pad_line
from dgm.tui.strips import make_strip, tones_of

SCREENS = (("tree", "Tree"), ("agent", "Agent"), ("task", "Task"), ("compare", "Compare"), ("running", "Run"))
"""Each screen's name in the program and its title, in the order of the keys 1 to 5."""


class Block(Widget):
    """Lines at a fixed place; lines that do not fit are not seen."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._lines: Sequence[Line] = ()

    def show(self, lines: Sequence[Line]) -> None:
        """Replace the lines."""
        if list(lines) != list(self._lines):
            self._lines = lines
            self.refresh()

    def fit_lines(self, width: int) -> Sequence[Line]:  # noqa: ARG002
        """Return the lines in ``width`` cells; called whenever they are drawn."""
        return self._lines

    def render_line(self, y: int) -> Strip:
        """Return a row of the block."""
        tones = tones_of(self.app)
        base = self.rich_style + tones[Tone.PLAIN]
        lines = self.fit_lines(self.size.width)
        if y >= len(lines):
            return Strip.blank(self.size.width, base)
        line = crop_line(lines[y], self.size.width)
        return make_strip(line, tones).crop_extend(0, self.size.width, base).apply_style(base)


class Head(Block):
    """The head of a screen: facts of the run, and the five screens; a click on a screen's name goes there."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._facts: Line = ()
        self._screen = ""

    def facts(self, facts: Line, screen: str) -> None:
        """Show the facts at the left, and the name of this screen."""
        if (facts, screen) != (self._facts, self._screen):
            self._facts, self._screen = facts, screen
            self.refresh()

    def fit_lines(self, width: int) -> Sequence[Line]:
        """Return facts and screens.

        They are fitted when drawn, because a widget has no size while its screen is laid out.
        """
        tabs = _tab_spans(self._screen, width)
        room = width - line_width(tabs)
        return [(*pad_line(crop_line(self._facts, max(0, room - 1)), room), *tabs)]

    def on_click(self, event: events.Click) -> None:
        """Go to the screen whose name is there."""
        x, end = event.x, self.size.width
        for number, (name, title) in reversed(list(enumerate(SCREENS, 1))):
            begin = end - len(_tab_text(number, title, self.size.width))
            if begin <= x < end:
                self.app.call_later(self.app.run_action, f"show('{name}')")
            end = begin


def _tab_spans(screen: str, width: int) -> Line:
    return tuple(
        Span(_tab_text(number, title, width), Tone.MARK if name == screen else Tone.DIM)
        for number, (name, title) in enumerate(SCREENS, 1)
    )


def _tab_text(number: int, title: str, width: int) -> str:
    return f" {number} {title}" if width >= 72 else f" {number}"
