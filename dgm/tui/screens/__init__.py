"""The screens of the browser, each imported when it is first shown, so that the first one appears sooner."""

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from dgm.tui.page import Page


def make_screen(name: str) -> "Page":
    """Make a new screen: of ``TreeScreen`` in the module ``tree``, and so on."""
    module = import_module(f"{__name__}.{name}")
    return cast("type[Page]", getattr(module, f"{name.capitalize()}Screen"))()
