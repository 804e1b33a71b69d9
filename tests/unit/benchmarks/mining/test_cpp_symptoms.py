"""The failing assertion of a test in C++, as statements tell it."""

import pytest

from dgm.benchmarks.mining.cpp_symptoms import find_cpp_symptom

GOOGLE = "TEST(Half, Four) {\n  // why }\n  EXPECT_EQ(half(4), 2);\n}\n\nTEST(Half, None) {\n}\n"
PLAIN = '#include <cassert>\n\nint main() {\n    assert(half("}") == 2);\n}\n'


def test_googletest_tells_the_values():
    said = "tests/a.cpp:3: Failure\nExpected equality of these values:\n  half(4)\n    Which is: 1\n  2\n"
    found = find_cpp_symptom(said, "tests/a.cpp::Half.Four", [GOOGLE])
    assert found.code == "EXPECT_EQ(half(4), 2);"
    assert found.error == "Expected equality of these values:\n  half(4)\n    Which is: 1\n  2"


def test_a_plain_program_is_found_by_what_it_asserts():
    said = 'plain: tests/a.cpp:4: int main(): Assertion `half("}") == 2\' failed.\nAborted\n'
    found = find_cpp_symptom(said, "CMakeLists.txt::plain", [GOOGLE, PLAIN])
    assert found.code == 'assert(half("}") == 2);'
    assert found.error == 'Assertion `half("}") == 2\' failed.'


OF_GOOGLE = """\
Running main() from ./gtest_main.cc
Note: Google Test filter = Half.Four
[ RUN ] Half.Four
tests/a.cpp:3: Failure
Value of: x
 1 FAILED TEST
"""
OF_CATCH = """\
Filters: Half.Four
unit is a Catch v2.13.10 host application.
Run with -? for options

-----
Scenario: Half.Four
  twice
.....

tests/a.cpp:3: FAILED:
  CHECK( x )
=====
test cases: 1 | 1 failed
"""
OF_DOCTEST = """\
[doctest] run with --help
tests/a.cpp:1:
TEST SUITE: all
TEST CASE:  Half.Four

tests/a.cpp:3: FATAL ERROR: REQUIRE( x ) is NOT correct!
  values: REQUIRE( 1 )
"""


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (OF_GOOGLE, "Value of: x"),
        (OF_CATCH, "  twice\n  CHECK( x )"),
        (OF_DOCTEST, "FATAL ERROR: REQUIRE( x ) is NOT correct!\n  values: REQUIRE( 1 )"),
    ],
)
def test_names_and_rows_of_every_run_are_not_told(said, error):
    assert find_cpp_symptom(said, "tests/a.cpp::Half.Four", [GOOGLE]).error == error


SECTIONS = """\
TEST_CASE("reads") {
    int one = 1;
    // SECTION("short") { none }
    SECTION("short") { CHECK(one == 2); }
    SECTION("long") {
        int two = 2;
        SECTION("and \\"wide\\"") { CHECK("{" == two); }
        SECTION("and thin") {
            CHECK(two == 3);
        }
    }
    WHEN("it ends") { CHECK(one == 3); }
}
"""


@pytest.mark.parametrize(
    ("section", "code"),
    [
        ("short", 'int one = 1;\nSECTION("short") { CHECK(one == 2); }'),
        (
            "long/and thin",
            'int one = 1;\nSECTION("long") {\nint two = 2;\nSECTION("and thin") {\nCHECK(two == 3);\n}\n}',
        ),
        ("   When: it ends", 'int one = 1;\nWHEN("it ends") { CHECK(one == 3); }'),
    ],
)
def test_other_sections_of_a_case_are_not_shown(section, code):
    found = find_cpp_symptom("wrong", f"tests/a.cpp::reads/{section}", [SECTIONS])
    assert [row.strip() for row in found.code.split("\n")] == [row.strip() for row in code.split("\n")]


def test_a_section_of_an_unknown_title_is_shown_with_all_others():
    assert "it ends" in find_cpp_symptom("wrong", "tests/a.cpp::reads/other", [SECTIONS]).code


def test_an_instance_is_shown_by_the_code_of_its_case():
    assert (
        find_cpp_symptom("wrong", "tests/a.cpp::All/Half.Four/2", [GOOGLE]).code == "EXPECT_EQ(half(4), 2);"
    )


@pytest.mark.parametrize(
    ("said", "test", "files", "why"),
    [
        ("", "a.cpp::Half.Four", [GOOGLE], "no error"),
        ("wrong", "a.cpp::Half.Other", [GOOGLE], "no test file shows"),
        ("wrong", "a.cpp::Half.Four", [GOOGLE, GOOGLE.replace("2)", "3)")], "several test files"),
        (
            "wrong",
            "a.cpp::Half.Four",
            [GOOGLE.replace("  EXPECT", "\n;" * 61 + "EXPECT")],
            "more than 60 lines",
        ),
    ],
)
def test_what_cannot_be_told_is_refused(said, test, files, why):
    with pytest.raises(ValueError, match=why):
        find_cpp_symptom(said, test, files)
