"""Candidates of an update: what is new, what stays, and what would give its fix away."""

from dgm.benchmarks.mining.history import Unit
from dgm.benchmarks.mining.scan import Candidate
from dgm.sessions.mining import divide_candidates, spread_candidates, task_id


def candidates(*commits):
    return [
        (number, Candidate(Unit(commit, "", 0, "", ()), ("a.py",), ("test_a.py",)))
        for number, commit in enumerate(commits)
    ]


def test_all_are_new_where_no_suite_is():
    found = candidates("e", "d", "c")
    assert divide_candidates(found, {}) == (found, [], [])


def test_only_what_is_newer_than_every_task_is_added():
    found = candidates("e", "d", "c", "b", "a")
    before = {task_id("history", "d"), task_id("history", "b"), "bug-1"}
    new, old, passed = divide_candidates(found, before)
    assert [one.unit.commit for _, one in new] == ["e"]
    assert [one.unit.commit for _, one in old] == ["d", "b"]
    assert [one.unit.commit for _, one in passed] == ["c", "a"]


def test_candidates_are_spread_over_the_history_and_its_modules():
    found = [
        (number, Candidate(Unit(str(number), "", 0, "", ()), (module,), ("test_a.py",)))
        for number, module in enumerate("aaaabaab")
    ]
    order = [number for number, _ in spread_candidates(found, 2)]
    assert order[:2] == [0, 4]
    assert sorted(order) == list(range(8))
    assert [number for number, _ in spread_candidates(found, 99)] == list(range(8))
    assert spread_candidates([], 5) == []
