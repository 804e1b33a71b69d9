"""Suites made of suites: merged, filtered by conditions, and split anew."""

import shutil
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.api.suites import benchmark_make
from dgm.benchmarks.suite_editing import SplitBy, choose_splits, parse_conditions, set_keys
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.task_facts import Provenance, TaskFacts
from dgm.domain import Split, TaskId
from dgm.errors import UserError
from tests.support.named_suite import TASK as MINED
from tests.support.named_suite import make_named_suite
from tests.support.suite_on_disk import TASK as TINY
from tests.support.suite_on_disk import NoEngine, make_suite


@pytest.fixture(scope="module")
def suites(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suites")
    mined = make_named_suite(folder / "mined")
    (mined / "LICENSE").write_text("as you like\n")
    (mined / "mined.jsonl").write_text("{}\n")
    return mined, make_suite(folder / "tiny")


def opened(folder):
    return SuiteBenchmark(folder, NoEngine())


def make(out, *sources, **options):
    view = benchmark_make(out, *map(str, sources), **options)
    return view, opened(out)


@pytest.mark.starts_processes
def test_merged_tasks_are_what_they_were(suites, tmp_path):
    view, both = make(tmp_path / "both", *suites)
    assert (view.tasks, view.version) == ({"search": 2, "promotion": 0, "holdout": 0}, both.version)
    assert (both.name, both.license) == ("both", "MIT AND Apache-2.0")
    for suite, task in zip(map(opened, suites), (MINED, TINY), strict=True):
        assert both.workspace(task) == suite.workspace(task)
        assert both.hidden_tests(task) == suite.hidden_tests(task)
        assert both.reference(task) == suite.reference(task)
        assert both.record(task) == suite.record(task)
    assert (tmp_path / "both" / "LICENSE.mined").read_text() == "as you like\n"
    assert not (tmp_path / "both" / "mined.jsonl").exists()


@pytest.mark.starts_processes
def test_a_task_that_both_have_is_taken_once_and_another_one_of_its_name_is_renamed(suites, tmp_path):
    other = shutil.copytree(suites[1], tmp_path / "other")
    view, _ = make(tmp_path / "same", suites[1], other)
    assert (view.tasks["search"], view.repeated) == (1, (f"tiny/{TINY}",))
    (other / "tasks" / TINY / "problem.md").write_text("something else\n")
    (other / "repos" / "sums" / "NEWS").write_text("a library of its own\n")
    (other / "suite.toml").write_text((other / "suite.toml").read_text().replace('"tiny"', '"other"'))
    view, both = make(tmp_path / "both", suites[1], other)
    assert view.renamed == {f"other/{TINY}": f"other-{TINY}"}
    assert "NEWS" in both.workspace(TaskId(f"other-{TINY}"))
    assert "NEWS" not in both.workspace(TINY)
    assert both.record(TaskId(f"other-{TINY}")).repo == "sums-2"


@pytest.mark.starts_processes
def test_a_filtered_suite_keeps_its_notes_and_only_what_it_needs(suites, tmp_path):
    make(tmp_path / "both", *suites)
    _, some = make(tmp_path / "some", tmp_path / "both", where=["kind=boundary"])
    assert [task.id for task in some.tasks(Split.SEARCH)] == [TINY]
    assert sorted(path.name for path in (tmp_path / "some").iterdir()) == [
        "LICENSE.mined", "repos", "suite.toml", "tasks",
    ]  # fmt: skip
    assert "kind=boundary" in some.description


@pytest.mark.starts_processes
def test_a_split_is_a_copy_whose_tasks_stay_otherwise(suites, tmp_path):
    _, both = make(tmp_path / "both", *suites)
    view, copy = make(tmp_path / "copy", *suites, holdout=0.5)
    assert (view.tasks["holdout"], view.version) == (1, copy.version)
    assert copy.version != both.version
    assert make(tmp_path / "again", tmp_path / "both", holdout=0.5)[0].tasks == view.tasks
    for task in (MINED, TINY):
        assert replace(copy.record(task), split=Split.SEARCH) == both.record(task)


@pytest.mark.parametrize(
    ("sources", "options", "problem"),
    [
        ((), {}, "one suite or more"),
        (("starter", "starter"), {}, "named twice"),
        (("startr",), {}, "did you mean 'starter'"),
        (("starter",), {"where": ["kind=none"]}, "none of 60 tasks has kind=none"),
        (("starter",), {"holdout": 0.5, "by": "time"}, "has no date"),
        (("starter",), {"promotion": 0.5}, "^promotion: "),
        (("starter",), {"image": "pyhton"}, "did you mean 'python'"),
    ],
)
def test_what_cannot_be_made_is_refused_and_leaves_nothing(sources, options, problem, tmp_path):
    with pytest.raises(UserError, match=problem):
        make(tmp_path / "out", *sources, **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.starts_processes
def test_a_target_in_use_stays_as_it_is(suites, tmp_path):
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    with pytest.raises(UserError, match="is there already"):
        make(tmp_path / "used", suites[1])
    with pytest.raises(UserError, match="lies in the folder of a suite"):
        make(suites[1] / "inner", suites[1])
    with pytest.raises(UserError, match=r"used/file/out: cannot be written: .*; give another folder"):
        make(tmp_path / "used" / "file" / "out", suites[1])


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (
            'a = 1\nsplit = "search"  # why\n[t]\nsplit = 2\n',
            'a = 1\nsplit = "holdout"  # why\n[t]\nsplit = 2\n',
        ),
        ("a = 1\r\n\r\n[t]\nsplit = 2\n", 'a = 1\r\nsplit = "holdout"\n\r\n[t]\nsplit = 2\n'),
        ('l = [\n    "x",\n]\n"split" = 1\n', 'l = [\n    "x",\n]\n"split" = "holdout"\n'),
        ('split = """\nsearch"""\n', 'split = "holdout"\n'),
    ],
)
def test_one_key_changes_and_all_other_text_stays(tmp_path, text, changed):
    file = tmp_path / "task.toml"
    file.write_bytes(text.encode())
    set_keys(file, {"split": "holdout"})
    assert file.read_bytes().decode() == changed


