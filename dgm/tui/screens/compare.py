"""The screen ``compare``."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from dgm.tui.bars import Block
from dgm.tui.keys import Where, bindings_of
from dgm.tui.page import Page


class CompareScreen(Page):
    """The screen ``compare``."""

    NAME = "compare"
    WHERE = (Where.COMPARE, Where.LIST)
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Where.COMPARE)]

    def body(self) -> ComposeResult:
        """Nothing yet."""
        yield Block(id="body")
