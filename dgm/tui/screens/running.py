"""The screen ``running``."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from dgm.tui.bars import Block
from dgm.tui.keys import Where, bindings_of
from dgm.tui.page import Page


class RunningScreen(Page):
    """The screen ``running``."""

    NAME = "running"
    WHERE = (Where.RUNNING, Where.LIST)
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Where.RUNNING)]

    def body(self) -> ComposeResult:
        """Nothing yet."""
        yield Block(id="body")
