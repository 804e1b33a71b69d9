"""Outcomes out of what a test command reported, and reports that are not believed."""

import json

import pytest

from dgm.benchmarks.languages import Results
from dgm.benchmarks.results import BUILD, NO_TEST, Case, TestPlaces, find_elements, read_outcomes
from dgm.domain import Entry

MARK = "dgm_ab12"


def read(results, *reports, controls=(), names=None, files=(), **more):
    """Return the outcomes of reports, each a label and a text."""
    report = {
        "mark": MARK, "controls": controls, "reports": reports, "problem": "", "broken": {}, "code": 1, "output": "",
        "root": "/work", **more,
    }  # fmt: skip
    snapshot = {name: Entry(text.encode()) for name, text in dict(files).items()}
    return read_outcomes(results, report, names, snapshot, "/work")


# Reports in JUnit's XML.

FILES = {
    "tests/a_test.cpp": 'TEST(Half, Four) {}\nTEST_P(Half, Each) {}\nTEST_CASE("adds a::b") {}\n',
    "tests/b_test.cpp": "TEST(Twice, Same) {}\n",
    "tests/c_test.cpp": "TEST(Twice, Same) {}\n",
    "tests/d_test.cpp": 'TEST_CASE("grüßt") {}\n',
    "src/test/java/org/x/ParserTest.java": "package org.x;\nclass ParserTest { @Nested class Inner {} }\n",
    "src/test/kotlin/Two.kt": "package org.x\nclass TwoTest\nclass OtherTest\n",
    "A.java": "class A { static class BTest {} }\n",
    "BTest.java": "class BTest {}\n",
    "tests/CMakeLists.txt": "add_test(NAME plain COMMAND plain)\nadd_test(old old)\n",
}
PLACES = TestPlaces({name: Entry(text.encode()) for name, text in FILES.items()})


def case(group, name, inner=""):
    return f'<testcase classname="{group}" name="{name}">{inner}</testcase>'


def suite(*cases):
    return "", f"<testsuite>{''.join(cases)}</testsuite>"


FAILS = "<failure>no</failure>"
CONTROL = case(f"{MARK}_0", "Fails", FAILS)
REAL = case("Half", "Four")
WATCHED = [("tests/a_test.cpp", "")]


def read_junit(*reports, controls=WATCHED, **more):
    return read(Results.JUNIT, *reports, controls=controls, files=FILES, **more)


@pytest.mark.parametrize(
    ("reported", "place"),
    [
        ("Half::Four", ("tests/a_test.cpp", "Half.Four")),
        ("Half.Four", ("tests/a_test.cpp", "Half.Four")),
        ("All/Half::Each/0", ("tests/a_test.cpp", "All/Half.Each/0")),
        ("all.global::adds a::b", ("tests/a_test.cpp", "adds a::b")),
        ("adds a::b/twice", ("tests/a_test.cpp", "adds a::b/twice")),
        ("all::grüßt", ("tests/d_test.cpp", "grüßt")),
        ("x::  Scenario: adds a::b", ("tests/a_test.cpp", "adds a::b")),
        ("org.x.ParserTest::reads", ("src/test/java/org/x/ParserTest.java", "reads")),
        ("org.x.ParserTest$Inner::reads(String)[1]",
         ("src/test/java/org/x/ParserTest.java", "Inner.reads(String)[1]")),
        ("org.x.OtherTest::reads x", ("src/test/kotlin/Two.kt", "reads x")),
        ("BTest::b", ("BTest.java", "b")),
        ("org.y.ParserTest::reads", None),
        ("plain", ("tests/CMakeLists.txt", "plain")),
        ("old", ("tests/CMakeLists.txt", "old")),
        ("Twice::Same", None),
        ("Other::Four", None),
    ],
)  # fmt: skip
def test_a_reported_test_belongs_to_the_one_file_that_has_it(reported, place):
    found = PLACES.place(Case(reported, "passed"))
    assert ((found.file, found.test) if found.file else None) == place


