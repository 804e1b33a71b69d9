"""A suite mined out of a small repository in C++ by reports in JUnit's XML."""

import asyncio

import pytest

from dgm.benchmarks.verification import verify
from dgm.domain import Split
from tests.support.each_engine import find_engine, mine_steps

pytestmark = [pytest.mark.sandbox, pytest.mark.slow, pytest.mark.minutes]
FRAMEWORK = """\
#pragma once
#include <string>
#include <vector>
struct Case { const char *name; void (*run)(); };
std::vector<Case> &cases();
std::string &said();
struct Add { Add(const char *name, void (*run)()) { cases().push_back({name, run}); } };
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TEST_CASE(name) static void JOIN(case_, __LINE__)(); \\
    static Add JOIN(add_, __LINE__)(name, JOIN(case_, __LINE__)); static void JOIN(case_, __LINE__)()
#define CHECK_FALSE(it) if (it) said() += "CHECK_FALSE( " #it " ) is not correct!"
#define CHECK(it) if (!(it)) said() += "CHECK( " #it " ) is not correct!"
#define REQUIRE(it) if (!(it)) said() += "REQUIRE( " #it " ) is not correct!"
"""
MAIN = """\
#include "doctest.h"
#include <cstdio>
std::vector<Case> &cases() { static std::vector<Case> all; return all; }
std::string &said() { static std::string text; return text; }
int main() {
    std::puts("<testsuite>");
    for (auto &one : cases()) {
        said() = ""; one.run();
        std::printf("<testcase classname=\\"all.global\\" name=\\"%s\\">", one.name);
        if (!said().empty()) std::printf("<failure>%s</failure>", said().c_str());
        std::puts("</testcase>");
    }
    std::puts("</testsuite>");
}
"""
TESTS = """\
#include "doctest.h"
#include "half.hpp"

TEST_CASE("halves") {
    CHECK(half(4) == WANTED);
}

TEST_CASE("nothing") {
    CHECK(half(0) == 0);
}
"""
PLAIN = """\
#include "half.hpp"
#include <cassert>

int main() {
    assert(half(6) == WANTED + 1);
}
"""
BUILD = """\
cmake_minimum_required(VERSION 3.10)
project(sums CXX)
enable_testing()
include_directories(src)
add_executable(plain tests/plain_test.cpp)
add_executable(none tests/none_test.cpp)
add_executable(cases tests/main.cpp tests/half_test.cpp)
add_test(NAME plain COMMAND plain)
add_test(NAME none COMMAND none)
"""
NONE = '#include "half.hpp"\n\nint main() {\n    return half(0);\n}\n'
CASES = (
    'cmake -S . -B "$DGM_BUILD" && cmake --build "$DGM_BUILD" && "$DGM_BUILD/cases" > "$DGM_BUILD/report.xml"'
)


def files(divisor, wanted):
    code = f"inline int half(int number) {{\n    return number / {divisor};\n}}\n"
    tests = {"tests/half_test.cpp": TESTS, "tests/plain_test.cpp": PLAIN}
    return {"src/half.hpp": code, **{name: text.replace("WANTED", wanted) for name, text in tests.items()}}


BEGIN = {
    "CMakeLists.txt": BUILD,
    "LICENSE": "Permission is hereby granted, free of charge\n",
    "tests/doctest.h": FRAMEWORK,
    "tests/main.cpp": MAIN,
    "tests/none_test.cpp": NONE,
}
RIGHT = files("2", "2")
STEPS = (
    ("begin", {**BEGIN, **files("4", "1")}),
    ("Halve by two", RIGHT),
    ("Explain", {name: f"// Why.\n{text}" for name, text in RIGHT.items()}),
)


def mine(folder, engine_name, *more):
    engine = find_engine(engine_name, "c++", "cmake", "ctest")
    suite, report = mine_steps(folder, STEPS, engine, *more)
    assert report["tasks"] == {"history": 1}
    return suite, suite.tasks(Split.SEARCH)[0]


def test_the_tests_of_ctest_are_those_of_their_declaration(tmp_path, engine_name):
    suite, task = mine(tmp_path, engine_name)
    tests = suite.record(task.id).tests
    assert tests.fail_to_pass == ("CMakeLists.txt::plain",)
    assert tests.pass_to_pass == ("CMakeLists.txt::none",)
    assert "assert(half(6) == 2 + 1);" in task.prompt
    assert asyncio.run(verify(suite, task.id, {"dgm.run": "test"})) == []


def test_cases_are_those_of_their_files_where_they_are_reported(tmp_path, engine_name):
    suite, task = mine(
        tmp_path,
        engine_name,
        "--test",
        CASES,
        "--set",
        'mining.reports=["$DGM_BUILD/*.xml", "**/report.xml"]',
    )
    tests = suite.record(task.id).tests
    assert tests.fail_to_pass == ("tests/half_test.cpp::halves",)
    assert tests.pass_to_pass == ("tests/half_test.cpp::nothing",)
    assert "CHECK(half(4) == 2);" in task.prompt
