"""How alike edits are: counted by hand, and over patches as the repository makes them."""

import pytest

from dgm.archive.repository import patch
from dgm.domain import Entry, Snapshot
from dgm.meta.seeds import read_seed
from dgm.meta.novelty import MAX_BYTES, nearest, resemblance, shingles

pytestmark = pytest.mark.starts_processes


def edit(before: bytes, after: bytes, path: str = "a.py") -> bytes:
    return patch({path: Entry(before)}, {path: Entry(after)})


def test_shingles_are_runs_of_four_tokens_with_their_sign():
    assert shingles(edit(b"a\nkeep\n", b"x = y + 1\nkeep\n")) == {
        ("-", "a"),
        ("+", "x", "=", "y", "+"),
        ("+", "=", "y", "+", "1"),
    }


def test_resemblance_is_the_share_of_shingles_in_common():
    first, second = edit(b"", b"a b c d e\n"), edit(b"", b"a b c d f\n")
    # {abcd, bcde} and {abcd, bcdf}: one of three.
    assert nearest(first, [second])[1] == pytest.approx(1 / 3)
    assert resemblance(shingles(first), shingles(second)) == resemblance(shingles(second), shingles(first))


def test_the_nearest_is_named_and_the_first_of_equals_wins():
    one, other = edit(b"", b"a b c d e\n"), edit(b"", b"p q r s t\n")
    assert nearest(one, [other, one, one]) == (1, 1.0)
    assert nearest(one, [other]) == (-1, 0.0)
    assert nearest(one, []) == (-1, 0.0)


def test_place_path_and_white_space_do_not_count():
    first = edit(b"1\n2\n3\n4\n", b"1\n2\n3\n    return  f( x )\n4\n")
    second = edit(b"9\n", b"return f(x)\n9\n", "other.py")
    assert nearest(first, [second])[1] == 1.0


def test_an_edit_and_its_undoing_are_not_alike():
    assert nearest(edit(b"a b c d\n", b""), [edit(b"", b"a b c d\n")])[1] == 0.0


def test_lines_that_look_like_headers_are_content():
    assert shingles(edit(b"-- a b\n", b"++ c d\n")) == {("-", "-", "-", "a", "b"), ("+", "+", "+", "c", "d")}
    assert shingles(edit(b"", b"@@ -1,9 +1,9 @@ x\n")) >= {("+", "@", "@", "-", "1")}


def test_nothing_is_no_copy_of_nothing():
    binary = edit(b"\0a", b"\0b")
    for empty in (b"", binary, b"no patch\n+at all\n", b"@@ -1 +1 @@"):
        assert shingles(empty) == frozenset()
        assert nearest(empty, [empty, binary])[1] == 0.0


def test_bytes_that_are_no_text_are_compared_all_the_same():
    strange = edit(b"", b"caf\xe9 = 1 + 2\n")
    assert nearest(strange, [strange])[1] == 1.0


def test_an_end_without_a_line_break_does_not_count():
    assert nearest(edit(b"", b"a b c d"), [edit(b"", b"a b c d\n")])[1] == 1.0


def test_what_stands_behind_the_limit_is_ignored():
    long = b"".join(b"word%d and three more\n" % n for n in range(MAX_BYTES // 20))
    cut = edit(b"", long + b"the end of it all\n")
    assert nearest(cut, [cut])[1] == 1.0
    assert ("+", "the", "end", "of", "it") not in shingles(cut)


def test_the_same_change_in_other_words_lies_between():
    source = read_seed()
    loop = source["agent/loop.py"]

    def child(old: bytes, new: bytes) -> bytes:
        changed: Snapshot = {**source, "agent/loop.py": Entry(loop.data.replace(old, new))}
        return patch(source, changed)

    more = child(b"MAX_STEPS = 10", b"MAX_STEPS = 30")
    some = child(b"MAX_STEPS = 10", b"MAX_STEPS = 20")
    other = child(b"return 1\n", b'print("giving up")\n    return 1\n')
    assert 0.0 < nearest(more, [some])[1] < 1.0
    assert nearest(more, [other])[1] == 0.0
