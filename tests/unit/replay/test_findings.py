"""A difference is named in one line, with what no two runs share masked."""

import subprocess
import sys

import pytest

from dgm.domain import ActionId, Entry
from dgm.replay.findings import (
    Divergence,
    describe_differing_files,
    describe_differing_line,
    divergence_of_failure,
    quote_difference,
)


def test_the_gateways_word_becomes_a_divergence_with_its_call():
    found = divergence_of_failure(ActionId(7), "action 7, call 12: the recording has\nno reply (x)")
    assert found == Divergence(ActionId(7), "the recording has no reply (x)", 12)
    assert str(found) == "action 7, call 12: the recording has no reply (x)"


def test_other_failures_are_no_divergence():
    assert divergence_of_failure(ActionId(7), "the sandbox did not start") is None


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
    ],
)
def test_files_that_differ_are_named(recorded, again, what):
    one, other = ({path: Entry(data) for path, data in files.items()} for files in (recorded, again))
    assert describe_differing_files(one, other) == what


def test_another_mode_is_named():
    assert (
        describe_differing_files({"a": Entry(b"")}, {"a": Entry(b"", 0o100755)})
        == "a: mode 100644 against 100755"
    )


def test_long_lines_are_shown_where_they_part():
    one, other = b"x" * 500 + b"one", b"x" * 500 + b"two"
    assert describe_differing_line(one, other) == f"line 1: '{'x' * 20}one' against '{'x' * 20}two'"


def test_what_no_two_runs_share_is_masked_unless_it_is_all_there_is():
    said = quote_difference("in /tmp/abc 3.1 s: yes", "in /tmp/xyz 9 s: no")
    assert "abc" not in said
    assert "3.1" not in said
    assert said.endswith("no'")
    assert quote_difference("took 3 s", "took 4 s") == "'took 3 s' against 'took 4 s'"


@pytest.mark.starts_processes
def test_the_public_module_is_there_without_an_import_of_its_own():
    code = "import dgm, sys; assert 'dgm.replay' not in sys.modules; print(dgm.replay.decisions.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "decisions\n"
