"""Every kind of test log gets the swebench package's own verdict; the table of them is the documentation."""

import asyncio
import contextlib
import os
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

from dgm.benchmarks import swebench_grading, swebench_worker
from dgm.benchmarks.swebench_grading import Exam, make_script
from dgm.benchmarks.swebench_rows import Instance, load
from dgm.domain import Verdict
from dgm.errors import Infrastructure, UserError
from dgm.protocols import Completed, SandboxSpec
from tests.support.swebench_cases import ALL_PASS, CASES, FIXED, KEPT, Case, source, summary

pytestmark = pytest.mark.starts_processes

DOCUMENT = Path(__file__).with_name("swebench_grading.md")
ROWS = Path(__file__).parents[2] / "docker" / "swebench" / "instances.jsonl"
TABLE = re.compile(r"(?s)(<!-- table -->\n).*?(<!-- end of table -->)")


class CannedSandbox:
    """Applies a patch, and prints the next of its logs."""

    def __init__(self, applied, logs):
        self.applied = applied
        self.logs = list(logs)
        self.put_in = {}

    async def put(self, files, target):
        self.put_in = files

    async def exec(self, argv, **_options):
        return self.logs.pop(0) if argv[0] == "bash" else Completed(0, f"{self.applied}\n".encode())


class CannedEngine:
    """Opens one canned sandbox, again and again."""

    name = "canned"

    def __init__(self, *logs, applied="applied "):
        self.sandbox = CannedSandbox(applied, logs)
        self.opened = 0

    @contextlib.asynccontextmanager
    async def open(self, spec):
        self.opened += 1
        yield self.sandbox


@pytest.fixture(scope="module", autouse=True)
def package():
    """The swebench package's own modules."""
    try:
        metadata.version("swebench")
    except metadata.PackageNotFoundError as error:
        if os.environ.get("DGM_REQUIRE_DOCKER") == "1":
            pytest.fail(str(error))
        pytest.skip(f"NOT RUN: {error}")
    before = dict(sys.modules)
    yield swebench_worker.import_package()
    for name in set(sys.modules) - set(before):
        if name.partition(".")[0] in ("swebench", *swebench_worker.UNUSED):
            del sys.modules[name]


def instance(case=CASES[0], **fields):
    """An instance as the case has it."""
    row = {
        "instance_id": "shop__cart-1",
        "repo": "shop/cart",
        "version": "1",
        "base_commit": "c0ffee0" * 5,
        "problem_statement": "",
        "test_patch": source("tests/test_cart.py", "    assert total([1, 2]) == 3").decode(),
        "patch": source("cart.py").decode(),
        "FAIL_TO_PASS": list(case.fail_to_pass),
        "PASS_TO_PASS": list(case.pass_to_pass),
        "image": "shop",
        "eval_type": "fail_only" if case.fail_only else "pass_and_fail",
        "log_parser": case.log_parser,
        "eval_script": "git checkout c0ffee\n: '>>>>> Start Test Output'\npytest\n: '>>>>> End Test Output'\n",
    }
    return Instance.model_validate(row | fields)


def grade(case, engine=None):
    engine = engine or CannedEngine(case.completed(), case.control_completed(), applied=case.applied)
    exam = Exam(instance(case), "true", SandboxSpec(image="docker:shop"), 60)
    return asyncio.run(swebench_grading.grade(exam, case.patch, engine, {}))


def verdict_and_reason(case):
    try:
        graded = grade(case)
    except Infrastructure as error:
        return "invalid", str(error)
    return graded.verdict.value, graded.reason


