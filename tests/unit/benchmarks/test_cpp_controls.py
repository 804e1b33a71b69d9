"""Cases of tests in C++: found, marked, and joined by cases that must fail."""

import pytest

from dgm.benchmarks.command_tools import REPORT
from dgm.benchmarks.cpp_controls import (
    CATCH,
    GOOGLE,
    find_case,
    find_cases,
    find_false_macros,
    find_framework,
    find_frameworks,
    find_friends,
    find_replaced,
    make_controls,
    mark_cases,
    reports_cases,
)
from dgm.benchmarks.named_tests import is_restored
from dgm.benchmarks.runners import RUNNERS

TEXT = """\
TEST(Half, Four) { EXPECT_EQ(half(4), 2); }
TEST_F( Whole , Two ) {}
TEST_CASE("reads \\"x\\"", "[tag]") {}
"""


@pytest.mark.parametrize(
    ("include", "framework"),
    [
        ("<gtest/gtest.h>", GOOGLE),
        ('"gmock/gmock.h"', GOOGLE),
        ("<catch2/catch_test_macros.hpp>", CATCH),
        ('"../third/catch.hpp"', CATCH),
        ('"doctest.h"', CATCH),
        ("<doctest/doctest.h>", CATCH),
        ("<doctest.hpp>", CATCH),
        ("<cassert>", ""),
        ('"mygtest.h"', ""),
    ],
)
def test_a_framework_is_known_by_what_a_file_includes(include, framework):
    assert find_framework(f"// x\n#  include {include}\n") == framework


def test_names_of_cases_get_a_mark_and_everything_else_stays():
    marked, names = mark_cases(TEXT, "m")
    assert names == ["Half.Four", "Whole.Two", 'reads "x"']
    assert [case.name for case in find_cases(marked)] == ["Half.m_Four", "Whole.m_Two", 'm_reads "x"']
    assert marked.replace("m_", "") == TEXT


def test_a_framework_is_known_through_other_files_of_tests():
    texts = {
        "tests/a_test.cpp": '#include "support/all.hpp"\n',
        "tests/support/all.hpp": '#include "../catch.hpp"\n',
        "tests/b_test.cpp": '#include "all.h"\n',
        "tests/catch.hpp": "",
    }
    assert find_frameworks(texts) == {"tests/a_test.cpp": CATCH, "tests/support/all.hpp": CATCH}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("TYPED_TEST(Sum, Zero) {}", ["Sum.Zero"]),
        ("GTEST_TEST(Sum, Zero) {}", ["Sum.Zero"]),
        ("TEST(Sum, DISABLED_Zero) {}", ["Sum.DISABLED_Zero"]),
        ('SCENARIO("reads", "[a]") {}', ["reads"]),
        ('TEST_CASE_METHOD(ns::Fix<int, 2>, "reads") {}', ["reads"]),
        ('TEST_CASE_FIXTURE(Fixture, "reads") {}', ["reads"]),
        ('TEMPLATE_TEST_CASE("reads", "[a]", int) {}', ["reads"]),
        ('TEMPLATE_LIST_TEST_CASE_METHOD(Fix, "reads", "[a]", All) {}', ["reads"]),
        ('TEST_CASE_TEMPLATE("reads", T, int) {}', ["reads"]),
        ('DOCTEST_TEST_CASE("reads") {}', ["reads"]),
        ("x = TEST(Sum, Zero);", []),
    ],
)
def test_cases_are_found_by_every_macro_that_declares_them(text, names):
    assert [case.name for case in find_cases(text)] == names


@pytest.mark.parametrize(
    ("reported", "found"),
    [
        ("Sum.Zero", ("Sum.Zero", "Sum.Zero")),
        ("unit.Sum.Zero", ("Sum.Zero", "Sum.Zero")),
        ("All/Sum::Zero/3", ("Sum.Zero", "All/Sum.Zero/3")),
        ("Sum/0::Zero", ("Sum.Zero", "Sum/0.Zero")),
        ("All/Sum/float::Zero", ("Sum.Zero", "All/Sum/float.Zero")),
        ("Sum.Zero<double>", ("Sum.Zero", "Sum.Zero<double>")),
        ("My.Zero<std::pair<int, x>>", ("Sum.Zero", "My.Zero<std::pair<int, x>>")),
        ("My.Zero", ("", "")),
        ("reads/from a file", ("reads", "reads/from a file")),
        ("reads/fast - int", ("reads/fast", "reads/fast - int")),
        ("reads<int>", ("reads", "reads<int>")),
        ("reads a file", ("", "")),
    ],
)
def test_a_reported_test_is_of_the_case_with_the_longest_name(reported, found):
    assert find_case(reported, ["Sum.Zero", "reads", "reads/fast"]) == found


