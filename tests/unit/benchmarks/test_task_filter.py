import pytest

from dgm.benchmarks.named_tests import Provenance
from dgm.benchmarks.task_facts import TaskFacts
from dgm.benchmarks.task_filter import parse_condition
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
    "kind=bug", "kind == bug and f2p<5", "f2p = 2", "f2p>=2 AND f2p<=2", "p2p != 0", "lines > 5", "files = 2",
    "added=3 and removed=3", "tag = parser", "tag != lexer", "module ~ LEX", "module = pkg/lex.py", "date >= 2026-03",
    "date = 2026", "date <= 2026-03", "date > 2025", "date < 2027", "date ~ 03-05",
    "date < '2026-04-01'", "not kind = history", "not (kind = history or f2p > 2)",
    "kind = history or split = search and license = MIT", "difficulty = ''", 'id ~ "empty-"', "not not id ~ empty",
]  # fmt: skip
FALSE = [
    "kind = Bug",
    "f2p > 2",
    "tag != parser",
    "date > 2026-03-05",
    "date > 2026-03",
    "date > 2026",
    "date != 2026",
    "kind = bug and not split = search",
    "repo ~ x",
]
WRONG = {
    "": "expected a field .* at character 1",
    "kin = bug": r"unknown field 'kin' \(did you mean 'kind'\?\), at character 1",
    "kind bug": "expected one of .* at character 6",
    "kind =": "expected a value after '=', at character 7",
    "kind = and": "expected a value",
    "f2p < five": "f2p is compared with a whole number, not 'five', at character 7",
    "f2p ~ 2": "f2p is a number",
    "kind < bug": "kind is a text",
    "date > yesterday": "date is compared with a day such as 2024-01-31, not 'yesterday', at character 8",
    "date = 2024-99": "date is compared with a day",
    "date < 2024-1-5": "date is compared with a day",
    "kind = bug and": "expected a field",
    "kind = bug f2p = 2": "expected 'and', 'or' or the end, at character 12",
    "(kind = bug": r"expected '\)'",
    "kind = bug)": "expected 'and', 'or' or the end",
    "kind = 'bug": "cannot be read, at character 8",
    "(" * 99 + "kind = bug": "nested too deep",
    "not " * 99 + "kind = bug": "nested too deep",
}


@pytest.mark.parametrize("text", TRUE)
def test_a_condition_holds(text):
    assert parse_condition(text)(FACTS)


@pytest.mark.parametrize("text", FALSE)
def test_a_condition_does_not_hold(text):
    assert not parse_condition(text)(FACTS)


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_condition_is_refused_with_its_place(text):
    with pytest.raises(UserError, match=WRONG[text]) as refused:
        parse_condition(text)
    assert str(refused.value).startswith("--where: ")
    assert "\n" not in str(refused.value)
