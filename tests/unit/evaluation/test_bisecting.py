"""The bisection of lineages whose members pass, fail, or say nothing, and the majority that decides on one of them."""

from itertools import cycle
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dgm.evaluation.bisecting import Ending, Vote, bisect, count_further, decide

VOTES = {"+": Vote.GOOD, "-": Vote.BAD, "?": Vote.NONE}


def tried(members):
    """Perform a bisection of members given as signs; return its end and the members in the order of their tries."""
    order = []
    while True:
        votes = [[VOTES[sign]] * 2 if number in order else [] for number, sign in enumerate(members)]
        state = bisect(votes, 1)
        if state.wanted is None:
            return state, order
        assert state.wanted not in order
        order.append(state.wanted)


@given(some.integers(1, 200), some.data())
def test_a_single_change_is_found_with_logarithmically_many_tries(length, data):
    good = data.draw(some.integers(1, length))
    state, order = tried("+" * good + "-" * (length + 1 - good))
    assert (state.ending, state.last_good, state.first_bad) == (Ending.FOUND, good - 1, good)
    assert not state.contradictions
    assert len(order) <= 2 + ceil(log2(length + 1)) + 2


@pytest.mark.parametrize(
    ("members", "ending", "tries"),
    [
        ("+++", Ending.AGENT_PASSES, 1),
        ("--", Ending.SEED_FAILS, 2),
        ("-", Ending.SEED_FAILS, 1),
        ("+", Ending.AGENT_PASSES, 1),
        ("+?", Ending.NO_ANSWER, 1),
        ("?-", Ending.NO_ANSWER, 2),
    ],
)
def test_ends_that_do_not_differ_are_found_first(members, ending, tries):
    state, order = tried(members)
    assert (state.ending, len(order)) == (ending, tries)


def test_members_without_an_answer_are_passed_over():
    state, _ = tried("++??--")
    assert (state.last_good, state.first_bad) == (1, 4)
    state, _ = tried("++??+-")
    assert (state.last_good, state.first_bad) == (4, 5)


def test_a_lineage_that_changes_more_than_once_is_noticed():
    state, order = tried("++--++++--")
    assert state.ending is Ending.FOUND
    assert VOTES["++--++++--"[state.first_bad]] is Vote.BAD
    assert VOTES["++--++++--"[state.last_good]] is Vote.GOOD
    assert state.contradictions
    assert len(order) < 10


@pytest.mark.parametrize(
    ("attempts", "signs", "decision", "tries"),
    [
        (1, "-", Vote.BAD, 1),
        (3, "--", Vote.BAD, 2),
        (3, "+-+", Vote.GOOD, 3),
        (3, "?-?-", Vote.BAD, 4),
        (3, "?????-", Vote.NONE, 6),
        (5, "-+-+-", Vote.BAD, 5),
    ],
)
def test_a_majority_takes_no_attempt_that_cannot_change_it(attempts, signs, decision, tries):
    votes, source = [], cycle(signs)
    while decide(votes, attempts) is None:
        votes += [VOTES[next(source)] for _ in range(count_further(votes, attempts))]
    assert (decide(votes, attempts), len(votes)) == (decision, tries)
