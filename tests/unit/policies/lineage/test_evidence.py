"""What verdicts say of skills, difficulties and broken agents; expected improvement."""

import math

import numpy as np
import pytest

from dgm.policies.lineage.constants import (
    BROKEN_SOLVES,
    DIFFICULTY_VARIANCE,
    PENDING_INFORMATION,
    PROBE_INFORMATION,
    TEMPER,
)
from dgm.policies.lineage.evidence import Evidence
from dgm.policies.lineage.improvement import expected_improvement, learned_spread
from dgm.policies.lineage.posterior import Posterior
from dgm.policies.lineage.steps import State


def evidence(*agents):
    """Verdicts per agent: on tasks 0, 1, 2 …"""
    made = Evidence(10)
    for agent, verdicts in enumerate(agents):
        made.add_agent()
        for task, solved in enumerate(verdicts):
            made.add(agent, task, solved, 0)
    return made


def test_a_verdict_is_linearised_at_the_mean():
    precision, eta = evidence([True]).linearised(0, 0.0)
    assert precision == pytest.approx(TEMPER / 4)
    assert eta == pytest.approx(TEMPER / 2)


def test_a_repeated_attempt_counts_half():
    made = evidence([True])
    once = made.linearised(0, 0.0)
    made.add(0, 0, True, 1)
    assert made.linearised(0, 0.0) == pytest.approx((1.5 * once[0], 1.5 * once[1]))


def test_all_at_once_equals_one_by_one():
    made = evidence([True, False, False], [], [False] * 4, [True] * 10)
    made.difficulties = list(np.linspace(-2, 2, 10))
    skills = [0.3, 0.0, -7.0, 2.0]
    for agent, both in enumerate(zip(*made.linearise_all(skills), strict=True)):
        assert both == pytest.approx(
            made.linearised(agent, skills[agent]) if made.counts[agent] else (0.0, 0.0)
        )


def test_failures_of_a_promising_agent_make_it_look_broken():
    made = evidence([False] * 8, [False] * 5 + [True] * 3)
    assert made.broken_odds(0, 1.0) > 8
    assert 0 < made.broken_odds(0, -3.0) < 0.5
    assert made.broken_odds(1, 1.0) < 0
    assert made.broken_odds_of_all([1.0, 1.0]) == pytest.approx([made.broken_odds(n, 1.0) for n in (0, 1)])


@pytest.mark.parametrize(("solved", "broken"), [(True, BROKEN_SOLVES), (False, 1 - BROKEN_SOLVES)])
def test_a_verdict_says_how_much_likelier_it_is_of_a_broken_agent(solved, broken):
    assert evidence([solved]).broken_odds(0, 0.0) == pytest.approx(math.log(broken / 0.5))


def test_difficulties_follow_the_verdicts():
    made = evidence(*[[True, False]] * 12)
    for _ in range(10):
        made.learn_difficulties([0.0] * 12, [1.0] * 12)
    easy, hard, untried = made.difficulties[:3]
    assert easy < -1 < 1 < hard
    assert untried == 0.0
    assert made.difficulty_variances[0] < made.difficulty_variances[2] == DIFFICULTY_VARIANCE
    # At a most probable value the slope vanishes: 12 (p - 1) = b / 4.
    assert 12 * (1 / (1 + math.exp(easy)) - 1) == pytest.approx(easy / DIFFICULTY_VARIANCE, abs=0.01)


def test_broken_agents_say_nothing_of_difficulties():
    made = evidence(*[[False]] * 12)
    made.learn_difficulties([0.0] * 12, [0.0] * 12)
    assert made.difficulties[0] == 0.0


def test_expected_improvement():
    d, s = np.array([0.0, 3.0, -1.0, -30.0]), np.array([2.0, 0.0, 1.0, 1.0])
    even, sure, behind, hopeless = expected_improvement(d, s)
    assert even == pytest.approx(2 / math.sqrt(2 * math.pi))
    assert sure == pytest.approx(3.0)
    assert behind == pytest.approx(0.08331547)
    assert 0 < hopeless < 1e-100


