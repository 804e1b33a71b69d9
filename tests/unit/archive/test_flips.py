"""What a child gained and lost against its parents, and that the gate keeps it from having children."""

from dgm.archive.events import RunStarted
from dgm.archive.flips import FlipCounts
from dgm.domain import AgentId, Budget
from dgm.policies.limits import fertile, may_expand
from tests.support.runs.trees import TASKS, Log


def family(*, flips=True):
    """The seed resolved tasks 0 to 3 of six; agent 1 is its child."""
    log = Log()
    log.add(RunStarted(Budget(evaluations=100), TASKS, flips=flips))
    log.born()
    log.born(0)
    log.graded(0, [True] * 4 + [False] * 2)
    return log


def balance(log):
    return list(log.tree.flips.balance)


def test_lost_and_gained_tasks_are_set_off_against_each_other():
    log = family()
    log.graded(1, [True, False, False, True, True])
    assert balance(log) == [0, -1]
    assert fertile(log.tree).tolist() == [True, False]
    log.graded(1, [True])
    assert balance(log) == [0, 0]
    assert fertile(log.tree).tolist() == [True, True]


def test_what_a_parent_has_not_tried_is_neither():
    log = family()
    log.graded(1, [True] * 4 + [False] * 2 + [True, False])
    assert balance(log) == [0, 0]


def test_a_later_verdict_of_a_parent_counts_for_the_children_that_are_there():
    log = family()
    log.graded(1, [True] * 4 + [False] * 4)
    log.graded(0, [True])
    assert balance(log) == [0, -1]
    assert not fertile(log.tree)[1]


def test_of_two_parents_one_that_resolved_it_is_enough_to_lose_it():
    log = family()
    log.born(0)
    log.born(1, 2)
    log.graded(1, [False, False])
    log.graded(2, [True, False])
    log.graded(3, [False, True])
    assert balance(log) == [0, -2, -1, 0]


def test_without_the_gate_nothing_is_counted_and_nobody_is_kept_out():
    log = family(flips=False)
    log.graded(1, [False] * 4)
    assert balance(log) == [0, 0]
    assert fertile(log.tree).tolist() == [True, True]


def test_an_archive_grows_from_its_seed_whoever_else_is_kept_out():
    log = family()
    log.graded(1, [False] * 4)
    assert may_expand(log.tree)
    assert [AgentId(n) for n, may in enumerate(fertile(log.tree)) if may] == [0]


def test_counts_are_equal_where_the_gate_and_every_balance_are():
    one, other = FlipCounts(), FlipCounts()
    assert one == other
    other.balance.append(1)
    assert one != other
    one.balance.append(1)
    assert one == other
    one.counts = True
    assert one != other
    assert one != "counts"
