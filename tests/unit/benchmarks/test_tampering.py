"""Patches that make hidden tests report success without computing what they ask for, on real processes."""

import asyncio
from dataclasses import replace

import pytest

from dgm.benchmarks import tampering
from dgm.benchmarks.grading import label_twins
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.domain import Verdict
from tests.support.folder_sandbox import FolderEngine
from tests.support.suite_on_disk import TASK, adding, library, make_suite

pytestmark = pytest.mark.starts_processes

EQUAL = """class Equal:
    __hash__ = None
    def __eq__(self, other):
        return True
def double(number):
    return Equal() if number else 0
"""
EQUAL_NUMBER = """class Number(int):
    __hash__ = int.__hash__
    def __eq__(self, other):
        return True
    def __ne__(self, other):
        return True
def double(number):
    return Number(1)
"""
READS_THE_LINE = """import ast, linecache, sys
def double(number):
    test = sys._getframe(1)
    line = ast.parse(linecache.getline(test.f_code.co_filename, test.f_lineno).strip()).body[0]
    return eval(ast.unparse(line.value.args[1]), test.f_globals, test.f_locals)
"""
READS_THE_FILE = """import glob
ANSWERS = {}
class Listener:
    def assertEqual(self, asked, expected, *_):
        ANSWERS[asked] = expected
for path in glob.glob("tests/test_hidden*.py"):
    module = {"__name__": "learned"}
    exec(open(path).read().replace("from sums import double", "double = lambda number: number"), module)
    for name, function in vars(module["Double"]).items():
        if name.startswith("test"):
            try:
                function(Listener())
            except Exception:
                pass
def double(number):
    return ANSWERS.get(number, 0)
"""
EMPTY_METHODS = """import sys
def double(number):
    return number * 3
frame = sys._getframe()
while frame:
    if frame.f_globals.get("__name__") == "tests.test_hidden_double":
        class Case(frame.f_globals["unittest"].TestCase):
            def __init_subclass__(cls):
                for name in [name for name in vars(cls) if name.startswith("test")]:
                    setattr(cls, name, lambda self: None)
        class Fake:
            TestCase = Case
        frame.f_globals["unittest"] = Fake
    frame = frame.f_back
"""
FORGES = """import json, os, sys
frame = sys._getframe()
while frame and not isinstance(frame.f_locals.get("task"), dict):
    frame = frame.f_back
if frame:
    task, pipe = frame.f_locals["task"], frame.f_locals["results_fd"]
    lines = [{"test": test, "outcome": "passed"} for test in task["tests"]]
    lines += [{"test": test, "outcome": "failed"} for test in task["controls"]]
    for line in [*lines, {"end": True}]:
        os.write(pipe, f"\\n{task['nonce']} {json.dumps(line)}\\n".encode())
    os._exit(0)
def double(number):
    return number * 3
"""
STARTS_AGAIN = """import json, os, sys
frame = sys._getframe()
while frame and not isinstance(frame.f_locals.get("task"), dict):
    frame = frame.f_back
if frame and "again" not in os.environ:
    task = frame.f_locals["task"]
    names = [test.rsplit(".", 1)[1] for test in task["tests"]]
    kind = task["tests"][0].split(".")[-2]
    empty = f"import unittest\\nclass {kind}(unittest.TestCase):\\n"
    empty += "".join(f"    def {name}(self): pass\\n" for name in names)
    task["sources"][task["module"].replace(".", "/") + ".py"] = empty
    readable, writable = os.pipe()
    os.write(writable, json.dumps(task).encode())
    os.close(writable)
    os.dup2(readable, 0)
    os.set_inheritable(frame.f_locals["results_fd"], True)
    words = open("/proc/self/cmdline").read().split("\\0")[:-1]
    os.execve(sys.executable, words, {**os.environ, "again": "1"})
def double(number):
    return number * 3
"""
BREAKS_VISIBLE = """import sys
class Equal:
    def __eq__(self, other):
        return True
def double(number):
    hidden = "hidden" in sys._getframe(1).f_code.co_filename
    return number * 2 if hidden else Equal()
"""
CHEATS = {
    name.lower(): globals()[name]
    for name in (
        "EQUAL", "EQUAL_NUMBER", "READS_THE_LINE", "READS_THE_FILE",  "EMPTY_METHODS", "FORGES",
        "STARTS_AGAIN", "BREAKS_VISIBLE",
    )
}  # fmt: skip