def test_of_several_reports_the_worst_counts():
    failed = case("Half", "Four", "<failure>/work/tests/a_test.cpp:1: Half</failure>")
    found = read_junit(suite(REAL, CONTROL), suite(failed))
    assert found.outcomes == {"tests/a_test.cpp::Half.Four": "failed"}
    assert found.messages == {"tests/a_test.cpp::Half.Four": "tests/a_test.cpp:1: Half"}
    assert not found.problem


@pytest.mark.parametrize("control", ["", CONTROL.replace(FAILS, "<skipped/>")])
def test_tests_without_their_control_are_left_out(control):
    assert read_junit(suite(REAL, control, case("plain", "plain"))).outcomes == {
        "tests/CMakeLists.txt::plain": "passed"
    }


def test_files_without_controls_count_as_they_are_reported():
    assert read_junit(suite(REAL), controls=[]).outcomes == {"tests/a_test.cpp::Half.Four": "passed"}


def test_a_control_that_passes_shows_tampering():
    found = read_junit(suite(REAL, CONTROL.replace(FAILS, "")))
    assert not found.outcomes
    assert "were tampered with" in found.problem
    assert found.broken == {BUILD: found.problem}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"output": "[ 50%]\n/work/a.cpp:1: error: 'x' was not declared\nmake: *** Error 2\n"},
         "/work/a.cpp:1: error: 'x' was not declared"),
        ({}, "the command wrote no report (exit status 1)"),
    ],
)  # fmt: skip
def test_a_command_without_a_result_shows_why(more, reason):
    found = read_junit(**more)
    assert (found.broken, found.problem) == ({BUILD: reason}, "no test ran (exit status 1)")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no XML", "is no XML"),
        ("<!DOCTYPE a><testsuite/>", "document type"),
        (" <?xml version='1.0'?><!-- x --><!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "document type"),
        ("<a/>" * 1_000_001, "longer than any tool writes"),
    ],
)
def test_what_no_tool_writes_is_refused(text, problem):
    with pytest.raises(ValueError, match=problem):
        list(find_elements(text, "testcase"))
    assert problem in read_junit(("", text)).problem


def test_a_long_name_is_cut():
    report = suite(CONTROL, case("Half", "Each/" + "/" * 20_000))
    (name,) = read_junit(report).outcomes
    assert len(name) < 10_100


def test_a_report_that_breaks_off_counts_as_far_as_it_goes():
    text = suite(case("a", "one"), case("b", "two", FAILS), case("c", "three"))[1]
    numbers = set()
    for end in range(0, len(text), 2):
        try:
            names = [element.get("name") for element in find_elements(text[:end], "testcase")]
        except ValueError:
            continue
        assert names == ["one", "two", "three"][: len(names)]
        numbers.add(len(names))
    assert numbers >= {1, 2}


def test_what_tools_copy_out_of_tests_is_read_as_it_is_meant():
    text = suite(case("a", "one", "<failure>\x1b[31mred\x00 ]]> &amp;</failure>"))[1]
    (failure,) = [element.findtext("failure") for element in find_elements(text, "testcase")]
    assert failure == "\ufffd[31mred\ufffd ]]> &"


# jest and vitest.


def jest(*tests, **suite):
    results = [
        {"ancestorTitles": ["sums"], "title": title, "status": status, "failureMessages": ["at /work/a"]}
        for title, status in tests
    ]
    return "", json.dumps(
        {"testResults": [{"name": "/work/test/a.js", "assertionResults": results, **suite}]}
    )


def test_tests_of_jest_have_their_titles():
    tests = [("adds", "passed"), ("halves", "failed"), ("waits", "todo"), (f"{MARK}_0", "failed")]
    found = read(Results.JEST, jest(*tests), controls=[("test/a.js", "")])
    assert found.outcomes == {
        "test/a.js::sums > adds": "passed",
        "test/a.js::sums > halves": "failed",
        "test/a.js::sums > waits": "skipped",
    }
    assert found.messages == {"test/a.js::sums > halves": "at a"}


def test_node_reports_each_file_by_itself():
    text = jest(("four", "passed"), (f"{MARK}_0", "failed"))[1].replace('"name": "/work/test/a.js", ', "")
    assert read(Results.JEST, ("test/b.js", text), controls=[("test/b.js", "")]).outcomes == {
        "test/b.js::sums > four": "passed"
    }


