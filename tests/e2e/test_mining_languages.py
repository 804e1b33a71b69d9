"""Suites mined out of small repositories in each language: which tests are hidden, and that their tasks are sound."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from dgm.benchmarks.verification import verify
from dgm.domain import Split
from tests.support.each_engine import find_engine, mine_steps

pytestmark = [pytest.mark.sandbox, pytest.mark.slow, pytest.mark.minutes]
LICENSE = {"LICENSE": "Permission is hereby granted, free of charge\n"}


def make_steps(begin, wrong, right, remark="// Why.\n"):
    """Return commits: a fault, its fix with a test, and a remark in each file."""
    explained = {name: f"{remark}{text}" for name, text in right.items()}
    return ("begin", {**LICENSE, **begin, **wrong}), ("Halve by two", right), ("Explain", explained)


def halves(files, divisor, wanted):
    """Return files whose code divides by one number and whose tests want another."""
    return {name: text.replace("DIVISOR", divisor).replace("WANTED", wanted) for name, text in files.items()}


def fix_of(files, begin, **more):
    return make_steps(begin, halves(files, "4", "1"), halves(files, "2", "2"), **more)


GO_CODE = "package sums\n\n// Half returns half of a number.\nfunc Half(number int) int { return number / DIVISOR }\n"
GO_TESTS = """\
package sums

import "testing"

func TestHalf(t *testing.T) {
	for _, one := range []struct {
		name string
		in, out int
	}{
		{
			name: "of none",
			in: 0,
		},
		{
			name: "of four",
			in: 4,
			out: WANTED,
		},
		{
			name: "of one",
			in: 1,
		},
	} {
		t.Run(one.name, func(t *testing.T) {
			if got := Half(one.in); got != one.out {
				t.Errorf("got %d, want %d", got, one.out)
			}
		})
	}
}

func TestNone(t *testing.T) {
	if Half(0) != 0 {
		t.Fatal("none is not none")
	}
}
"""
GO_STEPS = fix_of(
    {"sums/half.go": GO_CODE, "sums/half_test.go": GO_TESTS},
    {"go.mod": "module example.org/sums\n\ngo 1.18\n"},
    remark="// Why.\n\n",
)
RUST_CODE = """\
pub mod deep;

pub fn half(number: i32) -> i32 {
    number / DIVISOR // {
}

// Why.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves() {
        assert_eq!(half(4), WANTED);
    }

    #[test]
    fn none() {
        assert_eq!(half(0), 0);
    }
}
"""
RUST_DEEP = """\
pub fn third(number: i32) -> i32 {
    number / 3
}