def test_a_file_that_holds_the_value_is_not_written(tmp_path):
    file = tmp_path / "task.toml"
    file.write_text('split = "holdout"\n')
    file.chmod(0o400)
    before = file.stat().st_mtime_ns
    set_keys(file, {"split": "holdout"})
    assert file.stat().st_mtime_ns == before


def task(number, day="", kind="history", repo=""):
    origin = Provenance(kind, "0" * 40, day) if day else None
    return TaskFacts(TaskId(f"t{number:02}"), Split.SEARCH, kind, "", repo, (), (), (), {}, origin)


def split(facts, holdout=0.3, by=SplitBy.RANDOM, seed=0, promotion=0.0):
    return choose_splits(facts, holdout, by, seed, promotion)


def test_by_time_the_newest_are_held_out():
    facts = [task(n, f"2026-01-{29 - n:02}") for n in range(10)]
    chosen = split(facts, 0.3, SplitBy.TIME)
    by_age = [chosen[each.id] for each in sorted(facts, key=lambda each: each.day)]
    assert by_age == [Split.SEARCH] * 7 + [Split.HOLDOUT] * 3


def test_promotion_tasks_lie_between_the_others():
    facts = [task(n, f"2026-01-{29 - n:02}") for n in range(10)]
    chosen = split(facts, 0.3, SplitBy.TIME, promotion=0.2)
    by_age = [chosen[each.id] for each in sorted(facts, key=lambda each: each.day)]
    assert by_age == [Split.SEARCH] * 5 + [Split.PROMOTION] * 2 + [Split.HOLDOUT] * 3
    assert Counter(split(facts, 0.1, promotion=0.85).values())[Split.SEARCH] == 1
    for share in (0.7, -0.1, float("nan")):
        with pytest.raises(UserError, match=r"^promotion: "):
            split(facts, 0.3, promotion=share)


@settings(max_examples=40)
@given(st.lists(st.integers(1, 9), min_size=2, max_size=30), st.floats(0.05, 0.6))
def test_no_task_to_search_on_is_as_new_as_one_that_is_held_out(days, holdout):
    facts = [task(n, f"2026-01-{day:02}") for n, day in enumerate(days)]
    if len(set(days)) < 2:
        return
    chosen = split(facts, holdout, SplitBy.TIME)
    assert set(chosen) == {each.id for each in facts}
    day_of = {each.id: each.day for each in facts}
    old = [day_of[id_] for id_, each in chosen.items() if each is Split.SEARCH]
    new = [day_of[id_] for id_, each in chosen.items() if each is Split.HOLDOUT]
    assert max(old) < min(new)


def test_at_random_every_kind_has_its_share_and_the_seed_decides():
    facts = [task(n, kind="bug" if n % 2 else "history") for n in range(20)]
    chosen = split(facts, 0.3)
    held = Counter(each.kind for each in facts if chosen[each.id] is Split.HOLDOUT)
    assert held == {"bug": 3, "history": 3}
    assert split(list(reversed(facts)), 0.3) == chosen
    assert split(facts, 0.3, seed=1) != chosen


def test_libraries_stay_whole():
    facts = [task(n, repo=f"r{n % 4}") for n in range(20)]
    chosen = split(facts, 0.25, SplitBy.REPO)
    for repo in range(4):
        assert len({chosen[each.id] for each in facts if each.repo == f"r{repo}"}) == 1
    assert Counter(chosen.values()) == {Split.SEARCH: 15, Split.HOLDOUT: 5}


@pytest.mark.parametrize(
    ("facts", "by", "share", "problem"),
    [
        ([task(1), task(2)], SplitBy.TIME, 0.5, "'t01' has no date"),
        ([task(1, "2026-01-01"), task(2, "2026-01-01")], SplitBy.TIME, 0.5, "of one day"),
        ([task(1), task(2)], SplitBy.REPO, 0.5, "'t01' belongs to no library"),
        ([task(1, repo="a"), task(2, repo="a")], SplitBy.REPO, 0.5, "one library"),
        ([task(1)], SplitBy.RANDOM, 0.5, "one task"),
        ([task(1), task(2)], SplitBy.RANDOM, 0, "must be a share"),
        ([task(1), task(2)], SplitBy.RANDOM, float("nan"), "must be a share"),
    ],
)
def test_what_cannot_be_split_says_why(facts, by, share, problem):
    with pytest.raises(UserError, match=problem):
        split(facts, share, by)


def test_two_tasks_are_one_for_search_and_one_held_out():
    assert Counter(split([task(1), task(2)], 0.01).values()) == {Split.SEARCH: 1, Split.HOLDOUT: 1}


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
    assert refused.value.argument == "where"
