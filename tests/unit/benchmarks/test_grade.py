"""The one flow of grading: on real processes in a sandbox that is a folder, and what its reports must be."""

import asyncio
import hmac
import json
import sys
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from dgm.archive.repository import patch
from dgm.benchmarks.grade import (
    CommandEnd,
    Exam,
    Survey,
    TestRun,
    examine,
    find_reward,
    judge,
    judge_outcomes,
    make_command,
    read_reports,
    run_tests,
)
from dgm.benchmarks.named_child import shorten, without_system_packages
from dgm.benchmarks.own_pytest import package_files
from dgm.benchmarks.suite_files import Limits
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.test_spec import TestSpec
from dgm.benchmarks.verification import verify_with_notes
from dgm.domain import Entry, Verdict
from dgm.errors import Infrastructure, UserError
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
    tests = TestSpec(FAIL, PASS)
    outcomes = dict.fromkeys((*FAIL[1:], *PASS), "passed")
    assert judge(tests, TestRun(outcomes)).score > 0
    graded = judge(tests, TestRun(outcomes, problem="the tests were tampered with: assert! is defined anew"))
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
    run = asyncio.run(run_tests(suite.exam(TASK), b"", suite._engine, {}, survey=Survey()))
    assert run.outcomes == {**dict.fromkeys(FAIL, "failed"), **dict.fromkeys(PASS, "passed")}
    assert "assert 1 == 2" in run.messages[FAIL[0]]


@pytest.mark.minutes
def test_survey_tells_what_cannot_be_imported(suite):
    given = changing(src__sums="import nothing_of_this_name\n")
    run = asyncio.run(run_tests(suite.exam(TASK), given, suite._engine, {}, survey=Survey()))
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


KEY = b"k" * 32


def sealed(stage, key=KEY, **more):
    text = json.dumps({"stage": stage, **more})
    return f"\ndgm-report {hmac.new(key, text.encode(), 'sha256').hexdigest()} {text}\n".encode()


def test_reports_with_their_seal_count_and_are_no_output():
    output, reports = read_reports(sealed("prepared") + b"1 passed" + sealed("done", code=1), KEY)
    assert output == b"1 passed"
    assert reports == {"prepared": {"stage": "prepared"}, "done": {"stage": "done", "code": 1}}


@pytest.mark.parametrize(
    "output",
    [b"1 passed\n", sealed("done", key=b"other" * 8), b"\ndgm-report x {}\n",
     sealed("done", code=1).replace(b": 1}", b": 0}"), sealed("done")[:-1]],
)  # fmt: skip
def test_a_report_without_its_seal_is_output(output):
    assert read_reports(output, KEY) == (output, {})


def test_a_report_that_was_printed_before_is_output():
    output, reports = read_reports(sealed("done", key=b"forged" * 5, code=0) + sealed("done", code=1), KEY)
    assert b"dgm-report" in output
    assert reports["done"]["code"] == 1


class Printing:
    """An engine, and its sandbox, whose runner prints reports and ends."""

    def __init__(self, *stages, printed=b"", **ends):
        self.stages, self.printed, self.ends = stages, printed, {"exit_code": 0, **ends}

    @asynccontextmanager
    async def open(self, spec):
        yield self

    async def put(self, files, folder):
        pass

    async def exec(self, command, *, stdin=b"", **more):
        if not stdin:
            return Completed(0, "{}.{} any".format(*sys.version_info).encode())
        key = bytes.fromhex(json.loads(stdin)["key"])
        output = self.printed + b"".join(sealed(key=key, **stage) for stage in self.stages)
        return Completed(**{"output": output, **self.ends})


PREPARED = {"stage": "prepared", "notes": "", "python": "{}.{}".format(*sys.version_info)}
COMMAND = Exam({}, {}, TestSpec(runner="exit", command=("sh",)), Limits())


def run_printing(*stages, exam=COMMAND, **ends):
    return asyncio.run(run_tests(exam, b"", Printing(*stages, **ends), {}))


