"""What our evaluation script takes over from the package's, what a patch says of itself, what is kept of a log."""

import gzip
import json
from pathlib import Path

import pytest

from dgm.benchmarks import swebench_logs, swebench_patches, swebench_script
from dgm.benchmarks.swebench_script import Assignment, from_command, from_script, luggage
from dgm.errors import UserError

ROWS = Path(__file__).parents[2] / "docker" / "swebench" / "instances.jsonl"
LEDGER = json.loads(ROWS.read_text(encoding="utf-8").splitlines()[1])["eval_script"]
NONCE = "ab12"


def read(text, tmp_path):
    return swebench_logs.read(text.encode() if isinstance(text, str) else text, NONCE, tmp_path / "log")


def marked(text):
    return f">>>>> {NONCE} start\n{text}\n>>>>> {NONCE} end 0\n"


def header(old, new):
    return f"--- {old}\n+++ {new}\n@@ -1 +1 @@\n-a\n+b\n".encode()


def test_script_of_the_package_gives_its_shell_set_up_and_its_test_command():
    plan = from_script(LEDGER, "mini__ledger-2")
    assert plan.tests == ["python3 runtests.py test_ledger"]
    assert "export LANG=en_US.UTF-8" in plan.before
    assert (plan.installs, plan.builds) == (True, False)


def test_patches_and_installations_of_the_packages_script_are_left_out():
    before = "\n".join(from_script(LEDGER, "mini__ledger-2").before)
    assert not [word for word in ("diff", "git", "pip", "set -", "assertEqual") if word in before]


def test_build_steps_and_test_commands_of_several_lines_are_kept():
    before = "cd /testbed\nmake distclean\nnpm ci"
    tests = "cd tests\n./run | jq '\n  x'"
    text = f"{before}\n: '>>>>> Start Test Output'\n{tests}\n: '>>>>> End Test Output'\n"
    plan = from_script(text, "any")
    assert plan.before == ["cd /testbed", "make distclean"] and plan.builds
    assert plan.tests == ["cd tests", "./run | jq '", "  x'"]


@pytest.mark.parametrize("script", ["", "pytest", ": '>>>>> Start Test Output'\n: '>>>>> End Test Output'"])
def test_script_without_a_test_command_is_a_user_error(script):
    with pytest.raises(UserError, match=r"^any: no test command between"):
        from_script(script, "any")


def test_extensions_are_compiled_again_where_the_patch_touches_one_that_was_installed():
    plan = from_script(LEDGER, "any")
    scripts = [
        luggage(plan, Assignment("/testbed", header(f"a/{name}", f"b/{name}"), b"", [], 60))["tests.sh"].data
        for name in ("ledger/fast.pyx", "ledger/slow.py")
    ]
    assert [b"build_ext" in script for script in scripts] == [True, False]


def test_patch_without_an_end_of_line_gets_one():
    files = luggage(from_command("true"), Assignment("/testbed", b"+x", b"", [], 60))
    assert (files["model.patch"].data, files["tests.patch"].data) == (b"+x\n", b"")


def test_paths_of_a_patch_are_those_of_its_headers_alone():
    hunk = b"--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n-- a/not.py\n++ b/not.py\n \n context\n"
    assert swebench_patches.files(hunk) == ["x.py"]


@pytest.mark.parametrize(
    ("patch", "named"),
    [
        (header("a/x.py", "/dev/null"), ["x.py"]),
        (header("a/x.py\t2020-01-01", "b/x.py\t2020-01-01"), ["x.py"]),
        (b"diff --git a/a b.bin b/a b.bin\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n", ["a b.bin"]),
        (b"diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", ["x"]),
        (b"diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", ["x", "y"]),
        (b'diff --git "a/\\303\\274" "b/\\303\\274"\n--- "a/\\303\\274"\n+++ "b/\\303\\274"\n', ["ü"]),
        (header("a/x.py\r", "b/x.py\r"), ["x.py"]),
    ],
    ids=["deleted", "time stamps", "binary", "mode", "renamed", "quoted", "CR LF"],
)
def test_every_kind_of_header_names_its_files(patch, named):
    assert list(swebench_patches.files(patch)) == named


@pytest.mark.parametrize("path", ["/etc/passwd", "a/../../x", "a/.git/config", "a/.GIT/hooks/x"])
def test_path_outside_of_the_repository_is_refused(path):
    assert "outside of the repository" in swebench_patches.refused(
        header(path, path.replace("a/", "b/", 1)), []
    )


@pytest.mark.parametrize(
    "path", ["tests/x.py", "pkg/tests/data.txt", "test_x.py", "x_test.go", "src/a.spec.ts", "XTest.java"]
)
def test_tests_are_known_by_their_names(path):
    assert swebench_patches.is_test(path)


@pytest.mark.parametrize(
    "path", ["django/test/client.py", "src/_pytest/python.py", "sympy/testing/runtests.py", "latest.py"]
)
def test_code_about_tests_is_no_test(path):
    assert not swebench_patches.is_test(path)


def test_files_that_take_the_runners_place_steer_it_unless_the_reference_edits_them():
    named = [
        "pytest.py",
        "unittest/__init__.py",
        "src/pytest.py",
        "a/conftest.py",
        "sitecustomize.py",
        "x.py",
    ]
    wanted = ["pytest.py", "unittest/__init__.py", "a/conftest.py"]
    assert swebench_patches.steering(named, ["sitecustomize.py"]) == wanted


def test_words_count_only_under_the_nonce_and_the_first_time(tmp_path):
    log = read(f">>>>> end 7\n>>>>> {NONCE} end 0\n>>>>> {NONCE} end 1\n>>>>> {NONCE}x end 2\n", tmp_path)
    assert log.words == {"end": "0"}


def test_only_what_stands_between_the_markers_is_test_output(tmp_path):
    log = read("before\n" + marked("between") + "after\n", tmp_path)
    assert (log.text(), log.around) == ("between\n", "before\nafter\n")


def test_packed_output_may_follow_plain_text_and_be_broken_off(tmp_path):
    packed = gzip.compress(marked("one\ntwo").encode() * 3)
    log = read(b"bash: warning\n" + packed[:-12], tmp_path)
    assert log.text().startswith("one\ntwo\n") and log.around.startswith("bash: warning")


def test_damaged_packed_output_ends_where_it_is_damaged(tmp_path):
    packed = gzip.compress(b"x" * 100)
    assert read(packed[:12] + b"\xff" * 40, tmp_path).words == {}


@pytest.mark.slow
def test_long_log_keeps_both_ends_and_results_between_them(tmp_path):
    noise = "\n".join(f"{n} nothing to see here" for n in range(300_000))
    text = f"PASSED a::first\n{noise}\nPASSED a::middle\n{noise}\nlast line"
    log = read(gzip.compress(marked(text).encode(), 1), tmp_path)
    kept = log.text()
    assert log.cut and len(kept) < 6_000_000
    assert (
        kept.startswith("PASSED a::first\n")
        and "\nPASSED a::middle\n" in kept
        and kept.endswith("last line\n")
    )


def test_line_without_an_end_is_cut(tmp_path):
    log = read(marked("y" * 10_000_000 + "\nPASSED a::b"), tmp_path)
    assert len(log.text()) < 2 * swebench_logs.LINE_LIMIT
    assert log.text().endswith("PASSED a::b\n")


def test_script_never_holds_its_nonce():
    files = luggage(swebench_script.from_command("pytest"), Assignment("/testbed", b"", b"", [], 60))
    assert not [name for name, entry in files.items() if NONCE.encode() in entry.data]
