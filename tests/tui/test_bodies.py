"""Texts of any kind and size as lines of a window."""

from hypothesis import given
from hypothesis import strategies as st

from dgm.show.diffs import Patch
from dgm.show.safe import cell_width, neutralise
from dgm.show.spans import Line, Span, Tone, make_line, plain_text
from dgm.tui.bodies import (
    LONGEST,
    DiffBody,
    LineBody,
    PairedBody,
    RawBody,
    StackedBody,
    UnreadableBody,
    WrappedBody,
    find_line,
)
from dgm.tui.tabs.diff import make_patch_body
from dgm.tui.tabs.source import is_text
from dgm.tui.wrapping import wrap_line

texts = st.text(
    alphabet=st.one_of(st.characters(), st.sampled_from(list("ab 日本\u0301\u200d👩\x1b\t"))), max_size=120
)


def width_of(shown: Line) -> int:
    return sum(cell_width(span.text) for span in shown)


@given(st.lists(texts, max_size=4), st.integers(1, 40))
def test_rows_fit_and_hold_everything_but_blanks(pieces: list[str], width: int) -> None:
    whole = tuple(Span(neutralise(each).replace("\n", " ").replace("\t", " "), Tone.KEY) for each in pieces)
    rows = wrap_line(whole, width)
    for row in rows:
        # A character that is wider than the window has a row of its own.
        assert width_of(row) <= width or len(plain_text(row)) <= 1 or width < 2
    kept = "".join(span.text for row in rows for span in row)
    assert kept.replace(" ", "") == "".join(span.text for span in whole).replace(" ", "")


def test_rows_are_broken_between_words() -> None:
    assert [plain_text(row) for row in wrap_line(make_line("one two three"), 8)] == ["one two", "three"]
    assert [plain_text(row) for row in wrap_line(make_line("onetwothree"), 4)] == ["onet", "woth", "ree"]
    assert [plain_text(row) for row in wrap_line((), 4)] == [""]


def test_a_log_is_shown_line_by_line() -> None:
    log = RawBody(b"one\n\x1b[31mtwo\xff\n\nfour")
    assert [plain_text(log.line(n, 80)) for n in range(len(log))] == ["one", "\\x1b[31mtwo\ufffd", "", "four"]
    assert len(RawBody(b"")) == 0 and len(RawBody(b"\n")) == 1


def test_a_line_without_end_is_cut_and_says_so() -> None:
    log = RawBody(b"short\n" + b"x" * 1_000_000 + b"\nshort")
    shown = plain_text(log.line(1, 80))
    assert len(shown) < LONGEST + 40
    assert shown.endswith(f"… {1_000_000 - LONGEST:,} bytes more")
    assert find_line(log, "XXX", 0, backwards=False) == 1


def test_a_patch_of_a_hundred_thousand_lines_is_opened_and_drawn_anywhere() -> None:
    half = 50_000
    removed, added = (b"".join(b"%c%d old\n" % (sign, n) for n in range(half)) for sign in b"-+")
    head = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,%d +1,%d @@\n" % (half, half)
    body = make_patch_body(head + removed + added, "all of it", beside=False)
    above = len(body.parts[0])
    assert len(body) == above + 4 + 2 * half
    assert plain_text(body.line(len(body) - 1, 80)) == f"+{half - 1} old"
    assert body.toggle_form() and len(body) == above + 4 + half
    assert plain_text(body.line(len(body) - 1, 80)).count(f"{half - 1} old") == 2


def test_side_by_side_texts_keep_their_middle() -> None:
    pair = PairedBody(WrappedBody([make_line("日本" * 30)]), LineBody([make_line("right")]))
    pair.reflow(41)
    rows = [pair.line(n, 41) for n in range(len(pair))]
    middle = {cell_width(plain_text(row).split("│")[0]) for row in rows}
    assert len(rows) > 1 and len(middle) == 1
    assert all(width_of(row) <= 41 for row in rows)


def test_a_stack_finds_its_parts_after_they_are_turned_or_wrapped() -> None:
    stack = StackedBody(
        [WrappedBody([make_line("a " * 100)]), UnreadableBody("that", "gone"), DiffBody(Patch(b""))]
    )
    stack.reflow(20)
    narrow = len(stack)
    stack.reflow(200)
    assert len(stack) < narrow
    assert "gone" in plain_text(stack.line(len(stack) - 1, 80))


def test_words_are_looked_for_round_the_ends() -> None:
    body = LineBody([make_line("Apple"), make_line("pear"), make_line("apple pie")])
    assert find_line(body, "APPLE", 0, backwards=False) == 2
    assert find_line(body, "apple", 2, backwards=False) == 0
    assert find_line(body, "apple", 0, backwards=True) == 2
    assert find_line(body, "plum", 0, backwards=False) is None
    assert find_line(LineBody([]), "x", 0, backwards=False) is None
    assert (
        find_line(LineBody([make_line("x")] * 2_000), "y", 0, backwards=False, wanted=lambda: False) is None
    )


def test_what_is_no_text_is_told_from_what_is() -> None:
    assert is_text("日本".encode()) and is_text(b"")
    assert not is_text(b"a\0b")
