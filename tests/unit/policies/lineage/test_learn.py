"""What is learned from verdicts: linearised evidence, difficulties, and the parameters that steps share."""

import math
from statistics import fmean

import numpy as np
import pytest

from dgm.policies.lineage import learn
from dgm.policies.lineage.learn import (
    BROKEN_SOLVES,
    DIFFICULTY_VARIANCE,
    PENDING_INFORMATION,
    TEMPER,
    Evidence,
    Laws,
    Posterior,
    average_laws,
    learn_laws,
    log_likelihood,
)
from dgm.policies.lineage.posterior import State, Step
from tests.support import lineage_dense as dense
from tests.unit.policies.lineage.test_posterior import EVIDENCE, FIVE

MEAN_DRIFT = -0.02


def build_evidence(*agents):
    """Verdicts per agent: on tasks 0, 1, 2 …"""
    evidence = Evidence()
    evidence.add_tasks(10)
    for agent, verdicts in enumerate(agents):
        evidence.add_agent()
        for task, solved in enumerate(verdicts):
            evidence.add(agent, task, solved, 0)
    return evidence


def linearise(evidence, agent, skill=0.0, predicted=0.0):
    return [values[0] for values in evidence.linearise([agent], [skill], [predicted])]


def test_a_verdict_is_linearised_at_the_mean():
    for solved, broken in ((True, BROKEN_SOLVES), (False, 1 - BROKEN_SOLVES)):
        precision, eta, odds = linearise(build_evidence([solved]), 0)
        assert precision == pytest.approx(TEMPER / 4)
        assert eta == pytest.approx(TEMPER / 2 * (1 if solved else -1))
        assert odds == pytest.approx(math.log(broken / 0.5))
    assert linearise(build_evidence([]), 0) == [0.0, 0.0, 0.0]


def test_verdicts_of_many_agents_are_summed_by_agent():
    evidence = build_evidence([True, False, False], [], [False] * 4, [True] * 10)
    evidence.difficulties = np.linspace(-2, 2, 10)
    skills, predicted = [0.3, 0.0, -7.0, 2.0], [1.0, 2.0, 3.0, -60.0]
    for agent, values in enumerate(zip(*evidence.linearise(range(4), skills, predicted), strict=True)):
        assert values == pytest.approx(linearise(evidence, agent, skills[agent], predicted[agent]))
        x = min(max(skills[agent], -5), 5)
        solved = [agent in (0, 3), *[agent == 3] * 9][: evidence.counts[agent]]
        p = [1 / (1 + math.exp(b - x)) for b in evidence.difficulties[: len(solved)]]
        information = TEMPER * sum(q * (1 - q) for q in p)
        surprise = TEMPER * sum(y - q for y, q in zip(solved, p, strict=True))
        assert values[:2] == pytest.approx((information, information * x + surprise))


def test_failures_of_a_promising_agent_make_it_look_broken():
    evidence = build_evidence([False] * 8, [False] * 5 + [True] * 3)
    assert linearise(evidence, 0, predicted=1.0)[2] > 8
    assert 0 < linearise(evidence, 0, predicted=-3.0)[2] < 0.5
    assert linearise(evidence, 1, predicted=1.0)[2] < 0


def test_a_repeated_attempt_counts_half_and_can_be_taken_back():
    evidence = build_evidence([True, False], [False])
    before, counted = (
        linearise(evidence, 0),
        [list(evidence.counts), list(evidence.solved), list(evidence.uses)],
    )
    evidence.add(0, 0, True, 1)
    precision, _, _ = linearise(evidence, 0)
    assert precision == pytest.approx(1.25 * before[0])
    assert (len(evidence), evidence.counts[0], evidence.solved[0], evidence.uses[0]) == (4, 3, 2, 3)
    evidence.remove(0, 0, True, 1)
    assert linearise(evidence, 0) == before
    assert [list(evidence.counts), list(evidence.solved), list(evidence.uses)] == counted
    with pytest.raises(ValueError, match="not in list"):
        evidence.remove(0, 0, True, 1)


def test_difficulties_follow_the_verdicts_of_sound_agents():
    evidence = build_evidence(*[[True, False]] * 12, [False] * 3)
    for _ in range(10):
        evidence.learn_difficulties([0.0] * 13, [1.0] * 12 + [0.0])
    easy, hard, untried = evidence.difficulties[:3]
    assert easy < -1 < 1 < hard
    assert untried == 0.0
    assert evidence.difficulty_variances[0] < evidence.difficulty_variances[2] == DIFFICULTY_VARIANCE
    # At a most probable value the slope vanishes: 12 (p - 1) = b / 4.
    assert 12 * (1 / (1 + math.exp(easy)) - 1) == pytest.approx(easy / DIFFICULTY_VARIANCE, abs=0.01)


def test_the_likelihood_equals_the_dense_one():
    rho, q, drift = np.array([[0.1, 0.55, 1.0], [0.02, 0.3, 0.6], [0.012, 0.0005, 0.003]])
    steps = Step(rho, q, (1 - rho) * 0.4, 0.05 * MEAN_DRIFT, drift)
    for point, laws in enumerate(zip(rho, q, drift, strict=True)):
        step = Laws(*laws).step(0.4, MEAN_DRIFT)
        beliefs = dense.build_beliefs(FIVE, EVIDENCE, step, MEAN_DRIFT)
        theirs = dense.log_likelihood(FIVE, step, MEAN_DRIFT, EVIDENCE)
        assert log_likelihood(beliefs, steps)[point] == pytest.approx(theirs, abs=1e-10)
        forest, offsets = [0, 1, 0, 1, 3], {0: 0.0, 1: 0.8}
        beliefs = dense.build_beliefs(forest, EVIDENCE, step, MEAN_DRIFT)
        beliefs.offsets = offsets
        theirs = dense.log_likelihood(forest, step, MEAN_DRIFT, EVIDENCE, offsets)
        assert log_likelihood(beliefs, steps)[point] == pytest.approx(theirs, abs=1e-10)


