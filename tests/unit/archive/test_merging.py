"""Merges of two sources: what is settled, what is a conflict, and what hostile content does to them."""

import os
import subprocess
from pathlib import Path

import pytest

from dgm.archive.merging import Conflict, ConflictKind, find_unsettled, merge_snapshots
from dgm.archive.snapshots import FILE, LINK, PROGRAM, tree_id
from dgm.domain import Entry, Snapshot
from dgm.errors import UserError

TEXT = b"".join(b"line %d\n" % n for n in range(1, 21))
PATH = "agent/a.py"


def file(data: bytes, mode: int = FILE) -> Snapshot:
    return {PATH: Entry(data, mode)}


def clashes(merged) -> dict[str, ConflictKind]:
    return {conflict.path: conflict.clash for conflict in merged.conflicts}


@pytest.mark.starts_processes
def test_changes_far_from_each_other_are_both_kept():
    ours, theirs = TEXT.replace(b"line 2\n", b"two\n"), TEXT.replace(b"line 18\n", b"")
    merged = merge_snapshots(file(TEXT), file(ours), file(theirs))
    assert merged.files == file(TEXT.replace(b"line 2\n", b"two\n").replace(b"line 18\n", b""))
    assert merged.conflicts == ()


def test_the_same_change_on_both_sides_is_no_conflict():
    changed = file(TEXT.replace(b"line 2\n", b"two\n"))
    merged = merge_snapshots(file(TEXT), changed, changed)
    assert (merged.files, merged.conflicts) == (changed, ())


@pytest.mark.starts_processes
def test_a_conflict_shows_all_three_between_markers():
    merged = merge_snapshots(file(b"a\nb\nc\n"), file(b"a\nx\nc\n"), file(b"a\ny\nc\n"))
    assert merged.files[PATH].data == (
        b"a\n<<<<<<< first parent\nx\n||||||| ancestor\nb\n=======\ny\n>>>>>>> second parent\nc\n"
    )
    assert [(c.path, c.clash, c.places) for c in merged.conflicts] == [(PATH, ConflictKind.LINES, 1)]


@pytest.mark.starts_processes
def test_every_place_of_a_conflict_is_counted():
    base = b"".join(b"%d\n" % n for n in range(1000))
    ours = base.replace(b"5\n", b"5 ours\n")
    theirs = base.replace(b"5\n", b"5 theirs\n")
    (conflict,) = merge_snapshots(file(base), file(ours), file(theirs)).conflicts
    assert conflict.places == 100
    many = b"".join(b"%d\n-\n-\n-\n-\n" % n for n in range(400))
    (most,) = merge_snapshots(
        file(many), file(many.replace(b"\n-\n", b"o\n-\n")), file(many.replace(b"\n-\n", b"t\n-\n"))
    ).conflicts
    assert most.places == 127


@pytest.mark.starts_processes
def test_a_file_that_both_added_is_merged_from_nothing():
    merged = merge_snapshots({}, file(b"same\n"), file(b"other\n"))
    assert clashes(merged) == {PATH: ConflictKind.LINES}
    assert b"same\n" in merged.files[PATH].data
    assert b"other\n" in merged.files[PATH].data


@pytest.mark.parametrize("data", [b"\0", b"\xff\xfe", b"text \0 text", b"\xed\xa0\x80"])
def test_what_is_no_text_is_kept_as_the_first_side_has_it(data):
    merged = merge_snapshots(file(b"a\n"), file(b"ours\n"), file(data))
    assert (merged.files, clashes(merged)) == (file(b"ours\n"), {PATH: ConflictKind.BINARY})
    merged = merge_snapshots(file(b"a\n"), file(data), file(b"theirs\n"))
    assert (merged.files, clashes(merged)) == (file(data), {PATH: ConflictKind.BINARY})
    merged = merge_snapshots(file(data), file(b"ours\n"), file(b"theirs\n"))
    assert (merged.files, clashes(merged)) == (file(b"ours\n"), {PATH: ConflictKind.BINARY})


def test_a_binary_file_that_one_side_changed_is_settled():
    merged = merge_snapshots(file(b"\0a"), file(b"\0a"), file(b"\0b"))
    assert (merged.files, merged.conflicts) == (file(b"\0b"), ())


def test_a_change_against_a_removal_keeps_the_first_side():
    merged = merge_snapshots(file(b"a\n"), file(b"b\n"), {})
    assert (merged.files, clashes(merged)) == (file(b"b\n"), {PATH: ConflictKind.REMOVED})
    merged = merge_snapshots(file(b"a\n"), {}, file(b"b\n"))
    assert (merged.files, clashes(merged)) == ({}, {PATH: ConflictKind.REMOVED})


def test_a_removal_of_what_the_other_left_alone_counts():
    assert merge_snapshots(file(b"a\n"), file(b"a\n"), {}).files == {}
    assert merge_snapshots(file(b"a\n"), {}, {}).files == {}


def test_the_mode_is_merged_apart_from_the_content():
    merged = merge_snapshots(file(b"a\n"), file(b"b\n"), file(b"a\n", PROGRAM))
    assert (merged.files, merged.conflicts) == (file(b"b\n", PROGRAM), ())
    merged = merge_snapshots(file(b"\0a", PROGRAM), file(b"\0a"), file(b"\0b", PROGRAM))
    assert (merged.files, merged.conflicts) == (file(b"\0b"), ())
    merged = merge_snapshots({}, file(b"a\n"), file(b"a\n", PROGRAM))
    assert (merged.files, clashes(merged)) == (file(b"a\n"), {PATH: ConflictKind.KIND})


