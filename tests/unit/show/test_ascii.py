"""Characters that a stream lacks."""

import io

import pytest

from dgm.show.ascii import INSTEAD, marks_to_ascii, text_to_ascii
from dgm.show.terminal import draws_marks, wants_ascii


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a…b → ★ └─│", "a...b -> * `-|"),
        ("╭──╮ ▁▇", "+--+ ##"),
        ("é 漢 🐍", r"\xe9 \u6f22 \U0001f40d"),
        ("name\udcff", r"name\xff"),
        ("lone\ud800", r"lone\ud800"),
    ],
)
def test_what_ascii_lacks_is_written_with_it(text, written):
    assert text.encode("ascii", INSTEAD).decode() == written


def test_what_an_encoding_has_stays():
    assert "é … «".encode("latin-1", INSTEAD).decode("latin-1") == "é ... «"
    assert "… \udcff".encode("utf-8", INSTEAD).decode() == r"… \xff"


def test_lists_keep_their_columns_and_texts_may_grow():
    assert marks_to_ascii("├─ █░ ab… é") == "|- #. ab~ é"
    assert text_to_ascii("ab… é") == "ab... é"


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"LANG": "C"}, True),
        ({"LANG": "POSIX"}, True),
        ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, True),
        ({"LC_CTYPE": "C", "LANG": "de_DE.UTF-8"}, True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, True),  # as Python sets it
        ({"LANG": "C.UTF-8"}, False),
        ({"LC_ALL": "C.UTF-8", "LANG": "C"}, False),
    ],
)
def test_ascii_is_wanted_where_the_locale_is_c(environment, wanted):
    assert wants_ascii(environment) == wanted


def test_marks_are_drawn_where_they_can_be_read(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert draws_marks(stream)
    monkeypatch.setenv("LC_ALL", "C")
    assert not draws_marks(stream)
