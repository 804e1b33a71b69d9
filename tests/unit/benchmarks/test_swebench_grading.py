"""Every kind of test log gets its verdict and a reason; the table of them is the documentation."""

import asyncio
import contextlib
import os
import re
import sys
from pathlib import Path

import pytest

from dgm.benchmarks import swebench_grading
from dgm.benchmarks.swebench_grading import Exam
from dgm.benchmarks.swebench_parsers import Parsers
from dgm.benchmarks.swebench_verdicts import Expected, Results, judge
from dgm.domain import Verdict
from dgm.errors import Infrastructure, UserError
from dgm.protocols import Completed, SandboxSpec
from tests.support.swebench_cases import ALL_PASS, CASES, FIXED, KEPT, NONCE, PYTEST, Case, source, summary

pytestmark = pytest.mark.starts_processes

DOCUMENT = Path(__file__).parents[3] / "docs" / "swebench-grading.md"
PYTHON = os.environ.get("DGM_SWEBENCH_PYTHON", sys.executable)
TABLE = re.compile(r"(?s)(<!-- table -->\n).*?(<!-- end of table -->)")


class CannedSandbox:
    """Answers with the next of its outputs, whatever is run."""

    def __init__(self, outputs):
        self.outputs = list(outputs)
        self.put_in = {}

    async def put(self, files, target):
        self.put_in = files

    async def exec(self, argv, *, stdin, **more):
        output = self.outputs.pop(0)
        if isinstance(output, Completed):
            return output
        return Completed(0, output.replace(NONCE.encode(), stdin.strip()))


class CannedEngine:
    """Opens one canned sandbox, again and again."""

    name = "canned"

    def __init__(self, *outputs):
        self.sandbox = CannedSandbox(outputs)
        self.opened = 0

    @contextlib.asynccontextmanager
    async def open(self, spec):
        self.opened += 1
        yield self.sandbox


@pytest.fixture(scope="module")
def parsers():
    """The swebench package: in this interpreter, or in the one that DGM_SWEBENCH_PYTHON names."""
    made = Parsers(PYTHON)
    try:
        made.check({"instance_id": "any", "repo": PYTEST, "log_parser": ""})
    except UserError as error:
        if os.environ.get("DGM_REQUIRE_DOCKER") == "1":
            pytest.fail(str(error))
        pytest.skip(f"NOT RUN: {error}")
    yield made
    made.close()


def exam(case=CASES[0], **more):
    """An instance as the case has it."""
    given = {
        "instance": "shop__cart-1",
        "repo": case.repo,
        "version": "1",
        "base_commit": "0" * 40,
        "test_patch": source("tests/test_cart.py", "    assert total([1, 2]) == 3").decode(),
        "reference": source("cart.py").decode(),
        "fail_to_pass": case.fail_to_pass,
        "pass_to_pass": case.pass_to_pass,
        "spec": SandboxSpec(image="docker:shop"),
        "timeout_s": 60,
        "fail_only": case.fail_only,
        "log_parser": "parse_log_chart_js" if case.fail_only else "",
        "test_cmd": "pytest -rA tests/test_cart.py",
    }
    return Exam(**{**given, **more})


def graded(case, parsers, engine=None):
    engine = engine or CannedEngine(case.output(), case.output(case.control))
    return asyncio.run(swebench_grading.grade(exam(case), case.patch, engine, parsers, {}))


def verdict_and_reason(case, parsers):
    try:
        grade = graded(case, parsers)
    except Infrastructure as error:
        return "invalid", str(error)
    return grade.verdict.value, grade.reason


@pytest.mark.starts_processes
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_case_gets_its_verdict(case, parsers):
    verdict, reason = verdict_and_reason(case, parsers)
    assert verdict == case.verdict, reason
    assert reason.isprintable()


def test_documented_table_is_what_grading_does(parsers):
    """``DGM_WRITE_DOCS=1`` writes it."""
    rows = ["| case | verdict | reason |", "|---|---|---|"]
    for case in CASES:
        verdict, reason = verdict_and_reason(case, parsers)
        rows.append(f"| {case.title} | {verdict} | {reason.replace('|', '&#124;')} |")
    text = DOCUMENT.read_text(encoding="utf-8")
    wanted = TABLE.sub(lambda found: found[1] + "\n".join(rows) + "\n" + found[2], text)
    if os.environ.get("DGM_WRITE_DOCS") == "1":
        DOCUMENT.write_text(wanted, encoding="utf-8")
    assert text == wanted, (
        "out of date: DGM_WRITE_DOCS=1 pytest tests/unit/benchmarks/test_swebench_grading.py"
    )


