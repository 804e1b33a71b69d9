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


CONTROLS = "".join(case(f"{MARK}c_0_{letter}", "Fails", "<failure>no</failure>") for letter in "abc")
REAL = case("Half", f"{MARK}_Four")


def read(*reports, problem="", controls=(("tests/a_test.cpp", "abc"),), said=""):
    record = {
        "mark": MARK,
        "controls": controls,
        "marked": {"tests/a_test.cpp": ["Half.Four", "Half.Each", "adds a::b"]} if controls else {},
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


@pytest.mark.parametrize(
    ("reported", "name"),
    [
        (f"unit.{MARK}_adds a::b", "adds a::b"),
        (f"  Scenario: {MARK}_adds a::b/Given: x", "adds a::b/Given: x"),
        ("  Scenario: adds a::b", "adds a::b"),
        (f"unit.Half.{MARK}_Four", "Half.Four"),
    ],
)
def test_what_a_declaration_puts_before_a_name_is_left_out(reported, name):
    found = TestPlaces(SNAPSHOT).find(reported, f"{MARK}_")
    assert found
    assert (found[0], found[2]) == ("tests/a_test.cpp", name)


def test_of_several_reports_the_worst_counts():
    failed = case("Half", f"{MARK}_Four", "<failure>/work/tests/a_test.cpp:1: Half</failure>")
    found = read(REAL + CONTROLS, failed)
    assert found.outcomes == {"tests/a_test.cpp::Half.Four": "failed"}
    assert found.messages == {"tests/a_test.cpp::Half.Four": "tests/a_test.cpp:1: Half"}
    assert not found.problem


def test_tests_of_a_file_without_its_controls_are_left_out():
    plain = case("plain", "plain")
    assert read(REAL + plain).outcomes == {"tests/CMakeLists.txt::plain": "passed"}
    assert read(REAL + plain + CONTROLS.replace("c_0_c", "d")).outcomes == {
        "tests/CMakeLists.txt::plain": "passed"
    }


def test_a_control_that_passes_tells_of_tampering():
    found = read(REAL + CONTROLS.replace("<failure>no</failure>", "", 1))
    assert not found.outcomes
    assert "were tampered with" in found.problem
    assert found.broken == {BUILD: found.problem}


def test_a_control_that_is_skipped_leaves_its_file_out():
    found = read(REAL + CONTROLS.replace("<failure>no</failure>", "<skipped/>"), case("plain", "plain"))
    assert found.outcomes == {"tests/CMakeLists.txt::plain": "passed"}
    assert not found.problem


def test_a_report_without_the_mark_is_a_failure():
    assert read(case("Half", "Four") + CONTROLS).outcomes == {"tests/a_test.cpp::Half.Four": "failed"}


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


@pytest.mark.parametrize(
    ("names", "controls", "told"),
    [
        ((f"{MARK}_a",), "ab", ["test/SubTest.java::a"]),
        (("a",), "ab", []),
        ((f"{MARK}_a",), "a", []),
    ],
)
def test_inherited_tests_count_with_their_mark_and_the_controls_of_their_class(names, controls, told):
    cases = [case("x.SubTest", name) for name in names]
    cases += [case("x.SubTest", f"{MARK}c_0_{letter}", "<failure>no</failure>") for letter in controls]
    record = {
        "mark": MARK,
        "controls": [("test/BaseTest.java", "ab")],
        "marked": {"test/BaseTest.java": ["a"]},
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


def test_tests_of_the_jvm_stand_in_the_order_of_their_files():
    text = "import org.junit.Test;\nclass ATest { @Test void b() {} @Test void a() {} }\n"
    names = (f"{MARK}_a", f"{MARK}_b[1]", f"{MARK}_b[0]")
    record = {
        "mark": MARK,
        "controls": [],
        "marked": {"ATest.java": ["a", "b"]},
        "problem": "",
        "code": 0,
        "said": "",
        "reports": pack(
            json.dumps([f"<testsuite>{''.join(case('ATest', name) for name in names)}</testsuite>"]).encode()
        ),
    }
    outcomes = read_reports(record, {"ATest.java": Entry(text.encode())}, "/work").outcomes
    assert list(outcomes) == [f"ATest.java::{name}" for name in ("b[0]", "b[1]", "a")]
