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