def test_a_file_of_jest_that_cannot_be_run_is_broken():
    assert read(Results.JEST, jest(message="no module x")).broken["test/a.js"] == "no module x"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"testResults": 1}', "{"])
def test_nonsense_of_jest_holds_no_test(text):
    assert not read(Results.JEST, ("", text)).outcomes


@pytest.mark.parametrize("text", ["[" * 200_000, "{" + " " * 77 + "x", "9" * 9999])
def test_what_is_no_json_tells_nothing_of_itself(text):
    assert read(Results.JEST, ("", text)).problem == "the report of the tests is no JSON"


# Go.

GO_CONTROL = f"Test_{MARK}_0"


def go(*events, printed=""):
    lines = [json.dumps({"Action": action, "Test": test}) for action, test in events]
    return "sums", "\n".join([printed, *lines, json.dumps({"Action": "fail"})])


def read_go(*reports, **more):
    functions = {"sums": {"TestHalf": "sums/a_test.go", "TestTwice": "sums/b_test.go"}}
    return read(Results.GO_JSON, *reports, functions=functions, controls=[("sums", "")], **more)


def test_tests_of_go_have_their_files_and_subtests():
    events = [("fail", GO_CONTROL), ("pass", "TestHalf/of_four"), ("fail", "TestHalf"), ("skip", "TestTwice")]
    assert read_go(go(*events)).outcomes == {
        "sums/a_test.go::TestHalf/of_four": "passed",
        "sums/a_test.go::TestHalf": "failed",
        "sums/b_test.go::TestTwice": "skipped",
    }


@pytest.mark.parametrize(
    ("events", "outcomes"),
    [
        ([("pass", "TestHalf")], {}),
        ([("pass", GO_CONTROL), ("pass", "TestHalf")], {}),
        ([("fail", GO_CONTROL), ("pass", "TestHalf"), ("pass", "TestHalf")], {"sums/a_test.go::TestHalf": "failed"}),
        ([("fail", GO_CONTROL), ("run", "TestHalf")], {"sums/a_test.go::TestHalf": "failed"}),
    ],
)  # fmt: skip
def test_nothing_else_of_go_passes(events, outcomes):
    assert read_go(go(*events)).outcomes == outcomes


def test_odd_events_of_go_are_passed_over():
    odd = '{"Action": ["fail"], "Test": "TestHalf"}\n{"Action": {}, "Test": 1}'
    events = [("fail", GO_CONTROL), ("pass", "TestHalf")]
    assert read_go(go(*events, printed=odd)).outcomes == {"sums/a_test.go::TestHalf": "passed"}
    assert "longer than any tool" in read_go(go(*events, printed="\n" * 1_000_001)).problem


def test_a_start_that_ended_before_its_control_proves_nothing_to_another():
    first, second = go(("pass", "TestHalf")), go(("fail", GO_CONTROL), ("pass", "TestTwice"))
    assert read_go(first, second).outcomes == {"sums/b_test.go::TestTwice": "passed"}


def test_a_package_of_go_that_does_not_build_is_broken():
    found = read_go(("sums", "# x/sums\nsums/a.go:3: undefined: y\n"))
    assert "undefined: y" in found.broken["sums/a_test.go"]


# cargo.

HEAD = "     Running unittests src/lib.rs (target/debug/deps/sums-1)\n\nrunning 4 tests\n"
RUST_CONTROL = f"test tests::{MARK}_0 ... FAILED\n"
RUST_TEST = "test tests::halves ... ok\n"
END = "\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n"


def read_cargo(text):
    controls = [["src/lib.rs", "tests"], ["tests/all.rs", ""]]
    return read(Results.CARGO, ("", text), controls=controls, code=101, output=text)


def test_names_of_cargo_are_those_of_files_and_modules():
    second = (
        HEAD + RUST_CONTROL.replace("tests::", "").replace("_0 ", "_1 ") + "test deep::odd ... FAILED\n" + END
    )
    found = read_cargo(HEAD + RUST_TEST + RUST_CONTROL + END + second)
    assert found.outcomes == {"src/lib.rs::tests::halves": "passed", "tests/all.rs::deep::odd": "failed"}
    assert not found.problem