#[cfg(test)]
mod tests {
    #[test]
    fn thirds() {
        assert_eq!(super::third(9), 3);
    }
}
"""
RUST_TESTS = "use sums::half;\n\n#[test]\nfn six() {\n    assert_eq!(half(6), WANTED + 1);\n}\n"
RUST_STEPS = fix_of(
    {"src/lib.rs": RUST_CODE, "tests/halves.rs": RUST_TESTS},
    {
        "Cargo.toml": '[package]\nname = "sums"\nversion = "0.1.0"\nedition = "2021"\n',
        "src/deep.rs": RUST_DEEP,
    },
)
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
CPP_TESTS = """\
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
CPP_CASES = (
    'cmake -S . -B "$DGM_BUILD" && cmake --build "$DGM_BUILD" && "$DGM_BUILD/cases" > "$DGM_BUILD/report.xml"'
)
CPP_STEPS = fix_of(
    {
        "src/half.hpp": "inline int half(int number) {\n    return number / DIVISOR;\n}\n",
        "tests/half_test.cpp": CPP_TESTS,
        "tests/plain_test.cpp": PLAIN,
    },
    {
        "CMakeLists.txt": BUILD,
        "tests/doctest.h": FRAMEWORK,
        "tests/main.cpp": MAIN,
        "tests/none_test.cpp": NONE,
    },
)
JARS = [
    f"/usr/share/java/{name}.jar"
    for name in (
        *(f"junit-platform-{each}" for each in ("commons", "console", "engine", "launcher", "reporting")),
        *(f"junit-{each}" for each in ("jupiter-api", "jupiter-engine", "jupiter-params", "vintage-engine")),
        *("junit4", "hamcrest", "opentest4j", "apiguardian-api", "picocli", "univocity-parsers"),
    )
]
JVM_TESTS = """\
package org.x;

import static org.junit.jupiter.api.Assertions.*;

import org.junit.jupiter.api.*;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class HalfTest extends Half {
    @Test void halves() {
        // A remark.
        assertEquals(WANTED, half(4));
    }

    @Test void nothing() { Assertions.assertEquals(0, half(0)); }

    @ParameterizedTest @ValueSource(ints = {0, 8})
    void each(int number) { assertEquals(number * WANTED / 4, half(number)); }

    @Nested class Deep {
        @Test void deep() { assertTrue(half(8) == 2 * WANTED); }
    }
}
"""
OLD = """\
package org.x;

import org.junit.*;

public class OldTest {
    @Test public void old() {
        Assert.assertEquals(WANTED, Half.half(4));
    }

    @Test public void none() { Assert.assertEquals(0, Half.half(0)); }
}
"""
JVM_CODE = """\
package org.x;

public class Half {
    public static int half(int number) { return number / DIVISOR; }
}
"""
JVM_COMMAND = (
    'mkdir -p "$DGM_BUILD/classes"; cp -r src/main/resources/. "$DGM_BUILD/classes"; '
    f'javac -d "$DGM_BUILD/classes" -cp {":".join(JARS)} $(find src -name "*.java") && '
    f'java -cp "$DGM_BUILD/classes:{":".join(JARS)}" org.junit.platform.console.ConsoleLauncher '
    '--disable-banner --scan-classpath "$DGM_BUILD/classes" --reports-dir "$DGM_BUILD/reports"'
)
JVM_REPORTS = (
    "--set",
    'mining.reports=["$DGM_BUILD/reports/*.xml", "**/target/surefire-reports/*.xml"]',
)
JVM_STEPS = fix_of(
    {
        "src/main/java/org/x/Half.java": JVM_CODE,
        "src/test/java/org/x/HalfTest.java": JVM_TESTS,
        "src/test/java/org/x/OldTest.java": OLD,
    },
    {"src/main/resources/x.txt": "x\n"},
)
JS_PACKAGE = json.dumps(
    {
        "name": "sums",
        "type": "commonjs",
        "scripts": {
            "test": "npm run lint && npm run make && node --test",
            "lint": "false",
            "make": "node build.js",
        },
    }
)
JS_CODE = "const { sign } = require('./made.js');\nexports.half = (number) => sign * number / DIVISOR;\n"
JS_TESTS = """\
const test = require('node:test');
const assert = require('node:assert');
const { half } = require('../half.js');

test('halves', async (t) => {
  await t.test('four', () => assert.strictEqual(half(4), WANTED));
});
test('none', () => assert.strictEqual(half(0), 0));
test('none', () => assert.ok(true));
"""
JS_BUILD = "require('fs').writeFileSync('made.js', 'exports.sign = 1;');\n"
JS_STEPS = fix_of(
    {"half.js": JS_CODE, "test/half.test.js": JS_TESTS}, {"package.json": JS_PACKAGE, "build.js": JS_BUILD}
)
TEMPLATE_CODE = """\
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
DISCOVERED = """\
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


def framework_steps(words, main, tests, support):
    names = ("package", "library", "module", "module_function")
    return fix_of(
        {"src/half.hpp": TEMPLATE_CODE, "tests/half_test.cpp": tests},
        {
            "CMakeLists.txt": DISCOVERED.format(**dict(zip(names, words, strict=True))),
            "tests/main.cpp": main,
            "tests/support.hpp": support,
        },
    )[:2]


@dataclass(frozen=True)
class Language:
    """A small repository, how it is mined, and what its only task hides."""

    programs: tuple[str, ...]
    steps: tuple
    fails: set[str]
    passes: set[str] | None = None
    """None: only some of them are named here, in ``some``."""
    some: tuple[str, ...] = ()
    prompt: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    """Files that bubblewrap shows of this machine."""
    engines: tuple[str, ...] = ("docker", "bubblewrap")
    sound: bool = True


