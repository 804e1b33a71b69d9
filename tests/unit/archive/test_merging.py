"""Merges of two sources: what is settled, what is a conflict, and what hostile content does to them."""

import pytest

from dgm.archive.repository import Conflict, ConflictKind, find_unsettled, merge_snapshots
from dgm.archive.snapshots import FILE, LINK, PROGRAM, tree_id
from dgm.domain import Entry, Snapshot

pytestmark = pytest.mark.starts_processes

TEXT = b"".join(b"line %d\n" % n for n in range(1, 21))
PATH = "agent/a.py"


def file(data: bytes, mode: int = FILE) -> Snapshot:
    return {PATH: Entry(data, mode)}


A, B, X = file(b"a\n"), file(b"b\n"), file(b"x\n")
BINARY = (b"\0", b"\xff\xfe", b"text \0 text", b"\xed\xa0\x80")
TARGET, OTHER = file(b"/etc/shadow", LINK), file(b"/etc/passwd", LINK)
INSIDE: Snapshot = {"a/b/c": Entry(b"1"), "a/d": Entry(b"2")}
FLAT: Snapshot = {"a": Entry(b"file")}
MERGES = {
    "changes far apart": (
        file(TEXT),
        file(TEXT.replace(b"line 2\n", b"two\n")),
        file(TEXT.replace(b"line 18\n", b"")),
        file(TEXT.replace(b"line 2\n", b"two\n").replace(b"line 18\n", b"")),
    ),
    "last line without an end": (
        file(b"a\nb\nc\nd\ne"),
        file(b"A\nb\nc\nd\ne"),
        file(b"a\nb\nc\nd\nE"),
        file(b"A\nb\nc\nd\nE"),
    ),
    "same change": (A, B, B, B),
    "removal": (A, A, {}, {}),
    "removal by both": (A, {}, {}, {}),
    "binary of one side": (file(b"\0a"), file(b"\0a"), file(b"\0b"), file(b"\0b")),
    "link of one side": (TARGET, TARGET, OTHER, OTHER),
    "mode apart from content": (A, B, file(b"a\n", PROGRAM), file(b"b\n", PROGRAM)),
    "binary of one side, mode of the other": (
        file(b"\0a"),
        file(bytearray(b"\0a"), PROGRAM),
        file(b"\0b"),
        file(b"\0b", PROGRAM),
    ),
    "mode back": (file(b"\0a", PROGRAM), file(b"\0a"), file(b"\0b", PROGRAM), file(b"\0b")),
    "folder in place of a file": (FLAT, FLAT, INSIDE, INSIDE),
}
CONFLICTS = {
    **{f"text against {data!r}": (A, B, file(data), B, ConflictKind.BINARY) for data in BINARY},
    **{f"{data!r} against text": (A, file(data), B, file(data), ConflictKind.BINARY) for data in BINARY},
    **{f"from {data!r}": (file(data), A, B, A, ConflictKind.BINARY) for data in BINARY},
    "change against removal": (A, B, {}, B, ConflictKind.REMOVED),
    "removal against change": (A, {}, B, {}, ConflictKind.REMOVED),
    "two modes": ({}, A, file(b"a\n", PROGRAM), A, ConflictKind.KIND),
    "two links": (file(b"a", LINK), TARGET, OTHER, TARGET, ConflictKind.KIND),
    "file against link": (A, B, OTHER, B, ConflictKind.KIND),
    "link that became a file": (TARGET, B, OTHER, B, ConflictKind.KIND),
    "file against folder": ({}, FLAT, INSIDE, FLAT, ConflictKind.FOLDER),
    "folder against file": ({}, INSIDE, FLAT, INSIDE, ConflictKind.FOLDER),
    "changed file against folder": (
        FLAT,
        {"a": Entry(b"x")},
        {"a/b": Entry(b"file")},
        {"a": Entry(b"x")},
        ConflictKind.FOLDER,
    ),
}


