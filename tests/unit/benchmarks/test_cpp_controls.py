"""Cases of tests in C++: found, marked, and joined by cases that must fail."""

import pytest

from dgm.benchmarks.cpp_controls import (
    CATCH,
    GOOGLE,
    find_cases,
    find_framework,
    make_controls,
    mark_cases,
    reports_cases,
)

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
        ("<cassert>", ""),
        ('"mygtest.h"', ""),
    ],
)
def test_a_framework_is_known_by_what_a_file_includes(include, framework):
    assert find_framework(f"// x\n#  include {include}\n") == framework


def test_names_of_cases_get_a_mark_and_everything_else_stays():
    marked, names = mark_cases(TEXT, "m")
    assert names == ["Half.Four", "Whole.Two", 'reads \\"x\\"']
    assert [case.name for case in find_cases(marked)] == ["Half.m_Four", "Whole.m_Two", 'm_reads \\"x\\"']
    assert marked.replace("m_", "") == TEXT


@pytest.mark.parametrize("framework", [GOOGLE, CATCH])
def test_cases_that_must_fail_have_a_name_each(framework):
    names = [case.name for case in find_cases(make_controls(framework, "m_0", 7))]
    assert [name.partition(".")[0] for name in names] == ["m_0_a", "m_0_b", "m_0_c"]


def test_ctest_reports_cases_only_where_it_discovers_them():
    assert not reports_cases("cmake . && ctest --output-junit x.xml", ["add_test(NAME all COMMAND all)"])
    assert reports_cases("cmake . && ctest --output-junit x.xml", ["gtest_discover_tests(all)"])
    assert reports_cases("cmake . && ./all --gtest_output=xml:x.xml", [])
