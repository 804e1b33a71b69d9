"""What each language's tool says, read back, and how its tests are prepared."""

import pytest

from dgm.benchmarks.polyglot_languages import LANGUAGES
from dgm.benchmarks.polyglot_plan import Room
from dgm.benchmarks.polyglot_reports import (
    catch_xml,
    go_lines,
    junit_xml,
    reporter_lines,
    rust_lines,
    unmarked,
)
from dgm.benchmarks.test_outcomes import TestOutcome
from dgm.domain import Entry

MARK = "q0123456789abcdef"
ROOM = Room("two-tides", "/work/two-tides", "/work/f00d", "/job", MARK)


def prepared(language, name, text):
    plan = LANGUAGES[language].plan(ROOM, {name: Entry(text.encode())})
    return plan.tests[name].data.decode()


def outcomes(report):
    return {name: result.outcome for name, result in report.results.items()}


def test_marks_are_taken_out_of_names():
    assert unmarked(f"TestA_{MARK}", MARK) == "TestA"
    assert unmarked(f"{MARK}::a", MARK) == "a"
    assert unmarked(f"Scenario: {MARK} a b", MARK) == "Scenario: a b"


@pytest.mark.parametrize(
    ("text", "ready"),
    [
        ("xtest('a', f)", "test('a', f)"),
        ("xit('a', f)", "it('a', f)"),
        ("test.skip('a', f)", "test('a', f)"),
        ("it.skip('a', f)", "it('a', f)"),
        ("xdescribe('a', f)", "describe('a', f)"),
        ("describe.skip('a', f)", "describe('a', f)"),
        ("xtest.each([1])('a', f)", "test.each([1])('a', f)"),
        ("const next = extest('a')", "const next = extest('a')"),
    ],
)
def test_javascript_is_unskipped(text, ready):
    assert prepared("javascript", "a.spec.js", text).startswith(ready + "\n")


def test_java_is_unskipped():
    text = '@Disabled("Remove to run test")\n@Test void a() {}\n@Disabled\n@Test void b() {}'
    assert prepared("java", "src/test/java/ATest.java", text) == "\n@Test void a() {}\n\n@Test void b() {}"


def test_python_is_unskipped_where_it_always_skips():
    text = "@unittest.skip('later')\ndef test_a(): pass\n@unittest.skipIf(x, 'y')\ndef test_b(): pass\n"
    assert prepared("python", "a_test.py", text) == text.split("\n", 1)[1]


def test_expected_names():
    def names(language, text):
        return list(LANGUAGES[language].expected({"t": Entry(text.encode())}))

    assert names(
        "go", "func TestA(t *testing.T) {\nfunc Testa(t *testing.T) {\nfunc TestMain(m *testing.M) {"
    ) == ["TestA"]
    assert names("rust", "#[test]\n#[ignore]\nfn a() {}\n// #[test]\nfn b() {}\n#[test] fn c() {}") == [
        "a",
        "c",
    ]
    assert names("cpp", 'TEST_CASE("a b", "[x]") {\n// TEST_CASE("no")\n  TEST_CASE("c") {') == ["a b", "c"]
    assert names(
        "java", '@Test\n@DisplayName("x")\npublic void a() {}\n@ParameterizedTest\nvoid b(int n) {}'
    ) == ["a", "b"]
    assert names("javascript", "test('a b', f)\n  xit(\"c\", f)\n// test('no')\ntest(`n ${n}`, f)") == [
        "a b",
        "c",
    ]
    assert names(
        "python", "class ATest(unittest.TestCase):\n    def test_a(self): pass\n    def help(self): pass\n"
    ) == ["ATest.test_a"]


def test_lines_of_our_reporters_count_only_under_the_mark():
    text = (
        f'{MARK} {{"test": "a", "outcome": "passed"}}\n{{"test": "b", "outcome": "passed"}}\n'
        f'{MARK} {{"test": "c", "outcome": "failed", "message": "no"}}\n{MARK} not json\n'
        f'{MARK} {{"test": "x {MARK}_control", "outcome": "failed"}}\n'
    )
    report = reporter_lines(text, "", MARK)
    assert outcomes(report) == {"a": TestOutcome.PASSED, "c": TestOutcome.FAILED}
    assert report.results["c"].message == "no"
    assert report.control is TestOutcome.FAILED


def test_go_lines_with_output_before_them():
    text = (
        f"noise\x16--- PASS: TestA_{MARK} (0.00s)\n--- PASS: TestForged (0.00s)\n"
        f"\x16--- FAIL: TestB_{MARK} (0.00s)\n\x16    --- FAIL: TestB_{MARK}/part_one (0.00s)\n"
        f"\x16--- FAIL: TestC_{MARK}_control (0.00s)\n"
    )
    report = go_lines("", text, MARK)
    assert outcomes(report) == {"TestA": TestOutcome.PASSED, "TestB": TestOutcome.FAILED}
    assert report.results["TestB"].message == "fails in part_one"
    assert report.control is TestOutcome.FAILED


