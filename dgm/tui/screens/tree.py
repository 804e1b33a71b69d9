"""The screen ``tree``."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from dgm.tui.bars import Block
from dgm.tui.keys import Where
from dgm.tui.page import Page


class TreeScreen(Page):
    """The screen ``tree``."""

    NAME = "tree"
    WHERE = (Where.TREE, Where.LIST)
    BINDINGS: ClassVar[list[BindingType]] = []

    def body(self) -> ComposeResult:
        """Nothing yet."""
        yield Block(id="body")
