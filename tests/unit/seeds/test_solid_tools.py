"""The solid seed's tools: commands that go on where the last ended, edits that say what is wrong."""

import ast
import os
import shutil
import subprocess
import sys
import time

import pytest

from tests.unit.seeds.conftest import SOLID

pytestmark = pytest.mark.starts_processes


def bash(toolbox, command, left_s=60):
    return toolbox.run("bash", {"command": command}, left_s)


@pytest.mark.parametrize(
    ("first", "output", "second", "later"),
    [
        ("mkdir -p d/e && cd d/e && export NAME='a b'", "", 'basename "$PWD"; echo "$NAME"', "e\na b\n"),
        ("export A=1; cd /; exit 3", "\nexit status 3", 'pwd; echo "$A"', "/\n1\n"),
        ("mkdir d; cd d; rmdir ../d", "", "ls", "a.py\n"),
        ("if then (", "exit status 2", "echo on", "on\n"),
        ("seq 200 | $PAGER | tail -n 1", "200\n", r"printf 'a\0b\377'", "a?b\ufffd"),
    ],
)
def test_folder_and_variables_persist_whatever_happens(toolbox, first, output, second, later):
    assert bash(toolbox, first).endswith(output)
    assert bash(toolbox, second) == later


def test_a_shell_without_bash_does(toolbox):
    toolbox.shell.program = "/bin/sh"
    assert bash(toolbox, "export A=1; cd /tmp") == ""
    assert bash(toolbox, 'echo "$PWD $A"') == "/tmp 1\n"


def test_a_stuck_command_is_stopped_and_told_of_the_background(toolbox):
    shown = bash(toolbox, "echo begun; sleep 60", left_s=1)
    assert shown.startswith("begun\n")
    assert "stopped after 1 s" in shown
    assert "&`" in shown


def test_a_background_process_goes_on_and_holds_up_nothing(toolbox):
    began = time.monotonic()
    number = int(bash(toolbox, "sleep 30 & echo $!"))
    assert bash(toolbox, f"kill -0 {number} && echo alive") == "alive\n"
    assert time.monotonic() - began < 20
    os.kill(number, 9)


def test_long_output_shows_head_tail_and_the_file_with_all_of_it(toolbox):
    shown = bash(toolbox, "echo first; seq 20000; echo last")
    assert shown.startswith("first\n1\n")
    assert shown.endswith("20000\nlast\n")
    assert len(shown) < 10_300
    file = shown.partition("all is in ")[2].partition(":")[0]
    assert bash(toolbox, f"wc -l < {file}").strip() == "20002"


def test_a_large_command_is_run(toolbox):
    assert bash(toolbox, f"cat > big <<'EOF'\n{'x' * 300_000}\nEOF\nwc -c < big").strip() == "300001"


def test_an_edit_replaces_one_exact_text(toolbox, repository):
    given = {"path": "a.py", "old": "x + 1", "new": "x + 2"}
    assert toolbox.run("edit", given).endswith("a.py at line 2")
    assert (repository / "a.py").read_text() == "def f(x):\n    return x + 2\n"


@pytest.mark.parametrize(
    ("path", "old", "says"),
    [
        ("a.py", "return x+1", "     2\t    return x + 1"),
        ("a.py", "x", "occurs 2 times, at lines 1, 2"),
        ("a.py", "", "nothing was changed"),
        ("b.py", "x", "there is a.py"),
    ],
)
def test_an_edit_that_cannot_be_made_says_what_to_do(toolbox, repository, path, old, says):
    shown = toolbox.run("edit", {"path": path, "old": old, "new": "z"})
    assert shown.startswith("error: ")
    assert says in shown
    assert (repository / "a.py").read_text() == "def f(x):\n    return x + 1\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"one\r\ntwo\r\n\xff\r\n", "one\ntwo\n", "1\n2\n", b"1\r\n2\r\n\xff\r\n"),
        (b"one\r\ntwo\r\n", "one", "1\n1b", b"1\r\n1b\r\ntwo\r\n"),
    ],
)
def test_line_ends_bytes_and_mode_survive_an_edit(toolbox, repository, before, old, new, after):
    (repository / "w.txt").write_bytes(before)
    (repository / "w.txt").chmod(0o755)
    toolbox.run("edit", {"path": "w.txt", "old": old, "new": new})
    assert (repository / "w.txt").read_bytes() == after
    assert (repository / "w.txt").stat().st_mode & 0o777 == 0o755


