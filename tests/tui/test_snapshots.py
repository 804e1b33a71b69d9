"""Screens held as text; ``DGM_UPDATE_SNAPSHOTS=1`` writes them anew. A failing test leaves the screen as a picture."""

import difflib
import os
from pathlib import Path
from typing import NamedTuple

import pytest
from textual.pilot import Pilot

from dgm.tui.app import Browser
from tests.support.browser.driving import SMALL, WIDE, drive, grid, press

FOLDER = Path(__file__).parents[1] / "snapshots"


class Snapshot(NamedTuple):
    """A screen, and the keys that lead to it."""

    name: str
    keys: str
    size: tuple[int, int] = WIDE


SCREENS = (
    Snapshot("tree", "b"),
    Snapshot("tree-80x24", "b", SMALL),
    Snapshot("agent-80x24", "b 2", SMALL),
    Snapshot("diff", "b d"),
    Snapshot("evaluations", "b 2 right_square_bracket right_square_bracket"),
    Snapshot("task", "3 j j j enter"),
)


@pytest.mark.parametrize("snapshot", SCREENS, ids=lambda snapshot: snapshot.name)
def test_a_screen_is_as_recorded(snapshot: Snapshot, example: Path, tmp_path: Path) -> None:
    screens = []

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        for key in snapshot.keys.split():
            await press(browser, pilot, key)
        screens.append(grid(browser) + "\n")
        (tmp_path / f"{snapshot.name}.svg").write_text(browser.export_screenshot())

    drive(example, snapshot.size, look)
    recorded = FOLDER / f"{snapshot.name}.txt"
    if os.environ.get("DGM_UPDATE_SNAPSHOTS") == "1":
        recorded.parent.mkdir(exist_ok=True)
        recorded.write_text(screens[0])
    before = recorded.read_text()
    difference = "\n".join(difflib.unified_diff(before.splitlines(), screens[0].splitlines(), lineterm=""))
    assert not difference, f"{difference}\nas a picture: {tmp_path / snapshot.name}.svg"
