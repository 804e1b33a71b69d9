"""Laws of ``lineage``: its passes are exact on any tree, and asking or replaying changes nothing."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.domain import Expand
from dgm.policies.lineage.learn import Laws, log_likelihood
from dgm.policies.lineage.posterior import Step
from tests.support import lineage_dense as dense
from tests.support.runs.life import Life
from tests.support.runs.trees import Log, named

MEAN_DRIFT = 0.03
AMOUNT = st.floats(0.0, 5.0)


@st.composite
def trees(draw):
    """Parents, and per agent a precision and where its own verdicts put it."""
    n = draw(st.integers(1, 9))
    parents = [0, *(draw(st.integers(0, agent - 1)) for agent in range(1, n))]
    evidence = []
    for _ in range(n):
        precision = draw(AMOUNT)
        evidence.append((precision, precision * draw(st.floats(-3.0, 3.0))))
    return parents, evidence


@pytest.mark.slow
@given(trees(), st.floats(0.1, 1.0), st.floats(0.02, 0.6), st.floats(5e-4, 0.03))
@settings(max_examples=100, deadline=None)
def test_passes_and_likelihood_are_exact_on_any_tree(tree, rho, q, drift):
    parents, evidence = tree
    step = Laws(rho, q, drift).step(-0.3, MEAN_DRIFT)
    beliefs = dense.build_beliefs(parents, evidence, step, MEAN_DRIFT)
    for _ in range(12):
        beliefs.restart(step, MEAN_DRIFT)
    mean, cov = dense.posterior(parents, step, MEAN_DRIFT, evidence)
    assert [state[:2] for state in beliefs.states] == pytest.approx(mean.reshape(-1, 2), abs=1e-6)
    assert [state.tt for state in beliefs.states] == pytest.approx(np.diag(cov)[::2], abs=1e-6)

    steps = Step(np.array([rho]), np.array([q]), np.array([step.c1]), step.c2, np.array([drift]))
    ours = log_likelihood(beliefs, steps)[0]
    assert ours == pytest.approx(dense.log_likelihood(parents, step, MEAN_DRIFT, evidence), abs=1e-7)


@pytest.mark.slow
@given(st.integers(0, 10_000), st.sampled_from([1, 3, 12]))
@settings(max_examples=25, deadline=None)
def test_a_replay_decides_the_same_whenever_it_is_asked(seed, workers):
    life = Life(seed, workers)
    life.live()
    assert any(isinstance(action, Expand) for _, action in life.decisions)
    replay, again = named("lineage"), Log.__new__(Log)
    again.tree, again.events = type(life.log.tree)(), []
    due = iter(life.decisions)
    moment, decided = next(due)
    meddler = Random(seed + 1)
    for count, event in enumerate(life.log.events, 1):
        again.tree.apply(event)
        replay.observe(event)
        if again.tree.agents and meddler.random() < 0.3:
            replay.next(again.tree, Random(0))
        while moment == count:
            stream = Random(f"{seed}/{again.tree.next_action}")
            assert replay.next(again.tree, stream) == decided
            moment, decided = next(due, (0, None))
    assert moment == 0, "every decision was asked again"
