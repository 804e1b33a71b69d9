"""The passes over the tree are exact."""

from math import log
from statistics import fmean

import numpy as np
import pytest

from dgm.policies.lineage import hyper
from dgm.policies.lineage.constants import (
    DRIFT_CENTRE,
    DRIFT_SPREAD,
    DRIFT_VARIANCES,
    NOISE_CENTRE,
    NOISE_SPREAD,
    NOISES,
    RETENTION_LEAST,
    RETENTION_SLOPE,
    RETENTIONS,
    ROOT_DRIFT_SCALE,
    ROOT_VARIANCE,
)
from dgm.policies.lineage.hyper import Facts, Laws, expected_before_data, learned, log_likelihood, step_at
from dgm.policies.lineage.passes import Beliefs
from dgm.policies.lineage.steps import Step
from tests.support import lineage_dense as dense

MEAN_DRIFT = -0.02
STEP = step_at(Laws(0.7, 0.18, 0.009), 0.4, MEAN_DRIFT)
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
    off = Step(0.0, 0.3, 0.2, 0.0, 0.009, carry=0.0)
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
    rho, q, drift = np.array([[0.1, 0.55, 1.0], [0.02, 0.3, 0.6], [0.012, 0.0005, 0.003]])
    steps = Step(rho, q, (1 - rho) * 0.4, 0.05 * MEAN_DRIFT, drift)
    ours = log_likelihood(facts(FIVE, EVIDENCE), steps, MEAN_DRIFT)
    for point, value in enumerate(ours):
        step = step_at(Laws(rho[point], q[point], drift[point]), 0.4, MEAN_DRIFT)
        theirs = dense.log_likelihood(FIVE, step, MEAN_DRIFT, EVIDENCE)
        assert value == pytest.approx(theirs, abs=1e-10)


def test_the_prior_is_that_of_its_constants_at_every_point_of_the_grid():
    points = list(zip(hyper.RHO, hyper.Q, hyper.DRIFT, hyper.PRIOR, strict=True))
    assert len(points) == len(RETENTIONS) * len(NOISES) * len(DRIFT_VARIANCES)
    assert all(0 < rho <= 1 for rho in RETENTIONS)
    for rho, noise, drift, prior in points:
        retained = max(-RETENTION_SLOPE * (1 - rho), RETENTION_LEAST)
        scattered = -0.5 * (log(noise / NOISE_CENTRE) / NOISE_SPREAD) ** 2
        drifted = -0.5 * (log(drift / DRIFT_CENTRE) / DRIFT_SPREAD) ** 2
        assert prior == pytest.approx(retained + scattered + drifted)


def family(kept, children=20, each=10, precision=50.0):
    """Children a logit above or below the root, and some of each one's, that keep a share of that."""
    parents, evidence = [0], [(50.0, 0.0)]
    for child in range(children):
        gain = 1.0 if child % 2 else -1.0
        parents += [0, *[len(parents)] * each]
        evidence += [(precision, precision * gain), *[(precision, precision * gain * kept)] * each]
    return facts(parents, evidence)


def test_retention_is_learned_from_what_grandchildren_keep():
    assert expected_before_data().rho > 0.9
    assert learned(family(1.0), 0.0, MEAN_DRIFT).rho > 0.9
    assert learned(family(0.2), 0.0, MEAN_DRIFT).rho < 0.5


def test_a_divided_belief_about_retention_does_not_halve_it():
    assert learned(family(0.2, 10, 3, 8.0), 0.0, MEAN_DRIFT).rho > 0.85, "its mean is 0.7"


def test_what_was_not_expected_of_retention_is_learned_from_forty_agents(monkeypatch):
    few = family(0.2, 10, 3, 12.0)
    assert learned(few, 0.0, MEAN_DRIFT).rho < 0.35
    without = np.maximum(0.0, RETENTION_SLOPE * (1.0 - hyper.RHO) + RETENTION_LEAST)
    monkeypatch.setattr(hyper, "PRIOR", hyper.PRIOR - without)
    assert learned(few, 0.0, MEAN_DRIFT).rho > 0.9


def lines(drifts):
    """Lines of six descendants of the root, each of which gains the same in every generation."""
    parents, evidence = [0], [(50.0, 0.0)]
    for drift in drifts:
        for generation in range(1, 7):
            parents.append(len(parents) - 1 if generation > 1 else 0)
            evidence.append((50.0, 50.0 * drift * generation))
    return facts(parents, evidence)


def test_how_far_lines_drift_apart_is_learned():
    assert expected_before_data().drift == pytest.approx(fmean(DRIFT_VARIANCES), rel=0.01), "nearly flat"
    apart = learned(lines([-0.5, -0.3, 0.3, 0.5]), 0.0, MEAN_DRIFT).drift
    together = learned(lines([0.0, 0.01, -0.01, 0.0]), 0.0, MEAN_DRIFT).drift
    assert apart > 1.5 * expected_before_data().drift
    assert together < expected_before_data().drift


def test_the_root_keeps_its_prior_without_evidence():
    state = beliefs([0], [(0.0, 0.0)]).states[0]
    assert state == pytest.approx((0.0, MEAN_DRIFT, ROOT_VARIANCE, 0.0, ROOT_DRIFT_SCALE * STEP.drift))
