"""What the browser's tabs share: a pane that asks the reader, and a long text."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from rich.console import RenderableType
from rich.style import Style
from rich.table import Column, Table
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.events import Resize
from textual.screen import Screen
from textual.strip import Strip
from textual.widgets import DataTable, Footer, RichLog, Static, TabPane

from dgm.archive.run import Run
from dgm.errors import DgmError
from dgm.render import fmt, safe
from dgm.render.diff import TAB, DiffLine, LineKind, parse_diff, side_by_side
from dgm.render.text import DIFF_STYLES, VERDICT_STYLES
from dgm.tui.reader import News, ReaderClosed
from dgm.views.agents import AttemptView

if TYPE_CHECKING:
    from dgm.tui.app import Browser

Answer = TypeVar("Answer")


_LINES = 100
"""Lines that are written at once."""
_PORTION = 8
"""Writes after which keys are looked at and the screen is drawn; a short text appears at once."""
_LONGEST = 2_000
"""Characters of a line that are shown."""
_GIT_HEADS = ("diff --git ", "index ", "--- ", "+++ ")
"""Lines of a patch that repeat the name above it."""
_MATCH = Style(reverse=True)


class Pane(TabPane):
    """One of the browser's tabs."""

    @property
    def browser(self) -> "Browser":
        return cast("Browser", self.app)

    @property
    def is_active(self) -> bool:
        """Whether the pane is the one that is shown."""
        return self.browser.pane is self

    def enter(self) -> None:
        """Show the browser's subject, whenever the pane comes into view or its subject changes."""

    def take(self, news: News) -> None:
        """Show what is new in the run, while the pane is in view."""

    async def find(self, words: str, step: int) -> bool:
        """Go to the next place with these words, or to the previous one if ``step`` is -1."""
        views: list[TextView | Listing] = [*self.query(TextView), *self.query(Listing)]
        return any(view.find(words, step) for view in views if view.is_on_screen)

    @work(exclusive=True, group="load")
    async def load(
        self, what: str, question: Callable[[Run], Answer], show: Callable[[Answer], Awaitable[None]]
    ) -> None:
        """Ask the reader and show the answer, unless the pane asks for something else meanwhile.

        Args:
            what: the name of the answer, in case it cannot be read.
            question: asked on the reader's thread; a trace may hold anything, so that it may raise anything.
            show: shows the answer.
        """
        try:
            answer = await self.browser.reader.ask(question)
        except ReaderClosed:
            return
        except Exception as error:  # noqa: BLE001
            reason = str(error) if isinstance(error, (DgmError, OSError)) else repr(error)
            await self.show_problem(f"{what} cannot be read: {reason}")
            return
        await show(answer)

    def focus_content(self) -> None:
        self.query("AgentTree, Listing, TextView").first().focus()

    async def show_problem(self, problem: str) -> None:
        """Show why there is nothing to show."""
        view = self.text_view()
        if view is None:
            self.browser.say(problem)
        else:
            await view.show([Text(safe.one_line(problem, 1_000), "yellow")])

    def text_view(self) -> "TextView | None":
        """Return the text that is shown."""
        return self.query(TextView).first()


