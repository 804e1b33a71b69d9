"""Text of others: nothing in it is obeyed, and its width is what a terminal gives it."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from dgm.render.safe import cut, neutralise, one_line

UNSAFE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
words = st.text(st.sampled_from("ab \t\n\x1b\u202e日本é\u0301\u2764\ufe0f😀Ж\u2028"), max_size=30)


@pytest.mark.slow
def test_every_control_and_formatting_character_is_escaped_and_no_other():
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        kind = unicodedata.category(character)
        unsafe = kind in UNSAFE and character not in "\n\t"
        changed = neutralise(character) != character
        # A newer Unicode than Python's may give a meaning to what is unassigned.
        assert changed == unsafe or (changed and kind == "Cn"), hex(number)


def test_escape_sequences_and_direction_marks_are_shown_not_obeyed():
    assert neutralise("a\x1b[31mb\u202ec\x07\td\n") == "a\\x1b[31mb\\x202ec\\x07\td\n"


@given(words)
def test_what_is_neutral_stays_as_it_is(text):
    assert neutralise(neutralise(text)) == neutralise(text)


@given(words, st.integers(1, 40))
def test_a_text_that_is_cut_says_so_and_is_a_beginning(text, width):
    whole = " ".join(neutralise(text).split())
    shown = one_line(text, width)
    assert cell_len(shown) <= width
    assert shown == whole or (shown.endswith("…") and whole.startswith(shown[:-1]))


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("x" * 50, 10, "x" * 9 + "…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
    ],
)
def test_no_half_of_a_wide_character_is_left_and_no_accent_lost(text, width, shown):
    assert cut(text, width) == shown