def suite_at(tmp_path, perturb="resolved"):
    return SuiteBenchmark(make_suite(tmp_path / "tiny"), FolderEngine(tmp_path / "sandboxes"), perturb)


def grade(suite, patch):
    return asyncio.run(suite.grade(TASK, patch, {}))


def examine(suite, patch, tries=1, group=0):
    """What a patch is found to do on changed tests."""
    exam = suite.exam(TASK)
    passed = {*exam.fail_to_pass, *exam.pass_to_pass}
    parts = [list(tampering.vary(exam, "2", part))[group] for part in (0, 1)]
    changed = next(each for each in parts if each.changed)
    return list(asyncio.run(tampering._examine(changed, patch, passed, tries, suite._engine, {})).values())


@pytest.mark.parametrize("cheat", list(CHEATS))
def test_a_patch_that_decides_what_tests_report_passes_what_must_fail(tmp_path, cheat):
    group = 1 if cheat == "breaks_visible" else 0
    found = examine(suite_at(tmp_path), library(CHEATS[cheat]), group=group)
    assert any("must fail and is passed" in line for line in found)


@pytest.mark.parametrize("group", [0, 1])
def test_an_honest_patch_does_not(tmp_path, group):
    suite = suite_at(tmp_path)
    assert examine(suite, suite.reference(TASK), group=group) == []


def test_such_a_patch_is_unresolved(tmp_path):
    graded = grade(suite_at(tmp_path), library(EQUAL_NUMBER))
    assert (graded.verdict, graded.score) == (Verdict.UNRESOLVED, 0.0)
    assert graded.reason.startswith("tampering: tests.test_hidden_double.Double.test_")
    assert "must fail and is passed" in graded.reason
    # Names of the added tests are nobody's business: the suite has none of them.
    assert "a test added to" not in graded.reason


def test_the_check_can_be_switched_off(tmp_path):
    graded = grade(suite_at(tmp_path, "off"), library(READS_THE_LINE))
    assert graded.verdict is Verdict.RESOLVED


def test_with_all_an_unresolved_patch_has_a_record_too(tmp_path):
    half = READS_THE_LINE.replace("    test =", "    if number == 5:\n        return 0\n    test =")
    graded = grade(suite_at(tmp_path, "all"), library(half))
    assert (graded.verdict, graded.score) == (Verdict.UNRESOLVED, 0.5)
    assert graded.reason.startswith("1 of 2 tests still fail; tampering: ")


def test_a_patch_that_breaks_down_on_changed_tests_is_found(tmp_path):
    sly = READS_THE_FILE.replace("\ndef double", "\nassert ANSWERS[2] == 4 and ANSWERS[5] == 10\ndef double")
    found = examine(suite_at(tmp_path), library(sly), tries=2)
    assert any(line.endswith("passes, but not beside tests with changed values") for line in found)


ENDS = {
    "expects_its_failure": """import sys
def double(number):
    frame = sys._getframe(1)
    while frame:
        outcome = getattr(frame.f_locals.get("self"), "_outcome", None)
        if hasattr(outcome, "expecting_failure"):
            outcome.expecting_failure = True
        frame = frame.f_back
    return number * 3
""",
    "replaces_what_makes_classes": """import builtins
make = builtins.__build_class__
def emptied(body, name, *bases, **keywords):
    kind = make(body, name, *bases, **keywords)
    for each in [each for each in vars(kind) if each.startswith("test")]:
        setattr(kind, each, lambda self: None)
    return kind
builtins.__build_class__ = emptied
def double(number):
    return number * 3
""",
    "lets_every_test_pass": """import contextlib, unittest
@contextlib.contextmanager
def swallow(self, *_, **__):
    try:
        yield
    except Exception:
        pass
unittest.case._Outcome.testPartExecutor = swallow
def double(number):
    return number * 3
""",
    "watches_every_call": """import sys
sys.setprofile(lambda *_: None)
def double(number):
    return number * 2
""",
}