CPP = ("c++", "cmake", "ctest")
GO_FILE, HALF_TEST, JS_FILE = (
    "sums/half_test.go::",
    "src/test/java/org/x/HalfTest.java::",
    "test/half.test.js::",
)
LANGUAGES = {
    "go": Language(
        ("go",),
        GO_STEPS,
        {f"{GO_FILE}TestHalf", f"{GO_FILE}TestHalf/of_four"},
        some=(f"{GO_FILE}TestNone",),
        prompt=('name: "of four"', 'name: "of one"', "got 1, want 2"),
    ),
    "rust": Language(
        ("cargo",),
        RUST_STEPS,
        {"src/lib.rs::tests::halves", "tests/halves.rs::six"},
        {"src/deep.rs::tests::thirds", "src/lib.rs::tests::none"},
        prompt=("assert_eq!(half(4), 2);",),
    ),
    "C++ by ctest": Language(
        CPP,
        CPP_STEPS,
        {"CMakeLists.txt::plain"},
        {"CMakeLists.txt::none"},
        prompt=("assert(half(6) == 2 + 1);",),
    ),
    "C++ by reports": Language(
        CPP,
        CPP_STEPS,
        {"tests/half_test.cpp::halves"},
        {"tests/half_test.cpp::nothing"},
        prompt=("CHECK(half(4) == 2);",),
        words=("--test", CPP_CASES, "--set", 'mining.reports=["$DGM_BUILD/*.xml", "**/report.xml"]'),
        sound=False,
    ),
    "java": Language(
        ("javac",),
        JVM_STEPS,
        {
            *(f"{HALF_TEST}{name}" for name in ("Deep.deep()", "each(int)[2]", "halves()")),
            "src/test/java/org/x/OldTest.java::old",
        },
        prompt=("assertEquals(2, half(4));",),
        words=("--test", JVM_COMMAND, *JVM_REPORTS),
        needs=tuple(JARS),
    ),
    "javascript": Language(
        ("node",),
        JS_STEPS,
        {f"{JS_FILE}halves > four", f"{JS_FILE}halves"},
        {f"{JS_FILE}none"},
        prompt=("assert.strictEqual(half(4), 2)",),
        words=("--setup", 'mkdir -p "$DGM_PACKAGES/.bin"'),
        engines=("bubblewrap",),
    ),
    **{
        name: Language(
            CPP,
            framework_steps(words, main, tests, SUPPORT[name]),
            {f"tests/half_test.cpp::{case}" for case, fails in cases.items() if fails},
            {f"tests/half_test.cpp::{case}" for case, fails in cases.items() if not fails},
            words=("--set", "mining.language=cpp"),
            needs=(f"/usr/include/{name}",),
            sound=False,
        )
        for name, (words, main, tests, cases) in FRAMEWORKS.items()
    },
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_change_with_a_test_is_a_task(tmp_path, engine_name, name):
    language = LANGUAGES[name]
    if engine_name not in language.engines:
        pytest.skip(f"not mined with {engine_name}")
    engine = find_engine(engine_name, *language.programs)
    if engine_name == "bubblewrap" and not all(Path(path).exists() for path in language.needs):
        pytest.skip(f"NOT RUN with bubblewrap: {language.needs[0]} is not installed for all")
    suite, report = mine_steps(tmp_path, language.steps, engine, *language.words)
    assert report["tasks"] == {"history": 1}
    (task,) = suite.tasks(Split.SEARCH)
    tests = suite.record(task.id).tests
    assert {*tests.fail_to_pass} == language.fails
    assert {*tests.pass_to_pass} >= {*language.some}
    assert language.passes is None or {*tests.pass_to_pass} == language.passes
    assert all(words in task.prompt for words in language.prompt)
    assert "Filter" not in task.prompt
    if language.sound:
        assert asyncio.run(verify(suite, task.id, {"dgm.run": "test"})) == []
    if name == "rust":
        # Tests stand beside the code: they are hidden, and the rest is the fix.
        assert tests.parts == ("src/lib.rs",)
        changed = [line for line in suite.reference(task.id).decode().split("\n") if line[:1] in ("+", "-")]
        assert changed[2:] == ["-    number / 4 // {", "+    number / 2 // {"]
    if name in ("go", "javascript"):
        lines = [json.loads(line) for line in Path(report["suite"], "mined.jsonl").read_text().splitlines()]
        reasons = ["the code changes in comments or blanks only", "a task", "the first commit"]
        assert [line.get("reason", "a task") for line in lines] == reasons
    if name == "javascript":
        assert (tests.runner, tests.build) == ("node", ("node build.js",))
