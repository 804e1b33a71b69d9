from dataclasses import replace

import pytest

from dgm.benchmarks.task_facts import TaskFacts
from dgm.benchmarks.task_filter import parse_conditions
from dgm.benchmarks.test_spec import Provenance
from dgm.domain import Split, TaskId
from dgm.errors import UserError

FACTS = TaskFacts(
    id=TaskId("empty-input"),
    split=Split.SEARCH,
    kind="bug",
    difficulty="",
    repo="",
    tags=("bug", "parser"),
    fail_to_pass=("a::b", "a::c"),
    pass_to_pass=("a::d",),
    changes={"pkg/parse.py": (3, 1), "pkg/lex.py": (0, 2)},
    provenance=Provenance("bug", "0" * 40, "2026-03-05", "MIT", modules=("pkg/parse.py", "pkg/lex.py")),
)
TRUE = [
    ["kind=bug"], ["kind = history,bug", "f2p<5"], ["f2p=2", "f2p>=2", "f2p<=2"], ["p2p!=0"], ["lines>5"], ["files=2"],
    ["tag=parser"], ["tag!=lexer"], ["module=pkg/lex.py"], ["date>=2026-03"], ["date=2026"], ["date<=2026-03"],
    ["date>2025"], ["date<2027"], ["license=MIT"], ["difficulty="], [],
]  # fmt: skip
FALSE = [
    ["kind=Bug"], ["f2p>2"], ["tag!=parser"], ["date>2026-03-05"], ["date>2026"], ["date!=2026"],
    ["kind=bug", "split!=search"],
    ["kind!=bug,history"],
]  # fmt: skip
WRONG = {
    "": "expected FIELD=VALUE",
    "kind bug": "expected FIELD=VALUE",
    "kin=bug": r"unknown field 'kin' \(did you mean 'kind'\?\)",
    "f2p<five": "f2p is compared with a whole number",
    "kind<bug": "kind is a text",
    "date>yesterday": "date is compared with a day such as 2024-01-31",
}


@pytest.mark.parametrize("texts", TRUE, ids=str)
def test_conditions_hold(texts):
    assert parse_conditions(texts)(FACTS)


@pytest.mark.parametrize("texts", FALSE, ids=str)
def test_conditions_do_not_hold(texts):
    assert not parse_conditions(texts)(FACTS)


def test_a_task_without_a_day_is_of_no_date():
    assert not parse_conditions(["date!=2026"])(replace(FACTS, provenance=None))


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_condition_is_refused(text):
    with pytest.raises(UserError, match=WRONG[text]) as refused:
        parse_conditions([text])
    assert str(refused.value).startswith("--where ")
