"""The screens of the browser."""

from collections.abc import Mapping

from dgm.tui.page import Page
from dgm.tui.screens.agent import AgentScreen
from dgm.tui.screens.compare import CompareScreen
from dgm.tui.screens.running import RunningScreen
from dgm.tui.screens.task import TaskScreen
from dgm.tui.screens.tree import TreeScreen

SCREENS: Mapping[str, type[Page]] = {
    screen.NAME: screen for screen in (TreeScreen, AgentScreen, TaskScreen, CompareScreen, RunningScreen)
}
"""By name, in the order of the keys 1 to 5."""
