"""Cases of tests in C++: found, and joined by one that must fail."""

import pytest

from dgm.benchmarks.command_tools import REPORT
from dgm.benchmarks.cpp_controls import (
    CATCH,
    GOOGLE,
    add_controls,
    find_case,
    find_cases,
    find_framework,
    find_frameworks,
    reports_cases,
)
from dgm.benchmarks.named_tests import is_restored
from dgm.benchmarks.runners import RUNNERS


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
    ("text", "control"),
    [
        ("#include <gtest/gtest.h>\nTEST(Half, Four) {}\n", "TEST(mc_3, Fails) { EXPECT_EQ(7, 7 + 1); }"),
        ('#include "doctest.h"\nTEST_CASE("a") {}\n', 'TEST_CASE("mc_3") { CHECK(7 == 7 + 1); }'),
        (
            '#include "catch.hpp"\nCATCH_TEST_CASE("a") {}\n',
            'CATCH_TEST_CASE("mc_3") { CATCH_CHECK(7 == 7 + 1); }',
        ),
    ],
)
def test_each_file_of_tests_ends_with_a_case_that_must_fail(text, control):
    files = {"tests/a_test.cpp": text, "tests/help.cpp": "int help;\n"}
    assert list(add_controls(files, "make check", ("m", 3, 7))) == [
        ("tests/a_test.cpp", f"{text}\n{control}\n")
    ]
    assert list(add_controls(files, "ctest", ("m", 3, 7))) == []