@pytest.mark.parametrize("name", MERGES)
def test_what_fits_is_merged(name):
    base, ours, theirs, expected = MERGES[name]
    merged = merge_snapshots(base, ours, theirs)
    assert (merged.files, merged.conflicts) == (expected, ())


@pytest.mark.parametrize("name", CONFLICTS)
def test_the_first_side_stands_where_nothing_can_be_merged(name):
    base, ours, theirs, expected, kind = CONFLICTS[name]
    merged = merge_snapshots(base, ours, theirs)
    assert (merged.files, [conflict.clash for conflict in merged.conflicts]) == (expected, [kind])
    tree_id(merged.files)


def test_a_conflict_shows_all_three_between_markers():
    merged = merge_snapshots(file(b"a\nb\nc\n"), file(b"a\nx\nc\n"), file(b"a\ny\nc\n"))
    assert merged.files[PATH].data == (
        b"a\n<<<<<<< first parent\nx\n||||||| ancestor\nb\n=======\ny\n>>>>>>> second parent\nc\n"
    )
    assert [(c.path, c.clash, c.places) for c in merged.conflicts] == [(PATH, ConflictKind.LINES, 1)]
    assert merge_snapshots({}, A, B).conflicts[0].clash is ConflictKind.LINES


@pytest.mark.parametrize(("lines", "places"), [(60, 120), (400, 127)])
def test_every_place_of_a_conflict_is_counted(lines, places):
    base = b"".join(b"%d\n-\n-\n-\n-\n" % n for n in range(lines))
    sides = (file(base.replace(b"\n-\n", b"%b\n-\n" % side)) for side in (b"o", b"t"))
    assert merge_snapshots(file(base), *sides).conflicts[0].places == places


@pytest.mark.parametrize(
    "name", ["--help", "not utf-8 \udcff\udcfe", "line\nbreak \x1b[31m", "a b/'\"$(id)", ".gitattributes"]
)
def test_strange_names_are_names_only(name):
    sides = (b"a\nb\nc\nd\ne\n", b"A\nb\nc\nd\ne\n", b"a\nb\nc\nd\nE\n")
    merged = merge_snapshots(*({name: Entry(data)} for data in sides))
    assert (merged.files, merged.conflicts) == ({name: Entry(b"A\nb\nc\nd\nE\n")}, ())


def test_attributes_and_the_users_configuration_take_no_effect(tmp_path, monkeypatch):
    (tmp_path / ".gitconfig").write_text("[merge]\n\tconflictStyle = merge\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    attributes = {".gitattributes": Entry(b"* merge=union\n*.py merge=binary\n")}
    merged = merge_snapshots(attributes | A, attributes | X, attributes | B)
    assert b"||||||| ancestor\na\n" in merged.files[PATH].data


def test_markers_are_longer_where_a_file_has_such_lines_already():
    looks = b"<<<<<<< first parent\n=======\n>>>>>>> second parent\n|||||||| eight\n"
    merged = merge_snapshots(file(looks + b"a\n"), file(looks + b"x\n"), file(looks + b"y\n"))
    (conflict,) = merged.conflicts
    labels = (b" first parent", b" ancestor", b"", b" second parent")
    assert conflict.markers == tuple(
        sign * 9 + label for sign, label in zip((b"<", b"|", b"=", b">"), labels, strict=True)
    )
    assert (conflict.places, find_unsettled(merged.conflicts, merged.files)) == (1, [PATH])
    assert find_unsettled(merged.conflicts, file(looks + b"x\n")) == []


def test_any_marker_left_is_found_with_any_line_ending():
    (conflict,) = merge_snapshots(file(b"a\r\n"), file(b"x\r\n"), file(b"y\r\n")).conflicts
    for marker in conflict.markers:
        for ending in (b"\n", b"\r\n", b""):
            assert find_unsettled([conflict], file(b"x\n" + marker + ending)) == [PATH]
    assert find_unsettled([conflict], {}) == []
    assert find_unsettled([Conflict(PATH, ConflictKind.BINARY)], file(b"=======\n")) == []