def test_a_text_that_cannot_be_written_leaves_the_file(toolbox, repository):
    assert toolbox.run("create", {"path": "a.py", "content": "\ud83d"}).startswith("error: ")
    assert (repository / "a.py").read_text().startswith("def f")


def test_long_lines_and_large_folders_are_shown_in_part(toolbox, repository):
    (repository / "rows").write_text(f"{'x' * 900}\n" * 300)
    assert len(toolbox.run("view", {"path": "rows"})) < 31_000
    (repository / "min.js").write_text("x" * 5000 + "\nend\n")
    assert toolbox.run("view", {"path": "min.js"}).endswith("x [4000 more characters]\n     2\tend")
    for number in range(300):
        (repository / f"{number:03}").touch()
    assert toolbox.run("view", {"path": "."}).endswith("[303 names in all]")


@pytest.mark.parametrize(
    ("first", "last", "shown"), [(2, -1, "     2\t"), (3, 9, "error: "), (None, None, "     1\t")]
)
def test_odd_line_numbers_are_understood_or_answered(toolbox, first, last, shown):
    assert toolbox.run("view", {"path": "a.py", "first": first, "last": last}).startswith(shown)


def test_files_are_created_in_new_folders_and_viewed_by_lines(toolbox):
    content = "".join(f"line {number}\n" for number in range(1, 1001))
    assert toolbox.run("create", {"path": "new/b.txt", "content": content}).startswith("created")
    assert (
        toolbox.run("view", {"path": "new/b.txt", "first": 10, "last": 11})
        == "    10\tline 10\n    11\tline 11"
    )
    assert toolbox.run("view", {"path": "new/b.txt"}).endswith("[lines 301 to 1000 not shown]")
    assert toolbox.run("view", {"path": "."}) == "a.py\nnew/"


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("python", {}, "there is no tool 'python'; there are bash, edit"),
        ("edit", {"path": "a.py"}, "needs old and new"),
        ("bash", {"command": ["ls"]}, "needs command as text"),
        ("view", {"path": "a.py", "first": "x"}, "error:"),
    ],
)
def test_a_wrong_call_is_answered(toolbox, name, given, says):
    assert says in toolbox.run(name, given)


def test_the_first_submit_shows_every_change_and_the_second_ends(toolbox, repository):
    (repository / "a.py").write_text("def f(x):\n    return x\n")
    (repository / "new.py").write_text("y\n")
    (repository / "picture").write_bytes(b"\0")
    shown = toolbox.run("submit", {})
    assert "-    return x + 1\n+    return x\n" in shown
    assert "--- /dev/null\n+++ new.py" in shown
    assert "changed: picture" in shown
    assert not toolbox.submitted
    assert bash(toolbox, " submit ") == "submitted"
    assert toolbox.submitted


def test_a_submit_without_a_change_is_no_look_at_later_ones(toolbox):
    assert "Nothing is changed" in toolbox.run("submit", {})
    bash(toolbox, "echo new > b.txt")
    assert "+new" in toolbox.run("submit", {})
    bash(toolbox, "echo newer > b.txt")
    assert toolbox.run("submit", {}) == "submitted"


def test_the_check_passes_without_git_and_bash(tmp_path):
    for name in ("sh", "cat"):
        (tmp_path / name).symlink_to(shutil.which(name))
    command = [sys.executable, "-B", "-m", "agent", "--check"]
    done = subprocess.run(
        command, cwd=SOLID, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")


def test_the_source_is_for_python_3_8(tmp_path):
    for file in SOLID.rglob("*.py"):
        assert ast.parse(file.read_text(), feature_version=(3, 8))
