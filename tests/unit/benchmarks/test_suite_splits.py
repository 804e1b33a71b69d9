from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.benchmarks.suite_splits import SplitBy, choose_splits
from dgm.benchmarks.task_facts import TaskFacts
from dgm.benchmarks.test_spec import Provenance
from dgm.domain import Split, TaskId
from dgm.errors import UserError


def task(number, day="", kind="history", repo=""):
    origin = Provenance(kind, "0" * 40, day) if day else None
    return TaskFacts(TaskId(f"t{number:02}"), Split.SEARCH, kind, "", repo, (), (), (), {}, origin)


def split(facts, holdout=0.3, promotion=0.0, by=SplitBy.RANDOM, seed=0):
    return choose_splits(facts, holdout, promotion, by, seed)


def test_by_time_the_newest_are_held_out_and_promotion_is_between():
    facts = [task(n, f"2026-01-{29 - n:02}") for n in range(10)]
    chosen = split(facts, 0.3, 0.2, SplitBy.TIME)
    by_age = [chosen[each.id] for each in sorted(facts, key=lambda each: each.day)]
    assert by_age == [Split.SEARCH] * 5 + [Split.PROMOTION] * 2 + [Split.HOLDOUT] * 3


@settings(max_examples=40)
@given(st.lists(st.integers(1, 9), min_size=2, max_size=30), st.floats(0.05, 0.6), st.floats(0, 0.3))
def test_no_task_to_search_on_is_as_new_as_one_that_is_held_out(days, holdout, promotion):
    facts = [task(n, f"2026-01-{day:02}") for n, day in enumerate(days)]
    if len(set(days)) < 2:
        return
    chosen = split(facts, holdout, promotion, SplitBy.TIME)
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
    chosen = split(facts, 0.25, 0.25, SplitBy.REPO)
    for repo in range(4):
        assert len({chosen[each.id] for each in facts if each.repo == f"r{repo}"}) == 1
    assert Counter(chosen.values()) == {Split.SEARCH: 10, Split.PROMOTION: 5, Split.HOLDOUT: 5}


@pytest.mark.parametrize(
    ("facts", "by", "shares", "problem"),
    [
        ([task(1), task(2)], SplitBy.TIME, (0.5, 0), "'t01' has no date"),
        ([task(1, "2026-01-01"), task(2, "2026-01-01")], SplitBy.TIME, (0.5, 0), "of one day"),
        ([task(1), task(2)], SplitBy.REPO, (0.5, 0), "'t01' belongs to no library"),
        ([task(1, repo="a"), task(2, repo="a")], SplitBy.REPO, (0.5, 0), "one library"),
        ([task(1)], SplitBy.RANDOM, (0.5, 0), "one task"),
        ([task(1), task(2)], SplitBy.RANDOM, (0, 0), "must be shares"),
        ([task(1), task(2)], SplitBy.RANDOM, (0.6, 0.4), "must be shares"),
        ([task(1), task(2)], SplitBy.RANDOM, (float("nan"), 0), "must be shares"),
    ],
)
def test_what_cannot_be_split_says_why(facts, by, shares, problem):
    with pytest.raises(UserError, match=problem):
        split(facts, *shares, by)


def test_two_tasks_are_one_for_search_and_one_held_out():
    assert Counter(split([task(1), task(2)], 0.01, 0.9).values()) == {Split.SEARCH: 1, Split.HOLDOUT: 1}
