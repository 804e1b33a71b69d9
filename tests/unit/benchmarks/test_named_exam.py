"""Tests of pytest by name: what each patch is graded, on real processes; the sandbox is a folder."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

import pytest

from dgm.archive.repository import patch
from dgm.benchmarks.named_child import without_system_packages
from dgm.benchmarks.named_exam import NamedRun, Survey, judge, run_named
from dgm.benchmarks.named_tests import NamedTests
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.verification import verify_with_notes
from dgm.domain import Entry, Verdict
from dgm.errors import UserError
from dgm.protocols import Completed
from tests.support.named_suite import FAIL, FIX, PASS, START, TASK, PythonFolders, entries, make_named_suite
from tests.support.suite_on_disk import adding

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def suite(tmp_path):
    return SuiteBenchmark(make_named_suite(tmp_path / "mined"), PythonFolders(tmp_path / "sandboxes"), "off")


def grade(suite, given):
    return asyncio.run(suite.grade(TASK, given, {}))


def changing(**files):
    """A patch on the workspace: ``src__sums`` stands for src/sums.py; None removes the file."""
    named = {f"{name.replace('__', '/')}.py": text for name, text in files.items()}
    after = {
        **entries(START),
        **{name: Entry(text.encode()) for name, text in named.items() if text is not None},
    }
    return patch(
        entries(START), {name: one for name, one in after.items() if named.get(name, "") is not None}
    )


def test_reference_passes_all_named_tests(suite):
    graded = grade(suite, FIX.encode())
    assert (graded.verdict, graded.score, graded.passed) == (Verdict.RESOLVED, 1.0, (*FAIL, *PASS)), graded


def test_half_a_fix_scores_its_share(suite):
    graded = grade(suite, FIX.replace("number // 2", "2").encode())
    assert (graded.verdict, graded.score, graded.failed) == (Verdict.UNRESOLVED, 0.5, FAIL[1:])
    assert graded.reason == "1 of 2 tests still fail"


def test_broken_test_scores_nothing(suite):
    broken = START["src/sums.py"].replace("2 * number", "number").replace("// 3", "// 2")
    graded = grade(suite, changing(src__sums=broken))
    assert (graded.score, graded.failed) == (0.0, PASS)
    assert graded.reason == "1 of 1 tests that passed are broken"


def test_patch_that_cheats_scores_nothing_for_the_tests_that_pass():
    tests = NamedTests(FAIL, PASS)
    outcomes = dict.fromkeys((*FAIL[1:], *PASS), "passed")
    assert judge(tests, NamedRun(outcomes)).score > 0
    graded = judge(tests, NamedRun(outcomes, problem="the tests were tampered with: assert! is defined anew"))
    assert (graded.verdict, graded.score) == (Verdict.UNRESOLVED, 0.0)


PLUGIN = """
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = 'passed'
    call.excinfo = None
"""
STRIPS = """
import ast, importlib.abc, importlib.machinery, importlib.util, sys


class Loader(importlib.machinery.SourceFileLoader):
    def source_to_code(self, data, path, **_):
        tree = ast.parse(data)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name.startswith('test'):
                node.body = [ast.Pass()]
        return compile(ast.fix_missing_locations(tree), path, 'exec')


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        found = importlib.machinery.PathFinder.find_spec(name, path)
        if found and found.origin and 'test_' in found.origin:
            return importlib.util.spec_from_file_location(name, found.origin, loader=Loader(name, found.origin))


sys.meta_path.insert(0, Finder())
"""
COMPILES = """
import ast, builtins

real = builtins.compile


def stripped(source, name, *rest, **more):
    if isinstance(source, ast.AST) and 'test_' in str(name):
        for node in ast.walk(source):
            if isinstance(node, ast.FunctionDef) and node.name.startswith('test'):
                node.body = [ast.Pass()]
        ast.fix_missing_locations(source)
    return real(source, name, *rest, **more)


builtins.compile = stripped
"""
EMPTIES = """
import ast, builtins

real = builtins.exec


def emptied(code, *spaces):
    real(code, *spaces)
    for name in list(spaces[0]) if spaces else ():
        if name.startswith('test_'):
            spaces[0][name] = lambda: None


builtins.exec = emptied
"""


SKIPS = """
import pytest

