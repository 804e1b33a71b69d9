"""Stillborn children in a row, and what they died of."""

from array import array

from dgm.archive.deaths import StillbornStreak, forget_all, may_mend
from dgm.archive.events import AgentStillborn
from dgm.domain import SEED, ActionId, Stillborn


def streak(*causes):
    made = StillbornStreak()
    for number, (stage, reason) in enumerate(causes, 1):
        made.add(AgentStillborn(ActionId(number), Stillborn((SEED,), "self-edit", stage, reason)))
    return made


def last(made):
    return [event.action for event in made.of_last_cause()]


def test_the_latest_of_one_cause_are_told_the_last_first():
    assert last(streak(("check", "a"), ("check", "b"), ("check", "b"), ("check", "b"))) == [4, 3, 2]
    assert last(streak(("check", "b"), ("check", "a"), ("check", "a"))) == [3, 2]
    assert last(streak(("build", "a"), ("check", "a"))) == [2]
    assert last(streak(("check", "a"), ("build", "a"))) == [2]
    assert last(streak()) == []


def test_what_stands_in_brackets_makes_no_other_cause():
    assert last(streak(("check", "crash (a.py:1)"), ("check", "crash (b.py:2)"))) == [2, 1]


def test_a_streak_that_is_forgotten_is_empty():
    made = streak(("check", "a"), ("check", "a"))
    assert len(made) == 2
    made.forget()
    assert len(made) == 0


def test_settings_of_models_limits_and_the_sandbox_may_mend():
    assert all(may_mend({section: {}}) for section in ("models", "limits", "sandbox"))
    assert not may_mend({"workers": 2, "budget": {}})


def test_the_counts_of_all_agents_are_forgotten():
    barren = array("q", [3, 0, 5])
    forget_all(barren)
    assert list(barren) == [0, 0, 0]
