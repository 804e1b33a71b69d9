"""The screen ``agent``."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from dgm.tui.bars import Block
from dgm.tui.keys import Where, bindings_of
from dgm.tui.page import Page


class AgentScreen(Page):
    """The screen ``agent``."""

    NAME = "agent"
    WHERE = (Where.AGENT, Where.LIST)
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Where.AGENT)]

    def body(self) -> ComposeResult:
        """Nothing yet."""
        yield Block(id="body")