def test_tests_of_cargo_without_their_controls_are_left_out():
    found = read_cargo(HEAD + RUST_TEST + "test other::one ... ok\n" + RUST_CONTROL + END)
    assert found.outcomes == {"src/lib.rs::tests::halves": "passed"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (HEAD + RUST_TEST + RUST_CONTROL, "a program of the tests ended early"),
        (HEAD + RUST_TEST + RUST_CONTROL.replace("FAILED", "ok") + END, "were tampered with"),
        (HEAD + RUST_TEST + END, "no test ran"),
        ("", "no test ran"),
    ],
)
def test_a_forged_report_of_cargo_counts_as_nothing(text, problem):
    found = read_cargo(text)
    assert not found.outcomes
    assert problem in found.problem


def test_more_prefixes_than_controls_are_passed_over():
    forged = "".join(f"test a{n}{MARK}_0 ... FAILED\n" for n in range(2))
    assert not read_cargo(HEAD + forged + RUST_TEST + RUST_CONTROL + END).outcomes


def test_a_number_that_no_control_has_is_no_control():
    found = read_cargo(
        HEAD + RUST_TEST + RUST_CONTROL + f"test tests::{MARK}_{'9' * 5000} ... FAILED\n" + END
    )
    assert found.outcomes["src/lib.rs::tests::halves"] == "passed"


def test_what_fails_in_rust_shows_its_panic():
    printed = "\nfailures:\n\n---- tests::halves stdout ----\nthread panicked\n\nfailures:\n"
    found = read_cargo(HEAD + RUST_TEST.replace("ok", "FAILED") + RUST_CONTROL + printed + END)
    assert found.messages == {"src/lib.rs::tests::halves": "thread panicked\n"}


def test_a_build_of_rust_that_fails_shows_the_compilers_error():
    found = read_cargo("   Compiling sums\nerror[E0425]: cannot find function `third`\n --> src/lib.rs:3\n")
    assert found.broken == {BUILD: "error[E0425]: cannot find function `third`"}
    assert "exit status 101" in found.problem


# pytest.

CONTROLS = [{"test": name, "outcome": "failed"} for name in ("c1", "c2")]
ENDED = {"end": True}


def read_pytest(*lines, names=("a", "b"), code=0, problem=""):
    report = json.dumps(lines)
    return read(Results.PYTEST, ("", report), controls=["c1", "c2"], names=names, code=code, problem=problem)


def test_what_the_plug_in_reports_once_counts():
    lines = [
        {"test": "a", "outcome": "passed"},
        {"test": "b", "outcome": "odd"},
        {"test": "x", "outcome": "passed"},
    ]
    found = read_pytest(*lines, *CONTROLS, ENDED)
    assert (found.outcomes, found.problem) == ({"a": "passed", "b": "failed"}, "")
    again = read_pytest(*lines, lines[0], *CONTROLS, ENDED)
    assert again.outcomes["a"] == "reported twice"


@pytest.mark.parametrize(
    ("lines", "code", "problem"),
    [
        ([ENDED], 0, "were tampered with: one that must fail did not"),
        ([CONTROLS[0], ENDED], 0, "were tampered with: one that must fail did not"),
        ([*CONTROLS], 0, "the tests ended early (exit status 0)"),
        ([*CONTROLS], 42, "the tests ended early (exit status neither 0 nor 1)"),
        ([*CONTROLS, ENDED], 1, "the tests ended early (exit status 1)"),
    ],
)  # fmt: skip
def test_a_process_of_pytest_that_ends_otherwise_is_not_believed(lines, code, problem):
    assert problem in read_pytest({"test": "a", "outcome": "passed"}, *lines, code=code).problem


def test_a_survey_that_is_cut_off_keeps_what_it_has():
    found = read_pytest({"test": "a", "outcome": "passed"}, names=None, code=1)
    assert found.outcomes == {"a": "passed"}
    assert NO_TEST not in found.outcomes
