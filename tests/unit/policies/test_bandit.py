"""What the bandit believes of an arm, and how it chooses by it."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.archive.events import ActionStarted, TaskGraded
from dgm.domain import AgentId, Cost, Evaluate, Evaluation, Tally, Usage, Verdict
from dgm.policies.operators import Bandit
from dgm.stats import chance_better
from tests.support.runs.trees import TASKS, Log


def watching(log):
    """A bandit over operators that has seen the whole log."""
    bandit = Bandit(lambda what: what.operator)
    for event in log.events:
        bandit.observe(event)
    return bandit


def started(*verdicts):
    log = Log()
    log.born()
    log.graded(0, verdicts)
    return log


# How probably one rate is higher


@pytest.mark.parametrize(
    ("one", "other", "chance"),
    [
        ((0, 0), (0, 0), 1 / 2),
        ((1, 0), (0, 0), 2 / 3),  # E[X] of Beta(2, 1)
        ((0, 3), (0, 0), 1 / 5),  # E[X] of Beta(1, 4)
        ((1, 0), (0, 1), 5 / 6),  # P(X > Y) = ∫ 2x (2x - x²) dx
        ((2, 0), (0, 2), 19 / 20),  # ∫ 3x² (1 - (1 - x)³) dx
    ],
)
def test_the_chance_to_be_better_by_hand(one, other, chance):
    assert chance_better(Tally(*one), Tally(*other)) == pytest.approx(chance, abs=1e-12)


@given(*[st.integers(0, 60)] * 4)
def test_the_chances_of_both_sides_add_up(a, b, c, d):
    one, other = Tally(a, b), Tally(c, d)
    assert chance_better(one, other) + chance_better(other, one) == pytest.approx(1.0, abs=1e-9)
    more = Tally(a + 1, b)
    assert chance_better(more, other) >= chance_better(one, other)


# The belief


def test_the_belief_after_six_events_by_hand():
    log = started(True, True, False, False)
    log.made((0,), "diagnose")
    log.graded(1, [True] * 4)
    log.made((0,), "diagnose", dies="check")
    log.made((0,), "compare")  # not judged yet
    log.graded(2, [True] * 3)
    q = chance_better(Tally(4, 0), Tally(2, 2))
    pooled = (4 * 0.25 + q) / (4 + 2)
    bandit = watching(log)
    assert bandit.belief(log.tree, "diagnose") == pytest.approx(
        (4 * pooled + q, 4 * (1 - pooled) + 1 - q + 1)
    )
    assert bandit.belief(log.tree, "compare") == pytest.approx((4 * pooled, 4 * (1 - pooled)))


def test_a_child_is_measured_against_the_best_of_its_parents():
    log = started(True, False, False, False)
    log.made((0,), "self-edit")
    log.graded(1, [True] * 5)
    log.made((0, 1), "crossover")
    log.graded(2, [True] * 4)
    a, _ = watching(log).belief(log.tree, "crossover")
    q = [chance_better(Tally(5, 0), Tally(1, 3)), chance_better(Tally(4, 0), Tally(5, 0))]
    assert a == pytest.approx(4 * (1 + sum(q)) / (4 + 2) + q[1])


@pytest.mark.parametrize("who", [0, 1])
def test_every_verdict_of_child_or_parent_renews_the_belief(who):
    log = started(True, False)
    log.made((0,), "diagnose")
    log.graded(1, [True] * 4)
    bandit = watching(log)
    before = bandit.belief(log.tree, "diagnose")
    seen = len(log.events)
    log.graded(who, [True])
    for event in log.events[seen:]:
        bandit.observe(event)
    after = bandit.belief(log.tree, "diagnose")
    assert after != before
    assert after == watching(log).belief(log.tree, "diagnose")


def test_a_child_that_nobody_answered_for_says_nothing_of_its_operator():
    log = started(True)
    log.made((0,), "diagnose", dies="expired")
    assert watching(log).belief(log.tree, "diagnose") == (1.0, 3.0)
    log.made((0,), "diagnose", dies="rejected")
    assert watching(log).belief(log.tree, "diagnose") == pytest.approx((4 / 5, 4 - 4 / 5 + 1))


def test_kept_predictions_shift_what_is_believed_of_a_child_without_verdicts_by_hand():
    log = started(False, False, False, False)
    log.made((0,), "diagnose", promises=TASKS[:3])
    log.made((0,), "compare", promises=TASKS[:1])
    log.tried(1, **{TASKS[0]: True, TASKS[1]: True, TASKS[2]: False})
    log.tried(2, **{TASKS[0]: False})
    rate = (1 + 2) / (2 + 4)
    shares = {
        "diagnose": (4 * rate + 2) / (4 + 3) / rate,
        "compare": 4 * rate / (4 + 1) / rate,
        "self-edit": 1.0,
    }
    bandit = Bandit(lambda what: what.operator, promises=True)
    for event in log.events:
        bandit.observe(event)
    for arm, share in shares.items():
        assert bandit.belief(log.tree, arm) == pytest.approx((share, 4 - share))  # s = 4, and M = 1/4
    assert watching(log).belief(log.tree, "diagnose") == (1.0, 3.0)


# The spend


def test_spend_is_the_mean_drawn_to_that_of_all_arms():
    log = started()
    for usd in (1.0, 3.0):
        log.made((0,), "diagnose", dies="check", usd=usd)
    log.made((0,), "self-edit", dies="check", usd=0.5)
    pooled = 4.5 / 3
    assert watching(log).mean_spends(["diagnose", "self-edit", "compare"]) == pytest.approx(
        [(4 + 2 * pooled) / 4, (0.5 + 2 * pooled) / 3, pooled]
    )


def test_a_child_that_cost_no_model_call_is_not_free_to_know():
    log = started()
    log.made((0,), "crossover")
    log.made((0,), "diagnose", usd=1.0)
    bandit = watching(log)
    free, paid = bandit.mean_spends(["crossover", "diagnose"])
    assert 0 < free < paid
    bandit._evaluation_spend, bandit._evaluations = (0.5, 0.0, 1.0), 1
    dearer_free, dearer = bandit.mean_spends(["crossover", "diagnose"])
    assert dearer - paid == pytest.approx(dearer_free - free) == pytest.approx(4 * 0.5)


# The choice


def test_a_better_arm_is_found():
    log = started(*[False] * 6, True)
    for _ in range(8):
        log.graded(log.made((0,), "diagnose"), [True] * 6)
        log.graded(log.made((0,), "self-edit"), [False] * 6)
    bandit = watching(log)
    chosen = Counter(bandit.pick(log.tree, ["diagnose", "self-edit"], Random(seed)) for seed in range(200))
    assert chosen["diagnose"] > 180


EVENTS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.booleans(), st.lists(st.booleans(), max_size=7)),
    min_size=1,
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(EVENTS, st.integers(0, 2**32), st.sets(st.integers(0, 12)))
def test_a_choice_is_a_function_of_the_log_and_the_stream(history, seed, asked):
    """Whenever it was asked before: a bandit that has just read the log chooses as one that lived through it."""
    log = started(True, False, True)
    lived = watching(log)
    for number, (arm, dies, verdicts) in enumerate(history):
        seen = len(log.events)
        child = log.made((0,), arm, dies="size" if dies else "", usd=0.5)
        if child is not None:
            log.graded(child, verdicts)
        elif log.tree.tried_count[0] < len(log.tree.tasks):
            log.graded(0, verdicts[:1])
        for event in log.events[seen:]:
            lived.observe(event)
        if number in asked:
            lived.pick(log.tree, ["a", "b", "c"], Random(number))
    choices = [
        [bandit.pick(log.tree, ["a", "b", "c"], Random(seed + n)) for n in range(5)]
        for bandit in (lived, watching(log))
    ]
    assert choices[0] == choices[1]
    assert lived.belief(log.tree, "a") == watching(log).belief(log.tree, "a")


def test_a_withdrawn_verdict_takes_the_judgement_of_a_child_back():
    log = started(True, True, False, False)
    child = log.made((0,), "self-edit")
    log.graded(child, [True, True, True])
    before = watching(log).belief(log.tree, "self-edit")
    log.graded(child, [False])
    assert watching(log).belief(log.tree, "self-edit") != before
    log.withdrawn()
    assert watching(log).belief(log.tree, "self-edit") == before


def test_evaluations_that_the_provider_failed_change_no_estimate():
    log = started(True, False)
    log.made((0,), "diagnose", usd=2.0)
    log.graded(1, [True, False])
    calm = watching(log)
    action = log.tree.next_action
    log.add(ActionStarted(action, Evaluate(AgentId(1), TASKS[5])))
    cost = Cost(Usage(usd=9.0), 100.0)
    log.add(TaskGraded(action, Evaluation(AgentId(1), TASKS[5], 0, Verdict.INVALID, "outage", cost=cost)))
    troubled = watching(log)
    assert troubled.mean_spends(["diagnose"]) == calm.mean_spends(["diagnose"])
    assert troubled.belief(log.tree, "diagnose") == calm.belief(log.tree, "diagnose")
