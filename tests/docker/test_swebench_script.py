"""The evaluation script in real sandboxes: what is applied, what is put back, where the output begins and ends."""

import textwrap

import pytest

from dgm.benchmarks import swebench_logs, swebench_script
from dgm.benchmarks.swebench_script import Assignment
from dgm.domain import Entry
from tests.docker.conftest import spec

NONCE = "5ca1ab1e"
REPO = {
    "cart.py": "def total(prices):\n    return 0\n",
    "tests/test_cart.py": "import cart\n",
    "tests/conftest.py": "# as it was\n",
    "docs/ünïcode name.txt": "text\n",
}
FIX = b"""\
--- a/cart.py
+++ b/cart.py
@@ -1,2 +1,2 @@
 def total(prices):
-    return 0
+    return sum(prices)
"""
TEST_PATCH = b"""\
--- a/tests/test_cart.py
+++ b/tests/test_cart.py
@@ -1 +1,2 @@
 import cart
+assert cart.total([1, 2]) == 3
"""


def add(path, text, mode=0o100644):
    """A patch that makes a file."""
    lines = text.splitlines()
    body = "".join(f"+{line}\n" for line in lines)
    return (
        f"diff --git a/{path} b/{path}\nnew file mode {mode:o}\n--- /dev/null\n+++ b/{path}\n"
        f"@@ -0,0 +1,{len(lines)} @@\n{body}"
    ).encode()


def remove(path, line):
    """A patch that deletes a file of one line."""
    head = f"diff --git a/{path} b/{path}\ndeleted file mode 100644\n--- a/{path}\n+++ /dev/null\n"
    return f"{head}@@ -1 +0,0 @@\n-{line}\n".encode()


@pytest.fixture
def run(engine, runner, tmp_path):
    """Runs the script on the little repository and reads its output."""

    def call(
        patch=FIX,
        tests="cat tests/test_cart.py",
        restored=("tests/test_cart.py",),
        repo=REPO,
        before="",
        **more,
    ):
        given = {"test_patch": TEST_PATCH, "timeout_s": 20.0, **more}
        work = Assignment(workdir="/work/repo", patch=patch, restored=restored, **given)

        async def inside():
            async with engine.open(spec()) as sandbox:
                await sandbox.put({name: Entry(text.encode()) for name, text in repo.items()}, "/work/repo")
                luggage = swebench_script.luggage(swebench_script.from_command(textwrap.dedent(tests)), work)
                await sandbox.put(luggage, "/job/grading")
                return await sandbox.exec(
                    ["bash", "-c", f"{before}\nexec bash /job/grading/run.sh"],
                    timeout_s=60,
                    stdin=f"{NONCE}\n".encode(),
                    output_limit=12_000_000,
                )

        completed = runner.run(inside())
        return swebench_logs.read(completed.output, NONCE, tmp_path / "log"), completed

    return call


def test_patch_and_test_patch_are_applied_and_the_exit_code_is_kept(run):
    log, _ = run(tests="python3 -c 'import cart; print(cart.total([1, 2]))'; cat tests/test_cart.py; exit 3")
    assert (log.words["applied"], log.words["end"]) == ("", "3")
    assert log.text() == "3\nimport cart\nassert cart.total([1, 2]) == 3\n\n"


SLOW = """
mkdir /tmp/slow
printf '#!/bin/sh\\nsleep 2\\nexec %s "$@"\\n' "$(command -v setsid)" >/tmp/slow/setsid
chmod +x /tmp/slow/setsid
export PATH=/tmp/slow:$PATH
"""


def test_tests_that_end_before_their_output_is_read_lose_none_of_it(run):
    log, _ = run(tests="echo said at once", before=SLOW)
    assert "said at once" in log.text()
    assert log.words["end"] == "0"


def test_edits_to_hidden_tests_are_undone(run):
    spoilt = TEST_PATCH.replace(b"+assert cart.total([1, 2]) == 3", b"+# nothing left to fail")
    log, _ = run(patch=FIX + spoilt)
    assert "nothing left" not in log.text()
    assert "== 3" in log.text()


def test_deleted_and_added_test_files_are_as_the_test_patch_wants_them(run):
    deleted = remove("tests/test_cart.py", "import cart")
    mine, theirs = add("tests/test_new.py", "mine"), add("tests/test_new.py", "theirs")
    log, _ = run(
        patch=FIX + deleted + mine,
        test_patch=TEST_PATCH + theirs,
        restored=("tests/test_cart.py", "tests/test_new.py"),
        tests="cat tests/*.py",
    )
    assert "theirs" in log.text() and "mine" not in log.text() and "== 3" in log.text()


def test_folder_of_tests_replaced_by_a_link_is_put_back(run):
    link = add("tests", "/etc", 0o120000) + b"\\ No newline at end of file\n"
    moved = remove("tests/test_cart.py", "import cart") + remove("tests/conftest.py", "# as it was") + link
    log, _ = run(patch=moved)
    assert "refused" in log.words


def test_steering_files_are_as_they_were(run):
    edited = (
        b"--- a/tests/conftest.py\n+++ b/tests/conftest.py\n@@ -1 +1 @@\n-# as it was\n+raise SystemExit(0)\n"
    )
    log, _ = run(
        patch=FIX + edited + add("sitecustomize.py", "import os; os._exit(0)"),
        restored=("tests/test_cart.py", "tests/conftest.py", "sitecustomize.py"),
        tests="cat tests/conftest.py; ls",
    )
    assert "# as it was" in log.text() and "sitecustomize" not in log.text()


