"""Laws of three-way merges: one side alone, both the same, and independence of the order of the sides."""

from collections.abc import Mapping

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dgm.archive.repository import ConflictKind, find_unsettled, merge_snapshots
from dgm.archive.snapshots import FILE, LINK, PROGRAM, tree_id
from dgm.domain import Entry, Snapshot

pytestmark = pytest.mark.starts_processes

NAMES = ["a", "a/b", "b/c.py", "b/d", "not utf-8 \udcff", "e"]
entries = st.builds(
    Entry,
    st.lists(st.sampled_from([b"1\n", b"2\n", b"<<<<<<< x\n", b"\xff\n", b"end"]), max_size=6).map(b"".join),
    st.sampled_from([FILE, FILE, FILE, PROGRAM, LINK]),
)


def a_tree(files: Mapping[str, Entry]) -> Snapshot:
    """Without what cannot stand beside a file of the name ``a``."""
    return {name: entry for name, entry in files.items() if not (name == "a/b" and "a" in files)}


snapshots = st.dictionaries(st.sampled_from(NAMES), entries).map(a_tree)


@given(snapshots, snapshots)
def test_one_side_alone_is_what_comes_out(base, other):
    for ours, theirs in ((base, other), (other, base), (other, other)):
        merged = merge_snapshots(base, ours, theirs)
        assert (merged.files, merged.conflicts) == (other, ())
        assert list(merged.files) == sorted(merged.files)


@settings(max_examples=60, deadline=None)
@given(snapshots, snapshots, snapshots)
def test_any_three_trees_give_a_tree_and_name_what_is_unsettled(base, ours, theirs):
    merged = merge_snapshots(base, ours, theirs)
    tree_id(merged.files)
    lines = {conflict.path for conflict in merged.conflicts if conflict.clash is ConflictKind.LINES}
    assert set(find_unsettled(merged.conflicts, merged.files)) == lines
    assert find_unsettled(merged.conflicts, ours) == []
    for conflict in merged.conflicts:
        if conflict.clash is not ConflictKind.LINES and conflict.path in ours:
            kept, first = merged.files[conflict.path], ours[conflict.path]
            assert kept.data == first.data
    untouched = {conflict.path for conflict in merged.conflicts}
    for path in merged.files.keys() - untouched:
        assert merged.files[path] in (ours.get(path), theirs.get(path)) or path in ours.keys() & theirs.keys()


@settings(max_examples=60, deadline=None)
@given(snapshots, snapshots, snapshots)
@example({"a/b": Entry(b"1\n")}, {"a": Entry(b"")}, {"a/b": Entry(b"")})
def test_the_order_of_the_sides_does_not_matter_where_nothing_conflicts(base, ours, theirs):
    merged, turned = merge_snapshots(base, ours, theirs), merge_snapshots(base, theirs, ours)
    assert {c.path for c in merged.conflicts} == {c.path for c in turned.conflicts}
    if not merged.conflicts:
        assert merged.files == turned.files


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["leave", "ours", "theirs"]), min_size=1, max_size=12))
def test_edits_of_lines_that_are_apart_are_all_made(whose):
    def text(*sides: str) -> bytes:
        return b"".join(
            b"block %d\n%s\nbetween\n\nthem\n" % (n, side.encode() if side in sides else b"as it was")
            for n, side in enumerate(whose)
        )

    base, ours, theirs = text(), text("ours"), text("theirs")
    merged = merge_snapshots({"f": Entry(base)}, {"f": Entry(ours)}, {"f": Entry(theirs)})
    assert merged.conflicts == ()
    assert merged.files["f"].data == text("ours", "theirs")