@pytest.mark.parametrize(
    ("ends", "problem"),
    [
        ({"truncated": True}, "the tests report more than can be read"),
        ({"timed_out": True}, "the tests did not end in time"),
        ({"out_of_memory": True}, "the tests ran out of memory (2048 MB)"),
        ({"exit_code": 137}, "the graded code ended the test runner (exit status 137)"),
        ({"exit_code": 42}, "the graded code ended the test runner (exit status neither 0 nor 1)"),
    ],
)
def test_graded_code_that_ends_the_runner_is_at_fault(ends, problem):
    assert run_printing(PREPARED, **ends).problem == problem


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        (
            {"exit_code": 127, "output": b"sh: python3: not found"},
            "no python3 to run the tests with: sh: python3",
        ),
        (
            {"exit_code": 1, "output": b"the patch could not be tried: no git"},
            "ended with 1 before it ran .*: no git",
        ),
        ({"timed_out": True, "output": b""}, "applying a patch took more than 240 s"),
    ],
)
def test_what_fails_before_the_patch_is_applied_is_no_verdict(ends, message):
    with pytest.raises(Infrastructure, match=message):
        run_printing(**ends)


def test_sandbox_whose_python_is_too_old_for_pytest_is_refused():
    with pytest.raises(UserError, match=r"'python' has Python 3\.9, and dgm's pytest needs 3\.10 or later"):
        run_printing({**PREPARED, "python": "3.9"}, exam=replace(COMMAND, tests=TestSpec(("a.py::test_a",))))


def test_own_pytest_is_pure_python_that_lists_all_of_its_parts():
    files = package_files()
    assert {*files} >= {
        "pytest/__init__.py",
        "_pytest/python.py",
        "py.py",
        "pluggy/__init__.py",
        "tomli/__init__.py",
    }
    assert all(name.endswith((".py", "/METADATA")) for name in files)
    assert sum(len(entry.data) for entry in files.values()) < 4_000_000


def test_a_hidden_line_is_masked_in_any_colour():
    hidden = {"check.py": Entry(b"assert grams(2) == 2000\n")}
    exam = Exam({}, hidden, TestSpec(runner="exit", command=("sh",)), Limits())
    log = b"\x1b[94massert\x1b[39;49;00m grams(\x1b[94m2\x1b[39m) == 2000\n"
    graded = asyncio.run(examine(exam, b"", Printing(PREPARED, printed=log, exit_code=1), {}))
    assert graded.log == b"[line of a hidden test]\n"


def test_a_patch_that_does_not_apply_is_refused():
    assert run_printing({"stage": "refused", "reason": "no"}).refused == "no"


def test_a_report_that_is_cut_off_passes_nothing(tmp_path):
    folder = make_named_suite(tmp_path / "mined")
    graded = grade(SuiteBenchmark(folder, Printing(PREPARED, truncated=True), "off"), FIX.encode())
    assert (graded.verdict, graded.reason) == (
        Verdict.UNRESOLVED,
        "2 of 2 tests still fail; 1 of 1 tests that passed are broken; the tests report more than can be read",
    )


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ({"code": 0}, "the tests pass"),
        ({"code": 3}, "the tests fail (exit status 3)"),
        ({"code": 127}, "the tests fail (exit status 127: a program of theirs is not there)"),
        ({"code": 77}, "the tests fail (an unusual exit status)"),
        ({"code": 137, "signal": 9}, "the tests fail (signal 9)"),
    ],
)
def test_an_exit_status_is_a_verdict(end, reason):
    graded = judge(TestSpec(runner="exit", command=("sh",)), TestRun(end=CommandEnd(**end)))
    assert (graded.reason, graded.verdict is Verdict.RESOLVED) == (reason, end["code"] == 0)


@pytest.mark.timeout(10)
def test_any_number_of_reported_tests_is_judged():
    names = tuple(map(str, range(200_000)))
    graded = judge_outcomes(names, (), dict.fromkeys(names[1:], "failed") | {"0": "passed"})
    assert (graded.reason, graded.passed) == ("199999 of 200000 tests still fail", ("0",))