def test_rust_events_with_output_before_them():
    text = (
        f'x{{ "type": "test", "event": "started", "name": "{MARK}::a" }}\n'
        f'noise{{ "type": "test", "name": "{MARK}::a", "event": "ok" }}\n'
        f'{{ "type": "test", "name": "{MARK}::m::b", "event": "failed", "stdout": "panicked in {MARK}::m::b" }}\n'
        f'{{ "type": "test", "name": "{MARK}::{MARK}_control", "event": "failed" }}\n{{ "type": "test", {MARK}\n'
    )
    report = rust_lines("", text, MARK)
    assert outcomes(report) == {"a": TestOutcome.PASSED, "m::b": TestOutcome.FAILED}
    assert report.results["m::b"].message == "panicked in m::b"
    assert report.control is TestOutcome.FAILED


def test_catch_report_that_is_cut_off_counts_as_far_as_it_goes():
    text = (
        f'<?xml version="1.0"?><Catch><TestCase name="{MARK} a"><OverallResult success="true"/>'
        f'</TestCase><TestCase name="{MARK} b"><Expression success="false"><Original> f(1) == 2 </Original>'
        f'<Expanded> 1 == 2 </Expanded></Expression><OverallResult success="false"/></TestCase>'
        f'<TestCase name="{MARK} c">'
    )
    report = catch_xml(text, "", MARK)
    assert outcomes(report) == {"a": TestOutcome.PASSED, "b": TestOutcome.FAILED}
    assert report.results["b"].message == "f(1) == 2  is  1 == 2"
    assert report.control is None


def test_junit_report_of_several_documents():
    text = (
        '<testsuite><testcase name="a()" classname="ATest"/><testcase name="b(int)[1]" classname="ATest"/>'
        '<testcase name="b(int)[2]" classname="ATest"><failure message="expected 1"/></testcase>'
        '<testcase name="c()" classname="ATest"><skipped/></testcase></testsuite>\n\0\n'
        f'<testsuite><testcase name="fails()" classname="C{MARK}_control"><failure/></testcase></testsuite>\n\0\n'
    )
    report = junit_xml(text, "", MARK)
    assert outcomes(report) == {"a": TestOutcome.PASSED, "b": TestOutcome.FAILED, "c": TestOutcome.SKIPPED}
    assert report.control is TestOutcome.FAILED


def test_reports_with_entities_are_not_read():
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa">]><testsuite><testcase name="a()" classname="&a;"/></testsuite>'
    assert outcomes(junit_xml(bomb, "", MARK)) == {}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("text", ["", "\0\xff", "<a>", MARK * 3, f"{MARK} []", f"{MARK} {{}}"])
def test_nonsense_is_no_result(language, text):
    report = LANGUAGES[language].read(text, text, MARK)
    assert outcomes(report) == {}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("shape", ["{}", '{{"a": {}}}'])
def test_depth_that_no_reader_can_follow_is_no_result(language, shape):
    deep = shape.format("[" * 100_000)
    text = f'{MARK} {deep}\n{{ "type": "test", "name": {deep} }}\n'
    assert outcomes(LANGUAGES[language].read(text, text, MARK)) == {}


@pytest.mark.parametrize("outcome", ["", ', "outcome": "excellent"', ', "outcome": []'])
def test_an_outcome_that_nobody_knows_is_a_failure(outcome):
    assert outcomes(reporter_lines(f'{MARK} {{"test": "a"{outcome}}}', "", MARK)) == {"a": TestOutcome.FAILED}


def test_half_of_a_surrogate_pair_can_be_written_afterwards():
    line = f'{MARK} {{"test": "a\\ud800", "outcome": "failed", "message": "\\udfff"}}'
    report = reporter_lines(f'{line}\n{MARK} {{"broken": "\\ud800"}}', "", MARK)
    assert outcomes(report) == {"a?": TestOutcome.FAILED}
    assert (report.results["a?"].message, report.broken) == ("?", "?")


@pytest.mark.parametrize("encoding", ["utf-7", "shift_jis", "nonsense", "utf-16"])
@pytest.mark.parametrize("read", [catch_xml, junit_xml])
def test_a_report_in_a_strange_encoding_is_not_read(read, encoding):
    text = f'<?xml version="1.0" encoding="{encoding}"?><testsuite></testsuite>'
    assert outcomes(read(text, "", MARK)) == {}