def test_expected_improvement_rises_without_a_step():
    values = expected_improvement(np.linspace(-12, 3, 400), np.ones(400))
    assert (np.diff(values) > 0).all()
    assert np.diff(np.log(values)).max() < 0.5


def test_evaluations_move_a_mean_by_no_more_than_its_deviation():
    spread = learned_spread(np.array([0.5]), np.array([1.0, 8.0, 1e9]))
    assert spread[0] == pytest.approx(0.5 * math.sqrt(PROBE_INFORMATION / (1 + 0.5 * PROBE_INFORMATION)))
    assert spread[0] < spread[1] < spread[2] == pytest.approx(math.sqrt(0.5))


def test_the_broken_rate_is_learned():
    made = Posterior()
    made.born(0)
    for _ in range(12):
        made.graded(0, 0, True)
    for child in range(1, 31):
        made.born(0)
        for _ in range(3):
            made.graded(child, 0, child % 2 == 0)
    assert 0.3 < made.breakage.rate < 0.6
    assert made.broken()[0] == 0.0
    assert made.broken()[1] > 0.9 > 0.1 > made.broken()[2]


def test_the_mean_drift_is_learned_from_all_agents():
    made = Posterior()
    for _ in range(10):
        made.born(0)
    made.graded(0, 0, True)
    made.beliefs.states[:] = [State(0.0, 0.38, 1.0, 0.0, 0.01)] * 10
    made.sweep()
    # A belief of -0.02 that is worth 30 agents, and ten that drift by 0.38: (3.8 - 0.6) / 40.
    assert made.mean_drift == pytest.approx(0.08)


def test_a_posterior_with_pending_evaluations_is_surer_of_the_same():
    made = Posterior()
    for parent in (0, 0, 1):
        made.born(parent)
    for task in range(6):
        made.graded(task % 2, task, task < 3)
    before = list(made.beliefs.states)
    assert [State(*row) for row in made.states({})] == before
    after = [State(*row) for row in made.states({1: 3})]
    assert made.beliefs.states == before
    assert [(state.t, state.m) for state in after] == [(state.t, state.m) for state in before]
    assert all(then.tt < now.tt for then, now in zip(after, before, strict=True))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_pending_evaluation_of_a_lone_agent_counts_for_its_own(count):
    made = Posterior()
    made.born(0)
    made.graded(0, 0, True)
    now, then = (State(*made.states(pending)[0]) for pending in ({}, {0: count}))
    assert 1 / then.tt == pytest.approx(1 / now.tt + PENDING_INFORMATION * count)


def test_gains_are_measured_from_the_seeds_skill_as_it_moves():
    made = Posterior()
    made.born(0)
    assert made.anchor == 0.0
    made.graded(0, 0, True)
    assert made.anchor == made.beliefs.states[0].t > 0.3


def test_a_verdict_taken_out_leaves_what_was_there_before():
    made, same = evidence([True, False], [False]), evidence([True, False], [False])
    made.add(0, 3, False, 1)
    made.remove(0, 3, False, 1)
    assert len(made) == len(same) == 3
    assert (made.counts, made.solved, made.uses) == (same.counts, same.solved, same.uses)
    assert made.linearise_all([0.1, -0.2]) == same.linearise_all([0.1, -0.2])
    with pytest.raises(ValueError, match="not in list"):
        made.remove(0, 3, False, 1)


def test_a_posterior_forgets_a_withdrawn_verdict():
    posterior, same = Posterior(), Posterior()
    for each in (posterior, same):
        each.born(0)
        each.born(0)
        for task in range(4):
            each.graded(0, task, task % 2 == 0)
    posterior.graded(1, 0, False)
    posterior.withdrawn(1, 0, False)
    same.sweep()
    assert list(posterior.evidence.counts) == list(same.evidence.counts)
    np.testing.assert_allclose(posterior.states({}), same.states({}), atol=0.05)
