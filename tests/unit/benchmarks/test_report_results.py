"""Outcomes out of JUnit reports that a command writes, and reports that are not believed."""

import base64
import json
import zlib

import pytest

from dgm.benchmarks.report_results import BUILD, TestPlaces, read_reports
from dgm.domain import Entry

MARK = "dgm_ab12"
FILES = {
    "tests/a_test.cpp": 'TEST(Half, Four) {}\nTEST_P(Half, Each) {}\nTEST_CASE("adds a::b") {}\n',
    "tests/b_test.cpp": "TEST(Twice, Same) {}\n",
    "tests/c_test.cpp": "TEST(Twice, Same) {}\n",
    "tests/d_test.cpp": 'TEST_CASE("grüßt") {}\n',
    "src/test/java/org/x/ParserTest.java": "package org.x;\nclass ParserTest { @Nested class Inner {} }\n",
    "src/test/kotlin/Two.kt": "package org.x\nclass TwoTest\nclass OtherTest\n",
    "tests/CMakeLists.txt": "add_test(NAME plain COMMAND plain)\nadd_test(old old)\n",
}
SNAPSHOT = {name: Entry(text.encode()) for name, text in FILES.items()}


def pack(data):
    return base64.b64encode(zlib.compress(data)).decode()


def case(group, name, inner=""):
    return f'<testcase classname="{group}" name="{name}">{inner}</testcase>'


CONTROL = case(f"{MARK}c_0", "Fails", "<failure>no</failure>")
REAL = case("Half", "Four")


def read(*reports, problem="", controls=(("tests/a_test.cpp", ""),), said=""):
    record = {
        "mark": MARK,
        "controls": controls,
        "problem": problem,
        "code": 1,
        "said": pack(said.encode()),
        "reports": pack(json.dumps([f"<testsuite>{text}</testsuite>" for text in reports]).encode()),
    }
    return read_reports(record, SNAPSHOT, "/work")


@pytest.mark.parametrize(
    ("reported", "place"),
    [
        ("Half::Four", ("tests/a_test.cpp", "Half.Four", "Half.Four")),
        ("Half.Four", ("tests/a_test.cpp", "Half.Four", "Half.Four")),
        ("All/Half::Each/0", ("tests/a_test.cpp", "Half.Each", "All/Half.Each/0")),
        ("all.global::adds a::b", ("tests/a_test.cpp", "adds a::b", "adds a::b")),
        ("adds a::b/twice", ("tests/a_test.cpp", "adds a::b", "adds a::b/twice")),
        ("all::grüßt", ("tests/d_test.cpp", "grüßt", "grüßt")),
        ("org.x.ParserTest::reads", ("src/test/java/org/x/ParserTest.java", "reads", "reads")),
        (
            "org.x.ParserTest$Inner::reads(String)[1]",
            ("src/test/java/org/x/ParserTest.java", "reads", "Inner.reads(String)[1]"),
        ),
        ("org.x.OtherTest::reads x", ("src/test/kotlin/Two.kt", "reads x", "reads x")),
        ("org.y.ParserTest::reads", None),
        ("plain", ("tests/CMakeLists.txt", "", "plain")),
        ("old", ("tests/CMakeLists.txt", "", "old")),
        ("Twice::Same", None),
        ("Other::Four", None),
        ("command", None),
    ],
)
def test_a_test_belongs_to_the_one_file_that_has_it(reported, place):
    assert TestPlaces(SNAPSHOT).find(reported) == place


def test_what_catch_puts_before_a_scenario_is_left_out():
    assert TestPlaces(SNAPSHOT).find("  Scenario: adds a::b") == (
        "tests/a_test.cpp",
        "adds a::b",
        "adds a::b",
    )


def test_of_several_reports_the_worst_counts():
    failed = case("Half", "Four", "<failure>/work/tests/a_test.cpp:1: Half</failure>")
    found = read(REAL + CONTROL, failed)
    assert found.outcomes == {"tests/a_test.cpp::Half.Four": "failed"}
    assert found.messages == {"tests/a_test.cpp::Half.Four": "tests/a_test.cpp:1: Half"}
    assert not found.problem


def test_tests_of_a_file_without_its_control_are_left_out():
    assert read(REAL + case("plain", "plain")).outcomes == {"tests/CMakeLists.txt::plain": "passed"}


def test_a_control_that_passes_tells_of_tampering():
    found = read(REAL + CONTROL.replace("<failure>no</failure>", "", 1))
    assert not found.outcomes
    assert "were tampered with" in found.problem
    assert found.broken == {BUILD: found.problem}


def test_a_control_that_is_skipped_leaves_its_file_out():
    found = read(REAL + CONTROL.replace("<failure>no</failure>", "<skipped/>"), case("plain", "plain"))
    assert found.outcomes == {"tests/CMakeLists.txt::plain": "passed"}
    assert not found.problem


def test_files_without_controls_are_taken_as_they_are_reported():
    assert read(case("Half", "Four"), controls=()).outcomes == {"tests/a_test.cpp::Half.Four": "passed"}


def test_a_build_that_fails_tells_the_compilers_error():
    found = read(said="[ 50%] Building\n/work/a.cpp:1: error: 'x' was not declared\nmake: *** Error 2\n")
    assert found.broken == {BUILD: "/work/a.cpp:1: error: 'x' was not declared"}
    assert "no test ran (exit status 1)" in found.problem


def test_what_is_no_report_is_told():
    assert "no XML" in read("<testcase").problem


JAVA = {
    "test/BaseTest.java": "package x;\nimport org.junit.Test;\nabstract class BaseTest { @Test public void a() {} }\n",
    "test/SubTest.java": "package x;\nclass SubTest extends BaseTest {}\n",
}


@pytest.mark.parametrize(("control", "told"), [(True, ["test/SubTest.java::a"]), (False, [])])
def test_inherited_tests_count_with_the_control_of_their_class(control, told):
    cases = [case("x.SubTest", "a")]
    cases += [case("x.SubTest", f"{MARK}c_0", "<failure>no</failure>")] if control else []
    record = {
        "mark": MARK,
        "controls": [("test/BaseTest.java", "")],
        "problem": "",
        "code": 1,
        "said": "",
        "reports": pack(json.dumps([f"<testsuite>{''.join(cases)}</testsuite>"]).encode()),
    }
    files = {name: Entry(text.encode()) for name, text in JAVA.items()}
    assert sorted(read_reports(record, files, "/work").outcomes) == told


def test_of_two_classes_of_a_name_that_of_the_file_counts():
    files = {
        "A.java": Entry(b"class A { static class BTest {} }\n"),
        "BTest.java": Entry(b"class BTest {}\n"),
    }
    assert TestPlaces(files).find("BTest::b") == ("BTest.java", "b", "b")


def test_a_command_that_writes_no_report_is_told():
    found = read()
    assert found.broken == {BUILD: "the command wrote no file that --report names (exit status 1)"}
