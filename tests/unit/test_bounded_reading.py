"""What a stranger may have made is read with bounds, and refused in a few words."""

import os
import re

import pytest

from dgm.bounded_reading import MAX_DEPTH, parse_json, read_file, read_json
from dgm.errors import ArchiveCorrupt


def nested(depth):
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    "data", [nested(MAX_DEPTH), '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH, "[[]," * 99 + "1" + "]" * 99]
)
def test_json_within_the_bounds_is_read(data):
    assert parse_json(data) == parse_json(data.encode())


@pytest.mark.parametrize("data", ['["' + "[{" * 500 + '"]', '["' + '\\"[' * 500 + '"]'])
def test_brackets_in_texts_are_no_nesting(data):
    assert len(parse_json(data)) == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (nested(MAX_DEPTH + 1), "nested deeper than"),
        ("[" * 1_000_000, "nested deeper than"),
        ('{"a":' * 200_000, "nested deeper than"),
        ('["' + '\\"' * 500_000, "Unterminated"),
        ("9" * 5000, "4300 digits"),
        (b"\xff", "decode"),
        ("[" + "1," * 2_000_001 + "1]", "more than 2000000 values"),
        ("[", "Expecting value"),
    ],
)
def test_json_beyond_the_bounds_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        parse_json(data)


def test_more_bytes_than_are_wanted_are_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"[1, 2]")
    with pytest.raises(ArchiveCorrupt, match="larger than 5 bytes"):
        read_file(tmp_path / "file", 5)
    with pytest.raises(ValueError, match="larger than 5 bytes"):
        parse_json("[1, 2]", most_bytes=5)
    assert read_json(tmp_path / "file") == [1, 2]


@pytest.mark.parametrize(
    "make", [lambda path: path.symlink_to("/etc/hostname"), os.mkfifo, lambda path: path.mkdir()]
)
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, make):
    make(tmp_path / "it")
    with pytest.raises(
        ArchiveCorrupt, match=re.escape(str(tmp_path / "it")) + ": (a link|not a regular file)"
    ):
        read_file(tmp_path / "it")
