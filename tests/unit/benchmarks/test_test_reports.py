"""Reports as the runners write them."""

import pytest

from dgm.benchmarks.test_outcomes import TestOutcome
from dgm.benchmarks.test_reports import MESSAGE_CHARS, read_results

P, S, F, E = TestOutcome.PASSED, TestOutcome.SKIPPED, TestOutcome.FAILED, TestOutcome.ERROR
PYTEST = """<?xml version="1.0"?><testsuites name="pytest tests"><testsuite name="pytest" hostname="h">
<testcase classname="tests.test_a.TestX" name="test_y[1-a b]" file="tests/test_a.py" time="0.1"/>
<testcase classname="tests.test_a" name="test_z" file="tests/test_a.py"><skipped message="m"/></testcase>
<testcase classname="tests.test_b" name="test_w"><failure message="short">&gt; assert a\nE assert 1</failure></testcase>
<testcase classname="" name="tests.test_c"><error message="collection failure">ImportError</error></testcase>
<testcase classname="tests.test_b" name="test_fixture"><error message="setup"/></testcase>
<testcase classname="test_d" name="test_d"/>
</testsuite></testsuites>"""
NODE = """<testsuites>
<testcase name="adds numbers" classname="test" failure="x"><failure message="x">2 !== 3</failure></testcase>
<testsuite name="group"><testsuite name="inner"><testcase name="works" classname="test"/></testsuite>
<testcase name="later" classname="test"><skipped/></testcase></testsuite>
<testcase name="works" classname="test"/></testsuites>"""
VITEST = """<testsuites name="vitest tests"><testsuite name="src/a.test.ts">
<testcase classname="src/a.test.ts" name="group &gt; keeps"/></testsuite></testsuites>"""
JEST_JUNIT = """<testsuites name="jest tests"><testsuite name="a">
<testcase classname="/work/repo/src/a.test.js" name="group keeps"/></testsuite></testsuites>"""
CTEST = """<testsuite name="(empty)"><testcase name="alpha" classname="alpha" status="run"/>
<testcase name="beta" classname="beta" status="fail"><failure message=""/><system-out>boom</system-out></testcase>
<testcase name="gamma" classname="gamma" status="notrun"><skipped message="no"/></testcase></testsuite>"""
SUREFIRE = """<testsuite name="org.x.ParserTest">
<testcase name="parses(String)[1]" classname="org.x.ParserTest"/></testsuite>"""
JUNIT = {
    "pytest": (
        PYTEST,
        {
            "tests/test_a.py::TestX::test_y[1-a b]": P, "tests/test_a.py::test_z": S, "tests.test_b::test_w": F,
            "tests.test_c": E, "tests.test_b::test_fixture": E, "test_d::test_d": P,
        },
    ),
    "node": (NODE, {"adds numbers": F, "group > inner > works": P, "group > later": S, "works": P}),
    "vitest": (VITEST, {"src/a.test.ts::group > keeps": P}),
    "jest-junit": (JEST_JUNIT, {"src/a.test.js::group keeps": P}),
    "ctest": (CTEST, {"alpha": P, "beta": F, "gamma": S}),
    "surefire": (SUREFIRE, {"org.x.ParserTest::parses(String)[1]": P}),
}  # fmt: skip


def outcomes(kind, text, root=""):
    return {name: result.outcome for name, result in read_results(kind, text, root).items()}


@pytest.mark.parametrize("runner", JUNIT)
def test_junit_of_each_runner_has_its_names(runner):
    text, expected = JUNIT[runner]
    assert outcomes("junit", text, "/work/repo") == expected


def test_a_failure_keeps_its_text_before_its_message():
    results = read_results("junit", PYTEST)
    assert results["tests.test_b::test_w"].message == "> assert a\nE assert 1"
    assert results["tests.test_b::test_fixture"].message == "setup"
    assert results["tests/test_a.py::test_z"].message == ""


def case(name, inner=""):
    return f'<testcase classname="t" name="{name}">{inner}</testcase>'


@pytest.mark.parametrize(
    ("inner", "worst"),
    [
        (["", "<skipped/>"], S),
        (["<skipped/>", ""], S),
        (["<failure/>", "", "<skipped/>"], F),
        (["", "<failure/>", "<error/>", ""], E),
    ],
)
def test_of_equal_names_the_worst_counts(inner, worst):
    text = f"<testsuite>{''.join(case('a', each) for each in inner)}</testsuite>"
    assert outcomes("junit", text) == {"t::a": worst}


@pytest.mark.parametrize(
    "name",
    [
        "test_a[&lt;object object at 0x7fae2c386020&gt;]", "test_a[0x7fae2c386020]", "runs at 2026-11-28T00:03:21",
        "keeps 1764288201123", "test_a[/tmp/pytest-of-me/x]", "test_a[550e8400-e29b-41d4-a716-446655440000]",
        "SUBFAILED[m] (i=1) tests/test_a.py::test_a", "test_a[m] (i=1)", "test_a (i=1, j=2)",
    ],
)  # fmt: skip
def test_names_that_change_from_run_to_run_are_left_out(name):
    assert outcomes("junit", f"<testsuite>{case(name)}{case('b')}</testsuite>") == {"t::b": P}


def test_ordinary_names_stay():
    names = ["test_a[0x10]", "waits 100 ms", "test_a[2026-11-28]", "f(a=1)", "test_a[o0]", "objects attach"]
    text = f"<testsuite>{''.join(map(case, names))}</testsuite>"
    assert list(outcomes("junit", text)) == [f"t::{name}" for name in names]


def test_a_report_that_was_cut_off_counts_as_far_as_it_goes():
    assert outcomes("junit", PYTEST[: PYTEST.index("tests.test_c")]) == dict(
        list(JUNIT["pytest"][1].items())[:3]
    )


@pytest.mark.parametrize(
    ("kind", "text", "problem"),
    [
        ("junit", "no XML", "is no XML"),
        ("junit", "<!DOCTYPE a><testsuite/>", "document type"),
        ("tap", "", "'tap'"),
    ],
)
def test_what_is_no_report_is_refused(kind, text, problem):
    with pytest.raises(ValueError, match=problem):
        outcomes(kind, text)


CARGO = """
running 3 tests
test a::keeps ... ok
test a::slow ... ignored
test b::fails - should panic ... FAILED

failures:

---- b::fails stdout ----
thread 'b::fails' panicked at src/b.rs:3:5:
assertion failed

failures:
    b::fails
"""


def test_cargo_prints_its_tests_and_their_panics():
    results = read_results("cargo", CARGO)
    assert {name: result.outcome for name, result in results.items()} == {
        "a::keeps": P,
        "a::slow": S,
        "b::fails": F,
    }
    assert "assertion failed" in results["b::fails"].message
    assert "failures:" not in results["b::fails"].message


def test_cargo_that_does_not_build_is_an_error():
    text = "   Compiling x\nerror[E0425]: cannot find value `a`\n --> src/b.rs:1:1\n\nmore\n"
    assert outcomes("cargo", text) == {"cargo build": E}


def test_long_messages_are_cut_in_the_middle():
    text = f"<testsuite>{case('a', '<failure>' + 'x' * 99_999 + 'end</failure>')}</testsuite>"
    message = read_results("junit", text)["t::a"].message
    assert len(message) < MESSAGE_CHARS + 20
    assert message.endswith("end")
