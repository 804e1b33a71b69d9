"""Statements from the output of failing tests, as the runners print it, and from a scripted model."""

import asyncio
import json
from dataclasses import replace

import pytest

from dgm.benchmarks.mining.leaks import Evidence
from dgm.benchmarks.mining.statements import (
    MOST_SHOWN_WORDS,
    StatementRefused,
    check_statement,
    defined_names,
    find_subject,
    issue_of,
    model_statement,
    read_issues,
    statement_request,
    template_statement,
)
from dgm.errors import AgentFault, UserError
from tests.unit.benchmarks.mining.test_leaks import EVIDENCE, diff_of

FILE = """\
import lib


def test_total():
    xs = [1, 2]
    assert lib.total(xs, start=test_total) == 7


def test_raises():
    with raises(lib.SlotError):
        lib.total([1])


def test_dies():
    lib.total(None)
"""
ENDS = {
    "test_total": "E   assert 6 == 7\n",
    "test_raises": "E   Failed: DID NOT RAISE SlotError\n",
    "test_dies": "E   KeyError: 'nothing here'\n",
}


def bug(ends, diff="", fix="", file=FILE):
    failures = tuple((f"test_lib.py::{name}", text) for name, text in ends.items())
    tests = tuple(test for test, _ in failures)
    names = (frozenset({"total"}), frozenset({"total", "SlotError", "f"}))
    return Evidence("", diff, fix, "", tests, frozenset(), failures, {"test_lib.py": file}, subjects=names)


def test_a_template_shows_each_failing_test_whole_and_no_name_of_one():
    evidence = bug(ENDS)
    text, told = template_statement(evidence)
    assert told == evidence.fail_to_pass
    assert "xs = [1, 2]\n    assert lib.total(xs, start=example) == 7" in text
    assert "test_" not in text
    sentences = ("Nor does this:", "assertion should hold", "error should be raised", "without an error")
    assert [text.count(each) for each in sentences] == [2, 1, 1, 1]
    assert check_statement(text, evidence) == ()


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("test_total", "# `lib.total`: another result than expected"),
        ("test_raises", "# `lib.total`: no error where one is expected"),
        ("test_dies", "# `lib.total`: ends in KeyError"),
    ],
)
def test_a_title_tells_what_is_called_and_how_it_ends(name, title):
    assert template_statement(bug({name: ENDS[name]}))[0].split("\n")[0] == title


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("thread 'main' panicked at\nindex out of bounds", "ends in a panic"),
        ("thread 'main' panicked at\nassertion `left == right` failed", "another result than expected"),
        ("panic: nil map", "ends in a panic"),
        ("undefined: Quarter", "does not compile"),
        ("org.opentest4j.AssertionFailedError: expected: <2>", "another result than expected"),
        ("java.lang.NullPointerException: x", "ends in NullPointerException"),
    ],
)
def test_the_end_of_a_test_is_told_in_every_language(error, outcome):
    evidence = bug({"test_dies": error})
    assert template_statement(evidence)[0].split("\n")[0] == f"# `lib.total`: {outcome}"


def test_tests_that_are_not_shown_are_not_told():
    _, told = template_statement(bug({**ENDS, "test_gone": "E   KeyError: 1\n"}))
    assert told == tuple(f"test_lib.py::{name}" for name in ENDS)


def test_of_many_tests_the_first_are_told_within_the_words_that_a_statement_may_have():
    names = [f"test_{number}" for number in range(90)]
    file = "".join(
        f"def {name}():\n    assert f({number}) == {'1 + ' * 60}1\n\n\n" for number, name in enumerate(names)
    )
    text, told = template_statement(bug(dict.fromkeys(names, "E   assert 1 == 2\n"), file=file))
    assert 1 < len(told) < 90
    assert len(text.split()) <= MOST_SHOWN_WORDS


def test_a_template_adds_what_the_tests_need_besides():
    tests = diff_of("test_a.py", '+from pkg import newly_named\n+assert newly_named() == "odd-text"')
    fix = diff_of("pkg/__init__.py", '+def newly_named():\n+    return "odd-text"')
    text, _ = template_statement(bug({"test_total": "E   assert 2 == 1\n"}, tests, fix))
    assert text.endswith("New names and texts in it: `newly_named`, `'odd-text'`.\n")


def test_a_template_needs_a_test_and_its_output():
    with pytest.raises(StatementRefused, match="holds no error"):
        template_statement(bug({"test_total": ""}))
    with pytest.raises(StatementRefused, match="no test file shows"):
        template_statement(bug({"test_gone": "E   KeyError: 1\n"}))


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
        usual = {
            "title": "Slots stay",
            "statement": "",
            "solvable": True,
            "why": "",
            "follows": True,
            "missing": "",
        }
        return {**usual, **answer}


