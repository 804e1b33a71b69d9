"""The code of a failing test in every language, and the end of what it prints."""

import pytest

from dgm.benchmarks.mining.evidence import MOST_TEST_LINES, end_of_output, find_code

PYTHON = '''\
import pytest
from sums import half

LIMIT = 3

@pytest.fixture
def four():
    # bug 12
    return LIMIT + 1

def other(): pass

class TestHalf:
    def setup_method(self):
        self.x = 1

    @pytest.mark.parametrize(("a", "b"), [
        (1, 2),
    ])
    def test_half(self, four, a, b):
        """Halves."""
        assert half(four) == 2
        assert half(a) == b

    def test_more(self): pass
'''
PYTHON_CODE = """\
LIMIT = 3

@pytest.fixture
def four():
    return LIMIT + 1

def setup_method(self):
    self.x = 1

@pytest.mark.parametrize(("a", "b"), [
    (1, 2),
])
def test_half(self, four, a, b):
    assert half(four) == 2
    assert half(a) == b"""
GO = """\
package s
import "testing"
var rows = []int{1}
func help(t *testing.T) { t.Helper() }
func other() {}
func TestHalf(t *testing.T) {
\tfor _, r := range rows { help(t) }
}
"""
GO_CODE = """\
var rows = []int{1}

func help(t *testing.T) { t.Helper() }

func TestHalf(t *testing.T) {
\tfor _, r := range rows { help(t) }
}"""
SCRIPT = """\
const test = require("node:test");
const make = () => 1;
describe("a", () => {
  let x;
  beforeEach(() => { x = make(); });
  it("b", async () => {
    expect(x).toBe(2);
  });
  it("c", () => {});
});
test('halves', async (t) => {
  await t.test('four', () => assert.strictEqual(half(4), 2));
});
"""
SCRIPT_CODE = """\
const make = () => 1;

let x;

beforeEach(() => { x = make(); });

it("b", async () => {
  expect(x).toBe(2);
});"""
RUST = """\
#[cfg(test)]
mod tests {
    use super::*;
    fn h() -> i32 { 2 }
    #[test]
    fn halves() {
        assert_eq!(half(4), h()); // issue 12
    }
    #[test]
    fn none() {}
}
"""
CPP = """\
#include "doctest.h"
struct Fix { int four = 4; };
TEST_CASE("halves") {
    CHECK(half(4) == 2);
}
TEST_F(Fix, IsHalved) {
    EXPECT_EQ(half(four), 2);
}
"""
JAVA = """\
package org.x;
import org.junit.*;
class HalfTest extends Half {
    int x = 1;
    @BeforeEach void make() { x = 2; }
    @Test void halves() {
        // A remark.
        assertEquals(2, half(4));
    }

    @ParameterizedTest @ValueSource(ints = {0, 8})
    void each(int number) { assertEquals(number, half(number)); }
    @Nested class Deep {
        @Test void deep() { assertTrue(half(8) == x); }
    }
}
"""
SETUP = "int x = 1;\n\n@BeforeEach void make() { x = 2; }\n\n"
JEST = """\
\x1b[31mexpect(received).toBe(expected)\x1b[0m

Expected: 3
Received: 2

  > 11 |   x
  at Object.<anonymous> (a.js:1:2)
"""
JAVA_HALVES = "@Test void halves() {\n    assertEquals(2, half(4));\n}"
JAVA_EACH = """\
@ParameterizedTest @ValueSource(ints = {0, 8})
void each(int number) { assertEquals(number, half(number)); }"""
KOTLIN = "class A {\n    @Test\n    fun `halves it`() {\n        f()\n    }\n}\n"
SPOCK = """\
class A extends Specification {
    def "it halves"() {
        expect:
        f() == 2
    }
}
"""
SCALA = 'class A extends AnyFunSuite {\n  val x = 1\n  test("halves") { assert(half(4) == x) }\n}\n'
CASES = [
    ("tests/test_a.py", PYTHON, "TestHalf::test_half[1-2]", PYTHON_CODE),
    ("s/half_test.go", GO, "TestHalf/of_four", GO_CODE),
    ("t/a.test.js", SCRIPT, "a > b", SCRIPT_CODE),
    ("t/a.test.ts", SCRIPT, "halves > four", SCRIPT[SCRIPT.index("test('halves'") :].strip()),
    (
        "src/lib.rs",
        RUST,
        "tests::halves",
        "fn h() -> i32 { 2 }\n\n#[test]\nfn halves() {\n    assert_eq!(half(4), h());\n}",
    ),
    ("tests/half_test.cpp", CPP, "halves", 'TEST_CASE("halves") {\n    CHECK(half(4) == 2);\n}'),
    (
        "tests/half_test.cpp",
        CPP,
        "All/Fix.IsHalved/1",
        "struct Fix { int four = 4; };\n\nTEST_F(Fix, IsHalved) {\n    EXPECT_EQ(half(four), 2);\n}",
    ),
    ("src/test/java/HalfTest.java", JAVA, "halves()", SETUP + JAVA_HALVES),
    ("src/test/java/HalfTest.java", JAVA, "each(int)[2]", SETUP + JAVA_EACH),
    (
        "src/test/java/HalfTest.java",
        JAVA,
        "Deep.deep()",
        f"{SETUP}@Test void deep() {{ assertTrue(half(8) == x); }}",
    ),
    ("a/ATest.kt", KOTLIN, "halves it()", "@Test\nfun `halves it`() {\n    f()\n}"),
    ("a/ASpec.groovy", SPOCK, "it halves", 'def "it halves"() {\n    expect:\n    f() == 2\n}'),
    ("a/ASuite.scala", SCALA, "halves", 'val x = 1\n\ntest("halves") { assert(half(4) == x) }'),
]