@pytest.fixture(scope="module")
def results():
    """Verdicts and reasons by the title of the case."""
    return {case.title: verdict_and_reason(case) for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_case_gets_its_verdict(case, results):
    verdict, reason = results[case.title]
    assert verdict == case.verdict, reason
    assert reason.isprintable()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_log_gets_the_packages_own_verdict(case, package, tmp_path):
    grading, utils = package
    log = tmp_path / "test_output.txt"
    log.write_text(case.completed().output.decode(errors="replace"))
    spec = utils.make_test_spec(dict(instance(case).row()))
    prediction = {"instance_id": spec.instance_id, "model_patch": case.patch.decode()}
    report = grading.get_eval_report(spec, prediction, log, include_tests_status=False)[spec.instance_id]
    # The harness reads no log of a run that it stopped or did not start.
    is_read = case.applied == "applied " and not case.timed_out
    assert (case.verdict == "resolved") is bool(is_read and report["resolved"])


def test_documented_table_is_what_grading_does(results):
    """``DGM_WRITE_DOCS=1`` writes it."""
    rows = ["| case | verdict | reason |", "|---|---|---|"]
    for title, (verdict, reason) in results.items():
        rows.append(f"| {title} | {verdict} | {reason.replace('|', '&#124;')} |")
    text = DOCUMENT.read_text(encoding="utf-8")
    wanted = TABLE.sub(lambda found: found[1] + "\n".join(rows) + "\n" + found[2], text)
    if os.environ.get("DGM_WRITE_DOCS") == "1":
        DOCUMENT.write_text(wanted, encoding="utf-8")
    assert text == wanted, (
        "out of date: DGM_WRITE_DOCS=1 pytest tests/unit/benchmarks/test_swebench_grading.py"
    )


def test_score_is_the_share_of_fixed_tests_unless_one_broke():
    half = Case(
        "", summary("PASSED a::x", "FAILED a::y", f"PASSED {KEPT}"), "", 1, fail_to_pass=("a::x", "a::y")
    )
    broken = Case("", summary("PASSED a::x", f"FAILED {KEPT}"), "", 1, fail_to_pass=("a::x",))
    assert [grade(case).score for case in (half, broken)] == [0.5, 0.0]


@pytest.mark.parametrize(
    ("end", "reason"),
    [({"out_of_memory": True}, "ran out of memory"), ({"truncated": True}, "more than can be kept")],
)
def test_bad_end_is_the_patchs_fault_if_tests_run_without_it(end, reason):
    control = CASES[0].completed()
    graded = grade(CASES[0], CannedEngine(Completed(137, b"+ pytest\n", **end), control))
    assert (graded.verdict, reason in graded.reason) == (Verdict.UNRESOLVED, True)
    with pytest.raises(Infrastructure, match="no test runs in its image, even without a patch"):
        grade(CASES[0], CannedEngine(Completed(137, b"", **end), Completed(124, b"", timed_out=True)))


def test_hidden_lines_are_masked_and_only_names_and_kinds_of_errors_are_shown():
    log = summary(f"PASSED {KEPT}", f"FAILED {FIXED} - AssertionError: secret")
    case = Case(
        "",
        f">       assert \x1b[94mtotal([1, 2])\x1b[0m == 3\nE       assert total([1, 2]) == 3\n{log}",
        "",
        1,
    )
    graded = grade(case)
    assert b"total([1, 2])" not in graded.log
    assert graded.shown == f"FAILED {FIXED}  AssertionError\n".encode()


def test_shown_failures_are_limited():
    names = [f"tests/t.py::test_{n:0190}" for n in range(50)]
    graded = grade(Case("", summary(*(f"FAILED {name}" for name in names)), "", 1, fail_to_pass=names))
    assert len(graded.failed) > 50 and len(graded.shown) == swebench_grading.SHOWN_LIMIT


def test_ten_thousand_tests_with_odd_names_are_graded():
    names = [f"tests/t.py::test_{'long' * 40}[{n}\x02]" for n in range(10_000)]
    log = summary(*(f"PASSED {name}" for name in names))
    assert (
        grade(Case("", log, "", fail_to_pass=names[:1], pass_to_pass=names[1:])).reason
        == "all 10000 tests pass"
    )


def test_unknown_parser_is_refused_with_a_suggestion():
    with pytest.raises(
        UserError, match=r"^shop__cart-1: swebench 5\S+ has no log parser 'parse_log_pytes' \(did you"
    ):
        make_script(instance(log_parser="parse_log_pytes"))


def test_script_is_the_packages_on_the_one_commit_of_the_sandbox():
    ledger = load(str(ROWS))["mini__ledger-2"]
    script = make_script(ledger)
    assert ledger.base_commit not in script
    assert "git checkout HEAD tests/test_ledger.py\n" in script
    assert "python3 runtests.py test_ledger\nSWEBENCH_TEST_EXIT_CODE=$?\n" in script


def test_process_that_dies_is_infrastructure(monkeypatch, tmp_path):
    worker = tmp_path / "worker.py"
    worker.write_text("import sys; sys.exit('killed')")
    monkeypatch.setattr(swebench_grading, "WORKER", worker)
    with pytest.raises(Infrastructure, match="the process of swebench ended: killed"):
        grade(CASES[0])


def test_log_that_holds_up_the_parser_is_unresolved(monkeypatch):
    """A pattern of the parser for Django takes time with the square of such lines."""
    hostile = "test_x (a.B) ... Testing against Django installed in 'x'\n" * 20_000
    monkeypatch.setattr(swebench_grading, "PACKAGE_S", 3.0)
    graded = grade(Case("", hostile, "", 1, log_parser="parse_log_django"))
    assert (graded.verdict, graded.reason) == (
        Verdict.UNRESOLVED,
        "the log parser cannot read what the tests printed: no answer within 3 s",
    )


def test_missing_package_is_reported_with_the_command_that_installs_it(monkeypatch, tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))
    with pytest.raises(UserError, match=re.escape("pip install 'dgm[swebench]'")):
        make_script(instance())


def test_all_that_an_evaluation_needs_goes_into_its_sandbox():
    engine = CannedEngine(CASES[0].completed())
    grade(Case("", ALL_PASS, "", patch=b"+x"), engine)
    assert engine.sandbox.put_in["model.patch"].data == b"+x\n"
    assert engine.sandbox.put_in["eval.sh"].data == b"true"
