"""Suites mined out of small repositories in C++ whose tests are those of real frameworks, as ctest discovers them."""

from pathlib import Path

import pytest

from dgm.domain import Split
from tests.support.each_engine import find_engine, mine_steps

pytestmark = [pytest.mark.sandbox, pytest.mark.slow, pytest.mark.minutes]
CODE = """\
#pragma once
template <typename T> T half(T number) {
    return number / DIVISOR;
}
"""
GOOGLE = """\
#include <gtest/gtest.h>
#include "half.hpp"
struct Fixture : testing::Test { int four = 4; };
TEST_F(Fixture, IsHalved) { EXPECT_EQ(half(four), WANTED); }
TEST(Half, None) { EXPECT_EQ(half(0), 0); }
TEST(Half, DISABLED_Never) { FAIL(); }
TEST(Half, Skipped) { GTEST_SKIP(); }
struct Each : testing::TestWithParam<int> {};
TEST_P(Each, IsHalved) { EXPECT_EQ(half(4 * GetParam()), WANTED * GetParam()); }
INSTANTIATE_TEST_SUITE_P(All, Each, testing::Values(0, 1));
template <typename T> struct Kind : testing::Test {};
TYPED_TEST_SUITE_P(Kind);
TYPED_TEST_P(Kind, IsZero) { EXPECT_EQ(half(TypeParam(4)), TypeParam(WANTED)); }
REGISTER_TYPED_TEST_SUITE_P(Kind, IsZero);
using Kinds = testing::Types<int, double>;
INSTANTIATE_TYPED_TEST_SUITE_P(My, Kind, Kinds);
"""
TITLES = """\
#include "support.hpp"
#include "half.hpp"
TEST_CASE("four, halved") {
    int four = 4;
    SECTION("at once") { CHECK(half(four) == WANTED); }
}
TEST_CASE("nothing") { CHECK(half(0) == 0); }
SCENARIO("eight") {
    GIVEN("eight") { REQUIRE(half(8) == 2 * WANTED); }
}
struct Fixture { int six = 6; };
"""
CATCH = """\
TEST_CASE_METHOD(Fixture, "six") { CHECK(half(six) == WANTED + 1); }
TEMPLATE_TEST_CASE("kinds", "[kinds]", int, double) { CHECK(half(TestType(4)) == TestType(WANTED)); }
"""
DOCTEST = """\
TEST_CASE_FIXTURE(Fixture, "six") { CHECK(half(six) == WANTED + 1); }
TEST_CASE_TEMPLATE("kinds", T, int, double) { CHECK(half(T(4)) == T(WANTED)); }
TEST_CASE("never" * doctest::skip()) { FAIL("no"); }
"""
BUILD = """\
cmake_minimum_required(VERSION 3.10)
project(sums CXX)
enable_testing()
find_package({package} REQUIRED)
include_directories(src)
add_executable(unit tests/main.cpp tests/half_test.cpp)
target_link_libraries(unit {library})
include({module})
{module_function}_discover_tests(unit)
"""
FRAMEWORKS = {
    "gtest": (
        ("GTest", "GTest::gtest_main", "GoogleTest", "gtest"),
        "",
        GOOGLE,
        {
            "Fixture.IsHalved": True,
            "All/Each.IsHalved/1": True,
            "My.IsZero<int>": True,
            "My.IsZero<double>": True,
            "Half.None": False,
            "All/Each.IsHalved/0": False,
        },
    ),
    "catch2": (
        ("Catch2", "Catch2::Catch2", "Catch", "catch"),
        "#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>\n",
        TITLES + CATCH,
        {
            "four, halved": True,
            "eight": True,
            "six": True,
            "kinds - int": True,
            "kinds - double": True,
            "nothing": False,
        },
    ),
    "doctest": (
        ("doctest", "doctest::doctest", "doctest", "doctest"),
        "#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN\n#include <doctest/doctest.h>\n",
        TITLES.replace("SECTION", "SUBCASE") + DOCTEST,
        {
            "four, halved": True,
            "eight": True,
            "six": True,
            "kinds<int>": True,
            "kinds<double>": True,
            "nothing": False,
        },
    ),
}
SUPPORT = {
    "gtest": "",
    "catch2": "#include <catch2/catch.hpp>\n",
    "doctest": "#include <doctest/doctest.h>\n",
}


def make_steps(framework):
    words, main, tests, _ = FRAMEWORKS[framework]
    begin = {
        "CMakeLists.txt": BUILD.format(
            **dict(zip(("package", "library", "module", "module_function"), words, strict=True))
        ),
        "LICENSE": "Permission is hereby granted, free of charge\n",
        "tests/main.cpp": main,
        "tests/support.hpp": SUPPORT[framework],
    }

    def files(divisor, wanted):
        return {
            "src/half.hpp": CODE.replace("DIVISOR", divisor),
            "tests/half_test.cpp": tests.replace("WANTED", wanted),
        }

    return (("begin", {**begin, **files("4", "1")}), ("Halve by two", files("2", "2")))


@pytest.mark.parametrize("framework", list(FRAMEWORKS))
def test_cases_of_a_framework_are_named_and_watched(tmp_path, engine_name, framework):
    engine = find_engine(engine_name, "c++", "cmake", "ctest")
    if engine_name == "bubblewrap" and not Path("/usr/include", framework).is_dir():
        pytest.skip(f"NOT RUN with bubblewrap: {framework} is not installed")
    suite, report = mine_steps(tmp_path, make_steps(framework), engine, "--set", "mining.language=cpp")
    assert report["tasks"] == {"history": 1}
    (task,) = suite.tasks(Split.SEARCH)
    tests = suite.record(task.id).tests
    wanted = FRAMEWORKS[framework][3]
    assert {*tests.fail_to_pass} == {
        f"tests/half_test.cpp::{name}" for name, fails in wanted.items() if fails
    }
    assert {*tests.pass_to_pass} == {
        f"tests/half_test.cpp::{name}" for name, fails in wanted.items() if not fails
    }
    assert "Filter" not in task.prompt