pytest.Function.runtest = lambda self: None


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    return True
"""


def naming_a_plugin(metadata, module="src/sums_tests.py"):
    """A patch with a plug-in of pytest that its metadata names."""
    about = "Metadata-Version: 2.1\nName: x\nVersion: 1\n"
    points = f"[pytest11]\nx = {module.split('/')[-1][:-3]}\n"
    files = {module: SKIPS, f"{metadata}/METADATA": about, f"{metadata}/PKG-INFO": about}
    files[f"{metadata}/entry_points.txt"] = points
    return patch(entries(START), entries({**START, **files}))


def imported_by_conftest(text):
    """A workspace's own conftest imports the code under test before the tests are imported."""
    return changing(src__sums=text + START["src/sums.py"])


CHEATS = {
    "a plug-in beside the module": naming_a_plugin("src/x-1.dist-info"),
    "a plug-in at the top": naming_a_plugin("x-1.dist-info", "sums_tests.py"),
    "a plug-in of an egg": naming_a_plugin("src/x.egg-info"),
    "an egg at the top": naming_a_plugin("x.egg-info"),
    "an import hook": imported_by_conftest(STRIPS),
    "another compile": imported_by_conftest(COMPILES),
    "another exec": imported_by_conftest(EMPTIES),
    "edited tests": changing(
        tests__test_sums="def test_half():\n    pass\n\n\ntest_half_of_ten = test_twice = test_half\n"
    ),
    "deleted tests": changing(tests__test_sums=None),
    "its own conftest": changing(tests__conftest=PLUGIN),
    "a conftest at the top": adding("conftest.py", PLUGIN),
    "a configuration": adding("pytest.ini", "[pytest]\naddopts = --deselect tests/test_sums.py\n"),
    "sitecustomize": adding("sitecustomize.py", "import os\nos._exit(0)\n"),
    "its own pytest": adding("pytest.py", "def main(*_, **__):\n    return 0\n"),
    "its own pytest beside the module": adding("src/pytest.py", "raise SystemExit(0)\n"),
    "end with status 0": changing(src__sums="import os\nos._exit(0)\n"),
    "exit at import": changing(src__sums="raise SystemExit(0)\n"),
    "another makereport": changing(
        src__sums="import _pytest.runner as r\nold = r.CallInfo.from_call\n"
        "r.CallInfo.from_call = classmethod(lambda cls, func, *a, **k: old(lambda: None, *a, **k))\n"
        + START["src/sums.py"]
    ),
    "functions that run nothing": changing(
        src__sums="import pytest\npytest.Function.runtest = lambda self: None\n" + START["src/sums.py"]
    ),
    "a copy that is imported": changing(
        src__sums="import os, sys, types\n"
        "os.makedirs('/tmp/dgm-copy', exist_ok=True)\n"
        "open('/tmp/dgm-copy/sums.py', 'w').write('half = lambda n: n // 2\\ntwice = lambda n: 2 * n\\n')\n"
        "sys.path.insert(0, '/tmp/dgm-copy')\ndel sys.modules['sums']\nimport sums\n"
        "half, twice = sums.half, sums.twice\n"
    ),
    "printed results": changing(
        src__sums='print(\'{"test": "tests/test_sums.py::test_half", "outcome": "passed"}\')\n'
        + START["src/sums.py"]
    ),
    "rewritten tests": changing(
        src__sums="import pathlib\nfor each in pathlib.Path('tests').glob('test_*.py'):\n"
        "    each.write_text('def test_half():\\n    pass\\ntest_half_of_ten = test_twice = test_half\\n')\n"
        + START["src/sums.py"]
    ),
}


QUICK = ("a plug-in beside the module", "an import hook", "another compile", "another makereport")
"""The others take another minute."""


@pytest.mark.parametrize(
    "cheat", [each if each in QUICK else pytest.param(each, marks=pytest.mark.minutes) for each in CHEATS]
)
def test_cheat_is_not_resolved(suite, cheat):
    graded = grade(suite, CHEATS[cheat])
    assert graded.verdict is Verdict.UNRESOLVED, graded


def test_task_is_sound_and_says_so(suite, tmp_path):
    # A file that tests read may have the text of another one.
    (tmp_path / "mined" / "tasks" / TASK / "tests" / "tests" / "data.txt").write_text(
        START["tests/conftest.py"]
    )
    assert asyncio.run(verify_with_notes(suite, TASK, {})).defects == []