def test_the_prior_stands_at_every_point_of_the_grid():
    points = list(zip(learn.RHO, learn.Q, learn.DRIFT, learn.PRIOR, strict=True))
    assert len(points) == len(learn.RETENTIONS) * len(learn.NOISES) * len(learn.DRIFT_VARIANCES)
    for rho, noise, drift, prior in points:
        retained = max(-30 * (1 - rho), -6)
        scattered = -0.5 * (math.log(noise / 0.18) / 0.8) ** 2
        drifted = -0.5 * (math.log(drift / 0.003) / 3) ** 2
        assert prior == pytest.approx(retained + scattered + drifted)


def laws_of(parents, evidence):
    step = Laws(1.0, 0.18, 0.003).step(0.0, MEAN_DRIFT)
    return learn_laws(dense.build_beliefs(parents, evidence, step, MEAN_DRIFT), 0.0)


def family(share, children=20, grandchildren=10, precision=50.0):
    """Children a logit above or below the root, and children of theirs that keep a share of that."""
    parents, evidence = [0], [(50.0, 0.0)]
    for child in range(children):
        gain = 1.0 if child % 2 else -1.0
        parents += [0, *[len(parents)] * grandchildren]
        evidence += [(precision, precision * gain), *[(precision, precision * gain * share)] * grandchildren]
    return parents, evidence


def test_retention_is_learned_from_what_grandchildren_keep(monkeypatch):
    assert average_laws(learn.PRIOR).rho > 0.9
    assert laws_of(*family(1.0)).rho > 0.9
    assert laws_of(*family(0.2)).rho < 0.5
    assert laws_of(*family(0.2, 10, 3, 8.0)).rho > 0.85, "a divided belief; its mean is 0.7"
    few = family(0.2, 10, 3, 12.0)
    assert laws_of(*few).rho < 0.35
    monkeypatch.setattr(learn, "PRIOR", learn.PRIOR - np.maximum(0.0, 30.0 * (1.0 - learn.RHO) - 6.0))
    assert laws_of(*few).rho > 0.9, "without the floor of the prior"


def lines(drifts):
    """Lines of six descendants of the root, each of which gains the same in every generation."""
    parents, evidence = [0], [(50.0, 0.0)]
    for drift in drifts:
        for generation in range(1, 7):
            parents.append(len(parents) - 1 if generation > 1 else 0)
            evidence.append((50.0, 50.0 * drift * generation))
    return parents, evidence


def test_how_far_lines_drift_apart_is_learned():
    before = average_laws(learn.PRIOR).drift
    assert before == pytest.approx(fmean(learn.DRIFT_VARIANCES), rel=0.01), "nearly flat"
    assert laws_of(*lines([-0.5, -0.3, 0.3, 0.5])).drift > 1.5 * before
    assert laws_of(*lines([0.0, 0.01, -0.01, 0.0])).drift < before


def build_posterior(*parents):
    posterior = Posterior()
    for parent in (0, *parents):
        posterior.born(parent)
    return posterior


def test_the_broken_rate_is_learned():
    posterior = build_posterior()
    for _ in range(12):
        posterior.graded(0, 0, True)
    for child in range(1, 31):
        posterior.born(0)
        for _ in range(3):
            posterior.graded(child, 0, child % 2 == 0)
    assert 0.3 < posterior.breakage.rate < 0.6
    assert posterior.broken()[0] == 0.0
    assert posterior.broken()[1] > 0.9 > 0.1 > posterior.broken()[2]


def test_the_mean_drift_is_learned_from_all_agents():
    posterior = build_posterior(*[0] * 9)
    posterior.graded(0, 0, True)
    posterior.beliefs.states[:] = [State(0.0, 0.38, 1.0, 0.0, 0.01)] * 10
    posterior.sweep()
    # A belief of -0.02 that is worth 30 agents, and ten that drift by 0.38: (3.8 - 0.6) / 40.
    assert posterior.mean_drift == pytest.approx(0.08)


def test_evaluations_under_way_reduce_variances_only():
    posterior = build_posterior(0, 1)
    for task in range(6):
        posterior.graded(task % 2, task, task < 3)
    before = np.array(posterior.beliefs.states)
    assert (posterior.states({}) == before).all()
    after = posterior.states({1: 3})
    assert (np.array(posterior.beliefs.states) == before).all()
    assert (after[:, :2] == before[:, :2]).all()
    assert (after[:, 2] < before[:, 2]).all()
    lone = build_posterior()
    lone.graded(0, 0, True)
    for count in (1, 2, 3):
        assert 1 / lone.states({0: count})[0, 2] == pytest.approx(
            1 / lone.states({})[0, 2] + PENDING_INFORMATION * count
        )


def test_gains_are_measured_from_the_seeds_skill_as_it_moves():
    posterior = build_posterior()
    assert posterior.anchor == 0.0
    posterior.graded(0, 0, True)
    assert posterior.anchor == posterior.beliefs.states[0].t > 0.3


def test_a_posterior_forgets_a_withdrawn_verdict():
    posterior, same = build_posterior(0), build_posterior(0)
    for task in range(4):
        posterior.graded(0, task, task % 2 == 0)
        same.graded(0, task, task % 2 == 0)
    posterior.graded(1, 0, False)
    posterior.withdrawn(1, 0, False)
    same.sweep()
    assert list(posterior.evidence.counts) == list(same.evidence.counts)
    np.testing.assert_allclose(posterior.states({}), same.states({}), atol=0.05)