def test_a_reward_of_a_command_that_ended_by_itself_counts():
    assert find_reward(CommandEnd(1, rewards={"reward.txt": b" 0.5\n"})) == ("reward.txt", 0.5)
    both = {"reward.txt": b"1", "reward.json": b'{"reward": 1.0}'}
    assert find_reward(CommandEnd(0, rewards=both))[1] == 1
    assert find_reward(CommandEnd(0, left=2, writes=1, rewards={"reward.txt": b"1"}))[1] == 1
    assert find_reward(CommandEnd(0, left=0, writes=2, rewards={"reward.txt": b"1"}))[1] == 1


def test_a_metric_is_no_reward():
    alone = CommandEnd(0, rewards={"reward.json": b'{"latency": 12.5}'})
    assert find_reward(alone)[1] == 12.5
    with pytest.raises(ValueError, match=r"^reward\.json: holds no value named 'reward'$"):
        find_reward(alone, ["latency"])


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ({"code": 137, "signal": 9}, "the tests were ended by signal 9, so that their reward does not count"),
        ({"code": 143}, "the tests were ended by signal 15"),
        ({"left": 1, "writes": 2}, "the reward was written several times, and 1 processes of the tests still ran"),
        ({"left": 1, "writes": -1}, "the reward was written several times"),
        ({"refused": "reward.txt is no file of its own"}, "the tests left no reward that can be read: reward.txt is"),
        ({"rewards": {"reward.txt": b"1", "reward.json": b"0"}}, "reward.txt says 1 and reward.json says 0"),
        ({"rewards": {"reward.txt": b"the tests' text"}}, "reward.txt: holds no number$"),
        ({"rewards": {"reward.json": b"the tests' text"}}, "reward.json: is no JSON$"),
        ({"rewards": {"reward.json": b"Infinity"}}, "reward.json: holds no finite number$"),
        ({"code": 77, "rewards": {}}, "the tests ended with an unusual exit status and left no reward"),
        ({"code": 3, "rewards": {}}, "the tests ended with exit status 3 and left no reward"),
    ],
)  # fmt: skip
def test_a_reward_that_is_not_surely_the_commands_does_not_count(end, reason):
    with pytest.raises(ValueError, match=f"^{reason}"):
        find_reward(CommandEnd(**{"code": 0, "rewards": {"reward.txt": b"1"}, "writes": 1} | end))


@pytest.mark.parametrize(
    ("runner", "more", "files", "command"),
    [
        ("report", {"command": ("make test",)}, ["a"], "sh -c make test"),
        ("exit", {"command": ("sh", "x")}, [], "sh x"),
        ("go", {"flags": ("-tags=a",), "options": ("-short",)}, ["a"],
         "go test -json -vet=off -count=1 -tags=a -short"),
        ("node", {"flags": ("--import=tsx",), "patterns": ("src",)}, [],
         "node --import=tsx --test --test-reporter={reporter} --test-reporter-destination={report}"),
        ("mocha", {"options": ("--ui=tdd",), "patterns": ("src",)}, [],
         "node /node_modules/.bin/mocha --reporter={reporter} --no-parallel --no-bail --exit --ui=tdd src"),
        ("vitest", {"patterns": ("src",)}, ["a.js"],
         "node /node_modules/.bin/vitest run --reporter=json --outputFile={report} --coverage.enabled=false"),
    ],
)  # fmt: skip
def test_each_runner_has_its_command(runner, more, files, command):
    assert " ".join(make_command(TestSpec(runner=runner, **more), files)) == command


def test_jest_is_given_its_files_by_their_paths():
    assert make_command(TestSpec(runner="jest"), ["a.js"])[-1] == "--runTestsByPath"


def test_the_error_of_a_failure_stays_in_a_long_report():
    report = "x = 1\n" * 10 + "E   assert 1 == 2\n" + "local = 1\n" * 2000
    assert shorten(report).startswith("E   assert 1 == 2\nlocal = 1\n")
    assert len(shorten(report)) < 6000
    assert shorten("x\nE   assert 1 == 2\n") == "x\nE   assert 1 == 2\n"
