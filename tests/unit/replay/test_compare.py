"""A difference is named in one line, with what no two runs share masked."""

import pytest

from dgm.domain import Entry
from dgm.replay.again import describe_differing_files, quote_difference


@pytest.mark.parametrize(
    ("recorded", "again", "what"),
    [
        ({"a": b"1\n2\n"}, {"a": b"1\n3\n"}, "a: line 2: '2' against '3'"),
        ({"a": b"1"}, {"a": b"1", "b": b""}, "b is only there now"),
        ({"a": b"1", "b": b""}, {"a": b"2"}, "a: line 1: '1' against '2' (and 1 other files)"),
        ({"a": b"1", "b": b""}, {"a": b"1"}, "b is only there in the record"),
        ({"a": b"1\n2"}, {"a": b"1"}, "a: line 2: only in the recorded one: '2'"),
        ({"a": b"1\n"}, {"a": b"1"}, "a: only in line endings"),
        ({"a": b"1"}, {"a": b"1"}, "the files are the same, the parents are not"),
        (
            {"a": b"x" * 500 + b"1"},
            {"a": b"x" * 500 + b"2"},
            f"a: line 1: '{'x' * 20}1' against '{'x' * 20}2'",
        ),
    ],
)
def test_files_that_differ_are_named(recorded, again, what):
    one, other = ({path: Entry(data) for path, data in files.items()} for files in (recorded, again))
    assert describe_differing_files(one, other) == what


def test_another_mode_is_named():
    one, other = {"a": Entry(b"")}, {"a": Entry(b"", 0o100755)}
    assert describe_differing_files(one, other) == "a: mode 100644 against 100755"


def test_what_no_two_runs_share_is_masked_unless_it_is_all_there_is():
    said = quote_difference("in /tmp/abc 3.1 s: yes", "in /tmp/xyz 9 s: no")
    assert "abc" not in said
    assert "3.1" not in said
    assert said.endswith("no'")
    assert quote_difference("took 3 s", "took 4 s") == "'took 3 s' against 'took 4 s'"