class TextView(RichLog):
    """A view of a text, which is a sequence of renderables."""

    BINDING_GROUP_TITLE = "Text"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right_curly_bracket", "section(1)", "Next section", show=False),
        Binding("left_curly_bracket", "section(-1)", "Previous section", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(wrap=True, auto_scroll=False, min_width=1, id=id)
        self._parts: Sequence[RenderableType] = ()
        self._sections: list[int] = []
        self._key: object = None
        self._match: int | None = None
        self._width = self._writes = 0

    async def show(self, parts: Iterable[RenderableType], key: object = None) -> None:
        """Replace the text. A text with the key of the one before stays where it is scrolled to."""
        top = self.scroll_offset.y if key is not None and key == self._key else 0
        self._parts, self._key, self._match = list(parts), key, None
        await self._write(top)

    async def _write(self, top: int) -> None:
        self.clear()
        self._sections.clear()
        self._width = self.scrollable_content_region.width
        self._writes += 1
        number, heading = self._writes, False
        for index, part in enumerate(_joined(self._parts), 1):
            before, heading = heading, _is_heading(part)
            if heading and not before:
                self._sections.append(len(self.lines))
            self.write(part, width=self._width or None)
            if not index % _PORTION:
                await asyncio.sleep(0)
            if number != self._writes:
                return  # another text, or another width
        self.scroll_to(y=top, animate=False, immediate=True)

    def on_resize(self, _: Resize) -> None:
        self.call_after_refresh(self._rewrap)

    def _rewrap(self) -> None:
        width = self.scrollable_content_region.width
        if width and width != self._width:
            share = self.scroll_offset.y / max(1, len(self.lines))
            self.run_worker(self._write(int(share * len(self.lines))), exclusive=True, group="wrap")

    def render_line(self, y: int) -> Strip:
        """Draw a line; the one that a search found is reversed."""
        strip = super().render_line(y)
        return strip.apply_style(_MATCH) if self.scroll_offset.y + y == self._match else strip

    def find(self, words: str, step: int) -> bool:
        """Go to the next line with these words, or the previous one if ``step`` is -1; return whether there is one."""
        count, wanted = len(self.lines), words.casefold()
        start = self._match if self._match is not None else self.scroll_offset.y - step
        for distance in range(1, count + 1):
            number = (start + step * distance) % count
            if wanted in self.lines[number].text.casefold():
                self._match = number
                self.scroll_to(y=max(0, number - self.size.height // 3), animate=False, immediate=True)
                self.refresh()
                return True
        return False

    def action_section(self, step: int) -> None:
        top = self.scroll_offset.y
        lines = [line for line in self._sections if (line > top if step > 0 else line < top)]
        if lines:
            self.scroll_to(y=lines[0] if step > 0 else lines[-1], animate=False, immediate=True)


def _joined(parts: Iterable[RenderableType]) -> Iterator[RenderableType]:
    """Yield the parts, many lines at once; headings stay by themselves."""
    lines: list[Text] = []
    for part in parts:
        plain = isinstance(part, Text) and not _is_heading(part)
        if lines and (not plain or len(lines) == _LINES):
            yield Text("\n").join(lines)
            lines = []
        if isinstance(part, Text) and plain:
            lines.append(part)
        else:
            yield part
    if lines:
        yield Text("\n").join(lines)


def _is_heading(part: RenderableType) -> bool:
    return isinstance(part, Text) and ("bold" in str(part.style) or part.style == "cyan")


class Listing(DataTable[Text]):
    """A table whose rows lead somewhere: ``RowSelected`` has the key of the row."""

    def __init__(self, *titles: str, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, cursor_type="row", zebra_stripes=True)
        self._titles = titles

    def fill(self, rows: Mapping[str, Sequence[Text | str]]) -> None:
        """Replace the rows; the cursor stays on the row with its key."""
        key, top = self.key, self.scroll_offset.y
        cells = {
            name: [Text(cell, no_wrap=True) if isinstance(cell, str) else cell for cell in row]
            for name, row in rows.items()
        }
        self.clear(columns=True)
        for number, title in enumerate(self._titles):
            self.add_column(title, width=max([len(title), *(row[number].cell_len for row in cells.values())]))
        for name, row in cells.items():
            self.add_row(*row, key=name)
        if key is not None and key in rows:
            self.move_cursor(row=self.get_row_index(key), scroll=False)
            self.scroll_to(y=top, animate=False, immediate=True)

    @property
    def key(self) -> str | None:
        """The key of the row under the cursor."""
        if not self.row_count:
            return None
        return self.coordinate_to_cell_key(Coordinate(self.cursor_row, 0)).row_key.value

    def find(self, words: str, step: int) -> bool:
        """Go to the next row with these words, or to the previous one if ``step`` is -1."""
        for distance in range(1, self.row_count + 1):
            number = (self.cursor_row + step * distance) % self.row_count
            if words.casefold() in " ".join(cell.plain for cell in self.get_row_at(number)).casefold():
                self.move_cursor(row=number)
                return True
        return False


class TextScreen(Screen[None]):
    """A text over the tabs; Esc closes it."""

    def __init__(self, title: str, parts: Iterable[RenderableType]) -> None:
        super().__init__()
        self._heading, self._parts = title, parts

    def compose(self) -> ComposeResult:
        yield Static(Text(safe.one_line(self._heading, 300), "bold"), classes="heading")
        yield TextView()
        yield Footer(show_command_palette=False)

    async def on_mount(self) -> None:
        await self.query_one(TextView).show(self._parts)


def prose(text: str, style: str = "") -> Iterator[Text]:
    """Yield the lines of a text that others wrote."""
    lines = safe.neutralise(text).expandtabs(TAB).rstrip("\n").split("\n")
    return (Text(line[:_LONGEST], style) for line in lines)


def patch_parts(patch: str, *, beside: bool = False) -> Iterator[RenderableType]:
    """Yield a patch below the counts of its files; ``beside`` puts both sides next to each other."""
    files = parse_diff(patch)
    if not files:
        yield Text("no difference")
    for file in files:
        counts = (f"  +{file.added:,}", "green"), (f" -{file.removed:,} ", "red")
        yield Text.assemble(*counts, " ", file.path, (" (binary)" if file.binary else "", "yellow"))
    for file in files:
        yield Text()
        yield Text(file.path, "bold")
        file.lines = [
            line
            for line in file.lines
            if line.kind is not LineKind.HEAD or not line.text.startswith(_GIT_HEADS)
        ]
        if beside:
            yield from _paired_lines(list(side_by_side(file)))
        else:
            yield from map(_diff_text, file.lines)


def _paired_lines(pairs: Sequence[tuple[DiffLine | None, DiffLine | None]]) -> Iterator[Table]:
    for start in range(0, len(pairs), _LINES):
        columns = (Column(ratio=1, overflow="fold"), Column(ratio=1, overflow="fold"))
        table = Table.grid(*columns, padding=(0, 1), expand=True)
        for before, after in pairs[start : start + _LINES]:
            table.add_row(_diff_text(before), _diff_text(after))
        yield table


def _diff_text(line: DiffLine | None) -> Text:
    if line is None:
        return Text()
    style = "dim" if line.kind is LineKind.HEAD else DIFF_STYLES.get(line.kind, "")
    return Text(line.text[:_LONGEST], style)


def attempt_cells(attempt: AttemptView, subject: Text | str) -> Sequence[Text | str]:
    """Return an evaluation as the cells of a ``Listing``; ``subject`` is its agent or its task."""
    return (
        Text(f"{fmt.VERDICT_MARKS[attempt.verdict]} {attempt.verdict}", VERDICT_STYLES[attempt.verdict]),
        subject,
        str(attempt.attempt),
        fmt.duration(attempt.seconds),
        fmt.spend(attempt.cost),
        safe.one_line(attempt.reason, 200),
    )
