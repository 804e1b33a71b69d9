"""The screens of the browser, each imported when it is first shown, so that the first one appears sooner."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from dgm.tui.page import Page

SCREENS: Mapping[str, str] = {
    "tree": "TreeScreen",
    "agent": "AgentScreen",
    "task": "TaskScreen",
    "compare": "CompareScreen",
    "running": "RunningScreen",
}
"""The class of each screen, in the module of its name; in the order of the keys 1 to 5."""


def make_screen(name: str) -> "Page":
    """Make a new screen."""
    return cast("type[Page]", getattr(import_module(f"{__name__}.{name}"), SCREENS[name]))()
