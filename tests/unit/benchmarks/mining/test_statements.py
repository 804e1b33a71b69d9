"""Statements from the output of failing tests, as the runners print it, and from a scripted model."""

import asyncio

import pytest

from dgm.benchmarks.mining.leaks import Evidence
from dgm.benchmarks.mining.statements import (
    FORM,
    KEYS,
    StatementRefused,
    check_statement,
    model_statement,
    statement_request,
    template_statement,
)
from dgm.benchmarks.mining.symptoms import Symptom, find_symptom
from dgm.errors import AgentFault
from tests.unit.benchmarks.mining.test_leaks import EVIDENCE, diff_of

LONG = '''
numbers = [1, 2], value = 3
self = <test_lib.TestTotal object at 0x7fae2c386020>

    @pytest.mark.parametrize(("value", "expected"), [(3, 7)])
    def test_sums_param(
        self, numbers, value
    ) -> None:
        """Sum with a start."""
        numbers.append(value)
>       assert lib.total(
            numbers, start=1
        ) == 7
E       assert 6 == 7
E        +  where 6 = <function total at 0x7f6569a82020>([1, 2, 3], start=1)
E        +    where <function total at 0x7f6569a82020> = lib.total

test_lib.py:15: AssertionError
'''
DEEP = """
    def test_deep():
        xs = []
>       result = lib.total(xs)
                 ^^^^^^^^^^^^^

test_lib.py:24:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

xs = [], start = 0

    def total(xs, start=0):
>       if not xs: raise KeyError("nothing here")
E       KeyError: 'nothing here'

lib.py:2: KeyError
"""
SHORT = """
test_lib.py:29: in test_raises
    with pytest.raises(lib.SlotError, match="x"):
E   Failed: DID NOT RAISE SlotError
"""
RAISES = """
+def test_raises():
+    with pytest.raises(lib.SlotError, match="x"):
+        a = [1]
+        lib.total(a)
+    assert a
"""
NODE = """
Error [ERR_TEST_FAILURE]: Expected values to be strictly equal:

2 !== 3

    at AsyncResource.runInAsyncScope (node:async_hooks:206:9) {
  code: 'ERR_TEST_FAILURE',
  cause: AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:

  2 !== 3

      at TestContext.<anonymous> (file:///work/a.test.mjs:3:61) {
    generatedMessage: true,
"""
JEST = """
    \x1b[2mexpect(\x1b[22m\x1b[31mreceived\x1b[39m).toBe(expected)

    Expected: 3
    Received: 2

      10 | test('adds', () => {
    > 11 |   expect(add([1, 2])).toBe(3);
         |                       ^
      at Object.<anonymous> (a.test.js:11:23)
"""
GO = """
=== RUN   TestSum
    sum_test.go:12: Sum(1, 2) = 2, want 3
--- FAIL: TestSum (0.00s)
"""
JS_TESTS = """
+test('adds numbers', () => {
+  const s = add([1, 2]);
+  assert.strictEqual(s, 3);
+});
"""
GO_TESTS = """
+func TestSum(t *testing.T) {
+\tif got := Sum(1, 2); got != 3 {
+\t\tt.Errorf("Sum(1, 2) = %d, want 3", got)
+\t}
+}
"""
SYMPTOMS = {
    "long": (
        (LONG, ""),
        "numbers.append(value)\nassert lib.total(\n    numbers, start=1\n) == 7",
        "assert 6 == 7\n +  where 6 = <function total>([1, 2, 3], start=1)",
    ),
    "deep": ((DEEP, ""), "xs = []\nresult = lib.total(xs)", "KeyError: 'nothing here'"),
    "short": (
        (SHORT, diff_of("test_lib.py", RAISES)),
        'with pytest.raises(lib.SlotError, match="x"):\n    a = [1]\n    lib.total(a)',
        "Failed: DID NOT RAISE SlotError",
    ),
    "node": (
        (NODE, diff_of("a.test.mjs", JS_TESTS)),
        "const s = add([1, 2]);\nassert.strictEqual(s, 3);",
        "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n\n2 !== 3",
    ),
    "jest": (
        (JEST, diff_of("a.test.js", JS_TESTS)),
        "const s = add([1, 2]);\nassert.strictEqual(s, 3);",
        "expect(received).toBe(expected)\n\nExpected: 3\nReceived: 2",
    ),
    "go": (
        (GO, diff_of("sum_test.go", GO_TESTS)),
        'if got := Sum(1, 2); got != 3 {\n\tt.Errorf("Sum(1, 2) = %d, want 3", got)\n}',
        "Sum(1, 2) = 2, want 3",
    ),
}


