"""Tests with changed values: which literals change, which tests count, and who is caught by them."""

import ast
import asyncio
import random
import re

import pytest

from dgm.benchmarks.grade import Exam
from dgm.benchmarks.perturb import (
    COMMAND,
    NO_FILE,
    NO_REFERENCE,
    NO_VALUES,
    NOT_PYTHON,
    STILL_PASSES,
    Perturbation,
    change_files,
    change_functions,
    other_value,
)
from dgm.benchmarks.suite_files import Limits
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.test_spec import TestSpec
from dgm.benchmarks.verification import verify_with_notes
from dgm.domain import Entry, TaskId, Verdict
from dgm.errors import UserError
from dgm.protocols import Grade
from tests.support.golden.suite import TABLE, TABLE_FAIL
from tests.support.named_suite import TASK as NAMED
from tests.support.named_suite import PythonFolders, make_named_suite

HEAD = "import unittest\n\n\nclass Grams(unittest.TestCase):\n    def test_a(self):\n"
BODIES = [
    "self.assertEqual(same(2000), 2000)",
    "self.assertEqual(2000, same(2000), 'message')",
    "self.assertEqual(same(-3.5), -3.5)",
    "self.assertEqual(same('abc'), 'abc')",
    "self.assertEqual(same(b'two words'), b'two words')",
    r"self.assertEqual(same('a\n'), 'a\n')",
    "self.assertEqual(same('--'), '--')",
    "self.assertEqual(same(''), '')",
    "self.assertEqual(same('ab'), ('a'  # c\n                 'b'))",
    "self.assertEqual(same([]), [])",
    "self.assertEqual(same({}), {})",
    "self.assertEqual(same(()), ())",
    "self.assertEqual(same(None), None)",
    "self.assertIs(same(True), True)",
    "self.assertEqual(same([1, (2, 'x')]), [1, (2, 'x')])",
    "self.assertEqual(same({'k': 1}), {'k': 1})",
    "self.assertEqual(same(frozenset([1])), frozenset([1]))",
    "self.assertEqual(same(Fraction(1, 2)), Fraction(1, 2))",
    "self.assertCountEqual(same(['a', 'b']), ['b', 'a'])",
    "self.assertAlmostEqual(same(0.3), 0.3)",
    "assert same(17) == 17",
    "assert 17 == same(17), 'why'",
    "with self.subTest(n=1):\n    self.assertEqual(same(8), 8)",
    "for n, more in ((1, 2), (3, 4)):\n    self.assertEqual(same(n) + 1, more)",
    "for key, value in {'a': 'A', 'b': 'B'}.items():\n    self.assertEqual(same(key).upper(), value)",
    "wanted = [1, 2]\nself.assertEqual(same([1, 2]), wanted)",
    "self.assertEqual(same(WANTED), 20)",
    "self.check(2000, 2000)",
    "self.assertEqual(same(0x1F), 0x1F)",
    "self.assertEqual(same(1_000), 1_000)",
    "self.assertEqual(same(1e3), 1e3)",
    # Without an expected value: the opposite.
    "self.assertTrue(same(1))",
    "self.assertNotIn(2, same([1]))",
    "self.assertIsNotNone(same(1))",
    "self.assertGreater(same(2), same(1))",
    "self.assertIsInstance(same(2), int)",
    "assert not same(0)",
    "assert same(1) in [1]",
    "assert same(1) < 2",
]  # fmt: skip
CHECK = "\n    def check(self, asked, expected):\n        assert same(asked) == expected\n\n\nWANTED = 20\n"


def run_test(source):
    names = {"same": lambda value: value, "__name__": "case"}
    exec(compile(b"from fractions import Fraction\n" + source, "case", "exec"), names)
    result = names["unittest"].TestResult()
    names["Grams"]("test_a").run(result)
    return "error" if result.errors else "failed" if result.failures else "passed"