@pytest.mark.parametrize(
    ("path", "text", "name", "code"), CASES, ids=[f"{case[0]}: {case[2]}" for case in CASES]
)
def test_a_test_is_shown_whole_with_what_prepares_it(path, text, name, code):
    assert find_code(f"{path}::{name}", {path: text}) == code


def test_helpers_stand_in_other_files_too():
    files = {
        "tests/conftest.py": "def four():\n    return 4\n",
        "tests/test_a.py": "def test_a():\n    assert four() == 5\n",
    }
    assert find_code("tests/test_a.py::test_a", files).startswith("def four():\n    return 4\n\ndef test_a")


LOOP = """\
for (const [a, b] of [[1, 2], [2, 4]]) {
  it(`doubles ${a} to ${b}`, () => {
    assert.equal(double(a), b);
  });
}
"""


def test_a_test_that_a_loop_or_a_table_makes_is_shown_with_its_rows():
    assert find_code("a.test.js::doubles 2 to 4", {"a.test.js": LOOP}) == LOOP.rstrip()
    table = "test.each([[1, 2]])('%i makes %i', (a, b) => {\n  expect(double(a)).toBe(b);\n});"
    assert find_code("a.test.js::sums > 1 makes 2", {"a.test.js": table}) == table
    long = table.replace("[[1, 2]]", "[\n  [1, 2],\n  [2, 4],\n  [3, 6],\n]")
    assert find_code("a.test.js::sums > 3 makes 6", {"a.test.js": long}) == long


def test_a_program_of_ctest_is_shown_whole():
    plain = '#include "half.hpp"\nint main() {\n    assert(half(6) == 3);\n}\n'
    assert "assert(half(6) == 3);" in find_code("CMakeLists.txt::plain", {"tests/plain_test.cpp": plain})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("def test_b():\n    pass\n", "no test file shows"),
        ("def test_a():\n    one()\n\ndef test_a():\n    two()\n", "several tests"),
        ("def test_a():\n" + "    more()\n" * (MOST_TEST_LINES + 1), "more than 200 lines"),
    ],
)
def test_a_test_that_cannot_be_shown_is_refused(text, problem):
    with pytest.raises(ValueError, match=problem):
        find_code("test_a.py::test_a", {"test_a.py": text})


@pytest.mark.parametrize(
    ("output", "end"),
    [
        (
            "a\nE   assert 1 == <A at 0x7f2>\nE    +  where <function f> = x\n\ntests/test_a.py:5: AssertionError",
            "assert 1 == <A>",
        ),
        (
            "=== RUN   TestSum\n    sum_test.go:12: Sum(1, 2) = 2, want 3\n--- FAIL: TestSum (0.00s)\n",
            "Sum(1, 2) = 2, want 3",
        ),
        (
            "org.opentest4j.AssertionFailedError: expected: <2> but was: <1>\n\tat org.x.A.b(A.java:3)\n",
            "org.opentest4j.AssertionFailedError: expected: <2> but was: <1>",
        ),
        (JEST, "expect(received).toBe(expected)\nExpected: 3\nReceived: 2"),
        ("", ""),
    ],
)
def test_the_end_of_an_output_has_no_stack(output, end):
    assert end_of_output(output) == end