def state(*answers):
    model = Model(*answers)
    return model, asyncio.run(model_statement(EVIDENCE, model))


def test_a_good_answer_is_the_statement():
    model, statement = state({"statement": GOOD, "title": "# Slots \n stay"}, {"follows": True})
    assert statement == f"# Slots stay\n\n{GOOD}\n"
    fields = {
        **{key: {"type": "string"} for key in ("title", "statement", "why")},
        "solvable": {"type": "boolean"},
    }
    assert [request.form.name for request in model.asked] == ["issue", "check"]
    assert model.asked[0].form.schema["properties"] == fields


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
    model, statement = state({"statement": f"{GOOD} See #431."}, {"statement": GOOD}, {})
    assert GOOD in statement
    complaint = model.asked[1].messages[-1].text
    assert "- It names an issue or a commit: '#431'." in complaint
    assert model.asked[1].messages[:2] == model.asked[0].messages


def test_a_statement_that_leaves_open_what_is_graded_is_asked_again():
    answers = ({"statement": GOOD}, {"follows": False, "missing": "The order."}, {"statement": GOOD}, {})
    model, statement = state(*answers)
    assert GOOD in statement
    assert [request.form.name for request in model.asked] == ["issue", "check"] * 2
    check = model.asked[1].messages[0].text
    assert GOOD in check
    assert "test_missing_slot_is_named" in check
    assert "- It leaves open what a test checks: The order.." in model.asked[2].messages[-1].text


ISSUE = {
    "number": 431,
    "title": "Slots stay",
    "body": "See #12 and https://x.org/a/pull/3\n<!-- form -->I see {a}.",
}


def test_the_text_of_an_issue_stands_before_the_tests(tmp_path):
    (tmp_path / "issues.json").write_text(json.dumps([ISSUE]))
    issues = read_issues(tmp_path / "issues.json")
    assert issue_of("Fill slots (#431)", issues) == issues[431]
    assert issue_of("Fill slots (#43)", issues) == ""
    text, told = template_statement(replace(bug(ENDS), issue=issues[431]))
    assert text.startswith("# Slots stay\n\nand \nI see {a}.\n\n## Expected\n\nThis does not work")
    assert len(told) == 3


@pytest.mark.parametrize("text", ["", "{}", '[{"number": 1}]', '["x"]'])
def test_issues_of_another_form_are_refused(tmp_path, text):
    (tmp_path / "issues.json").write_text(text)
    if text == "{}":
        assert read_issues(tmp_path / "issues.json") == {}
        return
    with pytest.raises(UserError, match="expected a JSON list of issues"):
        read_issues(tmp_path / "issues.json")


def test_variables_of_the_test_are_no_part_of_a_title():
    evidence = bug(ENDS)
    assert find_subject("tc.v1.total(1)", evidence) == "total"
    assert find_subject("lib.total(1)\nif a != tc.total {", evidence) == "lib.total"
    assert find_subject("assert lib.SlotError", evidence) == "lib.SlotError"
    assert find_subject("other(1)", evidence) == ""
    assert find_subject("def total(x):\n    return lib.total(x)", evidence) == ""


def test_a_title_names_what_is_missing_where_the_test_calls_it():
    error = "AttributeError: module 'lib' has no attribute 'start'"
    assert template_statement(bug({"test_total": error}))[0].startswith("# `start`: ends in AttributeError")


def test_conditions_define_nothing():
    assert defined_names("+\tif len(m) != 3 {\n+func Split(m int) {\n") == {"Split"}


def test_names_that_programs_define_are_found():
    rows = [
        "def total(x):",
        "export class Cart {",
        "  addItem(a) {",
        "func (c *Cart) Sum() int {",
        "const rate = 3",
    ]
    text = "\n".join([*rows, "pub fn half(n: i32)"])
    assert defined_names(text) == {"total", "Cart", "addItem", "Sum", "rate", "half"}


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
        (({"statement": GOOD}, {"follows": False, "missing": "x"}) * 2, "leaves open what a test checks: x"),
        ((AgentFault("answer", "no JSON"),), "no usable answer: no JSON"),
    ],
)
def test_a_statement_that_stays_wrong_is_refused(answers, problem):
    model = Model(*answers)
    with pytest.raises(StatementRefused, match=problem) as refused:
        asyncio.run(model_statement(EVIDENCE, model))
    assert model.answers == []
    assert "\n" not in str(refused.value)
