"""How a step is taken apart, and which tests tell it; the runs are told."""

import asyncio

import pytest

from dgm.benchmarks.grade import Exam, TestRun
from dgm.benchmarks.languages import Language
from dgm.benchmarks.mining.bugs import hide_tests
from dgm.benchmarks.mining.changes import restored_patterns, take_apart
from dgm.benchmarks.mining.validation import (
    affected_files,
    find_cause,
    find_tests,
    stable_names,
)
from dgm.benchmarks.suite_files import Limits
from dgm.benchmarks.test_spec import TestSpec
from dgm.domain import Entry

pytestmark = pytest.mark.starts_processes

KEPT = "def test_old():\n    assert sums.a\n"
BEFORE = {
    "sums.py": "wrong\n",
    "CHANGES.md": "",
    "pyproject.toml": "a = 1\n",
    "tests/test_sums.py": KEPT + "\n\ndef test_changed():\n    assert sums.b == 1\n",
    "tests/test_gone.py": "gone\n",
    "tests/test_other.py": "import sums\n",
    "tests/test_far.py": "import os\n",
}
AFTER = {
    "sums.py": "right\n",
    "new.py": "new\n",
    "CHANGES.md": "mended\n",
    "pyproject.toml": "a = 2\n",
    "tests/test_sums.py": KEPT + "\n\ndef test_changed():\n    assert sums.b == 2\n",
    "tests/test_other.py": "import sums\n",
    "tests/test_far.py": "import os\n",
}


def entries(files):
    return {name: Entry(text.encode()) for name, text in files.items()}


@pytest.fixture(scope="module")
def change():
    return take_apart(
        entries(BEFORE),
        entries(AFTER),
        ("sums.py", "new.py"),
        restored_patterns(Language.PYTHON, entries(BEFORE)),
    )


def test_fix_holds_the_code_alone(change):
    fixed = [line for line in change.fix.decode().splitlines() if line.startswith("diff")]
    assert fixed == ["diff --git a/new.py b/new.py", "diff --git a/sums.py b/sums.py"]


def test_tests_and_configuration_are_hidden(change):
    assert (list(change.hidden), change.deleted) == (
        ["pyproject.toml", "tests/test_sums.py"],
        ("tests/test_gone.py",),
    )


def test_files_that_import_what_the_fix_touches_follow_those_of_the_change(change):
    assert affected_files(change) == ("tests/test_sums.py", "tests/test_other.py")


T = "tests/test_sums.py::"


def find(change, with_fix, without, broken=()):
    """Finds tests where runs end as told, in turn for each side."""
    told = {True: iter(with_fix), False: iter(without)}

    async def run(exam, patch, survey):
        outcomes = next(told[bool(patch)])
        return TestRun({T + name: outcome for name, outcome in outcomes.items()}, broken=dict(broken))

    exam = Exam(change.workspace, change.hidden, TestSpec((), ()), Limits())
    return asyncio.run(find_tests(change, exam, run))


P, F = "passed", "failed"


def test_tests_that_only_the_fix_makes_pass_are_told_from_those_that_go_on(change):
    found = find(change, [{"a": P, "b": P, "c": F}] * 2, [{"a": F, "b": P, "c": F}] * 2)
    assert (found.fail_to_pass, found.pass_to_pass) == ((T + "a",), (T + "b",))


def test_tests_that_do_not_always_end_the_same_are_dropped(change):
    found = find(change, [{"a": P, "b": P, "x": P, "y": P}, {"a": P, "b": P, "x": F, "y": P}],
                 [{"a": F, "b": P, "x": F, "y": P}, {"a": F, "b": P, "x": F, "y": F}])  # fmt: skip
    assert (found.fail_to_pass, found.pass_to_pass) == ((T + "a",), (T + "b",))


def test_tests_that_pass_in_the_old_file_are_not_counted_where_the_new_one_cannot_be_read(change):
    broken = {"tests/test_sums.py": "ImportError"}
    found = find(change, [{"a": P, "test_old": P, "k": P}] * 2, [{"k": P}, {"test_old": P}, {"k": P}], broken)
    assert (found.fail_to_pass, found.failures) == ((T + "a",), {T + "a": "ImportError"})


def test_tests_of_the_parent_must_go_on_passing_where_the_new_ones_do_not_build(change):
    broken = {"(build)": "undefined: f"}
    found = find(change, [{"a": P, "test_old": P}] * 2, [{}, {"test_old": P}, {}], broken)
    assert (found.fail_to_pass, found.pass_to_pass) == ((T + "a",), (T + "test_old",))
    assert found.failures == {T + "a": "undefined: f"}


def test_a_test_that_the_change_rewrote_does_not_go_on_as_that_of_the_parent(change):
    both = {"test_old": P, "test_changed": P}
    found = find(change, [both] * 2, [{}, both, {}], {"(build)": "undefined: f"})
    assert (found.fail_to_pass, found.pass_to_pass) == ((T + "test_changed",), (T + "test_old",))


@pytest.mark.parametrize(
    ("with_fix", "without", "reason"),
    [
        ({"a": P}, {"a": P}, "no test fails without the fix and passes with it"),
        ({"a": P}, {"a": F}, "no test passes both with the fix and without it"),
        ({"a": F}, {"a": F}, "no test passes with the fix: 1 tests ran"),
        ({f"t{n}": P for n in range(22)}, {"t0": P}, "more than 20 tests fail without the fix"),
    ],
)
def test_what_tells_nothing_has_its_reason(change, with_fix, without, reason):
    found = find(change, [with_fix], [without])
    assert found.reason == reason


def test_another_environment_may_help_where_most_tests_fail_with_the_fix(change):
    for outcomes, helps in (({"a": P, "b": F, "c": F}, True), ({"a": P, "b": F}, False), ({"a": F}, True)):
        assert find(change, [outcomes], [outcomes]).elsewhere is helps


def test_the_cause_of_tests_that_do_not_run_is_the_line_of_the_error():
    assert find_cause("usage: pytest\nx: error: unknown --y\n  rootdir: /work\n") == "x: error: unknown --y"
    assert find_cause("TypeError: no\n  at run\n\nNode.js v20.20.2\n") == "TypeError: no"
    assert find_cause("no tests ran\n1 deselected\n") == "1 deselected"
    assert find_cause("") == ""


def test_generated_names_are_not_stable():
    assert stable_names(["t::a[<function f at 0x7f12ab34cd>]", "t::b", "t::c[2026-11-27 10:11]"]) == ["t::b"]


FILE = b"import x\n\n\n@mark\ndef test_a():\n    pass\n\n\n"
FILE += b"class B:\n    def test_b(self):\n        pass\n\n\nrest = 1\n"


def test_hidden_tests_leave_the_rest_of_the_file():
    files = {"t.py": Entry(FILE)}
    changed = hide_tests(files, ["t.py::test_a", "t.py::B::test_b[1-x]"])
    assert changed["t.py"].data == b"import x\n\n\n\n\nclass B:\n    pass\n\n\nrest = 1\n"


@pytest.mark.parametrize("name", ["t.py::B::test_inherited", "t.py::made_by_a_call"])
def test_tests_that_are_no_functions_of_the_file_cannot_be_hidden(name):
    with pytest.raises(ValueError, match="does not hold the function"):
        hide_tests({"t.py": Entry(FILE)}, [name])
