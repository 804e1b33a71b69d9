"""Beliefs given the parameters: exact on any small tree."""

from itertools import product
from math import exp, log

import numpy as np
import pytest

from dgm.policies.lineage.learn import Laws
from dgm.policies.lineage.posterior import (
    BROKEN_RATE,
    BROKEN_STAYS,
    ROOT_DRIFT_SCALE,
    ROOT_VARIANCE,
    Beliefs,
    Breakage,
    Step,
)
from tests.support import lineage_dense as dense

MEAN_DRIFT = -0.02
STEP = Laws(0.7, 0.18, 0.009).step(0.4, MEAN_DRIFT)
FIVE = [0, 0, 1, 1, 0]
EVIDENCE = [(2.0, -1.0), (0.5, 0.7), (0.0, 0.0), (1.5, 2.5), (3.0, -4.0)]


def settle(beliefs):
    for _ in range(10):  # a mean moves by at most 1 at a time
        beliefs.update()
    return beliefs


@pytest.mark.parametrize("step", [STEP, Step(0.0, 0.3, 0.2, 0.0, 0.009, carry=0.0)], ids=["tree", "no tree"])
@pytest.mark.parametrize("agents", [1, 2, 5])
def test_beliefs_equal_the_dense_posterior(agents, step):
    beliefs = settle(dense.build_beliefs(FIVE[:agents], EVIDENCE[:agents], step, MEAN_DRIFT))
    mean, cov = dense.posterior(FIVE[:agents], step, MEAN_DRIFT, EVIDENCE[:agents])
    for agent, state in enumerate(beliefs.states):
        block = cov[2 * agent : 2 * agent + 2, 2 * agent : 2 * agent + 2]
        assert state[:2] == pytest.approx(mean[2 * agent : 2 * agent + 2], abs=1e-12)
        assert state[2:] == pytest.approx((block[0, 0], block[0, 1], block[1, 1]), abs=1e-12)


def test_the_trees_of_several_roots_are_exact_each_with_its_own_anchor():
    parents, offsets = [0, 1, 0, 1, 3], {0: 0.0, 1: 0.8}
    evidence = [(1.0, 0.5), (2.0, 3.0), (0.0, 0.0), (1.5, -1.0), (0.7, 0.9)]
    beliefs = dense.build_beliefs(parents, evidence, STEP, MEAN_DRIFT)
    beliefs.offsets = offsets
    beliefs.restart(STEP, MEAN_DRIFT)
    mean, _ = dense.posterior(parents, STEP, MEAN_DRIFT, evidence, offsets)
    assert [state.t for state in settle(beliefs).states] == pytest.approx(mean[::2].tolist(), abs=1e-9)
    assert (beliefs.roots, beliefs.depths) == ([0, 1, 0, 1, 1], [0, 0, 1, 1, 2])


def test_without_evidence_agents_are_what_the_model_expects():
    beliefs = settle(dense.build_beliefs([0, 0], [(0.0, 0.0), (0.0, 0.0)], STEP, MEAN_DRIFT))
    assert beliefs.states[0] == pytest.approx(
        (0.0, MEAN_DRIFT, ROOT_VARIANCE, 0.0, ROOT_DRIFT_SCALE * STEP.drift)
    )
    assert beliefs.states[1].t == pytest.approx(beliefs.predict(1), abs=1e-12)


def test_a_broken_child_tells_its_parent_nothing():
    alone, beliefs = (
        dense.build_beliefs([0, 0], [(2.0, 1.0), (0.0, 0.0)], STEP, MEAN_DRIFT) for _ in range(2)
    )
    beliefs.set_evidence(1, 3.0, -9.0, 0.01)
    settle(alone), settle(beliefs)
    assert beliefs.states[0] == pytest.approx(alone.states[0])
    assert beliefs.states[1].t < alone.states[1].t - 0.5


def test_updates_equal_a_restart():
    stream = np.random.RandomState(3)
    beliefs = Beliefs(STEP, MEAN_DRIFT)
    for agent in range(60):
        beliefs.add(int(stream.randint(max(agent, 1))))
        beliefs.set_evidence(int(stream.randint(agent + 1)), *stream.uniform(0, 2, 2), stream.uniform())
        beliefs.update()
    before = list(settle(beliefs).states)
    beliefs.restart(STEP, MEAN_DRIFT)
    assert np.array(beliefs.states) == pytest.approx(np.array(before), abs=1e-3)


