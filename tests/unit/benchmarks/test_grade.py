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


def test_half_a_fix_scores_its_share(suite):
    graded = grade(suite, FIX.replace("number // 2", "2").encode())
    assert (graded.verdict, graded.score, graded.failed) == (Verdict.UNRESOLVED, 0.5, FAIL[1:])
    assert graded.reason == "1 of 2 tests still fail"


def test_patch_that_cheats_scores_nothing_for_the_tests_that_pass():
    tests = NamedTests(FAIL, PASS)
    outcomes = dict.fromkeys((*FAIL[1:], *PASS), "passed")
    assert judge(tests, NamedRun(outcomes)).score > 0
    graded = judge(tests, NamedRun(outcomes, problem="the tests were tampered with: assert! is defined anew"))
    assert (graded.verdict, graded.score) == (Verdict.UNRESOLVED, 0.0)


"""The others take another minute."""


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
