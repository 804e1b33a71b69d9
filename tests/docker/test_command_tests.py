"""Tests by a command in real sandboxes: every verdict, and what a patch may try."""

import asyncio
import shutil
from pathlib import Path

import pytest

from dgm.archive.repository import patch as patch_between
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.verification import verify
from dgm.domain import Entry, TaskId, Verdict
from dgm.errors import UserError
from dgm.sandboxes.choose import choose

pytestmark = pytest.mark.sandbox

HANDMADE = Path(__file__).parents[1] / "e2e" / "suites" / "handmade"
LABELS = {"dgm.run": "test-command-tests"}
TOTAL = TaskId("total-leaves-out-the-last")


@pytest.fixture(scope="module")
def engine():
    """Bubblewrap first: it starts ten times as fast."""
    for name in ("bubblewrap", "docker"):
        try:
            return choose(name)
        except UserError as error:
            reason = str(error)
    pytest.skip(reason)


@pytest.fixture
def made(engine, tmp_path):
    """The suite with one task's ``task.toml`` and tests changed."""

    def make(task=TOTAL, tests=None, **settings):
        folder = shutil.copytree(HANDMADE, tmp_path / "suite")
        file = folder / "tasks" / task / "task.toml"
        lines = "".join(f"{key} = {value}\n" for key, value in settings.items() if key != "test_timeout_s")
        above = f"test_timeout_s = {settings['test_timeout_s']}\n" if "test_timeout_s" in settings else ""
        file.write_text(above + file.read_text() + lines)
        if tests is not None:
            (folder / "tasks" / task / "tests" / "test.sh").write_text(tests)
        return SuiteBenchmark(folder, engine)

    return make


def changing(suite, task, files):
    """A patch that gives files this content."""
    before = suite.workspace(task)
    return patch_between(before, before | {name: Entry(text.encode()) for name, text in files.items()})


def graded(suite, task, patch):
    grade = asyncio.run(suite.grade(task, patch, LABELS))
    return grade.verdict, grade.reason


def test_crlf_binary_renamed_and_executable_files_arrive_as_they_were(made):
    check = "set -e\ntest -x run.sh\ntest ! -e total.sh\ncmp b.bin <(printf \"\\000\\377\")\ngrep -q $'a\\r' crlf.txt\n"
    suite = made(tests=check)
    before = dict(suite.workspace(TOTAL))
    after = {
        "run.sh": Entry(before["total.sh"].data, 0o100755),
        "b.bin": Entry(b"\x00\xff"),
        "crlf.txt": Entry(b"a\r\nb\r\n"),
    }
    assert graded(suite, TOTAL, patch_between(before, after)) == (Verdict.RESOLVED, "the tests pass")


def test_tests_that_flood_are_cut_and_judged(made):
    suite = made(tests="head -c 30000000 /dev/zero | tr '\\0' x\nexit 0\n")
    grade = asyncio.run(suite.grade(TOTAL, changing(suite, TOTAL, {"total.sh": "echo 6\n"}), LABELS))
    assert grade.verdict is Verdict.RESOLVED
    assert len(grade.log) <= 60_000


def test_graded_code_cannot_look_into_its_watcher(made):
    look = "import os; w = open(f'/proc/{os.getppid()}/stat').read().split()[3]; open(f'/proc/{w}/mem', 'rb')"
    suite = made(tests="python3 total.py 2>&1 | grep -q PermissionError\n")
    assert graded(suite, TOTAL, changing(suite, TOTAL, {"total.py": look}))[0] is Verdict.RESOLVED


def test_files_that_configure_the_examination_are_put_back(made):
    check = "set -e\ntest ! -e conftest.py\ntest ! -e lib/sitecustomize.py\ntest ! -e usercustomize\nsh total.sh\n"
    suite = made(tests=check)
    added = {"conftest.py": "import os\n", "lib/sitecustomize.py": "x\n", "usercustomize/__init__.py": "x\n"}
    patch = changing(suite, TOTAL, {**added, "total.sh": "exit 0\n"})
    assert b"conftest.py" in patch
    assert graded(suite, TOTAL, patch) == (Verdict.RESOLVED, "the tests pass")


def test_modules_that_would_shadow_a_runner_or_pythons_own_are_gone(made):
    names = ("pytest.py", "json.py", "unittest/__init__.py", "pluggy.so", "_pytest", "nose/__init__.py")
    gone = "".join(f"test ! -e {name}\n" for name in names)
    kept = "".join(f"test -e {name}\n" for name in ("types/shop.ts", "calendar.sh", "src/json.py", "mine.py"))
    suite = made(tests=f"set -e\n{gone}{kept}sh total.sh\n")
    stay = dict.fromkeys(("types/shop.ts", "calendar.sh", "src/json.py", "mine.py", "src/__init__.py"), "x\n")
    before = suite.workspace(TOTAL)
    after = before | {name: Entry(b"x\n") for name in (*names, *stay) if name != "_pytest"}
    after |= {"_pytest": Entry(b"src", 0o120000), "total.sh": Entry(b"exit 0\n")}
    assert graded(suite, TOTAL, patch_between(before, after)) == (Verdict.RESOLVED, "the tests pass")


def test_modules_that_were_there_before_are_the_patch_s_to_change(made, tmp_path):
    suite = made(tests='test "$(cat statistics.py)" = mended\n')
    (tmp_path / "suite" / "tasks" / TOTAL / "workspace" / "statistics.py").write_text("broken\n")
    patch = changing(suite, TOTAL, {"statistics.py": "mended\n"})
    assert graded(suite, TOTAL, patch) == (Verdict.RESOLVED, "the tests pass")


def test_restored_files_are_as_the_agent_got_them(made):
    suite = made(tests="grep -q number total.sh\n", restored='["total.sh"]')
    assert graded(suite, TOTAL, changing(suite, TOTAL, {"total.sh": "echo\n"})) == (
        Verdict.RESOLVED,
        "the tests pass",
    )


def test_graded_code_cannot_write_to_the_tests(made):
    suite = made(tests="sh total.sh\ntest ! -e /tests/new && grep -q total /tests/test.sh\n")
    patch = changing(suite, TOTAL, {"total.sh": "echo > /tests/test.sh; echo > /tests/new\n"})
    assert graded(suite, TOTAL, patch) == (Verdict.RESOLVED, "the tests pass")


def test_variables_reach_the_tests(made):
    suite = made(tests='test "$LEVEL" = 3 && test "$TEST_DIR" = /tests\n', env='{ LEVEL = "3" }')
    assert graded(suite, TOTAL, changing(suite, TOTAL, {"total.sh": "x\n"}))[0] is Verdict.RESOLVED


def test_solution_that_fails_is_told(made, tmp_path):
    suite = made()
    (tmp_path / "suite" / "tasks" / TOTAL / "solution" / "solve.sh").write_text("echo no luck\nexit 4\n")
    with pytest.raises(UserError, match=r"solve\.sh ends with exit status 4: no luck"):
        asyncio.run(verify(suite, TOTAL, LABELS))
