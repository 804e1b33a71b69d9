"""The parent rule of ``sica`` on trees made by hand."""

from random import Random

import numpy as np
import pytest

from dgm.policies.rules import PolicyContext
from dgm.policies.sica import NewestGoodEnough, lower_end
from tests.support.runs.trees import Log


def parent(*resolved_of_ten):
    log = Log()
    for agent, resolved in enumerate(resolved_of_ten):
        log.born(*([agent - 1] if agent else []))
        log.graded(agent, [True] * resolved + [False] * (10 - resolved))
    return NewestGoodEnough(PolicyContext()).parents(log.tree, Random(0))


@pytest.mark.parametrize(("resolved", "n"), [(6, 10), (1, 60), (30, 60), (2, 2), (0, 5)])
def test_the_bound_is_that_of_the_published_interval(resolved, n):
    sample = np.array([1.0] * resolved + [0.0] * (n - resolved))
    published = sample.mean() - 1.96 * sample.std(ddof=1) / np.sqrt(n)
    assert lower_end(resolved / n, n) == pytest.approx(published, abs=1e-12)


def test_the_newest_agent_within_the_bound_is_the_parent():
    assert 0.4 < lower_end(0.7, 10) < 0.5
    assert parent(2, 7, 6, 5, 4, 3) == (3,)


def test_the_best_is_the_parent_where_no_newer_agent_is_within_its_bound():
    assert parent(6, 7, 3, 2) == (1,)


def test_an_older_agent_within_the_bound_is_not_preferred_to_the_best():
    assert parent(6, 7) == (1,)


def test_a_perfect_agent_has_no_interval():
    assert parent(10, 9) == (0,)


def test_the_bound_of_a_single_outcome_is_the_outcome():
    assert lower_end(1.0, 1) == 1.0