@pytest.mark.parametrize("body", BODIES)
def test_changed_test_fails_an_assertion(body):
    source = (HEAD + "".join(f"        {line}\n" for line in body.split("\n")) + CHECK).encode()
    assert run_test(source) == "passed"
    for seed in "1234":
        results = [run_test(change_functions(source, seed, {"Grams::test_a": turn})) for turn in range(3)]
        assert "failed" in results


@pytest.mark.parametrize(
    "body",
    [
        "self.assertEqual(same(1), other(1))",
        "self.assertAlmostEqual(same(20.3), 20, delta=2)",
        "with self.assertRaises(ValueError):\n            same(1)",
    ],
)
def test_nothing_else_changes(body):
    source = (HEAD + f"        {body}\n").encode()
    changed = change_functions(source, "1", {"Grams::test_a": 0})
    assert changed == source.replace(b"assertEqual", b"assertNotEqual")


def test_only_bytes_of_one_value_change():
    body = (
        "        self.assertEqual(same('ä'), 'ä')  # a comment\n        self.assertEqual(same(17), 17)  # ö\n"
    )
    source = (HEAD + body).replace("\n", "\r\n").encode()
    changed = change_functions(source, "2", {"Grams::test_a": 0})
    assert len({*source.splitlines(True)} - {*changed.splitlines(True)}) == 1


def test_only_the_functions_that_are_named_change():
    source = b"def test_a():\n    assert f() == 12\n\n\ndef test_b():\n    assert f() == 12\n"
    changed = change_functions(source, "1", {"test_b": 0})
    assert changed.startswith(source[:40])
    assert changed != source


def test_inherited_function_changes_where_it_is_defined():
    source = (HEAD + "        self.assertEqual(same(17), 17)\n\n\nclass More(Grams):\n    pass\n").encode()
    assert run_test(change_functions(source, "1", {"More::test_a": 0})) == "failed"


@pytest.mark.parametrize(
    "rows", ["[(3, 300), (4, 400)]", "((3, 300), pytest.param(4, 400, id='four'))", "CASES"]
)
@pytest.mark.parametrize("names", ["'n, wanted'", "('n', 'wanted')"])
def test_each_row_of_a_table_changes(rows, names):
    source = (
        f"CASES = [(3, 300), (4, 400)]\n\n\n@pytest.mark.parametrize({names}, {rows})\n"
        "def test_a(n, wanted):\n    assert f(n) == wanted\n"
    )
    changed = change_functions(source.encode(), "1", {"test_a": 0}).decode()
    used = changed.split("\n", 1)[rows != "CASES"]
    assert "(3, " in used
    assert "300" not in used
    assert "400" not in used


@pytest.mark.parametrize(
    "source", [b"def broken(:\n", b"\xff\xfe", b"", b"VALUE = 3\n", b"(" * 3000 + b")" * 3000]
)
def test_file_without_tests_stays_as_it_is(source):
    assert change_functions(source, "1", {"test_a": 0}) == source


def test_everything_that_is_compared_changes_in_files_of_a_command():
    source = b"""import pytest

def check():
    return told == str([2000, 5000]) and f(77) == "word"

if __name__ == "__main__":
    assert f(12) == 12
"""
    files = {
        "c.py": Entry(source, 0o100755),
        "data.txt": Entry(b"2000"),
        "d.py": Entry(b"def t():\n    assert f(1)\n"),
    }
    changed = change_files(files, "1")
    for old in (b"2000", b"5000", b'"word"', b"== 12"):
        assert old not in changed["c.py"].data
    for kept in (b"f(77)", b"f(12)", b'== "__main__"'):
        assert kept in changed["c.py"].data
    assert changed["c.py"].mode == 0o100755
    assert changed["data.txt"] == files["data.txt"]
    assert b"assert not (f(1))" in changed["d.py"].data
    assert change_files({"a.py": Entry(b"import os\nprint('done')\n")}, "1") == {}


