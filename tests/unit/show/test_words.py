"""The small texts of lists."""

from dgm.domain import Tally, Usage
from dgm.show.spans import Span, Tone, join_lines, make_line, plain_text
from dgm.show.words import (
    bar_text,
    clock_text,
    interval_text,
    operator_text,
    tally_text,
    usage_lines,
    usd_text,
)


def test_tallies_read_as_counts_and_rates():
    assert tally_text(Tally(5, 7)) == "5/12 42%"
    assert tally_text(Tally()) == "–"
    assert interval_text(Tally(5, 7)) == "19–68%"
    assert interval_text(Tally()) == ""


def test_a_bar_is_as_long_as_it_is_said_to_be_whatever_the_rate():
    assert bar_text(0.5) == "████░░░░"
    assert bar_text(0.0, 3) == "░░░"
    assert bar_text(1.7, 3) == "███"
    assert bar_text(-1.0, 3) == "░░░"


def test_amounts_and_times_read_as_people_write_them():
    assert (usd_text(0.5), usd_text(12), usd_text(0.0025)) == ("0.50", "12.00", "0.0025")
    assert (clock_text(67), clock_text(3_847.9)) == ("1:07", "1:04:07")


def test_an_operator_is_named_with_its_aim_and_neither_is_obeyed():
    assert operator_text("module", "context") == "module:context"
    assert operator_text("self-edit\x1b[2J", "") == "self-edit\\x1b[2J"
    assert operator_text("module", "two\nlines") == "module:two lines"


def test_the_dearest_role_comes_first_and_columns_hold_wide_names():
    by = {("agent", "模型"): Usage(1, 10, 5, 0.5), ("meta", "m"): Usage(2, 10, 5, 1.5)}
    assert list(usage_lines(by, "  ")) == [
        "  meta m      2 model calls, 15 tokens, 1.5000 USD",
        "  agent 模型  1 model call, 15 tokens, 0.5000 USD",
    ]


def test_a_line_is_made_of_pieces_and_read_without_its_tones():
    shown = make_line("own ", Span("5/12", Tone.GOOD), "", "  ")
    assert len(shown) == 3
    assert plain_text(shown) == "own 5/12"
    assert (
        plain_text(join_lines([make_line("a"), make_line(""), make_line(Span("b", Tone.DIM))], "  "))
        == "a  b"
    )
