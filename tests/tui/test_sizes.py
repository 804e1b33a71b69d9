"""Terminals of all sizes and colours."""

from pathlib import Path

import pytest
from textual import events
from textual.color import Color
from textual.pilot import Pilot

from dgm.show.safe import cell_width
from dgm.show.spans import Tone, plain_text
from dgm.show.trees import tree_lines
from dgm.tui.agent_list import AgentList
from dgm.tui.app import THEMES, Browser
from dgm.tui.bars import SCREENS, Head
from dgm.tui.strips import tones_of
from tests.support.browser.driving import drive, grid, settle
from tests.support.runs.growing import Growing


@pytest.mark.parametrize("screen", [name for name, _ in SCREENS])
def test_a_terminal_may_shrink_to_20_by_5_and_grow_again(screen: str, example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        browser.go(screen)
        await settle(browser, pilot)
        whole = grid(browser)
        for width, height in ((20, 5), (1, 1), (3, 2), (200, 5), (20, 60), (80, 24)):
            await pilot.resize_terminal(width, height)
            await settle(browser, pilot)
            rows = grid(browser).split("\n")
            assert len(rows) == height
        await pilot.resize_terminal(120, 36)
        await settle(browser, pilot)
        again = grid(browser)
        assert again == whole if screen == "tree" else again.splitlines()[0] == whole.splitlines()[0]

    drive(example, (120, 36), script)


def test_the_head_fits_when_it_is_drawn_whatever_it_was_told_before(example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        head = browser.screen.query_one(Head)
        head.disable_messages(events.Resize)
        head.display = False
        await settle(browser, pilot)
        browser.following = True
        browser.draw_bars()  # without a size
        head.display = True
        await settle(browser, pilot)
        assert " · following · " in grid(browser).splitlines()[0]
        assert grid(browser).splitlines()[0].endswith("1 Tree 2 Agent 3 Task 4 Compare 5 Run")

    drive(example, (120, 36), script)


def test_the_cursors_row_is_seen_at_20_by_5(example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        lines = browser.query_one(AgentList)
        lines.action_last()
        await pilot.resize_terminal(20, 5)
        await pilot.pause()
        assert f"{lines.agent}" in grid(browser)
        assert sum(row.startswith("▌") for row in grid(browser).splitlines()) == 1
        for key in "kkkjjGg":
            await pilot.press(key)
            await pilot.pause()
            assert sum(row.startswith("▌") for row in grid(browser).splitlines()) == 1

    drive(example, (120, 36), script)


def test_80_by_24_shows_number_tally_and_keys(example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        rows = grid(browser).splitlines()
        assert "1 Tree 2 Agent 3 Task 4 Compare 5 Run" in rows[0]
        assert all("own " in row for row in rows[1 : 1 + browser.reader.count])
        assert "? keys" in rows[-1]
        assert all(len(row) <= 80 for row in rows)

    drive(example, (80, 24), script)


@pytest.mark.parametrize("siblings", [0, 1])
def test_seventy_generations_keep_their_columns_in_80_cells(tmp_path: Path, siblings: int) -> None:
    growing = Growing(tmp_path / "run")
    parent = 0
    for _ in range(70):
        child = growing.born(parent)
        for _ in range(siblings):
            growing.born(parent)
        parent = child

    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        lines = browser.query_one(AgentList)
        rows = [plain_text(lines.line(number, lines.room)) for number in range(lines.count())]
        assert {row.index("own ") for row in rows} == {rows[0].index("own ")}
        assert all(cell_width(row) <= lines.room for row in rows)
        assert sum("‹" in row for row in rows) == (0 if not siblings else 128)
        # The same lines as in a pipe but for marks and widths: the same places.
        drawn = [agent for agent, _ in tree_lines(growing.run.tree)]
        assert drawn == [place.agent for place in lines.forest.walk()]

    drive(tmp_path / "run", (80, 24), script)
    growing.run.close()


def test_no_color_means_no_colour(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Any value does, "0" as well.
    monkeypatch.setenv("NO_COLOR", "0")

    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        for screen, _ in SCREENS:
            browser.go(screen)
            await settle(browser, pilot)
            for strip in browser.screen._compositor.render_strips():
                for segment in strip:
                    style = segment.style
                    assert style is None or style.color is None or style.color.is_default
                    assert style is None or style.bgcolor is None or style.bgcolor.is_default
        assert browser.theme == THEMES["ansi"]
        await pilot.press("t")
        assert "NO_COLOR" in browser.said

    drive(example, (100, 24), script, theme="light")


def test_an_empty_no_color_asks_for_nothing(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")

    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        strips = browser.screen._compositor.render_strips()
        assert any(segment.style and segment.style.color for strip in strips for segment in strip)

    drive(example, (100, 24), script)


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21 (WCAG 2.2, section 1.4.3)."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [part / 255 for part in Color.parse(colour).rgb]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_every_tone_can_be_read(theme: str, example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        background = browser.theme_variables["background"]
        panel = browser.theme_variables["panel"]
        for tone, style in tones_of(browser).items():
            assert style.color is not None
            assert contrast(style.color.name, background) >= 4.5, tone
            if tone in (
                Tone.PLAIN,
                Tone.DIM,
                Tone.MARK,
                Tone.KEY,
                Tone.STRONG,
                Tone.GOOD,
                Tone.WARN,
                Tone.BAD,
            ):
                assert contrast(style.color.name, panel) >= 4.5, tone

    drive(example, (100, 24), script, theme=theme)
