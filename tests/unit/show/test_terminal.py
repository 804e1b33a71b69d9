"""Colour on a terminal, plain text in a pipe, ASCII where nothing else is understood."""

import io
import os
import sys

import pytest

from dgm.show.spans import Span, Tone, crop_line, make_line, plain_text
from dgm.show.terminal import write_lines
from tests.support.on_a_terminal import shown_on_a_terminal

LINES = [make_line(Span("★ 12", Tone.MARK), "  own 5/12  "), make_line("日本語 wide")]
CODE = """
import sys
from dgm.show.spans import Span, Tone, make_line
from dgm.show.terminal import write_lines
write_lines([make_line(Span("12", Tone.STRONG), "  ", "x" * 60), make_line(Span("gone", Tone.BAD))], crop=True)
"""


def on_a_terminal(code: str, **environment: str) -> str:
    whole = {**os.environ, "TERM": "xterm", "COLUMNS": "40", **environment}
    whole.pop("NO_COLOR", None) if "NO_COLOR" not in environment else None
    return shown_on_a_terminal([sys.executable, "-c", code], whole)


@pytest.mark.starts_processes
def test_a_terminal_gets_colours_and_lines_that_fit() -> None:
    assert on_a_terminal(CODE) == f"\x1b[1m12\x1b[0m  {'x' * 35}…\n\x1b[31mgone\x1b[0m\n"


@pytest.mark.starts_processes
@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_whoever_wants_no_colour_gets_none(environment: dict[str, str]) -> None:
    assert on_a_terminal(CODE, **environment) == f"12  {'x' * 35}…\ngone\n"


def test_a_pipe_gets_whole_lines_without_colour_or_blanks_at_their_ends() -> None:
    pipe = io.StringIO()
    write_lines(LINES, pipe, crop=True)
    assert pipe.getvalue() == "★ 12  own 5/12\n日本語 wide\n"


def test_the_first_line_does_not_wait_for_the_second() -> None:
    raw = io.BytesIO()
    pipe = io.TextIOWrapper(io.BufferedWriter(raw, 10_000), encoding="utf-8")
    seen = []

    def lines():
        yield make_line("first")
        seen.append(raw.getvalue())
        yield make_line("second")

    write_lines(lines(), pipe)
    assert seen == [b"first\n"]


def test_an_encoding_without_our_marks_gets_their_twins() -> None:
    raw = io.BytesIO()
    pipe = io.TextIOWrapper(raw, encoding="ascii")
    write_lines([*LINES, make_line("█░ ✓ ✗ 19–68% │ … → ▸ ⠤")], pipe)
    pipe.flush()
    assert raw.getvalue().decode("ascii").splitlines() == [
        "* 12  own 5/12",
        "??? wide",
        "#. v x 19-68% | ~ > > -",
    ]


@pytest.mark.parametrize(
    ("width", "shown"),
    [(20, "ab日本"), (6, "ab日本"), (5, "ab日…"), (4, "ab…"), (2, "a…"), (1, "…"), (0, "")],
)
def test_a_line_is_cropped_between_characters(width: int, shown: str) -> None:
    assert plain_text(crop_line(make_line(Span("ab", Tone.KEY), "日本"), width)) == shown
