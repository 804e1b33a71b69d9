"""Patches by line: what each is, its numbers, its file, unified and side by side."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgm.show.code import colour_code_line
from dgm.show.diffs import LineKind, Patch
from dgm.show.safe import cell_width
from dgm.show.spans import Tone, plain_text

pytestmark = pytest.mark.slow

PATCH = b"""diff --git a/agent/loop.py b/agent/loop.py
index 1111111..2222222 100644
--- a/agent/loop.py
+++ b/agent/loop.py
@@ -1,4 +1,5 @@ def run():
 import os
--- a comment of SQL
+++ more
+\tlimit = 30
 def run():
     return 1
\\ No newline at end of file
diff --git a/gone.sh b/gone.sh
deleted file mode 100644
--- a/gone.sh
+++ /dev/null
@@ -1 +0,0 @@
-echo \x1b[31mred
"""


def test_every_line_is_known_for_what_it_is() -> None:
    patch = Patch(PATCH)
    kinds = "".join("H@ +-\\b"[patch.kind(n)] for n in range(len(patch)))
    assert kinds == "HHHH@ -++  \\HHHH@-"
    assert patch.numbers(5) == (1, 1)
    assert patch.numbers(6) == (2, 0)
    assert [patch.numbers(n) for n in (7, 8, 9, 10)] == [(0, 2), (0, 3), (3, 4), (4, 5)]


def test_files_are_listed_with_what_changed_in_them() -> None:
    files = Patch(PATCH).files
    assert [(f.path, f.line, f.added, f.removed, f.binary) for f in files] == [
        ("agent/loop.py", 0, 2, 1, False),
        ("gone.sh", 12, 0, 1, False),
    ]
    assert Patch(PATCH).file_at(13) == files[1]
    assert Patch(b"no patch\n").file_at(0) is None


def test_lines_are_shown_with_their_sign_neutral_and_without_tabs() -> None:
    patch = Patch(PATCH)
    assert plain_text(patch.unified_line(8)) == "+    limit = 30"
    assert patch.unified_line(8)[0].tone is Tone.ADDED
    assert plain_text(patch.unified_line(17)) == "-echo \\x1b[31mred"
    assert plain_text(patch.unified_line(9, numbered=True)) == "    3     4  def run():"
    assert any(span.tone is Tone.CODE_KEYWORD for span in patch.unified_line(9))
    assert plain_text(next(patch.lines())) == "diff --git a/agent/loop.py b/agent/loop.py"


def test_side_by_side_what_was_and_what_is_stand_in_one_row() -> None:
    patch = Patch(PATCH)
    rows = [plain_text(patch.beside(row, 63)) for row in range(patch.rows)]
    assert rows[5] == "    1  import os               │     1  import os"
    assert rows[6] == "    2 --- a comment of SQL     │     2 +++ more"
    assert rows[7] == "                               │     3 +    limit = 30"
    assert rows[4].startswith("@@ -1,4 +1,5 @@")
    assert patch.row_of(8) == 7
    assert len(rows) == len(patch) - 1


def git(folder: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", folder, *words], capture_output=True, check=True).stdout


@pytest.mark.starts_processes
def test_what_git_writes_of_odd_names_modes_and_binary_files_is_read(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    names = ["with blank", 'quo"te', "größe.py", "tab\there", "plain"]
    for name in names:
        (tmp_path / name).write_text("one\n")
    (tmp_path / "bin").write_bytes(bytes(range(256)))
    git(tmp_path, "add", "-A")
    first = git(tmp_path, "write-tree").strip().decode()
    for name in names:
        (tmp_path / name).write_text("two\n")
    (tmp_path / "bin").write_bytes(bytes(range(255, -1, -1)))
    (tmp_path / "plain").chmod(0o755)
    git(tmp_path, "add", "-A")
    second = git(tmp_path, "write-tree").strip().decode()
    patch = Patch(git(tmp_path, "diff-tree", "-r", "-p", "--binary", first, second))
    assert {f.path for f in patch.files} == {*names, "bin"}
    assert {f.path: (f.added, f.removed, f.binary) for f in patch.files}["bin"] == (0, 0, True)
    assert all((f.added, f.removed) == (1, 1) for f in patch.files if f.path != "bin")
    assert LineKind.BINARY in {patch.kind(n) for n in range(len(patch))}
    (tmp_path / "plain").chmod(0o644)
    git(tmp_path, "add", "-A")
    modes = Patch(
        git(tmp_path, "diff-tree", "-r", "-p", second, git(tmp_path, "write-tree").strip().decode())
    )
    assert [f.path for f in modes.files] == ["plain"]


@given(
    st.lists(
        st.sampled_from(
            [
                *PATCH.splitlines(),
                *(b"", b"@@ -0,0 +1,9 @@", b"+\xff\x00", b"Binary files a and b differ"),
                *(b"\x1b[2J", b"\tx", b"\x9b", "\u202e".encode(), b"-" + b"\x07" * 3_000),
            ]
        )
    ),
    st.integers(0, 90),
)
def test_anything_is_shown_line_by_line(lines: list[bytes], width: int) -> None:
    data = b"\n".join(lines)
    patch = Patch(data)
    assert len(patch) == len(data.splitlines())
    for number in range(len(patch)):
        assert all(span.text.isprintable() for span in patch.unified_line(number))
        assert all(span.text.isprintable() for span in patch.unified_line(number, numbered=True, most=20))
        assert patch.text(number).isprintable()
        assert patch.row_of(number) < patch.rows
    for row in range(patch.rows):
        assert sum(cell_width(span.text) for span in patch.beside(row, width)) <= max(width, 3)
        assert all(span.text.isprintable() for span in patch.beside(row, width))
        assert patch.said(row).isprintable()


def test_a_line_of_a_hunk_without_a_sign_is_whole_and_neutral() -> None:
    patch = Patch(b"@@ -1,2 +1,2 @@\n\x1b[2Jb\n\tc\n")
    assert [plain_text(patch.unified_line(n)) for n in (1, 2)] == [" \\x1b[2Jb", "     c"]
    assert plain_text(patch.beside(1, 43)) == "    1  \\x1b[2Jb      │     1  \\x1b[2Jb"
    assert patch.text(1) == "\\x1b[2Jb"


def test_a_very_long_line_is_cut_before_it_is_read() -> None:
    patch = Patch(b"@@ -1,2 +1,2 @@\n-" + b"\xff" * 5_000 + b"\n " + "日".encode() * 5_000 + b"\n")
    assert plain_text(patch.unified_line(1, most=100)) == "-" + "\ufffd" * 100 + " … 4,900 bytes more"
    assert plain_text(patch.unified_line(2, most=100)) == " " + "日" * 100 + " … 14,700 bytes more"
    assert len(patch.text(2)) == 5_001
    assert plain_text(patch.unified_line(2)) == " " + "日" * 5_000


@pytest.mark.parametrize(
    ("path", "text", "tones"),
    [
        (
            "a.py",
            "def run(): return 'x' # why",
            {Tone.CODE_KEYWORD, Tone.CODE_NAME, Tone.CODE_STRING, Tone.CODE_COMMENT},
        ),
        ("agent.toml", "limit = 3", {Tone.CODE_NUMBER}),
        ("run.sh", 'if true; then echo "x"; fi', {Tone.CODE_KEYWORD, Tone.CODE_STRING}),
        ("x.json", '{"a": 1}', {Tone.CODE_NUMBER}),
        ("x.unknown", "def run(): return 1", {Tone.PLAIN}),
    ],
)
def test_code_is_coloured_by_the_name_of_its_file(path: str, text: str, tones: set[Tone]) -> None:
    shown = colour_code_line(path, text)
    assert "".join(span.text for span in shown) == text
    assert tones <= {span.tone for span in shown}


@given(st.sampled_from(["a.py", "a.md", "a.sh", "a.json", "a.toml", "a"]), st.text(max_size=60))
def test_colours_change_no_character(path: str, text: str) -> None:
    from dgm.show.code import TAB
    from dgm.show.safe import neutralise

    assert "".join(span.text for span in colour_code_line(path, text)) == neutralise(
        text.replace("\n", " ")
    ).expandtabs(TAB)
