"""The passes over the tree are exact."""

import numpy as np
import pytest

from dgm.policies.lineage.constants import ROOT_DRIFT_VARIANCE, ROOT_VARIANCE
from dgm.policies.lineage.hyper import Facts, expected_before_data, learned, log_likelihood, step_at
from dgm.policies.lineage.passes import Beliefs
from dgm.policies.lineage.steps import Step
from tests.unit import lineage_dense as dense

MEAN_DRIFT = -0.02
STEP = step_at(0.7, 0.18, 0.4, MEAN_DRIFT)
FIVE = [0, 0, 1, 1, 0]
EVIDENCE = [(2.0, -1.0), (0.5, 0.7), (0.0, 0.0), (1.5, 2.5), (3.0, -4.0)]


def beliefs(parents, evidence, step=STEP):
    made = Beliefs(step, MEAN_DRIFT)
    for parent in parents:
        made.add(parent)
    for agent, (precision, eta) in enumerate(evidence):
        made.set_evidence(agent, precision, eta, 1.0)
    settle(made)
    return made


def settle(made):
    # A mean moves by at most 1 at a time.
    for _ in range(10):
        made.update()


def facts(parents, evidence):
    depths = [0] * len(parents)
    for agent, parent in enumerate(parents):
        depths[agent] = depths[parent] + 1 if agent else 0
    precisions, etas = zip(*evidence, strict=True)
    return Facts(parents, depths, precisions, etas, [1.0] * len(parents))


@pytest.mark.parametrize(("parents", "evidence"), [([0, 0], EVIDENCE[:2]), (FIVE, EVIDENCE)])
def test_the_passes_equal_the_dense_posterior(parents, evidence):
    mean, cov = dense.posterior(parents, STEP, MEAN_DRIFT, evidence)
    for agent, state in enumerate(beliefs(parents, evidence).states):
        block = cov[2 * agent : 2 * agent + 2, 2 * agent : 2 * agent + 2]
        assert (state.t, state.m) == pytest.approx(mean[2 * agent : 2 * agent + 2], abs=1e-12)
        assert (state.tt, state.tm, state.mm) == pytest.approx(
            (block[0, 0], block[0, 1], block[1, 1]), abs=1e-12
        )


def test_with_the_tree_switched_off_agents_are_independent():
    off = Step(0.0, 0.3, 0.2, 0.0, carry=0.0)
    for agent, state in enumerate(beliefs(FIVE, EVIDENCE, off).states):
        mean, variance = (0.2, 0.3) if agent else (0.0, ROOT_VARIANCE)
        precision, eta = EVIDENCE[agent]
        assert state.tt == pytest.approx(1 / (1 / variance + precision), abs=1e-12)
        assert state.t == pytest.approx((mean / variance + eta) / (1 / variance + precision), abs=1e-12)


def test_a_child_without_evidence_is_what_its_parent_makes_expect():
    made = beliefs([0, 0], [(2.0, 1.0), (0.0, 0.0)])
    assert made.states[1].t == pytest.approx(made.predicted(1), abs=1e-12)


def test_a_broken_child_tells_its_parent_nothing():
    alone = beliefs([0, 0], [(2.0, 1.0), (0.0, 0.0)])
    made = beliefs([0, 0], [(2.0, 1.0), (0.0, 0.0)])
    made.set_evidence(1, 3.0, -9.0, 0.01)
    settle(made)
    assert made.states[0] == pytest.approx(alone.states[0])
    assert made.states[1].t < alone.states[1].t - 0.5


def test_updates_one_by_one_equal_a_restart():
    stream = np.random.RandomState(3)
    made = Beliefs(STEP, MEAN_DRIFT)
    for agent in range(60):
        made.add(int(stream.randint(max(agent, 1))))
        made.set_evidence(int(stream.randint(agent + 1)), *stream.uniform(0, 2, 2), stream.uniform())
        made.update()
    settle(made)
    before = list(made.states)
    made.restart(STEP, MEAN_DRIFT)
    assert np.array(made.states) == pytest.approx(np.array(before), abs=1e-3)


def test_a_copy_changes_alone():
    made = beliefs(FIVE, EVIDENCE)
    before = list(made.states)
    twin = made.copy()
    twin.set_evidence(4, 9.0, 9.0, 1.0)
    assert twin.update()
    made.update()
    assert made.states == before


def test_a_mean_moves_by_at_most_one_at_a_time():
    made = Beliefs(STEP, MEAN_DRIFT)
    made.add(0)
    made.set_evidence(0, 10.0, 44.0, 1.0)
    means = []
    for _ in range(5):
        made.update()
        means.append(made.states[0].t)
    assert means == pytest.approx([1.0, 2.0, 3.0, 4.0, 4.0])


def test_the_likelihood_equals_the_dense_one_on_a_tree_of_five():
    rho, q = np.array([0.1, 0.55, 1.0]), np.array([0.02, 0.3, 0.6])
    steps = Step(rho, q, (1 - rho) * 0.4, 0.05 * MEAN_DRIFT)
    ours = log_likelihood(facts(FIVE, EVIDENCE), steps, MEAN_DRIFT)
    for point, value in enumerate(ours):
        step = step_at(rho[point], q[point], 0.4, MEAN_DRIFT)
        theirs = dense.log_likelihood(FIVE, step, MEAN_DRIFT, EVIDENCE)
        assert value + dense.left_out(MEAN_DRIFT) == pytest.approx(theirs, abs=1e-10)


def family(kept):
    """Twenty children a logit above or below the root, and ten of each one's, that keep a share of that."""
    parents, evidence = [0], [(50.0, 0.0)]
    for child in range(20):
        gain = 1.0 if child % 2 else -1.0
        parents += [0, *[len(parents)] * 10]
        evidence += [(50.0, 50.0 * gain), *[(50.0, 50.0 * gain * kept)] * 10]
    return facts(parents, evidence)


def test_retention_is_learned_from_what_grandchildren_keep():
    assert expected_before_data()[0] > 0.9
    assert learned(family(1.0), 0.0, MEAN_DRIFT)[0] > 0.9
    assert learned(family(0.2), 0.0, MEAN_DRIFT)[0] < 0.5


def test_the_root_keeps_its_prior_without_evidence():
    state = beliefs([0], [(0.0, 0.0)]).states[0]
    assert state == pytest.approx((0.0, MEAN_DRIFT, ROOT_VARIANCE, 0.0, ROOT_DRIFT_VARIANCE))