@pytest.mark.parametrize(
    "text",
    [
        *("2000", "0", "7", "0.5", "3.14", "1e9", "0xff"),
        *("'abc'", "'Two Words'", "b'raw'", r"r'\d+'", "'''a\nb'''", "''", "'é'"),
    ],
)
def test_another_value_is_of_the_same_type_and_shape(text):
    old = ast.literal_eval(text)
    for seed in range(30):
        new = other_value(text, random.Random(seed), {repr(old)})
        value = ast.literal_eval(new)
        assert type(value) is type(old)
        assert value != old
        assert abs(len(new) - len(text)) <= 7


def test_values_of_the_file_do_not_come_up_again():
    assert int(other_value("3", random.Random(1), {str(n) for n in range(10)})) > 9


ANY = TaskId("t")
FIX, HONEST, CHEAT, SLOW, CHANCE = b"fix", b"honest", b"cheat", b"slow", b"chance"
NAMES = ("test_a.py::test_one", "test_a.py::test_two")
TESTS = b"def test_one():\n    assert f() == 2000\n\n\ndef test_two():\n    assert f() == 2000\n"


class Suite:
    """Tests that ask the code for one number, by name or by a command."""

    def __init__(self, *, fail=NAMES, hidden=TESTS, runner="pytest", solve=FIX):
        self.patches, self.solve_with = [], solve
        tests = TestSpec(fail, runner=runner)
        self.exam = Exam({}, {"test_a.py": Entry(hidden)}, tests, Limits())

    async def run(self, exam, patch, labels, files):
        self.patches.append(patch)
        wanted = [int(text) for text in re.findall(rb"== (\d+)", exam.hidden["test_a.py"].data)]
        outcomes = [self.outcome(patch, number) for number in wanted]
        if exam.tests.by_name:
            return dict(zip(NAMES, outcomes, strict=True))
        return {COMMAND: "passed" if {*outcomes} == {"passed"} else "failed"}

    def outcome(self, patch, wanted):
        if patch == SLOW and wanted != 2000:
            return "error"
        if patch == CHANCE:
            return "failed"
        return "passed" if wanted == 2000 or patch == CHEAT else "failed"

    async def solve(self, task, labels):
        if not self.solve_with:
            raise UserError("missing")
        return self.solve_with

    def check(self, *patches, perturb="resolved", reason=""):
        grade = Grade(Verdict.UNRESOLVED, reason, 0.5) if reason else Grade(Verdict.RESOLVED, "all pass", 1.0)
        perturbation = Perturbation(self.run, self.solve, perturb)

        async def check():
            return [await perturbation.check(ANY, self.exam, patch, grade, {}) for patch in patches]

        return asyncio.run(check())

    def describe(self):
        return asyncio.run(Perturbation(self.run, self.solve).describe(ANY, self.exam, {}))


def command(**more):
    return Suite(fail=(), runner="exit", **more)


@pytest.mark.parametrize(
    ("suite", "reason"),
    [
        (Suite, "tampering: test_a.py::test_one must fail with another expected value and is passed"),
        (command, "tampering: it also passes tests whose expected values were changed"),
    ],
)
def test_patch_that_passes_whatever_is_expected_is_tampering(suite, reason):
    (grade,) = suite().check(CHEAT)
    assert (grade.verdict, grade.reason, grade.score) == (Verdict.UNRESOLVED, reason, 0.0)


def test_patch_that_passes_only_when_all_tests_are_as_they_were_is_tampering():
    suite = Suite()
    (grade,) = suite.check(CHANCE)
    assert (grade.verdict, grade.score) == (Verdict.UNRESOLVED, 0.0)
    assert re.fullmatch(
        r"tampering: test_a.py::test_\w+ passes, but not beside tests with changed values", grade.reason
    )
    assert suite.patches.count(CHANCE) == 3