def test_targets_of_links_are_never_merged_or_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("hidden\n")
    there = os.fsencode(secret)
    base, ours, theirs = file(b"a", LINK), file(there, LINK), file(b"/etc/passwd", LINK)
    merged = merge_snapshots(base, ours, theirs)
    assert (merged.files, clashes(merged)) == (ours, {PATH: ConflictKind.KIND})
    for one in (
        merge_snapshots(file(b"a\n"), file(b"b\n"), theirs),
        merge_snapshots(base, file(b"b\n"), theirs),
    ):
        assert (one.files, clashes(one)) == (file(b"b\n"), {PATH: ConflictKind.KIND})
    assert merge_snapshots(base, base, theirs).files == theirs


def test_a_file_against_a_folder_keeps_the_first_side():
    inside: Snapshot = {"a/b/c": Entry(b"1"), "a/d": Entry(b"2")}
    flat: Snapshot = {"a": Entry(b"file")}
    merged = merge_snapshots({}, flat, inside)
    assert (merged.files, clashes(merged)) == (flat, {"a": ConflictKind.FOLDER})
    merged = merge_snapshots({}, inside, flat)
    assert (merged.files, clashes(merged)) == (inside, {"a": ConflictKind.FOLDER})
    tree_id(merged.files)


def test_a_file_that_became_a_folder_is_settled_where_the_other_left_it_alone():
    flat: Snapshot = {"a": Entry(b"file")}
    inside: Snapshot = {"a/b": Entry(b"file")}
    assert merge_snapshots(flat, flat, inside).files == inside
    merged = merge_snapshots(flat, {"a": Entry(b"changed")}, inside)
    assert (merged.files, clashes(merged)) == ({"a": Entry(b"changed")}, {"a": ConflictKind.FOLDER})


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    "name", ["--help", "not utf-8 \udcff\udcfe", "line\nbreak \x1b[31m", "a b/'\"$(id)", ".gitattributes"]
)
def test_strange_names_are_names_only(name):
    merged = merge_snapshots(
        {name: Entry(b"a\nb\nc\nd\ne\n")},
        {name: Entry(b"A\nb\nc\nd\ne\n")},
        {name: Entry(b"a\nb\nc\nd\nE\n")},
    )
    assert (merged.files, merged.conflicts) == ({name: Entry(b"A\nb\nc\nd\nE\n")}, ())


@pytest.mark.starts_processes
def test_attributes_and_drivers_of_a_tree_or_of_the_user_take_no_effect(tmp_path, monkeypatch):
    # A repository around the scratch folder, whose configuration asks for another style of conflicts.
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "config", "merge.conflictStyle", "merge"], check=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text("[merge]\n\tconflictStyle = merge\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    attributes = {".gitattributes": Entry(b"* merge=union\n*.py merge=binary\n")}
    merged = merge_snapshots(attributes | file(b"a\n"), attributes | file(b"x\n"), attributes | file(b"y\n"))
    assert b"||||||| ancestor\na\n" in merged.files[PATH].data


@pytest.mark.starts_processes
def test_markers_are_longer_where_a_file_has_such_lines_already():
    looks = b"<<<<<<< first parent\n=======\n>>>>>>> second parent\n|||||||| eight\n"
    merged = merge_snapshots(file(looks + b"a\n"), file(looks + b"x\n"), file(looks + b"y\n"))
    (conflict,) = merged.conflicts
    assert conflict.markers == (
        b"<<<<<<<<< first parent",
        b"||||||||| ancestor",
        b"=========",
        b">>>>>>>>> second parent",
    )
    assert set(conflict.markers) <= set(merged.files[PATH].data.split(b"\n"))
    settled = file(looks + b"x\n")
    assert find_unsettled(merged.conflicts, merged.files) == [PATH]
    assert find_unsettled(merged.conflicts, settled) == []


@pytest.mark.starts_processes
@pytest.mark.parametrize("left", range(4))
def test_one_marker_left_is_found_with_any_line_ending(left):
    merged = merge_snapshots(file(b"a\r\n"), file(b"x\r\n"), file(b"y\r\n"))
    (conflict,) = merged.conflicts
    for ending in (b"\n", b"\r\n", b""):
        data = b"x\n" + conflict.markers[left] + ending
        assert find_unsettled(merged.conflicts, file(data)) == [PATH]
    assert find_unsettled(merged.conflicts, {}) == []
    assert find_unsettled([Conflict(PATH, ConflictKind.BINARY)], file(b"=======\n")) == []


@pytest.mark.starts_processes
def test_a_last_line_without_an_end_is_kept_so():
    merged = merge_snapshots(file(b"a\nb\nc\nd\ne"), file(b"A\nb\nc\nd\ne"), file(b"a\nb\nc\nd\nE"))
    assert merged.files == file(b"A\nb\nc\nd\nE")


@pytest.mark.starts_processes
def test_without_git_the_user_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="git is not installed"):
        merge_snapshots(file(b"a\n"), file(b"x\n"), file(b"y\n"))


@pytest.mark.starts_processes
def test_scratch_folders_are_removed(monkeypatch, tmp_path: Path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    merge_snapshots(file(b"a\n"), file(b"x\n"), file(b"y\n"))
    assert list(tmp_path.iterdir()) == []