def test_patch_that_does_not_apply_is_refused_with_gits_reason(run):
    log, _ = run(patch=FIX.replace(b"return 0", b"return 1"))
    assert "patch failed: cart.py:1" in log.words["refused"]
    assert "start" not in log.words


def test_patch_with_fuzz_is_applied_as_the_package_does(run):
    log, _ = run(patch=FIX.replace(b" def total(prices):", b" def total(values):"), tests="cat cart.py")
    assert "patch --fuzz=5" in log.words["applied"]
    assert "sum(prices)" in log.text()


def test_patch_with_crlf_modes_renames_and_binary_parts_is_applied(run):
    repo = {**REPO, "dos.txt": "one\r\ntwo\r\n", "run.sh": "#!/bin/sh\n"}
    name = rb'"{}/docs/\303\274n\303\257code name.txt"'
    dos = b"diff --git a/dos.txt b/dos.txt\n--- a/dos.txt\n+++ b/dos.txt\n@@ -1,2 +1,2 @@\n one\r\n-two\r\n+three\r\n"
    mode = b"diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
    renamed = b"diff --git %s b/plain.txt\nsimilarity index 100%%\nrename from %s\nrename to plain.txt\n" % (
        name.replace(b"{}", b"a"),
        name.replace(b"{}/", b""),
    )
    blob = (
        b"diff --git a/blob b/blob\nnew file mode 100644\n"
        b"index 0000000000000000000000000000000000000000..f76dd238ade08917e6712764a16a22005a50573d\n"
        b"GIT binary patch\nliteral 1\nIcmZPo000310RR91\n\nliteral 0\nHcmV?d00001\n\n"
    )
    parts = (dos, mode, renamed, blob)
    log, _ = run(patch=b"".join(parts), repo=repo, tests="od -c dos.txt; ls -l run.sh plain.txt blob")
    assert log.words["applied"] == ""
    assert r"t   h   r   e   e  \r" in log.text() and "-rwx" in log.text() and "plain.txt" in log.text()


def test_repositorys_own_git_configuration_has_no_say(run):
    repo = {
        **REPO,
        ".git/config": "[core]\n\tbroken",
        ".gitattributes": "* text eol=crlf\n",
        ".git/HEAD": "x\n",
    }
    log, _ = run(repo=repo, tests="od -c cart.py")
    assert log.words["applied"] == "" and r"\r" not in log.text()


def test_markers_of_graded_code_count_for_nothing(run):
    log, _ = run(
        tests="echo '>>>>> End Test Output'; echo '>>>>> 5ca1ab1f end 0'; env; cat /job/grading/*; echo last; exit 9"
    )
    assert log.words["end"] == "9"
    assert log.text().rstrip().endswith("last")
    assert NONCE not in log.text()


def test_standard_output_and_error_come_in_order_from_a_program_without_input(run):
    log, _ = run(tests="for n in 1 2 3; do echo out$n; echo err$n >&2; done; wc -c")
    assert log.text().split() == ["out1", "err1", "out2", "err2", "out3", "err3", "0"]


def test_tests_that_take_too_long_are_ended_and_what_they_printed_is_kept(run):
    for limit in (1.0, 5.0, 20.0):  # more, where the shell takes long to start
        log, completed = run(tests="echo begun; sleep 60", timeout_s=limit)
        if "begun" in log.text():
            break
    assert log.words["late"] == "1" and "begun" in log.text()
    assert completed.seconds < 45


def test_command_that_itself_ends_with_124_is_not_late(run):
    log, _ = run(tests="exit 124")
    assert "late" not in log.words and log.words["end"] == "124"


def test_process_left_behind_does_not_hold_up_the_grading(run):
    log, completed = run(
        tests="setsid sleep 300 & (setsid sh -c 'trap \"\" TERM HUP; sleep 300' &) ; echo done"
    )
    assert "done" in log.text() and log.words["end"] == "0"
    assert completed.seconds < 30


def test_graded_code_that_kills_the_script_comes_to_no_good_end(run):
    log, _ = run(tests="kill -9 $PPID; kill -9 -1")
    assert "testing" in log.words and log.words.get("end") in (None, "137")


def test_script_that_is_written_over_while_it_runs_is_done_as_it_was(run):
    log, _ = run(
        tests="for f in run.sh tests.sh; do echo 'echo forged; exit 0' > /job/grading/$f; done\nexit 5"
    )
    assert log.words["end"] == "5" and "forged" not in log.text()


def test_test_patch_that_does_not_fit_is_told_apart(run):
    log, _ = run(test_patch=TEST_PATCH.replace(b" import cart", b" import shop"))
    assert "patch failed: tests/test_cart.py" in log.words["unfit"]


def test_locale_that_the_image_lacks_is_replaced(run):
    log, _ = run(tests="export LANG=xx_YY.UTF-8\npython3 -c 'print(\"\\u00e9\")'")
    assert "é" in log.text()


def test_hundred_megabytes_of_output_come_packed_and_are_cut(run):
    line = 'print(n, r.random(), "x" * 50)'
    noise = f"python3 -c 'import random; r = random.Random(1)\nfor n in range(1300000): {line}'"
    middle = "seq 400000; echo PASSED a::middle; seq 400000"
    log, completed = run(
        tests=f"echo PASSED a::first\n{noise}\n{middle}\necho PASSED a::last", timeout_s=60.0
    )
    assert log.words["end"] == "0" and not completed.truncated
    assert log.size > 20_000_000 and log.cut
    assert log.tests.stat().st_size < 7_000_000
    assert [line for line in log.text().split("\n") if "PASSED" in line][::2] == [
        "PASSED a::first",
        "PASSED a::last",
    ]
    assert "PASSED a::middle" in log.text()