def test_an_abstract_case_is_marked_where_it_is_registered_too():
    text = "TYPED_TEST_P(Sum, Zero) {}\nREGISTER_TYPED_TEST_SUITE_P(Sum, Zero);\nTYPED_TEST_P(Sum, Elsewhere) {}\n"
    marked, names = mark_cases(text, "m")
    assert marked == text.replace("Zero", "m_Zero")
    assert names == ["Sum.Zero"]


def test_a_case_that_is_switched_off_stays_so():
    assert mark_cases("TEST(Sum, DISABLED_Zero) {}", "m")[0] == "TEST(Sum, DISABLED_m_Zero) {}"


def test_friends_of_the_code_keep_their_names():
    friends = find_friends("class Sum {\n  FRIEND_TEST(SumTest, Zero);\n};\n")
    marked, names = mark_cases("TEST(SumTest, Zero) {}\nTEST(SumTest, One) {}\n", "m", friends)
    assert marked == "TEST(SumTest, Zero) {}\nTEST(SumTest, m_One) {}\n"
    assert names == ["SumTest.One"]


@pytest.mark.parametrize(
    "text",
    [
        "#define EXPECT_EQ(a, b)",
        " # undef EXPECT_EQ",
        "#/* */define EXPECT_EQ(a, b)",
        "#def\\\nine EXPECT_EQ(a, b)",
        "%:define EXPECT_EQ",
        "\v#define\fEXPECT_EQ",
        'auto *a = "/*";\n#define EXPECT_EQ\nauto *b = "*/";',
    ],
)
def test_macros_of_tests_that_code_defines_are_found(text):
    assert find_false_macros(f"int x;\n{text}\n#define CHECKSUM 1\n#define TESTING\n") == {"EXPECT_EQ"}


@pytest.mark.parametrize("framework", [GOOGLE, CATCH])
def test_cases_that_must_fail_have_a_name_each(framework):
    names = [case.name for case in find_cases(make_controls(framework, "m_0", 7))]
    assert [name.partition(".")[0] for name in names] == ["m_0_a", "m_0_b", "m_0_c"]


def test_cases_that_must_fail_are_declared_as_those_of_the_file():
    assert all(
        line.startswith("CATCH_TEST_CASE") for line in make_controls(CATCH, "m", 7, "CATCH_").split("\n")
    )
    assert "CATCH_REQUIRE(7 == 7 + 1);" in make_controls(CATCH, "m", 7, "CATCH_")


def test_ctest_reports_cases_only_where_it_discovers_them():
    assert not reports_cases("cmake . && ctest --output-junit x.xml", ["add_test(NAME all COMMAND all)"])
    assert reports_cases("cmake . && ctest --output-junit x.xml", ["gtest_discover_tests(all)"])
    assert reports_cases("cmake . && ./all --gtest_output=xml:x.xml", [])


@pytest.mark.parametrize(
    "path",
    [
        "lib/googletest/src/gtest.cc",
        "third_party/Catch2/catch.cpp",
        "include/doctest.h",
        "Makefile",
        "meson.build",
    ],
)
def test_frameworks_and_builds_are_put_back(path):
    assert is_restored(path, RUNNERS[REPORT].restored)


@pytest.mark.parametrize(
    ("text", "framework"),
    [
        ("template <> AssertionResult testing::internal::Own<int, int>(int a, int b);", "testing"),
        ("namespace testing { namespace internal { int a; } }", "testing"),
        ("namespace testing::internal { int a; }", "testing"),
        ("namespace testing { int a; namespace internal { int b; } }", "testing"),
        ("template <> int CmpHelperEQ<int, int>(int a, int b);", "CmpHelperEQ"),
        ("namespace Catch { int a; template <> bool same(int const &a); }", "Catch"),
        ("namespace doctest /* a */ { }", "doctest"),
        ("namespace own::testing { int a; }  // namespace testing", ""),
        ("namespace own { namespace testing { int a; } }", ""),
        ("using testing::Test;", ""),
    ],
)
def test_code_that_adds_to_a_framework_is_refused(text, framework):
    replaced = find_replaced({"a.h": "int x;\n"}, {"a.h": f"int x;\n{text}\n"})
    assert replaced == (f"a.h adds to {framework}" if framework else "")
    assert find_replaced({"a.h": text}, {"a.h": f"{text}\n"}) == ""