@pytest.mark.parametrize("runner", SYMPTOMS)
def test_a_failure_tells_what_was_run_and_how_it_ended(runner):
    shown, code, error = SYMPTOMS[runner]
    found = find_symptom(*shown)
    assert (found.code, found.error) == (code, error)


def test_parameters_have_their_values_but_no_addresses():
    assert find_symptom(LONG, "").values == ("numbers = [1, 2], value = 3",)


@pytest.mark.parametrize(
    ("failure", "problem"),
    [("", "no error"), ("E   assert 1 == 2\n", "what was run"), (SHORT, "only the beginning")],
)
def test_a_failure_that_does_not_show_enough_is_refused(failure, problem):
    with pytest.raises(ValueError, match=problem):
        find_symptom(failure, "")


def test_helpers_of_the_tests_are_shown_with_what_failed():
    tests = """
+@decorator
+def return_x(call):
+    return call.x
+
+class Unused:
+    pass
+
+def test_names():
+    assert return_x(1) == 2
"""
    failure = "    def test_names():\n>       assert return_x(1) == 2\nE       assert 1 == 2\n"
    found = find_symptom(failure, diff_of("test_lib.py", tests))
    assert found.code == "@decorator\ndef return_x(call):\n    return call.x\n\nassert return_x(1) == 2"


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("if OLD:  # see https://example.org/issues/1347", "if OLD:"),
        ("if OLD: # Issue #12", "if OLD:"),
        ("if OLD:  # in seconds", "if OLD:  # in seconds"),
        ("if OLD == ' # see #12':", "if OLD == ' # see #12':"),
    ],
)
def test_comments_beside_code_that_name_an_issue_are_left_out(row, told):
    tests = f"""
+def test_names():
+    {row}
+        assert return_x(1) == 2
"""
    failure = (
        f"    def test_names():\n        {row}\n>           assert return_x(1) == 2\nE       assert 1 == 2\n"
    )
    found = find_symptom(failure, diff_of("test_lib.py", tests))
    assert found.code == f"{told}\n    assert return_x(1) == 2"


NEW_TEST = """
+def test_short():
+    '''Say it.'''
+    items = [1]
+    # See issue 12.
+    if items:
+        made = lib.make(items)
+        assert made == 2
+    assert lib.more(made) == 3
"""


@pytest.mark.parametrize(
    ("line", "error", "code"),
    [
        (
            "        made = lib.make(items)",
            "ValueError: no",
            "items = [1]\nif items:\n    made = lib.make(items)",
        ),
        (
            "        made = lib.make(items)",
            "AttributeError: module 'lib' has no attribute 'make'",
            "items = [1]\nif items:\n    made = lib.make(items)\n    assert made == 2\nassert lib.more(made) == 3",
        ),
    ],
)
def test_a_short_traceback_gets_the_code_before_it_and_a_missing_name_all_of_it(line, error, code):
    short = f"test_lib.py:5: in test_short\n{line}\nE   {error}\n"
    other = "test_lib.py:9: in test_other\n    b()\nE   KeyError: 2"
    found = find_symptom(f"{short}\n{other}", diff_of("test_lib.py", NEW_TEST))
    assert (found.code, found.error) == (code, error)


def test_a_missing_name_alone_tells_nothing():
    failure = (
        "tests/test_a.py:1: in <module>\n    from lib import mode\nE   ImportError: cannot import name 'mode'"
    )
    with pytest.raises(ValueError, match="only that a name is missing"):
        find_symptom(failure, "")
    found = find_symptom(failure, diff_of("test_a.py", NEW_TEST), "tests/test_a.py::test_short[1]")
    assert found.code.endswith("assert lib.more(made) == 3")


def test_of_chained_errors_the_last_is_told():
    inner = "    def at(self):\n>       return self.f()\nE       ValueError: inner\n\nlib.py:3: ValueError\n"
    between = "\nDuring handling of the above exception, another exception occurred:\n\n"
    found = find_symptom(
        f"{inner}{between}    def test_at():\n>       at(1)\nE       KeyError: 1\n\nt.py:4: KeyError\n", ""
    )
    assert (found.code, found.error) == ("at(1)", "KeyError: 1")


def test_of_several_failures_the_first_is_told():
    found = find_symptom(f"{DEEP}\n{LONG}", "")
    assert (found.code, found.error) == SYMPTOMS["deep"][1:]


def test_long_output_is_cut():
    found = find_symptom("    def test_a():\n>       assert a\n" + "E   line\n" * 99, "")
    assert found == Symptom("assert a", (), "line\n" * 20 + "…")