def test_score_is_the_share_of_fixed_tests_unless_one_broke(parsers):
    half = Case(
        "", summary("PASSED a::x", "FAILED a::y", f"PASSED {KEPT}"), "", 1, fail_to_pass=("a::x", "a::y")
    )
    broken = Case("", summary("PASSED a::x", f"FAILED {KEPT}"), "", 1, fail_to_pass=("a::x",))
    assert [graded(case, parsers).score for case in (half, broken)] == [0.5, 0.0]


def test_empty_patch_opens_no_sandbox(parsers):
    engine = CannedEngine()
    graded(Case("", "", "", patch=b""), parsers, engine)
    assert engine.opened == 0


def test_running_out_of_memory_is_the_patchs_own_doing(parsers):
    output = CASES[0].output()
    engine = CannedEngine(Completed(137, output.replace(b"end 0", b"x"), out_of_memory=True))
    grade = graded(CASES[0], parsers, engine)
    assert (grade.verdict, "memory" in grade.reason) == (Verdict.UNRESOLVED, True)


def test_hidden_lines_are_masked_and_only_names_and_kinds_of_errors_are_shown(parsers):
    log = summary(f"PASSED {KEPT}", f"FAILED {FIXED} - AssertionError: secret")
    case = Case("", f">       assert total([1, 2]) == 3\nE       assert total([1, 2]) == 3\n{log}", "", 1)
    grade = graded(case, parsers)
    assert b"total([1, 2])" not in grade.log
    assert grade.shown == f"FAILED {FIXED}  AssertionError\n".encode()


def test_ten_thousand_tests_with_odd_names_are_graded(parsers):
    names = [f"tests/t.py::test_{'long' * 40}[{n}\x02]" for n in range(10_000)]
    case = Case(
        "", summary(*(f"PASSED {name}" for name in names)), "", fail_to_pass=names[:1], pass_to_pass=names[1:]
    )
    assert graded(case, parsers).reason == "all 10000 tests pass"


def test_unknown_repository_is_told_with_what_to_do(parsers):
    case = Case("", ALL_PASS, "", repo="nobody/nothing")
    with pytest.raises(UserError, match="no log parser for 'nobody/nothing'; give the instance a log_parser"):
        graded(case, parsers)


def test_instance_without_a_test_command_is_told_before_any_agent_is_paid_for(parsers):
    swebench_grading.check(exam(), parsers)
    with pytest.raises(UserError, match=r"^shop__cart-1: no test command: give the instance an eval_script"):
        swebench_grading.check(exam(test_cmd="", version="nobody's"), parsers)


@pytest.mark.starts_processes
def test_worker_that_dies_is_invalid_and_is_started_again(parsers):
    parsers.check({"instance_id": "any", "repo": PYTEST})
    parsers._process.kill()
    parsers._process.wait()
    assert graded(CASES[0], parsers).verdict is Verdict.RESOLVED
    with pytest.raises(Infrastructure, match="the process that reads test logs ended"):
        parsers.statuses({"instance_id": "any", "repo": PYTEST}, Path("/nowhere/at/all"))
    assert graded(CASES[0], parsers).verdict is Verdict.RESOLVED


@pytest.mark.starts_processes
def test_log_that_holds_up_the_parser_is_unresolved_and_not_the_worlds_fault(parsers):
    """A pattern of the parser for Django takes time with the square of such lines."""
    hostile = "test_x (a.B) ... Testing against Django installed in 'x'\n" * 20_000
    case = Case("", hostile, "", 1, repo="django/django")
    hasty = Parsers(PYTHON, answers_within_s=2.0)
    try:
        grade = graded(case, hasty)
    finally:
        hasty.close()
    assert (grade.verdict, grade.reason) == (
        Verdict.UNRESOLVED,
        "the log parser cannot read what the tests printed: no answer within 2 s",
    )


@pytest.mark.starts_processes
def test_missing_package_is_told_with_the_command_that_installs_it(tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(UserError, match=re.escape("pip install 'dgm[swebench]'")):
        Parsers(str(bare)).check({"instance_id": "any", "repo": PYTEST})


def test_name_cut_within_parameters_that_disagree_counts_as_absent():
    results = Results({"t[a1]": "PASSED", "t[a2]": "SKIPPED"}, 0)
    assert judge(Expected(["t[a"], []), results).verdict is Verdict.UNRESOLVED