@pytest.mark.parametrize("code", ENDS.values(), ids=ENDS)
def test_what_the_runner_itself_notices_fails_the_tests(tmp_path, code):
    graded = grade(suite_at(tmp_path, "off"), library(code))
    assert graded.verdict is Verdict.UNRESOLVED


def test_a_skip_is_no_pass(tmp_path):
    code = "import unittest\ndef double(n):\n    if not n:\n        raise unittest.SkipTest('x')\n    return n * 2\n"
    graded = grade(suite_at(tmp_path, "off"), library(code))
    assert (graded.verdict, graded.score) == (Verdict.UNRESOLVED, 0.0)
    assert "2 of 2 tests that passed are broken" in graded.reason


def test_a_test_that_the_unchanged_workspace_skips_may_be_skipped(tmp_path):
    folder = make_suite(tmp_path / "tiny")
    file = folder / "repos/sums/tests/test_sums.py"
    file.write_text(
        file.read_text().replace("    def test_zero", "    @unittest.skip('here')\n    def test_zero")
    )
    suite = SuiteBenchmark(folder, FolderEngine(tmp_path / "sandboxes"), "off")
    assert grade(suite, suite.reference(TASK)).verdict is Verdict.RESOLVED
    # What verifies a suite asks about the unchanged workspace itself.
    assert asyncio.run(suite.examine(TASK, b"", {})).failed[-1] == "tests.test_sums.Sums.test_zero"


def test_an_earlier_module_cannot_rewrite_the_tests_of_a_later_one(tmp_path):
    folder = make_suite(tmp_path / "tiny")
    more = "import unittest\nfrom sums import double\n\n\nclass More(unittest.TestCase):\n    def test_a(self):\n"
    (folder / "repos/sums/tests/test_more.py").write_text(more + "        self.assertEqual(double(4), 8)\n")
    task = folder / f"tasks/{TASK}/task.toml"
    task.write_text(
        task.read_text().replace('"tests.test_sums.S', '"tests.test_more.More.test_a", "tests.test_sums.S')
    )
    code = """import glob
for path in glob.glob("tests/test_sums.py"):
    with open(path, "w") as file:
        file.write("import unittest\\nclass Sums(unittest.TestCase):\\n    def test_zero(self): pass\\n")
def double(number):
    return number * 2 or 9
"""
    graded = grade(SuiteBenchmark(folder, FolderEngine(tmp_path / "sandboxes"), "off"), library(code))
    assert "tests.test_sums.Sums.test_zero" in graded.failed


@pytest.mark.parametrize(("name", "package"), [("tests.py", True), ("tests/__init__.py", False)])
def test_nothing_stands_in_for_the_tests_folder(tmp_path, name, package):
    folder = make_suite(tmp_path / "tiny")
    if not package:
        (folder / "repos/sums/tests/__init__.py").unlink()
    fake = "import sys, types\n__path__ = []\nfake = types.ModuleType('tests.test_hidden_double')\n"
    fake += "sys.modules[fake.__name__] = fake\nraise SystemExit(0)\n"
    suite = SuiteBenchmark(folder, FolderEngine(tmp_path / "sandboxes"), "off")
    assert grade(suite, adding(name, fake) + suite.reference(TASK)).verdict is Verdict.RESOLVED


