"""The screen ``task``."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from dgm.tui.bars import Block
from dgm.tui.keys import Where, bindings_of
from dgm.tui.page import Page


class TaskScreen(Page):
    """The screen ``task``."""

    NAME = "task"
    WHERE = (Where.TASK, Where.LIST)
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Where.TASK)]

    def body(self) -> ComposeResult:
        """Nothing yet."""
        yield Block(id="body")
