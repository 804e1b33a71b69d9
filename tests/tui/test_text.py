"""A long text on the screen: nobody who presses a key waits for it to be wrapped."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dgm.archive.repository import AgentRepository
from dgm.domain import CommitId
from dgm.show.safe import cell_width
from dgm.show.spans import Line, make_line, plain_text
from dgm.tui import bodies
from dgm.tui.app import Browser
from dgm.tui.bodies import Body, DiffBody, RawBody, WrappedBody
from dgm.tui.screens.agent import AgentScreen
from dgm.tui.text import AT_ONCE
from dgm.tui.wrapping import Flow
from tests.support.browser.driving import drive, grid
from tests.support.browser.shown import SMALL, WIDE, press


def test_a_long_text_is_wrapped_by_another_thread(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawing = threading.get_ident()
    here: list[int] = []

    class Watched(Flow):
        def __init__(self, lines: Sequence[Line], width: int) -> None:
            if threading.get_ident() == drawing:
                here.append(sum(len(plain_text(each)) for each in lines))
            super().__init__(lines, width)

    monkeypatch.setattr(bodies, "Flow", Watched)
    whole = "word 日本 " * (AT_ONCE // 2)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.go("agent", tab="lineage")
        await press(browser, pilot)
        screen = browser.screen
        assert isinstance(screen, AgentScreen)
        body = WrappedBody([make_line("first"), make_line(whole)])
        screen.load("long", "it", lambda: body)
        assert "word 日本" in await press(browser, pilot)
        before = len(body)
        assert before > 1_000
        for size in (SMALL, WIDE):
            await pilot.resize_terminal(*size)
            await press(browser, pilot, "j")
            rows = [body.line(number, 1) for number in range(100)]
            assert size[0] - 12 < max(cell_width(plain_text(row)) for row in rows) < size[0]
        assert len(body) == before

    drive(example, WIDE, look)
    assert max(here, default=0) <= AT_ONCE


@pytest.mark.parametrize(
    "body",
    [
        RawBody(b"\t" * 100 + b"end"),
        RawBody("日".encode() * 2_500),
        RawBody(b"\x1b[31m" * 500),
        DiffBody(bodies.Patch(b"@@ -1 +1 @@\n-" + b"\t" * 4_000)),
    ],
    ids=("tabs", "wide", "escapes", "patch"),
)
def test_the_end_of_a_line_can_be_reached(example: Path, body: Body) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.go("agent", tab="lineage")
        await press(browser, pilot)
        screen = browser.screen
        assert isinstance(screen, AgentScreen)
        screen.put("wide", body)
        await pilot.pause()
        before = -1
        while screen.view.left > before:
            before = screen.view.left
            screen.view.action_right()
        await pilot.pause()
        ends = [plain_text(body.line(number, 80))[-10:] for number in range(len(body))]
        assert any(row.rstrip().endswith(ends[-1]) for row in grid(browser).splitlines())

    drive(example, SMALL, look)


def test_turning_a_diff_that_is_being_read_is_not_lost(
    example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    diff = AgentRepository.diff

    def slow(self: AgentRepository, before: CommitId, after: CommitId) -> bytes:
        assert go_on.wait(300)
        return diff(self, before, after)

    monkeypatch.setattr(AgentRepository, "diff", slow)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await pilot.press("2")
        await pilot.pause()
        await pilot.press("v")
        await pilot.pause()
        go_on.set()
        screen = browser.screen
        assert isinstance(screen, AgentScreen)
        assert " │ " in await press(browser, pilot) and screen.beside
        assert " │ " not in await press(browser, pilot, "v") and not screen.beside

    drive(example, WIDE, look, agent=1)
