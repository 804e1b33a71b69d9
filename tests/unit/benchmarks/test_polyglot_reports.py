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
from dgm.benchmarks.test_outcomes import TestOutcome, TestResult
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


@pytest.mark.parametrize(
    "outcomes_of_controls", [("passed", "failed"), ("failed", "passed"), ("failed", "skipped")]
)
def test_of_several_controls_the_one_that_does_not_fail_is_told(outcomes_of_controls):
    text = "".join(
        f'{MARK} {{"test": "{number} {MARK}_control", "outcome": "{outcome}"}}\n'
        for number, outcome in enumerate(outcomes_of_controls)
    )
    assert reporter_lines(text, "", MARK).control is not TestOutcome.FAILED
    assert reporter_lines(
        text.replace("passed", "failed").replace("skipped", "failed"), "", MARK
    ).control is (TestOutcome.FAILED)


def test_a_rust_test_that_did_not_end_has_failed_however_the_others_did():
    text = (
        f'{{ "type": "test", "event": "started", "name": "{MARK}::made_by_a_macro" }}\n'
        f'{{ "type": "test", "event": "started", "name": "elsewhere" }}\n'
        f'{{ "type": "test", "name": "{MARK}::a", "event": "ok" }}\n'
    )
    assert outcomes(rust_lines("", text, MARK)) == {
        "a": TestOutcome.PASSED,
        "made_by_a_macro": TestOutcome.FAILED,
    }


def test_an_error_of_a_java_test_is_a_failure_with_its_message_alone():
    case = '<testcase name="a()" classname="ATest"><error message="no">at ATest.a</error></testcase>'
    assert junit_xml(f"<testsuite>{case}</testsuite>", "", MARK).results == {
        "a": TestResult(TestOutcome.FAILED, "no")
    }


def test_marks_are_taken_out_of_messages_before_they_are_cut():
    said = f"{MARK}::a" * 1000
    report = reporter_lines(f'{MARK} {{"test": "a", "outcome": "failed", "message": "{said}"}}', "", MARK)
    assert report.results["a"].message == "a" * 1000


def test_a_document_that_is_no_report_hides_no_other():
    text = (
        '<!DOCTYPE a><a/>\n\0\n<a>\n\0\n<testsuite><testcase name="a()" classname="ATest"/></testsuite>\n\0\n'
    )
    assert outcomes(junit_xml(text, "", MARK)) == {"a": TestOutcome.PASSED}


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
def test_a_report_in_a_strange_encoding_is_read_as_the_text_that_came(encoding):
    head = f'<?xml version="1.0" encoding="{encoding}"?>'
    case = '<testsuite><testcase name="ä()" classname="ATest"/></testsuite>'
    assert outcomes(junit_xml(head + case, "", MARK)) == {"ä": TestOutcome.PASSED}
    case = f'<Catch><TestCase name="{MARK} ä"><OverallResult success="true"/></TestCase></Catch>'
    assert outcomes(catch_xml(head + case, "", MARK)) == {"ä": TestOutcome.PASSED}
