"""Symptoms of a failing test in JavaScript: the code it runs, and its error."""

import pytest

from dgm.benchmarks.mining.leaks import name_parts
from dgm.benchmarks.mining.script_symptoms import find_script_symptom

FILE = """\
import { parse } from "../src/parse.js";
import { unused } from "../src/unused.js";
import { describe, expect, it } from "vitest";

const OPTIONS = {
  strict: true,
};

describe("things", () => {
  const base = parse("b", OPTIONS);

  // issue 12
  it("does (this)", () => {
    // why
    expect(parse(`a${base}`, { x: "}" })).toBe(2);
  });
  it.each([1, 2])("adds %i", (n) => {
    expect(parse(n)).toBe(3);
  });
  it('is short', () => parse(1));
});
"""
BEFORE = """\
import { parse } from "../src/parse.js";
const OPTIONS = {
  strict: true,
};
const base = parse("b", OPTIONS);
"""
ASSERTION = """\
AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:

1 !== 2

    at Foo (/work/repo/test/a.test.js:15:3)
    at async node:internal/main {
  generatedMessage: true,
  code: 'ERR_ASSERTION',
  actual: 1,
  expected: 2,
  operator: 'strictEqual'
}"""


def find(title, failure=ASSERTION, file=FILE):
    return find_script_symptom(failure, f"test/a.test.js::things > {title}", [file])


def test_the_code_of_a_test_has_what_it_uses_and_no_title_and_no_comment():
    assert find("does (this)").code == BEFORE + '\nexpect(parse(`a${base}`, { x: "}" })).toBe(2);'


def test_an_error_has_its_values_and_no_stack():
    expected = "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n\n1 !== 2\n\n"
    assert find("does (this)").error == expected + "  actual: 1,\n  expected: 2,"


def test_a_test_with_cases_is_found_by_the_place_of_its_error():
    failure = "Error: expect(received).toBe(expected)\n\nExpected: 3\n    at /work/repo/test/a.test.js:18:22"
    found = find("adds 1", failure)
    assert found.code.startswith("// with each of: [1, 2]\n")
    assert found.code.endswith("\nexpect(parse(n)).toBe(3);")
    assert found.error == "expect(received).toBe(expected)\n\nExpected: 3"


def test_a_function_may_be_an_expression():
    assert find("is short").code.endswith("\n\nparse(1)")


def test_a_title_of_two_tests_is_told_apart_by_the_place():
    file = 'test("a", () => {\n  one();\n});\ntest("a", () => {\n  two();\n});\n'
    failure = "TypeError: two is not a function\n    at /work/repo/test/a.test.js:5:3"
    assert find_script_symptom(failure, "test/a.test.js::a", [file]).code == "two();"
    with pytest.raises(ValueError, match="no test file shows"):
        find_script_symptom("TypeError: two", "test/a.test.js::a", [file])


@pytest.mark.parametrize(
    ("title", "failure", "file", "message"),
    [
        ("gone", ASSERTION, FILE, "no test file shows"),
        ("does (this)", "    at x (/work/repo/a.js:1:1)", FILE, "no error"),
        (
            "made",
            "Error",
            "function f(x) {\n  it('made', () => {\n    g(x);\n  });\n}\n",
            "a function or a loop",
        ),
        ("long", "Error", "it('long', () => {\n" + "  f();\n" * 61 + "});\n", "more than 60 lines"),
    ],
)
def test_what_cannot_be_told_is_refused(title, failure, file, message):
    with pytest.raises(ValueError, match=message):
        find(title, failure, file)


def test_a_test_within_a_test_is_found_and_the_outer_one_is_not_told():
    inner = '  await t.test("inner", () => {\n    use(a);\n  });\n'
    file = f'test("outer", async (t) => {{\n  const a = make();\n{inner}}});\n'
    found = find_script_symptom("TypeError: use", "test/a.test.js::outer > inner", [file])
    assert found.code == "const a = make();\n\nuse(a);"
    outer = "Error [ERR_TEST_FAILURE]: 1 subtest failed {\n  failureType: 'subtestsFailed'\n}"
    with pytest.raises(ValueError, match="only tests within"):
        find_script_symptom(outer, "test/a.test.js::outer", [file])


def test_a_title_of_one_word_is_what_is_tested_and_no_name_of_a_test():
    assert [*name_parts("test/query.test.ts::filterQuery")] == ["test/query.test.ts", "query.test.ts"]
    assert "test_filterQuery" in [*name_parts("tests/test_query.py::test_filterQuery")]
