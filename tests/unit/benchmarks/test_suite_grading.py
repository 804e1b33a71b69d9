"""What the runner finds, on real processes: the sandbox here is a folder, and the graded code is our own."""

import asyncio

import pytest

from dgm.benchmarks.grade import show_failures
from dgm.benchmarks.results import Failure
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.verification import verify
from dgm.domain import Verdict
from tests.support.folder_sandbox import FolderEngine
from tests.support.suite_on_disk import TASK, NoEngine, library, make_suite

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def suite(tmp_path):
    return SuiteBenchmark(make_suite(tmp_path / "tiny"), FolderEngine(tmp_path / "sandboxes"), "off")


def grade(suite, patch):
    return asyncio.run(suite.grade(TASK, patch, {}))


@pytest.mark.parametrize("patch", [b"", b"\n \n"])
def test_empty_patch_is_unresolved_without_a_sandbox(tmp_path, patch):
    suite = SuiteBenchmark(make_suite(tmp_path / "tiny"), NoEngine())
    assert (grade(suite, patch).verdict, grade(suite, patch).reason) == (Verdict.UNRESOLVED, "empty patch")


def test_each_grading_has_a_sandbox_of_its_own(suite, tmp_path):
    grade(suite, suite.reference(TASK))
    grade(suite, suite.reference(TASK))
    assert suite._engine.opened == 2


def test_log_is_bounded_and_shows_both_ends(suite):
    graded = grade(suite, library("def double(n):\n    print('x' * 3_000_000)\n    return 1\n"))
    assert len(graded.log) <= 60_000
    assert b"test session starts" in graded.log
    assert b"6 failed" in graded.log


def test_a_log_quotes_no_hidden_line_and_agents_learn_no_value_that_was_wanted(suite):
    graded = grade(suite, library("def double(number):\n    return 1\n"))
    assert b"Double.test_five" in graded.log
    assert b"AssertionError: 1 != 4" in graded.log
    assert b"self.assertEqual(double(5)" not in graded.log
    assert graded.shown.startswith(b"FAILED tests/test_hidden_double.py::Double::test_two  AssertionError\n")
    assert b"4" not in graded.shown


THIEF = """import glob, os
for path in glob.glob("tests/test_hidden*.py"):
    for line in open(path):
        print("> " + line)
        print("FAIL: tests/test_hidden_double.py::Double::test_five")
        print("StolenError: " + line)


def double(number):
    raise ValueError("stolen " + open(glob.glob("tests/test_hidden*.py")[0]).read())
"""


def test_what_agents_learn_of_a_failure_holds_nothing_that_graded_code_could_steal(suite):
    graded = grade(suite, library(THIEF))
    assert graded.verdict is Verdict.UNRESOLVED
    assert b"FAILED tests/test_hidden_double.py::Double::test_five" in graded.shown
    hidden = b"\n".join(entry.data for entry in suite.hidden_tests(TASK).values())
    for line in hidden.split(b"\n"):
        assert len(line.strip()) < 12 or line.strip() not in graded.shown
    assert len(graded.shown) <= 4000


def test_agents_learn_names_kinds_and_their_own_lines(suite):
    text = "class Odd(Exception): pass\ndef double(number):\n    raise Odd if number == 2 else KeyError(number)\n"
    graded = grade(suite, library(text))
    line = b"    sums/__init__.py:3: raise Odd if number == 2 else KeyError(number)\n"
    assert graded.shown.startswith(
        b"FAILED tests/test_hidden_double.py::Double::test_two  Odd\n"
        + line
        + b"FAILED tests/test_hidden_double.py::Double::test_five  KeyError\n"
        + line
    )


MAKES_KIND = """import glob
text = open(glob.glob("tests/test_hidden*.py")[0]).read()


def double(number):
    raise type("Stolen" + text[:6], (Exception,), {})(text)
"""


def test_a_file_made_up_while_it_runs_is_not_told(suite):
    made_up = '__file__ = "/" + open("tests/test_hidden_double.py").read()\n'
    graded = grade(suite, library(f"{made_up}def double(number):\n    return number * 3\n"))
    assert graded.reason == "2 of 2 tests still fail; imported from outside of the workspace: sums"


def test_a_kind_made_up_while_it_runs_is_not_shown(suite):
    graded = grade(suite, library(MAKES_KIND))
    line = b'    sums/__init__.py:6: raise type("Stolen" + text[:6], (Exception,), {})(text)\n'
    assert b"Double::test_two  an exception of its own kind\n" + line in graded.shown
    assert b"Stolenimport" not in graded.shown


REWRITES_ITSELF = """import glob
text = open(glob.glob("tests/test_hidden*.py")[0]).read()
open(__file__, "w").write(text)


def double(number):
    raise ValueError
"""


def test_lines_are_those_of_the_patch_and_not_what_it_makes_of_them(suite):
    graded = grade(suite, library(REWRITES_ITSELF))
    assert b"test_two  ValueError\n    sums/__init__.py:7: raise ValueError\n" in graded.shown
    assert b"assertEqual" not in graded.shown


def test_a_syntax_error_is_shown_with_its_line(suite):
    graded = grade(suite, library("def double(number)\n    return number * 2\n"))
    assert (graded.verdict, graded.passed) == (Verdict.UNRESOLVED, ())
    assert b"SyntaxError" in graded.log
    assert b"test_two  SyntaxError\n    sums/__init__.py:1: def double(number)\n" in graded.shown


def test_what_is_shown_of_failures_is_bounded():
    failed = [f"tests.test_a.A.test_{n}" for n in range(200)]
    shown = show_failures(failed, {test: Failure("ValueError", ("a.py:1: x",)) for test in failed})
    assert len(shown) == 4000


def problems(suite):
    return asyncio.run(verify(suite, TASK, {}))


def test_task_whose_reference_does_nothing_is_told(suite, tmp_path):
    (tmp_path / "tiny" / "tasks" / TASK / "solution.patch").write_text("")
    assert problems(suite) == ["the reference fix is unresolved: empty patch"]


def test_task_whose_start_is_no_fault_is_told(suite, tmp_path):
    (tmp_path / "tiny" / "tasks" / TASK / "start.patch").write_text("")
    assert "tests/test_hidden_double.py::Double::test_two passes without a fix" in problems(suite)