def test_a_copy_changes_alone():
    beliefs = settle(dense.build_beliefs(FIVE, EVIDENCE, STEP, MEAN_DRIFT))
    before, twin = list(beliefs.states), beliefs.copy()
    twin.set_evidence(4, 9.0, 9.0, 1.0)
    assert twin.update()
    assert not beliefs.update()
    assert beliefs.states == before


def test_a_mean_moves_by_at_most_one_at_a_time():
    beliefs = dense.build_beliefs([0], [(10.0, 44.0)], STEP, MEAN_DRIFT)
    means = []
    for _ in range(5):
        beliefs.update()
        means.append(beliefs.states[0].t)
    assert means == pytest.approx([1.0, 2.0, 3.0, 4.0, 4.0])


PARENTS = [0, 0, 1, 2, 2, 0]
ODDS = [0.0, 0.7, -1.0, 2.0, 1.5, -4.0]


def build_breakage(parents=PARENTS, evidence=ODDS):
    breakage = Breakage()
    for parent in parents:
        breakage.add(parent)
    for agent, odds in enumerate(evidence[1:], 1):
        breakage.set_evidence(agent, odds)
    breakage.update()
    return breakage


def probabilities(breakage):
    return [1 / (1 + exp(-odds)) for odds in breakage.odds[1:]]


def sum_over_states(parents, evidence):
    """P(broken) of all but the root, by brute force."""
    total, broken = 0.0, np.zeros(len(parents))
    for state in product((0, 1), repeat=len(parents) - 1):
        z = (0, *state)
        weight = 1.0
        for agent in range(1, len(parents)):
            p = BROKEN_STAYS if z[parents[agent]] else BROKEN_RATE
            weight *= (p * exp(evidence[agent])) if z[agent] else 1 - p
        total += weight
        broken += weight * np.array(z)
    return (broken / total)[1:]


def test_chances_of_being_broken_equal_the_sum_over_all_states():
    breakage = build_breakage()
    assert probabilities(breakage) == pytest.approx(sum_over_states(PARENTS, ODDS), abs=1e-9)
    breakage.set_evidence(4, 3.0)
    breakage.update()
    changed = [*ODDS[:4], 3.0, ODDS[5]]
    assert probabilities(breakage) == pytest.approx(sum_over_states(PARENTS, changed), abs=1e-6)
    breakage.restart(changed)
    assert probabilities(breakage) == pytest.approx(sum_over_states(PARENTS, changed), abs=1e-9)


def test_a_restart_hears_the_last_agent_too():
    parents, changed = [0, 0, 1], [0.0, 0.7, 2.0]
    breakage = build_breakage(parents, [0.0, 0.7, -1.0])
    breakage.restart(changed)
    assert probabilities(breakage) == pytest.approx(sum_over_states(parents, changed), abs=1e-9)


def test_messages_weigh_less_the_likelier_a_line_is_broken():
    breakage = build_breakage([0, 0, 0], [0.0, 5.0, -5.0])
    assert breakage.sound[1] == pytest.approx((1 - BROKEN_RATE) / (1 - BROKEN_RATE + BROKEN_RATE * exp(5.0)))
    assert breakage.sound[2] > 0.99


def test_both_rates_are_learned():
    parents, evidence = [0], [0.0]
    for child in range(40):
        parents += [0, len(parents)]
        evidence += [6.0, 6.0] if child % 2 else [-6.0, -6.0]
    breakage = build_breakage(parents, evidence)
    for _ in range(10):
        breakage.learn(range(len(parents)))
    assert breakage.rate == pytest.approx((10 * BROKEN_RATE + 20) / (10 + 60), abs=0.02)
    assert breakage.stays == pytest.approx((10 * BROKEN_STAYS + 20) / (10 + 20), abs=0.02)


@pytest.mark.parametrize(("failures", "low", "high"), [(85, 0.6, 0.77), (40, 0.01, 0.15)])
def test_a_high_rate_is_learned_although_one_failure_says_little(failures, low, high):
    """100 children, one try each; sound ones solve 60 %, so a failure is only 2.5 times likelier of a broken one."""
    odds = [log(0.99 / 0.4)] * failures + [log(0.01 / 0.6)] * (100 - failures)
    breakage = build_breakage([0] * 101, [0.0, *odds])
    breakage.learn(range(101), often=True)
    assert low < breakage.rate < high, "0.76 and 0 before the prior"