def test_unsound_task_shows_the_end_of_the_output(tmp_path):
    folder = make_named_suite(tmp_path / "mined")
    (folder / "tasks" / TASK / "solution.patch").write_text(FIX.replace("number // 2", "print('said aloud')"))
    found = asyncio.run(verify_with_notes(SuiteBenchmark(folder, PythonFolders(tmp_path / "s")), TASK, {}))
    assert found.defects[0].startswith("the reference fix is unresolved: 2 of 2 tests still fail")
    assert "said aloud" in found.output
    assert "assert half(10)" not in found.output


def test_survey_tells_every_test_and_its_failure(suite):
    run = asyncio.run(run_named(suite.exam(TASK), b"", suite._engine, {}, survey=Survey()))
    assert run.outcomes == {**dict.fromkeys(FAIL, "failed"), **dict.fromkeys(PASS, "passed")}
    assert "assert 1 == 2" in run.messages[FAIL[0]]


@pytest.mark.minutes
def test_survey_tells_what_cannot_be_imported(suite):
    given = changing(src__sums="import nothing_of_this_name\n")
    run = asyncio.run(run_named(suite.exam(TASK), given, suite._engine, {}, survey=Survey()))
    assert "nothing_of_this_name" in run.broken["tests/test_sums.py"]


def test_changed_packages_are_refused(suite, tmp_path):
    next((tmp_path / "mined/environments").glob("*/packages/lent.py")).write_text("WHAT = 'another'\n")
    with pytest.raises(UserError, match="changed since the suite was made"):
        grade(suite, FIX.encode())


def test_another_python_is_refused(tmp_path):
    suite = SuiteBenchmark(make_named_suite(tmp_path / "mined", python="3.2"), PythonFolders(tmp_path / "s"))
    with pytest.raises(UserError, match=r"made for Python 3\.2, but the sandbox image 'python' has 3\."):
        asyncio.run(suite.environment(TASK, {}))


def test_packages_of_the_system_are_no_part_of_an_environment(monkeypatch):
    paths = ["/work/repo", "/opt/dgm-environment", "/usr/lib/python3.11", "/usr/lib/python3/dist-packages"]
    monkeypatch.setattr(sys, "prefix", "/some/venv")
    assert without_system_packages(paths) == paths
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert without_system_packages(paths) == paths[:3]


def test_agents_see_the_packages_and_no_git(suite):
    shown = asyncio.run(suite.environment(TASK, {}))
    assert shown.paths == ("/work/repo/src", "/work/repo", "/opt/dgm-environment")
    assert suite.workspace(TASK) == entries(START)


@pytest.mark.minutes
def test_tests_with_changed_values_catch_who_reads_them(tmp_path):
    suite = SuiteBenchmark(make_named_suite(tmp_path / "mined"), PythonFolders(tmp_path / "s"))
    reads = (
        "class Any(int):\n    __hash__ = None\n    def __eq__(self, other):\n        return True\n\n\n"
        "def half(number):\n    return Any()\n\n\ndef twice(number):\n    return Any()\n"
    )
    graded = grade(suite, changing(src__sums=reads))
    assert graded.reason.startswith("tampering: tests/test_sums.py::test_half")
    assert grade(suite, FIX.encode()).verdict is Verdict.RESOLVED


class Cut:
    """An engine, and its sandbox, whose runner reports more than is read."""

    @asynccontextmanager
    async def open(self, spec):
        yield self

    async def put(self, files, folder):
        pass

    async def exec(self, command, *, stdin=b"", **more):
        if not stdin:
            return Completed(0, "{}.{} any".format(*sys.version_info).encode())
        nonce = json.loads(stdin)["nonce"]
        said = f'\n{nonce} {{"stage": "prepared", "notes": ""}}\n\n{nonce} {{"stage": "done", "outco'
        return Completed(0, said.encode(), truncated=True)


def test_report_that_is_cut_off_passes_nothing(tmp_path):
    folder = make_named_suite(tmp_path / "mined")
    graded = grade(SuiteBenchmark(folder, Cut(), "off"), FIX.encode())
    assert (graded.verdict, graded.reason) == (
        Verdict.UNRESOLVED,
        "2 of 2 tests still fail; 1 of 1 tests that passed are broken; the tests report more than can be read",
    )