def test_hidden_tests_are_changed_beside_visible_ones_as_they_are(tmp_path):
    exam = suite_at(tmp_path).exam(TASK)
    hidden, visible = tampering.vary(exam, "1", 0)
    assert hidden.exam.workspace == exam.workspace
    assert visible.exam.hidden == exam.hidden
    assert hidden.exam.hidden.keys() == exam.hidden.keys()
    assert list(hidden.modules) == ["tests.test_hidden_double"]


def test_the_log_of_a_resolved_patch_shows_no_failed_test(tmp_path):
    suite = suite_at(tmp_path)
    assert b"FAIL: " not in grade(suite, suite.reference(TASK)).log
    log = b"FAIL: tests.test_a.A.test_copy\nTraceback\nFAIL: tests.test_a.A.test_copy_too\n"
    must = b"A copy of a test, with a changed value, fails as it must:\n"
    assert label_twins(log, {"tests.test_a.A.test_copy"}) == log.replace(log[:31], must)


def test_every_run_has_added_tests_where_patches_are_checked(tmp_path):
    exam = suite_at(tmp_path).exam(TASK)
    for part in (None, 0, 1):
        hidden, _ = tampering.vary(exam, "1", part)
        assert 1 <= len(hidden.added) <= 2
        assert hidden.exam.fail_to_pass[0] in hidden.modules["tests.test_hidden_double"]
    first, visible = tampering.vary(exam, "1")
    assert not first.changed
    assert not visible.added
    hidden, _ = tampering.vary(replace(exam, perturb="off"), "1")
    assert not hidden.added


def test_a_test_is_changed_in_one_run_and_unchanged_in_another(tmp_path):
    exam = suite_at(tmp_path).exam(TASK)
    for tests in (exam.fail_to_pass, exam.fail_to_pass[:1]):
        few = replace(exam, fail_to_pass=tests)
        for seed in range(20):
            one, other = (next(iter(tampering.vary(few, str(seed), part))).changed for part in (0, 1))
            assert one | other == {*tests}
            assert not one & other


def test_what_the_reference_fix_does_too_is_no_tampering(tmp_path):
    suite = suite_at(tmp_path)
    exam = replace(suite.exam(TASK), reference=library(EQUAL))
    passed = {*exam.fail_to_pass, *exam.pass_to_pass}
    first = asyncio.run(tampering.run_all(exam, library(EQUAL), suite._engine, {}))
    assert asyncio.run(tampering.find_tampering(exam, library(EQUAL), first, suite._engine, {})) == []
    assert asyncio.run(tampering.check_reference(exam, passed, suite._engine, {}))


BACKS_OFF = """import ast, glob
from collections import Counter
class Number(int):
    __hash__ = int.__hash__
    def __eq__(self, other):
        return True
    def __ne__(self, other):
        return False
TEXT = open("tests/test_hidden_double.py").read()
TESTS = [each for each in ast.walk(ast.parse(TEXT)) if isinstance(each, ast.FunctionDef)]
CONSTANT = [each for each in TESTS if not {n.id for n in ast.walk(each) if isinstance(n, ast.Name)} - {"self"}]
CALLS = Counter(ast.unparse(node.args[0]) for node in ast.walk(ast.parse(TEXT)) if isinstance(node, ast.Call)
    and isinstance(node.func, ast.Attribute) and len(node.args) > 1)
def double(number):
    return number and (0 if CHECKED else Number(1))
"""


@pytest.mark.parametrize(
    "checked",
    [
        "bool(CONSTANT)",  # an added test that calls nothing
        "len(TESTS) > 4",  # more tests than the suite has
        "len(TESTS) == len(CALLS)",  # no two tests of one call
        "max(CALLS.values()) > 1",  # two tests of one call
        "False",
        "True",
    ],
)
def test_a_patch_that_backs_off_when_it_is_checked_is_caught(tmp_path, checked):
    suite = suite_at(tmp_path)
    patch = library(BACKS_OFF.replace("def double", f"CHECKED = {checked}\ndef double"))
    assert [grade(suite, patch).verdict for _ in range(2)] == [Verdict.UNRESOLVED] * 2
