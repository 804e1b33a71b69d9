"""Patches as files and lines."""

from hypothesis import given
from hypothesis import strategies as st

from dgm.render.diff import LineKind, parse_diff, side_by_side

PATCH = """diff --git a/agent/loop.py b/agent/loop.py
index 1..2 100644
--- a/agent/loop.py
+++ b/agent/loop.py
@@ -1,4 +1,4 @@ def run
 one
-two
-three
+two\x1b[31m
 four
+--- five
\\ No newline at end of file
diff --git "a/b\\303\\244.bin" "b/b\\303\\244.bin"
new file mode 100644
GIT binary patch
literal 3
--- no name
"""


def test_files_and_lines_are_counted_and_numbered() -> None:
    text, binary = parse_diff(PATCH)
    assert (text.path, text.added, text.removed, text.binary) == ("agent/loop.py", 2, 2, False)
    assert (binary.path, binary.added, binary.binary) == ("bä.bin", 0, True)
    lines = [(line.kind, line.old, line.new, line.text) for line in text.lines[5:]]
    assert lines == [
        (LineKind.SAME, 1, 1, " one"),
        (LineKind.REMOVED, 2, None, "-two"),
        (LineKind.REMOVED, 3, None, "-three"),
        (LineKind.ADDED, None, 2, "+two\\x1b[31m"),
        (LineKind.SAME, 4, 3, " four"),
        (LineKind.ADDED, None, 4, "+--- five"),
        (LineKind.NOTE, None, None, "\\ No newline at end of file"),
    ]


def test_changed_lines_stand_side_by_side() -> None:
    pairs = [
        (before and before.text, after and after.text) for before, after in side_by_side(parse_diff(PATCH)[0])
    ]
    assert pairs[5:9] == [(" one", " one"), ("-two", "+two\\x1b[31m"), ("-three", None), (" four", " four")]


@given(st.text(st.sampled_from("+-@ 1,\\adifgt/\n\x1b\t")))
def test_no_text_breaks_the_parser_or_passes_unneutralised(text: str) -> None:
    for file in parse_diff(f"diff --git a/x b/x\n@@ -1,9 +1,9 @@\n{text}"):
        assert all(not set(line.text) & set("\x1b\t\n") for line in file.lines)
        assert sum(1 for _ in side_by_side(file)) <= len(file.lines)
