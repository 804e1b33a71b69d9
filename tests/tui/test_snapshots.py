"""The screens that docs/browser.md shows, held as text; ``DGM_UPDATE_SNAPSHOTS=1`` writes them anew.

A test that fails prints the difference and leaves the screen as a picture in its folder.
"""

import difflib
import os
from pathlib import Path
from typing import NamedTuple

import pytest
from textual.pilot import Pilot

from dgm.tui.app import Browser
from tests.support.browser.driving import drive, grid, settle

FOLDER = Path(__file__).parents[1] / "snapshots"


class Shown(NamedTuple):
    """How a screen comes about."""

    name: str
    keys: str
    size: tuple[int, int] = (120, 36)
    tones: bool = False
    """Whether the colours are held as well."""


SCREENS = (
    Shown("tree", "b m"),
    Shown("tree-80x24", "b m", (80, 24), tones=True),
    Shown("tree-by-bound", "s s s", (80, 24)),
    Shown("agent", "b 2"),
    Shown("agent-80x24", "b 2", (80, 24), tones=True),
    Shown("agent-beside", "b 2 v"),
    Shown("agent-evaluations", "b 2 right_square_bracket right_square_bracket"),
    Shown("agent-lineage", "b 2 left_square_bracket left_square_bracket left_square_bracket"),
    Shown("tasks", "3", (80, 24)),
    Shown("task", "3 j j j enter"),
    Shown("compare", "b m p m c"),
    Shown("run", "5"),
    Shown("keys", "question_mark"),
)


@pytest.mark.parametrize("shown", SCREENS, ids=lambda shown: shown.name)
def test_a_screen_is_as_documented(shown: Shown, example: Path, tmp_path: Path) -> None:
    seen = []

    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        for key in shown.keys.split():
            await pilot.press(key)
            await settle(browser, pilot)
        # A message of the last key goes with the next one.
        browser.said = ""
        browser.draw_bars()
        await settle(browser, pilot)
        seen.append(grid(browser, tones=shown.tones) + "\n")
        (tmp_path / f"{shown.name}.svg").write_text(browser.export_screenshot())

    drive(example, shown.size, script)
    kept = FOLDER / f"{shown.name}.txt"
    if os.environ.get("DGM_UPDATE_SNAPSHOTS") == "1":
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(seen[0])
    before = kept.read_text()
    difference = "\n".join(
        difflib.unified_diff(before.splitlines(), seen[0].splitlines(), "kept", "seen", lineterm="")
    )
    assert not difference, f"{difference}\nas a picture: {tmp_path / shown.name}.svg"