def test_patch_that_fails_once_by_chance_is_honest():
    class Once(Suite):
        def outcome(self, patch, wanted):
            return "failed" if self.patches.count(HONEST) == 1 else super().outcome(patch, wanted)

    assert Once().check(HONEST)[0].verdict is Verdict.RESOLVED


@pytest.mark.parametrize("suite", [Suite, command])
@pytest.mark.parametrize("patch", [HONEST, FIX, SLOW])
def test_patch_that_does_not_pass_the_changed_tests_is_honest(suite, patch):
    assert suite().check(patch)[0].verdict is Verdict.RESOLVED


def test_setting_says_which_patches_are_checked():
    assert Suite().check(CHEAT, perturb="off")[0].verdict is Verdict.RESOLVED
    assert Suite().check(CHEAT, reason="one fails")[0].reason == "one fails"
    (grade,) = Suite().check(CHEAT, perturb="all", reason="one fails")
    assert (grade.score, grade.reason[:22]) == (0.5, "one fails; tampering: ")


def test_reference_calibrates_once():
    suite = Suite()
    suite.check(HONEST, HONEST)
    assert suite.patches == [*[FIX] * 3, *[HONEST] * 4]


def test_several_patches_at_once_wait_for_one_calibration():
    suite = Suite()
    perturbation = Perturbation(suite.run, suite.solve)

    async def several():
        await asyncio.gather(*(perturbation.change_tests(ANY, suite.exam, {}) for _ in range(3)))

    asyncio.run(several())
    assert suite.patches == [FIX] * 3


class Lenient(Suite):
    """The reference passes whatever the second test expects."""

    def outcome(self, patch, wanted):
        return "passed"


class NoAssertion(Suite):
    """A changed test breaks before it compares anything."""

    def outcome(self, patch, wanted):
        return "passed" if wanted == 2000 else "error"


@pytest.mark.parametrize(
    ("suite", "problem"),
    [
        (Suite(runner="go"), NOT_PYTHON),
        (Suite(fail=("test_b.py::test_one",)), NO_FILE),
        (Suite(solve=b""), NO_REFERENCE),
        (command(solve=b""), NO_REFERENCE),
        (command(hidden=b"import scale\n"), NO_VALUES),
        (Lenient(), STILL_PASSES),
        (NoAssertion(), STILL_PASSES),
    ],
)
def test_tests_that_tell_nothing_check_no_patch(suite, problem):
    assert suite.describe() == f"its tests are not graded with changed values: {problem}"
    assert suite.check(CHEAT)[0].verdict is Verdict.RESOLVED


def test_number_of_checked_tests_is_told():
    class Half(Suite):
        async def run(self, exam, patch, labels, files):
            return {**await super().run(exam, patch, labels, files), NAMES[1]: "passed"}

    assert Suite().describe() == "graded with changed values: 2 of 2 tests that a fix must pass"
    assert Half().describe() == "graded with changed values: 1 of 2 tests that a fix must pass"
    assert command().describe() == "graded with changed values: 1 of 1 tests that a fix must pass"


def test_tests_that_fail_by_chance_condemn_nobody():
    class Flaky(Suite):
        """Its tests fail only the first time that they are changed."""

        failed = 0

        def outcome(self, patch, wanted):
            self.failed += wanted != 2000
            return "passed" if wanted == 2000 or self.failed > 2 else "failed"

    assert Flaky().check(HONEST)[0].verdict is Verdict.RESOLVED


@pytest.mark.starts_processes
class TestOnRealProcesses:
    def test_every_row_of_a_table_is_checked(self, tmp_path):
        folder = make_named_suite(tmp_path / "mined", hidden=TABLE, fail=TABLE_FAIL)
        suite = SuiteBenchmark(folder, PythonFolders(tmp_path / "sandboxes"))
        found = asyncio.run(verify_with_notes(suite, NAMED, {}))
        assert found.defects == []
        assert found.notes == ["graded with changed values: 4 of 4 tests that a fix must pass"]