def bug(failure, test, diff="", fix=""):
    return Evidence("", diff, fix, failure, (test,), frozenset())


def test_a_template_shows_the_failure_and_no_name_of_a_test():
    evidence = bug(
        LONG.replace("append(value)", "append(test_sums_param)"), "test_lib.py::test_sums_param[3-7]"
    )
    text = template_statement(evidence)
    assert text.startswith("# `lib.total`: another result than expected\n")
    assert "numbers.append(example)\n" in text
    assert "`numbers = [1, 2], value = 3`" in text
    assert check_statement(text, evidence) == ()


@pytest.mark.parametrize(
    ("failure", "title"),
    [
        (DEEP, "# `lib.total`: ends in KeyError"),
        (
            "    def test_a():\n>       assert a == 1\nE       assert 2 == 1\n",
            "# Another result than expected",
        ),
        (SHORT, "# `lib.total`: no error where one is expected"),
    ],
)
def test_a_title_tells_what_is_called_and_how_it_ends(failure, title):
    assert template_statement(bug(failure, "t", diff_of("test_lib.py", RAISES))).split("\n")[0] == title


def test_a_template_adds_what_the_tests_need_besides():
    tests = diff_of("test_a.py", '+from pkg import newly_named\n+assert newly_named() == "odd-text"')
    fix = diff_of("pkg/__init__.py", '+def newly_named():\n+    return "odd-text"')
    text = template_statement(
        bug("    def test_a():\n>       assert a() == 1\nE       assert 2 == 1\n", "t", tests, fix)
    )
    assert text.endswith("New names and texts in it: `newly_named`, `'odd-text'`.\n")


def test_a_template_needs_an_assertion():
    with pytest.raises(StatementRefused, match="holds no error"):
        template_statement(bug("killed", "t"))


GOOD = (
    "`fill` should take `on_missing='fail-now'` and then raise `SlotError` for a slot without a value. Today such slots"
    " just stay in the text."
)
"""A statement that tells all that the tests need."""


class Model:
    """Gives its answers in order, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def __call__(self, request, keys, skeleton):
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {"title": "Slots stay", "statement": "", "solvable": True, "why": "", **answer}


def state(*answers):
    model = Model(*answers)
    return model, asyncio.run(model_statement(EVIDENCE, model))


def test_a_good_answer_is_the_statement():
    model, statement = state({"statement": GOOD, "title": "# Slots \n stay"})
    assert statement.text == f"# Slots stay\n\n{GOOD}\n"
    assert statement.tries == 1
    assert model.asked[0].form == FORM


def test_the_question_never_shows_the_fix():
    question = statement_request(EVIDENCE)
    said = "\n".join(message.text for message in question.messages)
    assert "test_missing_slot_is_named" in said
    assert "SlotError, on_missing, 'fail-now'" in said
    assert not any(
        line in said for line in ("wanted_slots = ", "_replace_all", "text.strip()", "no value for")
    )
    assert question == statement_request(EVIDENCE)


def test_long_material_is_cut_in_its_middle():
    huge = Evidence("m" * 99_999, "t" * 99_999, "", "o" * 99_999, (), frozenset())
    assert len(statement_request(huge).messages[1].text) < 40_000


def test_a_leak_is_asked_again_once_with_the_reason():
    model, statement = state({"statement": f"{GOOD} See #431."}, {"statement": GOOD})
    assert statement.tries == 2
    complaint = model.asked[1].messages[-1].text
    assert "- It names an issue or a commit: '#431'." in complaint
    assert model.asked[1].messages[:2] == model.asked[0].messages


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        (
            (
                {"statement": GOOD + " See #431."},
                {"statement": "Slots without a value stay, they should not."},
            ),
            "SlotError",
        ),
        (({"statement": "Too short."}, {"statement": "Again too short."}), "words"),
        (({"solvable": False, "why": "Nothing\nis told."},), "cannot be solved: Nothing is told."),
        (({"solvable": "No"},), "cannot be solved"),
        ((AgentFault("answer", "no JSON"),), "no usable answer: no JSON"),
    ],
)
def test_a_statement_that_stays_wrong_is_refused(answers, problem):
    model = Model(*answers)
    with pytest.raises(StatementRefused, match=problem) as refused:
        asyncio.run(model_statement(EVIDENCE, model))
    assert model.answers == []
    assert "\n" not in str(refused.value)


def test_the_form_has_the_keys_that_are_asked_for():
    assert tuple(FORM.schema["properties"]) == KEYS
